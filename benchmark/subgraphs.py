"""Enclosing subgraphs of node pairs, and the labels that tell their nodes apart (SEAL).

Zhang and Chen, "Link Prediction Based on Graph Neural Networks", NeurIPS 2018. The subgraph of a pair (u, v) holds the
nodes within a few hops of u or v and the links among them, less the link (u, v) itself, whether it is there or
not: what is to be inferred must not be seen. A node's double-radius label says how far it is from u and from v.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs
from ppgsl_bench.split_mix import GOLDEN, mixed

# Marks of a node that is not in the subgraph at hand: not met yet, or met and left out by the limit a hop.
_UNSEEN = -1
_LEFT_OUT = -2
_INT32_MAX = np.iinfo(np.int32).max
_TOO_MANY_LINKS = "the subgraphs have more links than 32 bits count; ask for fewer pairs at once"


@dataclass(frozen=True, eq=False)
class Subgraphs:
    """Subgraphs of P pairs, laid end to end as one graph of V nodes with P parts.

    Attributes:
        nodes: int64, shape [V], the nodes of the whole graph; each part begins with the pair's ends, smaller first.
        offsets: int64, shape [P + 1]; part p has the nodes offsets[p] … offsets[p + 1] - 1.
        labels: int64, shape [V], double-radius labels: 1 for the two ends, 0 for a node cut off from either.
        indptr, indices: CSR pattern of the symmetric adjacency among the V nodes, int32, no loops.
    """

    nodes: NDArray[np.int64]
    offsets: NDArray[np.int64]
    labels: NDArray[np.int64]
    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of nodes of each part."""
        return np.diff(self.offsets)

    @property
    def num_bytes(self) -> int:
        """Memory that the arrays take."""
        return sum(array.nbytes for array in vars(self).values())

    def take(self, parts: NDArray[np.int64]) -> "Subgraphs":
        """The given parts, in that order."""
        return Subgraphs(*_taken(self.nodes, self.offsets, self.labels, self.indptr, self.indices, parts))


def end_to_end(groups: Sequence[Subgraphs]) -> Subgraphs:
    """The parts of all groups, one group after the other."""
    nodes_before = np.cumsum([0, *(len(group.nodes) for group in groups)])
    links_before = np.cumsum([0, *(len(group.indices) for group in groups)])
    if links_before[-1] > _INT32_MAX:
        raise OverflowError(_TOO_MANY_LINKS)
    offsets, indptr = [np.zeros(1, np.int64)], [np.zeros(1, np.int32)]
    offsets += [group.offsets[1:] + n for group, n in zip(groups, nodes_before, strict=False)]
    indptr += [group.indptr[1:] + np.int32(e) for group, e in zip(groups, links_before, strict=False)]
    return Subgraphs(
        nodes=np.concatenate([group.nodes for group in groups]),
        offsets=np.concatenate(offsets),
        labels=np.concatenate([group.labels for group in groups]),
        indptr=np.concatenate(indptr),
        indices=np.concatenate([g.indices + np.int32(n) for g, n in zip(groups, nodes_before, strict=False)]),
    )


def enclosing_subgraphs(graph: Graph, pairs: Pairs, *, hops: int, max_nodes_per_hop: int, seed: int) -> Subgraphs:
    """Subgraphs of the given pairs (shape [P, 2], distinct ends in either order).

    A hop that reaches more than `max_nodes_per_hop` new nodes keeps a random choice of them, which depends on `seed`
    and the pair alone: a pair has the same subgraph whichever other pairs are asked for. All subgraphs are in memory at
    once, so that many pairs are best asked for in batches.
    """
    adjacency = graph.adjacency
    ends = np.sort(np.asarray(pairs, dtype=np.int64), axis=1)
    parts = _extract(adjacency.indptr, adjacency.indices, ends, hops, max_nodes_per_hop, np.uint64(seed % 2**64))
    return Subgraphs(*parts)


def double_radius_label(x: int, y: int) -> int:
    """Label of a node at distances x, y >= 1 from the two ends: 1 + min(x, y) + ⌊d/2⌋ (⌊d/2⌋ + d mod 2 - 1), d = x + y.

    It numbers the unordered pairs of distances by their sum, then by their minimum, starting at 2 for (1, 1).
    """
    return int(_label(x, y))


@njit(cache=True)
def _label(x, y):  # type: ignore[no-untyped-def] # pragma: no cover
    half, odd = (x + y) // 2, (x + y) % 2
    return 1 + min(x, y) + half * (half + odd - 1)


