"""Shortest paths, counted in links, by breadth-first search."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs

UNREACHED = -1


def hops_between(graph: Graph, pairs: Pairs) -> NDArray[np.int32]:
    """Number of links on a shortest path between the two nodes of each pair; -1 if there is none."""
    order = np.argsort(pairs[:, 0], kind="stable")
    found = np.empty(len(pairs), dtype=np.int32)
    adjacency = graph.adjacency
    found[order] = _hops_of_pairs(adjacency.indptr, adjacency.indices, pairs[order])
    return found


def path_lengths(graph: Graph, sources: NDArray[np.int64]) -> tuple[float, float]:
    """Mean hops from the sources to the nodes they reach, and the share of nodes that they do reach."""
    total, reached = _hops_in_all(graph.adjacency.indptr, graph.adjacency.indices, sources)
    possible = len(sources) * (graph.num_nodes - 1)
    return (total / reached if reached else 0.0), (reached / possible if possible else 0.0)


@njit(cache=True)
def _search(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    source: int,
    hops: NDArray[np.int32],
    queue: NDArray[np.int32],
) -> int:
    """Fill in the hops of every node that the source reaches; returns how many stand in the queue, itself the first."""
    queue[0] = source
    hops[source] = 0
    first, last = 0, 1
    while first < last:
        here = queue[first]
        first += 1
        for k in range(indptr[here], indptr[here + 1]):
            there = indices[k]
            if hops[there] < 0:
                hops[there] = hops[here] + 1
                queue[last] = there
                last += 1
    return last


@njit(cache=True)
def _wipe(hops: NDArray[np.int32], queue: NDArray[np.int32], last: int) -> None:
    """Only what was reached is wiped: many sources in small components cost little."""
    for k in range(last):
        hops[queue[k]] = UNREACHED


@njit(cache=True)
def _hops_of_pairs(indptr: NDArray[np.int32], indices: NDArray[np.int32], pairs: Pairs) -> NDArray[np.int32]:
    """One search for each first node; pairs that share it stand side by side."""
    n = len(indptr) - 1
    hops = np.full(n, UNREACHED, dtype=np.int32)
    queue = np.empty(n, dtype=np.int32)
    found = np.empty(len(pairs), dtype=np.int32)
    start = 0
    while start < len(pairs):
        source = pairs[start, 0]
        last = _search(indptr, indices, source, hops, queue)
        while start < len(pairs) and pairs[start, 0] == source:
            found[start] = hops[pairs[start, 1]]
            start += 1
        _wipe(hops, queue, last)
    return found


@njit(cache=True)
def _hops_in_all(indptr: NDArray[np.int32], indices: NDArray[np.int32], sources: NDArray[np.int64]) -> tuple[int, int]:
    """Sum of hops and number of nodes reached, over all sources."""
    n = len(indptr) - 1
    hops = np.full(n, UNREACHED, dtype=np.int32)
    queue = np.empty(n, dtype=np.int32)
    total = reached = 0
    for source in sources:
        last = _search(indptr, indices, source, hops, queue)
        for k in range(last):
            total += hops[queue[k]]
        reached += last - 1
        _wipe(hops, queue, last)
    return total, reached
