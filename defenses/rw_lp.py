"""Links replaced by the ends of short random walks: RW-LP (Mittal, Papamanthou & Song, NDSS 2013).

The degree-1 repair is that of Nguyen, Imine & Rusinowitch, "Anonymizing Social Graphs via Uncertainty Semantics",
AsiaCCS 2015.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppgsl_bench.defenses import Defense, Field, register
from ppgsl_bench.defenses.edits import drawn_weights
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs, contains

_FREE = -1
# Fibonacci hashing: multiplication by 2^64/φ spreads consecutive keys (Knuth, TAOCP vol. 3, 6.4).
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@register("rw-lp", version=1, tags=("paper",))
class RandomWalkLinkPrivacy(Defense):
    """Replace each link (u, v) by a link from u to the end of a random walk through v."""

    t: int = Field(6, ge=1, help="length of the walks, counting the step from u to v; compare settings of one parity")
    M: int = Field(10, ge=1, help="tries for an end that makes a new link; as published, the M-th is never used")
    degree_one_repair: bool = Field(
        False, help="let a node of degree 1 add its one link with probability 1/2, so that the number of links stays m"
    )

    sweep = tuple({"t": t} for t in (1, 3, 5, 9, 15, 25))

    def publish(self, graph: Graph, sensitive: Pairs, rng: np.random.Generator) -> Graph:  # noqa: ARG002
        """Go through the nodes u and their neighbours v in order of their ids, as the published pseudo-code does.

        For each v, walk t - 1 steps from v until the end z makes a new link (u, z). Add it for the first neighbour, and
        with probability (d/2 - 1)/(d - 1) for the d - 1 others: d/2 links a node, m links in all.
        """
        adjacency = graph.adjacency
        single = 0.5 if self.degree_one_repair else 1.0
        # The pseudo-code counts a try before it looks at the result, so that success at the M-th counts as failure.
        links: Pairs = _replaced(adjacency.indptr, adjacency.indices, self.t - 1, self.M - 1, single, rng)
        published = graph.with_edges(links)
        return published if graph.weights is None else _weighted(published, graph, rng)


def _weighted(published: Graph, graph: Graph, rng: np.random.Generator) -> Graph:
    """Links of the input keep their weight, the others get a weight drawn from it."""
    known = contains(graph.ranks, published.ranks)
    weights = np.empty(published.num_edges, dtype=np.float32)
    if graph.weights is not None:
        weights[known] = graph.weights[np.searchsorted(graph.ranks, published.ranks[known])]
    weights[~known] = drawn_weights(graph, int((~known).sum()), rng)
    return published.with_edges(published.edges, weights=weights)


@njit(cache=True)
def _replaced(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    steps: int,
    tries: int,
    single_probability: float,
    rng: np.random.Generator,
) -> Pairs:
    """The new links, shape [L, 2]; `tries` ends are drawn at most, `single_probability` is that of degree-1 nodes.

    Walks do not depend on the links so far. The first ones of a node's neighbours are therefore taken side by side, so
    that the processor can wait for several places of memory at once; further ones only if the first end is refused.
    """
    num_nodes = len(indptr) - 1
    links = np.empty((len(indices), 2), dtype=np.int64)
    num_links = 0
    # An open-addressing hash set of the links so far, at most half full.
    bits = 4
    while 1 << bits < 2 * len(indices):
        bits += 1
    table = np.full(1 << bits, _FREE, dtype=np.int64)
    for u in range(num_nodes):
        ends = indices[indptr[u] : indptr[u + 1]].copy()
        degree = len(ends)
        _walk(ends, indptr, indices, steps, rng)
        for k in range(degree):
            end = ends[k : k + 1]
            for attempt in range(tries):
                if attempt:
                    end[0] = indices[indptr[u] + k]
                    _walk(end, indptr, indices, steps, rng)
                z = np.int64(end[0])
                key = u * num_nodes + z if u < z else z * num_nodes + u
                slot = _slot(table, key, bits)
                if z != u and table[slot] == _FREE:
                    if rng.random() < _share(k, degree, single_probability):
                        table[slot] = key
                        links[num_links, 0] = u
                        links[num_links, 1] = z
                        num_links += 1
                    break
    return links[:num_links]


@njit(cache=True)
def _share(k: int, degree: int, single_probability: float) -> float:
    """The probability of adding the link that was found for the k-th of a node's neighbours."""
    if k > 0:
        return (0.5 * degree - 1) / (degree - 1)
    return single_probability if degree == 1 else 1.0


@njit(cache=True)
def _walk(
    ends: NDArray[np.int32],
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    steps: int,
    rng: np.random.Generator,
) -> None:
    """Move each of the `ends` by so many steps to uniformly drawn neighbours, in place."""
    for _ in range(steps):
        for k in range(len(ends)):
            start, stop = indptr[ends[k]], indptr[ends[k] + 1]
            ends[k] = indices[start + int(rng.random() * (stop - start))]


@njit(cache=True)
def _slot(table: NDArray[np.int64], key: int, bits: int) -> np.int64:
    """Where `key` is in the table, or the free slot where it belongs."""
    slot = np.int64((np.uint64(key) * _SPREAD) >> np.uint64(64 - bits))
    while table[slot] not in (_FREE, key):
        slot = (slot + 1) & (len(table) - 1)
    return slot
