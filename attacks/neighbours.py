"""Common neighbours and two weightings of them: the classic local link predictors.

CN counts the common neighbours of two nodes (Newman, "Clustering and preferential attachment in growing networks",
Phys. Rev. E 2001), AA weighs each by 1 / ln(degree) (Adamic and Adar, "Friends and neighbors on the Web", Social
Networks 2003), RA by 1 / degree (Zhou, Lü and Zhang, "Predicting missing links via local information", Eur. Phys. J. B
2009).

All three look at which links are published, not at their weights: a weight below 1 would turn 1 / ln(degree) negative.
The link (u, v) itself plays no part in the score of (u, v), as neither end is a neighbour of itself.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppgsl_bench.attacks import Attack, Scores, register
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs


@register("cn", version=1, tags=("paper",))
class CommonNeighbours(Attack):
    """Number of common neighbours."""

    def score(self, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:  # noqa: ARG002
        """CN(u, v) = |N(u) ∩ N(v)|."""
        return common_neighbour_scores(published, pairs, np.ones(published.num_nodes))


@register("aa", version=1, tags=("paper",))
class AdamicAdar(Attack):
    """Common neighbours weighted by 1 / ln(degree) (Adamic–Adar)."""

    def score(self, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:  # noqa: ARG002
        """AA(u, v) = Σ over common neighbours z of 1 / ln(d_z)."""
        return common_neighbour_scores(published, pairs, inverse_log_degrees(published))


@register("ra", version=1, tags=("paper",))
class ResourceAllocation(Attack):
    """Common neighbours weighted by 1 / degree (resource allocation)."""

    def score(self, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:  # noqa: ARG002
        """RA(u, v) = Σ over common neighbours z of 1 / d_z."""
        return resource_allocation(published, pairs)


def inverse_log_degrees(graph: Graph) -> NDArray[np.float64]:
    """1 / ln(degree) of each node, 0 for degrees 0 and 1."""
    return _inverse(np.log(np.maximum(graph.degrees, 1)))


def resource_allocation(graph: Graph, pairs: Pairs) -> Scores:
    """Σ over common neighbours z of 1 / d_z, for each pair."""
    return common_neighbour_scores(graph, pairs, _inverse(np.where(graph.degrees > 1, graph.degrees, 0)))


def common_neighbour_scores(graph: Graph, pairs: Pairs, node_weight: NDArray[np.float64]) -> Scores:
    """Sum of `node_weight` (shape [N], not negative) over the common neighbours of each pair.

    Only the rows of queried nodes are read, so that memory stays at one number a pair. Sums are kept in integers as
    fine as 64 bits allow: pairs with neighbours of the same weights tie exactly, however the nodes are numbered.
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
    """Intersect two sorted rows a pair: by merging, or by bisecting the longer one where it is much longer."""
    sums = np.zeros(len(pairs), np.int64)
    for p in range(len(pairs)):
        u, v = pairs[p, 0], pairs[p, 1]
        if indptr[u + 1] - indptr[u] > indptr[v + 1] - indptr[v]:
            u, v = v, u
        i, i_end = np.int64(indptr[u]), np.int64(indptr[u + 1])
        j, j_end = np.int64(indptr[v]), np.int64(indptr[v + 1])
        total = np.int64(0)
        if (i_end - i) * 16 < j_end - j:
            for k in range(i, i_end):
                z = indices[k]
                low, high = j, j_end
                while low < high:
                    middle = (low + high) // 2
                    if indices[middle] < z:
                        low = middle + 1
                    else:
                        high = middle
                if low < j_end and indices[low] == z:
                    total += units[z]
                j = low
        else:
            while i < i_end and j < j_end:
                a, b = indices[i], indices[j]
                if a == b:
                    total += units[a]
                i += a <= b
                j += b <= a
        sums[p] = total
    return sums
