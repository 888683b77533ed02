"""Common neighbours of node pairs, counted or weighted, for the queried pairs only."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs

Scores = NDArray[np.float64]


def inverse_log_degrees(graph: Graph) -> NDArray[np.float64]:
    """1 / ln(degree) of each node, 0 for degrees 0 and 1."""
    return _inverse(np.log(np.maximum(graph.degrees, 1)))


def resource_allocation(graph: Graph, pairs: Pairs) -> Scores:
    """Σ over common neighbours z of 1 / d_z, for each pair."""
    return common_neighbour_scores(graph, pairs, _inverse(np.where(graph.degrees > 1, graph.degrees, 0)))


def common_neighbour_scores(graph: Graph, pairs: Pairs, node_weight: NDArray[np.float64]) -> Scores:
    """Sum of `node_weight` (shape [N], not negative) over the common neighbours of each pair.

    Only the rows of queried nodes are read, so that memory stays at a few numbers a pair and a node. Sums are kept in
    integers as fine as 64 bits allow: pairs with neighbours of the same weights tie exactly, however the nodes are
    numbered.
    """
    largest = float(node_weight.max(initial=0.0)) * int(graph.degrees.max(initial=0))
    if largest == 0.0:
        return np.zeros(len(pairs))
    scale = 2.0 ** (61 - np.frexp(largest)[1])
    adjacency = graph.adjacency
    units = np.rint(node_weight * scale).astype(np.int64)
    sums = _summed_over_common(adjacency.indptr, adjacency.indices, pairs, units)
    return np.asarray(sums / scale, dtype=np.float64)


def _inverse(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / values, and 0 where the value is 0: a node of degree 1 is nobody's common neighbour."""
    return np.divide(1.0, values, out=np.zeros(len(values)), where=values > 0)


@njit(cache=True)
def _summed_over_common(indptr, indices, pairs, units):  # type: ignore[no-untyped-def] # pragma: no cover
    """Mark the neighbours of one end, then add up the marks along the row of the other.

    The end of larger degree is marked, and once for all its pairs: a pair costs the smaller of its two degrees.
    """
    first_pair, pair_at = _grouped_by_larger_end(indptr, pairs)
    marks = np.zeros(len(indptr) - 1, np.int64)
    sums = np.zeros(len(pairs), np.int64)
    for u in range(len(indptr) - 1):
        if first_pair[u] == first_pair[u + 1]:
            continue
        for e in range(indptr[u], indptr[u + 1]):
            marks[indices[e]] = units[indices[e]]
        for p in pair_at[first_pair[u] : first_pair[u + 1]]:
            v = pairs[p, 0] + pairs[p, 1] - u
            total = np.int64(0)
            for e in range(indptr[v], indptr[v + 1]):
                total += marks[indices[e]]
            sums[p] = total
        for e in range(indptr[u], indptr[u + 1]):
            marks[indices[e]] = 0
    return sums


@njit(cache=True)
def _grouped_by_larger_end(indptr, pairs):  # type: ignore[no-untyped-def] # pragma: no cover
    """Counting sort: the pairs whose end of larger degree is u are pair_at[first_pair[u] : first_pair[u + 1]]."""
    larger = np.empty(len(pairs), np.int64)
    first_pair = np.zeros(len(indptr) + 1, np.int64)
    for p in range(len(pairs)):
        u, v = pairs[p, 0], pairs[p, 1]
        larger[p] = u if indptr[u + 1] - indptr[u] >= indptr[v + 1] - indptr[v] else v
        first_pair[larger[p] + 2] += 1
    first_pair = np.cumsum(first_pair)
    pair_at = np.empty(len(pairs), np.int64)
    for p in range(len(pairs)):
        pair_at[first_pair[larger[p] + 1]] = p
        first_pair[larger[p] + 1] += 1
    return first_pair, pair_at
