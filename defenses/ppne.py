"""PPNE: flip the links that hide the sensitive ones from DeepWalk and cost its embedding little.

Han, Yang, Wang and Wu, "Privacy-Preserving Network Embedding Against Private Link Inference Attacks", IEEE TDSC 2024
(arXiv 2205.14440), and the code released with it. Every step

1. tosses a coin for each flip: an addition or a deletion;
2. takes random unlinked pairs as candidates for addition, and all links that may go as candidates for deletion;
3. differentiates O = Σ_{other pairs} cos(x_u, x_v) − Σ_{sensitive pairs} cos(x_u, x_v), x the DeepWalk vectors, by the
   weight of each candidate;
4. estimates the loss L of the embedding after each flip alone, by first-order perturbation of the spectrum;
5. makes the flips with the largest |∂O/∂A_uv| / L^k among those with the sign that raises O.

What differs from the released code, and why:

- The *other pairs* are drawn here, among the unlinked pairs of the visible graph. The released code takes the pairs
  that the attack is later judged on, which flatters the result.
- Candidates are drawn afresh at each step; there, a fixed seed yields the same ones every time.
- No sensitive pair is ever added; there, only the sign of the gradient stands against it. No pair is flipped twice.
- A deletion that would isolate a node is refused when its turn comes; there, one random link of each node is shielded.
- DeepWalk never visits an isolated node, and D⁻¹ does not exist for it. Isolated nodes stay as they are, and sensitive
  pairs that touch one have no part in the objective.
- Vectors and spectrum are renewed every `retrain_every` steps. In between, the gradient is that of the present graph at
  the vectors of the last training, and eigenvalues move to first order.
- Candidates for addition have weight 0.001 there, in the graph that is trained on and differentiated, which lifts
  entries of Z off their floor. On Cora that raises O on the defense's own pairs, but not what an attack finds (AUC of
  DeepWalk cosines with 0.2 m flips: 0.57 with it, 0.58 without), and multiplies the entries of A. Hence the default 0.
- On graphs of more than `EXACT_SPECTRUM_NODES` nodes, the loss is estimated from the leading eigenpairs and random
  probes (see `ppgsl_bench.spectrum`); of more than `supervised_pairs` pairs, each step's O has a fresh sample.
- The graph is taken as unweighted. Links that stay keep their weight, new ones get the weight of a random link.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ppgsl_bench.deepwalk_gradient import cosines, link_gradient, vector_gradient
from ppgsl_bench.defenses import Defense, Field, Publication, register
from ppgsl_bench.defenses.edits import edit_count, edited
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs, Ranks, num_pairs, pairs_at, ranks_of, sample_distinct, sample_pairs_outside
from ppgsl_bench.spectrum import Spectrum, exact_spectrum, sketched_spectrum
from ppgsl_bench.walks import SkipGram, random_walks, shuffled_starts, skip_gram

# Up to here a dense eigendecomposition takes seconds (N = 2,600: 1.5 s and 0.1 GB; N = 4,000: 5 s and 0.4 GB).
EXACT_SPECTRUM_NODES = 4_000

# Measured on one core at 128 dimensions, window 10 and 5 negative samples, to tell in advance what is out of reach.
_SECONDS_PER_VISIT = 2e-6
_SECONDS_PER_PRODUCT = 1.5e-9
_MOST_HOURS = 48

# Losses are compared to the largest one; below this share of it, a flip costs nothing that could be told from rounding.
_SMALLEST_SHARE = 1e-9


@register("ppne", version=2, tags=("paper",))
class PPNE(Defense):
    """Flip links that most lower the DeepWalk similarity of sensitive pairs at little spectral loss."""

    flips: float = Field(0.3, ge=0, le=2, help="number of links added or removed, as a share of the number of links")
    flips_per_step: float = Field(
        0.01, ge=0, le=1, help="flips made on one gradient, as a share of the number of links; at least one flip"
    )
    retrain_every: int = Field(10, ge=1, help="steps between two trainings of DeepWalk (and two eigendecompositions)")
    utility: Literal["abs", "delta"] = Field(
        "abs",
        help="L: the loss after the flip (abs, as released; nearly constant) or by how much a flip changes it (delta)",
    )
    tradeoff: float = Field(1.0, ge=0, help="exponent k of the loss in |gradient| / L^k; 0 looks at privacy alone")
    add_probability: float = Field(0.5, ge=0, le=1, help="probability that a flip is an addition")
    candidates: float = Field(
        1.0, gt=0, help="unlinked pairs that each step considers for addition, as a multiple of the number of links"
    )
    candidate_weight: float = Field(
        0.0, ge=0, le=1, help="weight of candidates for addition in the graph that is differentiated; 0.001 as released"
    )
    supervised_pairs: int = Field(
        2_000,
        ge=2,
        help="pairs in the objective of one step; of more (half of them sensitive), each step draws so many",
    )
    dimensions: int = Field(128, ge=1, help="width of the DeepWalk vectors, and rank of the spectral loss")
    window: int = Field(10, ge=1, help="window T of DeepWalk")
    walks: int = Field(10, ge=1, help="walks a node")
    walk_length: int = Field(40, ge=2, help="nodes a walk")
    negative: int = Field(5, ge=1, help="negative samples b of DeepWalk")

    uses_sensitive = True
    sweep = tuple({"flips": share} for share in (0.05, 0.1, 0.2, 0.3, 0.4))

    def why_not(self, graph: Graph) -> str | None:
        """Refuse what would take days."""
        steps = -(-edit_count(self.flips, graph.num_edges) // self._step_size(graph))
        visits = graph.num_nodes * self.walks * self.walk_length * self.dimensions * self.window * (1 + self.negative)
        training = _SECONDS_PER_VISIT * visits / (128 * 10 * 6) * -(-steps // self.retrain_every)
        rows = min(2 * self.supervised_pairs, graph.num_nodes)
        # Twice T products with the entries of A, and twice T for each candidate, row by row.
        weighted = self.candidates if self.candidate_weight > 0 else 0
        entries = graph.num_edges * (4 * (1 + weighted) + 2 * (1 + self.candidates))
        hours = (training + _SECONDS_PER_PRODUCT * rows * self.window * entries * steps) / 3600
        if hours <= _MOST_HOURS:
            return None
        return (
            f"ppne would take about {hours:,.0f} hours on one core for {graph.num_nodes:,} nodes and "
            f"{graph.num_edges:,} links ({steps:,} steps); raise flips_per_step or retrain_every, or lower flips"
        )

    def publish(self, graph: Graph, sensitive: Pairs, rng: np.random.Generator) -> Publication:
        """Make ⌊flips · m⌋ flips, each of another pair; fewer only if no candidate is left that would raise O.

        With the same stream of random numbers, the flips of a smaller share are the first ones of a larger share. If
        no sensitive pair can be influenced (none is given, or all touch isolated nodes), nothing is changed. The trace
        tells how the search went and, as one number, the seconds on the processor.
        """
        started = time.process_time()
        nodes = np.flatnonzero(graph.degrees)
        position = np.full(graph.num_nodes, -1, dtype=np.int64)
        position[nodes] = np.arange(len(nodes))
        core = Graph(num_nodes=len(nodes), edges=position[graph.edges])
        hidden = position[sensitive]
        search = _Search(self, core, hidden[(hidden >= 0).all(axis=1)], rng)
        search.flip(edit_count(self.flips, graph.num_edges), self._step_size(graph))
        added = nodes[pairs_at(search.added, len(nodes))]
        published = edited(graph, search.kept, added, rng)
        trace = {**search.trace.arrays(), "processor_seconds": np.array([time.process_time() - started])}
        return Publication(published, trace)

    def _step_size(self, graph: Graph) -> int:
        return max(1, edit_count(self.flips_per_step, graph.num_edges))


@dataclass
class _Trace:
    """State of the search at each training."""

    flips: list[int] = field(default_factory=list)
    sensitive_similarity: list[float] = field(default_factory=list)
    other_similarity: list[float] = field(default_factory=list)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        sensitive, other = np.array(self.sensitive_similarity), np.array(self.other_similarity)
        return {
            "flips": np.array(self.flips, dtype=np.int64),
            "sensitive_similarity": sensitive,
            "other_similarity": other,
            "objective": other - sensitive,
        }


class _Search:
    """The graph on its way from the visible to the published one; no node of it is isolated at any time."""

    def __init__(self, settings: PPNE, start: Graph, hidden: Pairs, rng: np.random.Generator) -> None:
        self.settings = settings
        self.start = start
        self.rng = rng
        self.hidden = hidden
        # Neither visible links (removed ones included) nor sensitive pairs are ever added.
        self.barred: Ranks = np.union1d(start.ranks, ranks_of(hidden, start.num_nodes))
        self.others = self._unlinked(len(hidden))
        self.kept = np.ones(start.num_edges, dtype=np.bool_)
        self.added: Ranks = np.empty(0, dtype=np.int64)
        self.degrees = start.degrees.copy()
        self.trace = _Trace()
        self.vectors: SkipGram
        self.spectrum: Spectrum | None = None

    def flip(self, count: int, step_size: int) -> None:
        """Make `count` flips, `step_size` on each gradient."""
        made = step = 0
        while made < count and len(self.hidden):
            if step % self.settings.retrain_every == 0:
                self._retrain(made)
            pairs, change = self._step(step_size)
            if not len(pairs):
                break
            # Cut off after the choice: a shorter search is the beginning of a longer one.
            self._apply(pairs[: count - made], change[: count - made])
            made += len(pairs)
            step += 1

    def _retrain(self, made: int) -> None:
        settings, rng, graph = self.settings, self.rng, self._graph()
        walks = random_walks(graph, shuffled_starts(graph.num_nodes, settings.walks, rng), settings.walk_length, rng)
        self.vectors = skip_gram(
            walks,
            graph.num_nodes,
            dimensions=settings.dimensions,
            window=settings.window,
            negative=settings.negative,
            seed=int(rng.integers(2**32)),
        )
        if settings.tradeoff > 0:
            rank, window = settings.dimensions, settings.window
            if graph.num_nodes <= EXACT_SPECTRUM_NODES:
                self.spectrum = exact_spectrum(graph.adjacency, rank, window)
            else:
                self.spectrum = sketched_spectrum(graph.adjacency, rank, window, rng)
        self.trace.flips.append(made)
        self.trace.sensitive_similarity.append(_mean(cosines(self.vectors.input, self.hidden)))
        self.trace.other_similarity.append(_mean(cosines(self.vectors.input, self.others)))

    def _step(self, size: int) -> tuple[Pairs, NDArray[np.float64]]:
        """The next flips, in the order in which to make them: pairs, and +1 for an addition, -1 for a deletion."""
        additions_first = self.rng.random(size) < self.settings.add_probability
        additions = self._unlinked(math.ceil(self.settings.candidates * self.start.num_edges))
        deletions = self.start.edges[self.kept]
        deletions = deletions[(self.degrees[deletions] > 1).all(axis=1)]
        pairs = np.concatenate([additions, deletions])
        change = np.repeat([1.0, -1.0], [len(additions), len(deletions)])
        # How fast O rises along each flip; only flips along which it does not fall are of use.
        gain = change * self._gradient(pairs, additions)
        score = np.where(gain >= 0, gain, -np.inf) / self._cost(pairs, change) ** self.settings.tradeoff
        chosen = self._chosen(additions_first, score, pairs, change)
        return pairs[chosen], change[chosen]

    def _gradient(self, pairs: Pairs, candidates: Pairs) -> NDArray[np.float64]:
        """∂O/∂A of each pair, in the present graph with the candidates at a small weight."""
        settings = self.settings
        hidden, others = (self._batch(group) for group in (self.hidden, self.others))
        supervised = np.concatenate([hidden, others])
        signs = np.repeat([-1.0, 1.0], [len(hidden), len(others)])
        nodes, by_vector = vector_gradient(self.vectors.input, supervised, signs)
        adjacency = self._graph().adjacency
        if settings.candidate_weight > 0:
            adjacency = adjacency + _entries(candidates, settings.candidate_weight, self.start.num_nodes)
        return link_gradient(
            adjacency, self.vectors.output, nodes, by_vector, pairs, window=settings.window, negative=settings.negative
        )

    def _cost(self, pairs: Pairs, change: NDArray[np.float64]) -> NDArray[np.float64]:
        """L of each flip, on a scale on which the largest is 1."""
        if self.spectrum is None:
            return np.ones(len(pairs))
        loss = self.spectrum.losses_after(pairs, change)
        if self.settings.utility == "delta":
            loss = np.abs(loss - self.spectrum.loss)
        largest = loss.max(initial=0.0)
        return np.maximum(loss / largest, _SMALLEST_SHARE) if largest > 0 else np.ones(len(pairs))

    def _chosen(
        self, additions_first: NDArray[np.bool_], score: NDArray[np.float64], pairs: Pairs, change: NDArray[np.float64]
    ) -> list[int]:
        """Candidates by falling score, one a coin; when one kind has run out, the other takes its place."""
        ranked = np.argsort(-score, kind="stable")
        ranked = ranked[score[ranked] >= 0]
        additions = iter(ranked[change[ranked] > 0].tolist())
        deletions = self._safe_deletions(ranked[change[ranked] < 0].tolist(), pairs)
        chosen = []
        for addition in additions_first:
            first, second = (additions, deletions) if addition else (deletions, additions)
            index = next(first, None)
            index = next(second, None) if index is None else index
            if index is None:
                break
            chosen.append(index)
        return chosen

    def _safe_deletions(self, ranked: list[int], pairs: Pairs) -> Iterator[int]:
        """Those of the ranked deletions that leave each node a link, even if all before them are made."""
        degrees = self.degrees.copy()
        for index in ranked:
            if (degrees[pairs[index]] > 1).all():
                degrees[pairs[index]] -= 1
                yield index

    def _apply(self, pairs: Pairs, change: NDArray[np.float64]) -> None:
        ranks = ranks_of(pairs, self.start.num_nodes)
        added, removed = ranks[change > 0], ranks[change < 0]
        self.kept[np.searchsorted(self.start.ranks, removed)] = False
        self.added = np.union1d(self.added, added)
        self.barred = np.union1d(self.barred, added)
        np.add.at(self.degrees, pairs, change[:, None].astype(np.int64))
        if self.spectrum is not None:
            self.spectrum = self.spectrum.after(pairs, change)

    def _graph(self) -> Graph:
        ranks = np.union1d(self.start.ranks[self.kept], self.added)
        return Graph(num_nodes=self.start.num_nodes, edges=pairs_at(ranks, self.start.num_nodes))

    def _unlinked(self, count: int) -> Pairs:
        """Random pairs that are not barred, in order; as many as there are if `count` is more."""
        n = self.start.num_nodes
        pairs = sample_pairs_outside(self.barred, n, min(count, num_pairs(n) - len(self.barred)), self.rng)
        return pairs_at(np.sort(ranks_of(pairs, n)), n)

    def _batch(self, pairs: Pairs) -> Pairs:
        most = self.settings.supervised_pairs // 2
        return pairs if len(pairs) <= most else pairs[sample_distinct(len(pairs), most, self.rng)]


def _entries(pairs: Pairs, weight: float, num_nodes: int) -> sp.csr_array:
    u, v = pairs.T
    values = np.full(2 * len(pairs), weight, dtype=np.float32)
    return sp.csr_array((values, (np.concatenate([u, v]), np.concatenate([v, u]))), shape=(num_nodes, num_nodes))


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else 0.0
