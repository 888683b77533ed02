"""Who gets to see what: visible, sensitive and test links, negatives, and train/test nodes."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.errors import GraphError
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import (
    Pairs,
    Ranks,
    contains,
    pairs_at,
    ranks_of,
    sample_pairs_outside,
)
from ppgsl_bench.seeds import generator

SENSITIVE_SHARE = 0.1
TEST_SHARE = 0.1
TRAIN_NODE_SHARE = 0.3
NEGATIVE_FAMILIES = ("uniform", "degree", "hard")

# A degree-matched end is drawn among at least this many nodes of nearest degree, so that hubs have alternatives.
_DEGREE_PEERS = 10
# Rejection sampling gives up after this many rounds; what is missing then is filled up uniformly.
_ROUNDS = 60


@dataclass(frozen=True, eq=False)
class Split:
    """One division of a graph, the same for every defense.

    Attributes:
        visible: what a defense is given: the graph less sensitive and test links.
        sensitive: the hidden links, shape [S, 2].
        negatives: unlinked pairs to tell the sensitive links from, by family: `uniform`, `degree` (ends of the same
            visible degrees), `hard` (two hops apart in the visible graph). Never shown to a defense.
        test_links, test_non_links: link-prediction test pairs.
        train_nodes, test_nodes: for node classification.
        seed: the seed it was drawn with.
    """

    visible: Graph
    sensitive: Pairs
    negatives: Mapping[str, Pairs]
    test_links: Pairs
    test_non_links: Pairs
    train_nodes: NDArray[np.int64]
    test_nodes: NDArray[np.int64]
    seed: int

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything above."""
        sha = hashlib.sha256(f"split:{self.seed}:{self.visible.digest}".encode())
        for name, array in self.arrays().items():
            sha.update(f"|{name}:{array.shape}".encode())
            sha.update(np.ascontiguousarray(array).data)
        return sha.hexdigest()

    def arrays(self) -> dict[str, NDArray[np.int64]]:
        """All index arrays by name; `Split.from_arrays` is the inverse."""
        return {
            "sensitive": self.sensitive,
            **{f"negatives_{family}": pairs for family, pairs in self.negatives.items()},
            "test_links": self.test_links,
            "test_non_links": self.test_non_links,
            "train_nodes": self.train_nodes,
            "test_nodes": self.test_nodes,
        }

    @classmethod
    def from_arrays(cls, visible: Graph, arrays: Mapping[str, NDArray[np.int64]], seed: int) -> "Split":
        """Rebuild a split from what `arrays` gave."""
        named = {k: v for k, v in arrays.items() if not k.startswith("negatives_")}
        negatives = {f: arrays[f"negatives_{f}"] for f in NEGATIVE_FAMILIES}
        return cls(visible=visible, negatives=MappingProxyType(negatives), seed=seed, **named)

    def queries(self) -> "Queries":
        """The pairs that an attack is asked about, shuffled, with the key to them kept apart."""
        groups = [self.sensitive, *(self.negatives[f] for f in NEGATIVE_FAMILIES)]
        pairs = np.concatenate(groups)
        group = np.repeat(np.arange(len(groups), dtype=np.int8), [len(g) for g in groups])
        order = generator("queries", self.digest).permutation(len(pairs))
        return Queries(pairs[order], group[order])


@dataclass(frozen=True, eq=False)
class Queries:
    """Pairs for an attack to score, and what each of them is.

    Attributes:
        pairs: shape [Q, 2]; all that an attack sees.
        group: shape [Q]; 0 for a sensitive link, 1 + i for the i-th family of `NEGATIVE_FAMILIES`.
    """

    pairs: Pairs
    group: NDArray[np.int8]


def make_split(graph: Graph, seed: int) -> Split:
    """Divide a graph. Each part has a random stream of its own, so that none tells anything about another."""

    def rng(part: str) -> np.random.Generator:
        return generator("split", part, graph.digest, seed)

    hidden = max(1, round(SENSITIVE_SHARE * graph.num_edges))
    tested = max(1, round(TEST_SHARE * graph.num_edges))
    if hidden + tested >= graph.num_edges:
        raise GraphError(
            f"{graph.name or 'the graph'} has {graph.num_edges} links; a split needs at least 3 "
            "(sensitive, test and visible ones)"
        )
    order = rng("links").permutation(graph.num_edges)
    sensitive = graph.edges[np.sort(order[:hidden])]
    test_links = graph.edges[np.sort(order[hidden : hidden + tested])]
    visible = graph.without_edges(np.concatenate([sensitive, test_links]))

    taken = _Taken(graph.ranks)
    test_non_links = taken.claim(sample_pairs_outside(taken.ranks, graph.num_nodes, tested, rng("test")), graph)
    negatives = {
        "hard": hard_negatives(visible, taken.ranks, hidden, rng("hard")),
    }
    taken.claim(negatives["hard"], graph)
    negatives["degree"] = taken.claim(degree_negatives(visible, sensitive, taken.ranks, rng("degree")), graph)
    negatives["uniform"] = sample_pairs_outside(taken.ranks, graph.num_nodes, hidden, rng("uniform"))

    nodes = rng("nodes").permutation(graph.num_nodes)
    trained = round(TRAIN_NODE_SHARE * graph.num_nodes)
    return Split(
        visible=visible,
        sensitive=sensitive,
        negatives=MappingProxyType({f: negatives[f] for f in NEGATIVE_FAMILIES}),
        test_links=test_links,
        test_non_links=test_non_links,
        train_nodes=np.sort(nodes[:trained]),
        test_nodes=np.sort(nodes[trained:]),
        seed=seed,
    )


