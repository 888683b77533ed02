"""Random walks on a graph, and skip-gram vectors trained on them.

Walks: Perozzi et al., "DeepWalk", KDD 2014; Grover and Leskovec, "node2vec", KDD 2016. The second-order bias of
node2vec is drawn by rejection (Yang et al., "KnightKing", SOSP 2019), which is exact and needs no alias table for every
pair of adjacent links. Vectors: skip-gram with negative sampling, see `ppgsl_bench.skip_gram`.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppgsl_bench.errors import UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.skip_gram import train
from ppgsl_bench.split_mix import GOLDEN, mixed, unit

Walks = NDArray[np.int32]
Vectors = NDArray[np.float32]

# What fills the rest of a walk that cannot go on.
PADDING = -1

# gensim's default, which the reference implementations of node2vec and PPNE run with: nodes that make up more than this
# share of all visits are thinned out.
FREQUENT_SHARE = 1e-3


def shuffled_starts(num_nodes: int, walks_per_node: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Every node `walks_per_node` times, each round in an order of its own; shape [num_nodes · walks_per_node]."""
    rounds = [rng.permutation(num_nodes).astype(np.int32) for _ in range(walks_per_node)]
    return np.concatenate(rounds) if rounds else np.empty(0, dtype=np.int32)


def random_walks(
    graph: Graph, starts: NDArray[np.integer], length: int, rng: np.random.Generator, *, p: float = 1.0, q: float = 1.0
) -> Walks:
    """One walk of `length` nodes from each start, int32 of shape [len(starts), length].

    The next node is drawn among the neighbours x of the present node in proportion to `weight · bias`, where the bias
    is 1/p if x is the node before, 1 if x is linked to the node before, and 1/q otherwise (1 at the first step, and
    always if p = q = 1). A walk from an isolated node is that node followed by `PADDING`; no other walk gets stuck.

    Each walk has a random stream of its own, derived from one draw of `rng` and its position, so that neither threads
    nor other walks have a say in it. With a bias, a step takes at most max(1, 1/p, 1/q) / min(1, 1/p, 1/q) proposals
    on average.
    """
    if length < 1 or not p > 0 or not q > 0:
        raise UserError(f"walks need length ≥ 1, p > 0 and q > 0; got length={length}, p={p}, q={q}")
    adjacency = graph.adjacency
    seed = rng.integers(2**64, dtype=np.uint64)
    starts = np.ascontiguousarray(starts, dtype=np.int32)
    cumulative = _row_sums(adjacency.indptr, adjacency.data) if graph.weights is not None else np.empty(0)
    walks: Walks = _walk(adjacency.indptr, adjacency.indices, cumulative, starts, length, (1.0 / p, 1.0 / q), seed)
    return walks


class SkipGram(NamedTuple):
    """Input vectors X and output vectors Y (`syn1neg`), float32 of shape [N, d]; zero for nodes that no walk visits."""

    input: Vectors
    output: Vectors


def skip_gram(
    walks: Walks,
    num_nodes: int,
    *,
    dimensions: int = 128,
    window: int = 10,
    epochs: int = 1,
    negative: int = 5,
    frequent_share: float = FREQUENT_SHARE,
    seed: int,
) -> SkipGram:
    """Train skip-gram vectors on walks that `random_walks` made; the same arguments give the same bits.

    Walks that never leave their start (isolated nodes) are no context for anything and are left out.

    Args:
        walks: node ids, shape [W, L].
        num_nodes: number of nodes N.
        dimensions: width d of the vectors.
        window: most steps between two nodes that count as context of one another.
        epochs: passes over the walks.
        negative: noise nodes for each visit, which the nodes around it share.
        frequent_share: share of all visits above which a node is thinned out; 0 for never.
        seed: any integer from 0 to 2³² - 1.
    """
    if walks.shape[1] > 1:
        moved = walks[:, 1] != PADDING
        walks = walks if moved.all() else walks[moved]
    else:
        walks = walks[:0]
    if not len(walks):
        return SkipGram(np.zeros((num_nodes, dimensions), np.float32), np.zeros((num_nodes, dimensions), np.float32))
    vectors = train(
        walks,
        _visits(walks, num_nodes),
        dimensions=dimensions,
        window=window,
        epochs=epochs,
        negative=negative,
        frequent_share=frequent_share,
        seed=seed,
    )
    return SkipGram(*vectors)


@njit(cache=True)
def _visits(walks: NDArray[np.int32], num_nodes: int) -> NDArray[np.int64]:
    """How often each node occurs in the walks (`bincount` would copy all walks to int64)."""
    counts = np.zeros(num_nodes, dtype=np.int64)
    for walk in walks:
        for node in walk:
            counts[node] += 1
    return counts


@njit(cache=True)
def _row_sums(indptr: NDArray[np.int32], weights: NDArray[np.float32]) -> NDArray[np.float64]:
    """Running sums of the weights within each row."""
    sums = np.empty(len(weights), dtype=np.float64)
    for row in range(len(indptr) - 1):
        total = 0.0
        for k in range(indptr[row], indptr[row + 1]):
            total += weights[k]
            sums[k] = total
    return sums


@njit(cache=True)
def _first_above(values: NDArray[np.float64], low: int, high: int, bound: float) -> int:
    """Smallest k in [low, high) with values[k] > bound; the last one must be."""
    high -= 1
    while low < high:
        middle = (low + high) // 2
        if values[middle] > bound:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True)
def _linked(indptr: NDArray[np.int32], indices: NDArray[np.int32], u: int, v: int) -> bool:
    if indptr[u + 1] - indptr[u] > indptr[v + 1] - indptr[v]:
        u, v = v, u
    low, high = indptr[u], indptr[u + 1]
    while low < high:
        middle = (low + high) // 2
        if indices[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low < indptr[u + 1] and bool(indices[low] == v)


@njit(cache=True)
def _walk(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    cumulative: NDArray[np.float64],
    starts: NDArray[np.int32],
    length: int,
    biases: tuple[float, float],
    seed: np.uint64,
) -> NDArray[np.int32]:
    return_bias, leave_bias = biases
    walks = np.full((len(starts), length), PADDING, dtype=np.int32)
    weighted = len(cumulative) > 0
    biased = return_bias != 1.0 or leave_bias != 1.0
    largest = max(1.0, return_bias, leave_bias)
    for w in range(len(starts)):
        # A stream's own start is a SplitMix64 output: two walks share numbers with a chance of about length / 2^64.
        state = mixed(seed + np.uint64(w + 1) * GOLDEN)
        before = -1
        here = starts[w]
        walks[w, 0] = here
        for step in range(1, length):
            low, high = indptr[here], indptr[here + 1]
            if low == high:
                break
            while True:
                state += GOLDEN
                drawn = unit(state)
                if weighted:
                    k = _first_above(cumulative, low, high, drawn * cumulative[high - 1])
                else:
                    k = low + int(drawn * (high - low))
                there = indices[k]
                if not biased or before < 0:
                    break
                if there == before:
                    bias = return_bias
                elif _linked(indptr, indices, there, before):
                    bias = 1.0
                else:
                    bias = leave_bias
                state += GOLDEN
                if unit(state) * largest < bias:
                    break
            walks[w, step] = there
            before, here = here, there
    return walks
