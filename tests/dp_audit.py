"""Empirical lower bounds on ε: does a mechanism tell two neighbouring graphs apart better than it claims?

For an ε-DP mechanism every event S has P(S | G) <= e^ε P(S | G + canary link) and the reverse. Exact binomial
(Clopper-Pearson) bounds on the two frequencies give a lower bound on ε that is too high with probability at most
`FALSE_ALARM`, over all the outcomes of a series together.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable

import numpy as np
from scipy import stats

from ppgsl_bench.graph import Graph

FALSE_ALARM = 1e-3
# Link counts further from the input's than this are one outcome.
_COUNT_SPAN = 3


def audited_epsilon(publish: Callable[[Graph], Graph], graph: Graph, canary: tuple[int, int], runs: int) -> float:
    """Lower bound on the ε of `publish` from what becomes of a canary link: its published bit and the link count."""
    neighbours = graph, graph.with_edges(graph.edges, [canary])
    usual = graph.num_edges

    def observed(published: Graph) -> tuple[bool, int]:
        far = max(-_COUNT_SPAN, min(published.num_edges - usual, _COUNT_SPAN + 1))
        return bool(published.has_edges(np.array([canary]))[0]), far

    series = [[observed(publish(neighbour)) for _ in range(runs)] for neighbour in neighbours]
    joint = epsilon_lower_bound(*series)
    bit, count = (epsilon_lower_bound(*[[o[part] for o in outcomes] for outcomes in series]) for part in (0, 1))
    return max(joint, bit, count)


def epsilon_lower_bound(without: Iterable[Hashable], with_canary: Iterable[Hashable]) -> float:
    """The largest ε that the outcomes of two equally long series of runs are evidence for.

    Every outcome is an event, and so is its complement, each in two directions with two bounds: Bonferroni's correction
    pays for their number.
    """
    counts = Counter(without), Counter(with_canary)
    runs = tuple(sum(c.values()) for c in counts)
    outcomes = set(counts[0]) | set(counts[1])
    tail = FALSE_ALARM / (8 * len(outcomes))
    best = 0.0
    for outcome in outcomes:
        for a, b in ((0, 1), (1, 0)):
            hits_a, hits_b = counts[a][outcome], counts[b][outcome]
            for x, y in ((hits_a, hits_b), (runs[a] - hits_a, runs[b] - hits_b)):
                low, high = _lower(x, runs[a], tail), _upper(y, runs[b], tail)
                if low > 0:
                    best = max(best, math.log(low / high))
    return best


def _lower(hits: int, runs: int, tail: float) -> float:
    return float(stats.beta.ppf(tail, hits, runs - hits + 1)) if hits else 0.0


def _upper(hits: int, runs: int, tail: float) -> float:
    return float(stats.beta.isf(tail, hits + 1, runs - hits)) if hits < runs else 1.0