class _Taken:
    """Pairs that may not be drawn any more: true links, and negatives of the families before."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks

    def claim(self, pairs: Pairs, graph: Graph) -> Pairs:
        self.ranks = np.union1d(self.ranks, ranks_of(pairs, graph.num_nodes))
        return pairs


def degree_negatives(visible: Graph, sensitive: Pairs, taken: Ranks, rng: np.random.Generator) -> Pairs:
    """Unlinked pairs whose ends have the visible degrees of a sensitive pair's ends."""
    n = visible.num_nodes
    by_degree = np.lexsort((rng.permutation(n), visible.degrees))
    sorted_degrees = visible.degrees[by_degree]
    wanted = visible.degrees[sensitive]
    low = np.searchsorted(sorted_degrees, wanted, side="left")
    high = np.searchsorted(sorted_degrees, wanted, side="right")
    short = np.maximum(_DEGREE_PEERS - (high - low), 0)
    low = np.maximum(low - (short + 1) // 2, 0)
    high = np.minimum(high + (short + 1) // 2, n)
    found: Ranks = np.empty(0, dtype=np.int64)
    pending = np.arange(len(sensitive))
    for _ in range(_ROUNDS):
        ends = by_degree[rng.integers(low[pending], high[pending])]
        proper = np.flatnonzero(ends[:, 0] != ends[:, 1])
        ranks = ranks_of(ends[proper], n)
        fresh, first = np.unique(ranks, return_index=True)
        usable = ~contains(taken, fresh) & ~contains(np.sort(found), fresh)
        found = np.concatenate([found, fresh[usable]])
        pending = np.delete(pending, proper[first[usable]])
        if not len(pending):
            return pairs_at(np.sort(found), n)
    # Hubs that are linked to all their peers have no match left: fill up with uniform pairs.
    return _filled_up(found, taken, n, len(sensitive), rng)


def hard_negatives(visible: Graph, taken: Ranks, count: int, rng: np.random.Generator) -> Pairs:
    """Unlinked pairs two hops apart, uniform over all such pairs.

    A random wedge picks a pair in proportion to its number of common neighbours c; keeping it with probability 1/c
    makes the draw uniform without listing the wedges.
    """
    # The kernel brings numba along, which those who only read splits need not wait for.
    from ppgsl_bench.neighbourhoods import common_neighbour_scores

    n = visible.num_nodes
    adjacency = visible.adjacency
    degrees = visible.degrees
    wedges = np.cumsum(degrees * (degrees - 1))
    found: Ranks = np.empty(0, dtype=np.int64)
    for _ in range(_ROUNDS):
        if not len(wedges) or wedges[-1] == 0 or len(found) >= count:
            break
        size = 2 * (count - len(found)) + 64
        centre = np.searchsorted(wedges, rng.integers(wedges[-1], size=size), side="right")
        first = rng.integers(degrees[centre])
        second = rng.integers(degrees[centre] - 1)
        second += second >= first
        start = adjacency.indptr[centre].astype(np.int64)
        ends = np.stack([adjacency.indices[start + first], adjacency.indices[start + second]], axis=1).astype(np.int64)
        ranks = ranks_of(ends, n)
        allowed = ~contains(taken, ranks) & ~contains(np.sort(found), ranks)
        ends, ranks = ends[allowed], ranks[allowed]
        common = common_neighbour_scores(visible, ends, np.ones(n))
        kept = ranks[rng.random(len(ranks)) * common < 1]
        _, order = np.unique(kept, return_index=True)
        found = np.concatenate([found, kept[np.sort(order)]])
    return _filled_up(found[:count], taken, n, count, rng)


def _filled_up(found: Ranks, taken: Ranks, n: int, count: int, rng: np.random.Generator) -> Pairs:
    missing = count - len(found)
    if missing > 0:
        outside = np.union1d(taken, found)
        extra = sample_pairs_outside(outside, n, missing, rng)
        found = np.concatenate([found, ranks_of(extra, n)])
    return pairs_at(np.sort(found), n)
