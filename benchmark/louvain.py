"""Communities by the Louvain method (Blondel et al., "Fast unfolding of communities in large networks", 2008).

The local moving phase is a numba kernel over CSR rows; a level's communities become the nodes of the next one by a
sparse product. A graph of 500,000 nodes takes seconds, where networkx takes many minutes.
"""

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from ppgsl_bench.graph import Graph

Communities = NDArray[np.int64]

# A move must gain more than this part of a node's strength: rounding must not send nodes round in circles.
_LEAST_GAIN = 1e-9


def louvain(adjacency: sp.csr_array, rng: np.random.Generator, resolution: float = 1.0) -> Communities:
    """A community number for each node, shape [N], from 0 on without gaps; an isolated node is on its own.

    Args:
        adjacency: symmetric weights; an entry of the diagonal stands for twice the weight of a node's link to itself.
        rng: source of the order in which nodes are looked at.
        resolution: larger values make more communities.
    """
    communities = np.arange(adjacency.shape[0])
    adjacency = adjacency.astype(np.float64)
    total = float(adjacency.sum())
    if total == 0:
        return communities
    while True:
        order = rng.permutation(adjacency.shape[0])
        strength = np.asarray(adjacency.sum(axis=1)).ravel()
        moved = _local_moves(adjacency.indptr, adjacency.indices, adjacency.data, strength, order, total / resolution)
        _, level = np.unique(moved, return_inverse=True)
        communities = level[communities]
        count = int(level.max()) + 1
        if count == adjacency.shape[0]:
            return communities
        member = sp.csr_array((np.ones(len(level)), (np.arange(len(level)), level)), shape=(len(level), count))
        adjacency = (member.T @ adjacency @ member).tocsr()


def modularity(graph: Graph, communities: Communities) -> float:
    """Q = Σ_c (weight inside c / W - (strength of c / 2W)²), W the weight of all links; 0 for a graph without links."""
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights.astype(np.float64)
    total = float(weights.sum())
    if total == 0:
        return 0.0
    u, v = graph.edges.T
    inside = float(weights[communities[u] == communities[v]].sum())
    strength = np.bincount(communities[graph.edges].ravel(), weights=np.repeat(weights, 2))
    return inside / total - float(np.sum((strength / (2 * total)) ** 2))


@njit(cache=True)
def _local_moves(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    weights: NDArray[np.float64],
    strength: NDArray[np.float64],
    order: NDArray[np.int64],
    total: float,
) -> NDArray[np.int64]:
    """Move nodes, one after the other, to the neighbouring community of largest modularity gain until none gains.

    `total` is twice the weight of all links, divided by the resolution. Moving node i into community c changes the
    modularity in proportion to w(i, c) - strength_i · strength_c / total, where c does not count i itself. Only
    nodes with a neighbour that moved are looked at again (Traag, Waltman and van Eck, "From Louvain to Leiden", 2019).
    """
    n = len(strength)
    community = np.arange(n)
    community_strength = strength.copy()
    linked = np.zeros(n)
    touched = np.empty(n, dtype=np.int64)
    queue = order.copy()
    waiting = np.ones(n, dtype=np.bool_)
    first, length = 0, n
    while length > 0:
        i = queue[first]
        first = (first + 1) % n
        length -= 1
        waiting[i] = False
        own = community[i]
        count = 0
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if j == i:
                continue
            c = community[j]
            if linked[c] == 0.0:
                touched[count] = c
                count += 1
            linked[c] += weights[k]
        community_strength[own] -= strength[i]
        best = own
        best_gain = linked[own] - strength[i] * community_strength[own] / total + _LEAST_GAIN * strength[i]
        for k in range(count):
            c = touched[k]
            gain = linked[c] - strength[i] * community_strength[c] / total
            if gain > best_gain:
                best, best_gain = c, gain
            linked[c] = 0.0
        community_strength[best] += strength[i]
        if best == own:
            continue
        community[i] = best
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if not waiting[j] and community[j] != best:
                waiting[j] = True
                queue[(first + length) % n] = j
                length += 1
    return community