@njit(cache=True)
def _extract(indptr, indices, ends, hops, limit, seed):  # type: ignore[no-untyped-def] # pragma: no cover
    num_nodes = len(indptr) - 1
    local = np.full(num_nodes, _UNSEEN, np.int32)
    seen = np.empty(num_nodes, np.int64)
    offsets = np.zeros(len(ends) + 1, np.int64)
    nodes = np.empty(64 * len(ends) + 2, np.int64)
    labels = np.empty(len(nodes), np.int64)
    row_ends = np.empty(len(nodes), np.int32)
    columns = np.empty(4 * len(nodes), np.int32)
    num_columns = 0
    for p in range(len(ends)):
        first = offsets[p]
        num_seen, size = _gather(indptr, indices, ends[p, 0], ends[p, 1], hops, limit, seed, local, seen)
        nodes, labels = _grown(nodes, first + size), _grown(labels, first + size)
        row_ends = _grown(row_ends, first + size)
        for s in range(num_seen):
            if local[seen[s]] >= 0:
                nodes[first + local[seen[s]]] = seen[s]
        first_column = num_columns
        for i in range(size):
            x = nodes[first + i]
            columns = _grown(columns, num_columns + indptr[x + 1] - indptr[x])
            for e in range(indptr[x], indptr[x + 1]):
                j = local[indices[e]]
                # Of the two ends' rows the entry that stands for the pair's own link is left out.
                if j >= 0 and not (i < 2 and j < 2):
                    columns[num_columns] = first + j
                    num_columns += 1
            row_ends[first + i] = num_columns
        for s in range(num_seen):
            local[seen[s]] = _UNSEEN
        _label_part(row_ends, columns, first, size, first_column, labels)
        offsets[p + 1] = first + size
    if num_columns > _INT32_MAX:
        raise OverflowError(_TOO_MANY_LINKS)
    total = offsets[-1]
    row_starts = np.zeros(total + 1, np.int32)
    row_starts[1:] = row_ends[:total]
    return nodes[:total].copy(), offsets, labels[:total].copy(), row_starts, columns[:num_columns].copy()


@njit(cache=True)
def _gather(indptr, indices, u, v, hops, limit, seed, local, seen):  # type: ignore[no-untyped-def] # pragma: no cover
    """Number the nodes around u and v in `local`, in the order in which they are reached.

    Returns how many nodes were met, which `seen` lists, and how many of them were kept.
    """
    state = mixed(mixed(seed ^ np.uint64(u)) ^ np.uint64(v))
    seen[0], seen[1] = u, v
    local[u], local[v] = 0, 1
    num_seen, size = 2, 2
    start = 0
    for _ in range(hops):
        stop = num_seen
        for s in range(start, stop):
            x = seen[s]
            if local[x] >= 0:
                for e in range(indptr[x], indptr[x + 1]):
                    y = indices[e]
                    if local[y] == _UNSEEN:
                        local[y] = _LEFT_OUT
                        seen[num_seen] = y
                        num_seen += 1
        kept = min(limit, num_seen - stop)
        for s in range(stop, stop + kept):
            if kept < num_seen - stop:
                # Selection by the first steps of a Fisher–Yates shuffle; the bias of the modulus is below 2^-40.
                state += GOLDEN
                other = s + np.int64(mixed(state) % np.uint64(num_seen - s))
                seen[s], seen[other] = seen[other], seen[s]
            local[seen[s]] = size
            size += 1
        start = stop
    return num_seen, size


@njit(cache=True)
def _taken(nodes, offsets, labels, indptr, indices, parts):  # type: ignore[no-untyped-def] # pragma: no cover
    new_offsets = np.zeros(len(parts) + 1, np.int64)
    num_links = 0
    for i in range(len(parts)):
        low, high = offsets[parts[i]], offsets[parts[i] + 1]
        new_offsets[i + 1] = new_offsets[i] + high - low
        num_links += indptr[high] - indptr[low]
    total = new_offsets[-1]
    new_nodes, new_labels = np.empty(total, np.int64), np.empty(total, np.int64)
    new_indptr, new_indices = np.zeros(total + 1, np.int32), np.empty(num_links, np.int32)
    for i in range(len(parts)):
        low, high, start = offsets[parts[i]], offsets[parts[i] + 1], new_offsets[i]
        first, new_first = indptr[low], new_indptr[start]
        for x in range(high - low):
            new_nodes[start + x] = nodes[low + x]
            new_labels[start + x] = labels[low + x]
            new_indptr[start + x + 1] = indptr[low + x + 1] - first + new_first
        for e in range(indptr[high] - first):
            new_indices[new_first + e] = indices[first + e] - low + start
    return new_nodes, new_offsets, new_labels, new_indptr, new_indices


@njit(cache=True)
def _grown(array, needed):  # type: ignore[no-untyped-def] # pragma: no cover
    if needed <= len(array):
        return array
    larger = np.empty(max(2 * len(array), needed), array.dtype)
    larger[: len(array)] = array
    return larger


@njit(cache=True)
def _label_part(row_ends, columns, first, size, first_column, labels):  # type: ignore[no-untyped-def] # pragma: no cover
    """Label the nodes first … first + size - 1, of which the first two are the pair's ends."""
    to_u = _distances(row_ends, columns, first, size, first_column, 0, 1)
    to_v = _distances(row_ends, columns, first, size, first_column, 1, 0)
    labels[first] = labels[first + 1] = 1
    for i in range(2, size):
        reached = to_u[i] >= 0 and to_v[i] >= 0
        labels[first + i] = _label(to_u[i], to_v[i]) if reached else 0


@njit(cache=True)
def _distances(row_ends, columns, first, size, first_column, source, removed):  # type: ignore[no-untyped-def] # pragma: no cover
    """Hops from the source within the part, on ways that avoid the removed node; -1 where there is none."""
    distance = np.full(size, -1, np.int64)
    queue = np.empty(size, np.int64)
    distance[source] = 0
    queue[0] = source
    head, tail = 0, 1
    while head < tail:
        i = queue[head]
        head += 1
        start = row_ends[first + i - 1] if i > 0 else first_column
        for e in range(start, row_ends[first + i]):
            j = columns[e] - first
            if distance[j] < 0 and j != removed:
                distance[j] = distance[i] + 1
                queue[tail] = j
                tail += 1
    return distance
