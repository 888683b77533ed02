"""Unordered node pairs as numbers.

The P = n(n-1)/2 pairs {i, j} with i < j are numbered row by row through the upper triangle:
`rank(i, j) = i(2n-i-1)/2 + (j-i-1)`. Ranks sort as the pairs themselves do, so a sorted array of ranks is a
graph, and the r-th pair *outside* a graph is found by one `searchsorted`, with no N×N matrix.
"""

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.errors import GraphError

Pairs = NDArray[np.int64]
Ranks = NDArray[np.int64]


def num_pairs(num_nodes: int) -> int:
    """Number of unordered pairs of distinct nodes."""
    return num_nodes * (num_nodes - 1) // 2


def ranks_of(pairs: Pairs, num_nodes: int) -> Ranks:
    """Rank of each pair (shape [P, 2], distinct ends in either order)."""
    low = np.minimum(pairs[:, 0], pairs[:, 1]).astype(np.int64, copy=False)
    high = np.maximum(pairs[:, 0], pairs[:, 1]).astype(np.int64, copy=False)
    return low * (2 * num_nodes - low - 1) // 2 + (high - low - 1)


def pairs_at(ranks: Ranks, num_nodes: int) -> Pairs:
    """Inverse of `ranks_of`: pairs with i < j, shape [R, 2]."""
    ranks = np.asarray(ranks, dtype=np.int64)
    b = 2 * num_nodes - 1
    row = ((b - np.sqrt(np.maximum(b * b - 8.0 * ranks, 0.0))) / 2).astype(np.int64)
    # The float square root is off by at most one row; integers settle it.
    row = np.clip(row, 0, max(num_nodes - 2, 0))
    row -= _row_start(row, num_nodes) > ranks
    row += _row_start(row + 1, num_nodes) <= ranks
    return np.stack([row, ranks - _row_start(row, num_nodes) + row + 1], axis=1)


def _row_start(row: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    return row * (2 * num_nodes - row - 1) // 2


def contains(sorted_ranks: Ranks, ranks: Ranks) -> NDArray[np.bool_]:
    """Which of `ranks` occur in the sorted array `sorted_ranks`."""
    position = np.searchsorted(sorted_ranks, ranks)
    found = np.zeros(len(ranks), dtype=np.bool_)
    inside = position < len(sorted_ranks)
    found[inside] = sorted_ranks[position[inside]] == ranks[inside]
    return found


def ranks_outside(sorted_ranks: Ranks, positions: Ranks) -> Ranks:
    """The ranks at the given `positions` of the sorted complement of `sorted_ranks`.

    The p-th rank outside is p plus the number of members that come before it: `#{t : s[t] - t <= p}`.
    """
    gaps = sorted_ranks - np.arange(len(sorted_ranks), dtype=np.int64)
    return positions + np.searchsorted(gaps, positions, side="right")


def sample_distinct(total: int, count: int, rng: np.random.Generator) -> Ranks:
    """A uniform subset of `range(total)` of the given size, in random order, in O(count) time and memory.

    (`Generator.choice(total, count, replace=False)` allocates `total` numbers when count > total / 50.)
    """
    if count > total:
        raise GraphError(f"cannot draw {count} distinct items: there are only {total}")
    if 3 * count >= total:
        return rng.permutation(total)[:count].astype(np.int64)
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < count:
        # The first `count` distinct values of an iid sequence are a uniform ordered subset.
        missing = count - len(drawn)
        more = rng.integers(total, size=missing + missing // 4 + 16, dtype=np.int64)
        drawn = np.concatenate([drawn, more])
        _, first = np.unique(drawn, return_index=True)
        drawn = drawn[np.sort(first)]
    return drawn[:count]


def sample_pairs_outside(sorted_ranks: Ranks, num_nodes: int, count: int, rng: np.random.Generator) -> Pairs:
    """Distinct pairs, uniform among those whose rank is not in `sorted_ranks`."""
    available = num_pairs(num_nodes) - len(sorted_ranks)
    if count > available:
        raise GraphError(
            f"cannot draw {count} unlinked pairs: {num_nodes} nodes leave only {available}; "
            "the graph is too dense or too small"
        )
    positions = sample_distinct(available, count, rng)
    return pairs_at(ranks_outside(sorted_ranks, positions), num_nodes)
