"""Shortest paths between given pairs of nodes."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs


def hops_between(graph: Graph, pairs: Pairs) -> NDArray[np.int32]:
    """Number of links on a shortest path between the two nodes of each pair; -1 if there is none."""
    order = np.argsort(pairs[:, 0], kind="stable")
    found = np.empty(len(pairs), dtype=np.int32)
    adjacency = graph.adjacency
    found[order] = _breadth_first(adjacency.indptr, adjacency.indices, pairs[order])
    return found


@njit(cache=True)
def _breadth_first(indptr: NDArray[np.int32], indices: NDArray[np.int32], pairs: Pairs) -> NDArray[np.int32]:
    """One search for each first node; pairs that share it stand side by side."""
    n = len(indptr) - 1
    hops = np.full(n, -1, dtype=np.int32)
    queue = np.empty(n, dtype=np.int32)
    found = np.empty(len(pairs), dtype=np.int32)
    start = 0
    while start < len(pairs):
        source = pairs[start, 0]
        end = start
        while end < len(pairs) and pairs[end, 0] == source:
            end += 1
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
        for i in range(start, end):
            found[i] = hops[pairs[i, 1]]
        for k in range(last):
            hops[queue[k]] = -1
        start = end
    return found
