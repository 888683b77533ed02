"""Who gets to see what of a data holder's graph: a split as in the benchmark, but with given sensitive links.

The *release* is what gets published: all links but the sensitive ones go into it. The *rehearsal* holds back a tenth of
the other links as well, to see how well they can be predicted: a task that could not be judged on the release, which
contains its answers. Negatives belong to a *purpose*: what a search for a setting has looked at is never reported on.
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import Literal

import numpy as np

from ppgsl_bench.errors import GraphError
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs, Ranks, num_pairs, ranks_of, sample_pairs_outside
from ppgsl_bench.seeds import generator
from ppgsl_bench.split import (
    NEGATIVE_FAMILIES,
    TEST_SHARE,
    TRAIN_NODE_SHARE,
    Split,
    degree_negatives,
    hard_negatives,
)

Purpose = Literal["search", "report"]

# With a handful of sensitive links an AUC against as few unlinked pairs would be mostly noise.
FEWEST_NEGATIVES = 200
# Below this many links a tenth of them says nothing about link prediction.
FEWEST_REHEARSAL_LINKS = 20

_NO_PAIRS: Pairs = np.empty((0, 2), dtype=np.int64)


def release_split(visible: Graph, sensitive: Pairs, true_links: Ranks, purpose: Purpose, seed: int) -> Split:
    """The split by which attacks on a release are judged.

    Args:
        visible: what a defense is given, or what was published.
        sensitive: the hidden links, shape [S, 2].
        true_links: sorted ranks of all pairs known to be links, the sensitive ones among them.
        purpose: what the negatives are for.
        seed: the user's.
    """
    rng = _streams("release", visible, purpose, seed)
    unlinked = num_pairs(visible.num_nodes) - len(true_links)
    count = min(max(len(sensitive), FEWEST_NEGATIVES), unlinked // (len(NEGATIVE_FAMILIES) + 1))
    if count == 0:
        raise GraphError(
            f"{visible.num_nodes} nodes have only {unlinked} unlinked pairs: too few to tell the sensitive links from"
        )
    # One degree-matched pair for each sensitive link, and round again if more are wanted.
    matched = sensitive[np.arange(count) % len(sensitive)]
    hard = hard_negatives(visible, true_links, count, rng("hard"))
    taken = np.union1d(true_links, ranks_of(hard, visible.num_nodes))
    degree = degree_negatives(visible, matched, taken, rng("degree"))
    taken = np.union1d(taken, ranks_of(degree, visible.num_nodes))
    uniform = sample_pairs_outside(taken, visible.num_nodes, count, rng("uniform"))
    return _split(visible, sensitive, {"uniform": uniform, "degree": degree, "hard": hard}, rng, seed)


def rehearsal_split(visible: Graph, sensitive: Pairs, true_links: Ranks, purpose: Purpose, seed: int) -> Split | None:
    """The split by which link prediction is judged; None if there are too few links for that."""
    tested = round(TEST_SHARE * visible.num_edges)
    unlinked = num_pairs(visible.num_nodes) - len(true_links)
    if visible.num_edges < FEWEST_REHEARSAL_LINKS or tested > unlinked:
        return None
    rng = _streams("rehearsal", visible, purpose, seed)
    test_links = visible.edges[np.sort(rng("links").permutation(visible.num_edges)[:tested])]
    test_non_links = sample_pairs_outside(true_links, visible.num_nodes, tested, rng("test"))
    return _split(visible.without_edges(test_links), sensitive, {}, rng, seed, test_links, test_non_links)


def _streams(part: str, visible: Graph, purpose: Purpose, seed: int) -> Callable[[str], np.random.Generator]:
    return lambda name: generator("own graph", part, name, visible.digest, purpose, seed)


def _split(
    visible: Graph,
    sensitive: Pairs,
    negatives: dict[str, Pairs],
    rng: Callable[[str], np.random.Generator],
    seed: int,
    test_links: Pairs = _NO_PAIRS,
    test_non_links: Pairs = _NO_PAIRS,
) -> Split:
    nodes = rng("nodes").permutation(visible.num_nodes)
    trained = round(TRAIN_NODE_SHARE * visible.num_nodes)
    return Split(
        visible=visible,
        sensitive=sensitive,
        negatives=MappingProxyType({family: negatives.get(family, _NO_PAIRS) for family in NEGATIVE_FAMILIES}),
        test_links=test_links,
        test_non_links=test_non_links,
        train_nodes=np.sort(nodes[:trained]),
        test_nodes=np.sort(nodes[trained:]),
        seed=seed,
    )
