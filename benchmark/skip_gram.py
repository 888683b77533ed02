"""Skip-gram with negative sampling (Mikolov et al., "Distributed Representations of Words and Phrases", NIPS 2013).

The nodes around a centre share its negative samples, as in pWord2Vec (Ji et al., "Parallelizing Word2Vec in Shared and
Distributed Memory", IEEE TPDS 2019), so that a centre's work is on a few vectors that stay in the nearest cache. All
else is word2vec: a window of random reach, noise in proportion to count^(3/4), frequent nodes thinned out, a learning
rate that falls linearly. One thread and one random stream: the same arguments give the same bits.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppgsl_bench.prefetching import prefetch, prefetch_rows
from ppgsl_bench.split_mix import GOLDEN, unit

# word2vec's defaults, which node2vec and DeepWalk kept.
FIRST_RATE, LAST_RATE = 0.025, 0.0001
NOISE_EXPONENT = 0.75

# Vectors are padded by zeros to a multiple of this, the numbers in the widest register; so are lists of logits.
LANES = 16
# A block of work is two contexts times three targets: as many sums as fit into registers beside their terms.
CONTEXTS, TARGETS = 2, 3
BLOCK = CONTEXTS * TARGETS

# tanh by Lambert's continued fraction, cut off where it reaches 1: within 1e-4.
_TANH_BOUND = np.float32(4.97)
_TOP = tuple(np.float32(c) for c in (135135, 17325, 378))
_BOTTOM = tuple(np.float32(c) for c in (135135, 62370, 3150, 28))
_ZERO, _HALF, _ONE = np.float32(0), np.float32(0.5), np.float32(1)

Vectors = NDArray[np.float32]


def train(
    walks: NDArray[np.int32],
    visits: NDArray[np.int64],
    *,
    dimensions: int,
    window: int,
    epochs: int,
    negative: int,
    frequent_share: float,
    seed: int,
) -> tuple[Vectors, Vectors]:
    """Input and output vectors of each node, shape [N, dimensions]; zero for nodes that no walk visits.

    Args:
        walks: node ids, shape [W, L], every one of them valid.
        visits: how often each of the N nodes occurs in the walks.
        dimensions: width of the vectors.
        window: most steps between two nodes that count as context of one another.
        epochs: passes over the walks.
        negative: noise nodes drawn for each centre.
        frequent_share: share of all visits above which a node is thinned out; 0 for never.
        seed: any integer from 0 to 2³² - 1.
    """
    rng = np.random.default_rng(seed)
    width = -(-dimensions // LANES) * LANES
    inputs = np.zeros((len(visits), width), np.float32)
    outputs = np.zeros_like(inputs)
    visited = np.flatnonzero(visits)
    inputs[visited, :dimensions] = (2 * rng.random((len(visited), dimensions), dtype=np.float32) - 1) / dimensions
    # The width in units of LANES as the length of a tuple, which is part of its type: a constant to the compiler.
    registers = (0,) * (width // LANES)
    # Loaded from its cache, `_run` brings a copy of `_update` that was optimised in its company and whose sums end in
    # other bits. Where `_update` itself is loaded first, it is what is called, wherever `_run` comes from.
    none = np.empty(0, np.float32)
    _update(inputs, np.empty(0, np.int32), none, none, none, none, none, registers)
    _run(
        walks,
        _kept_share(visits, frequent_share),
        np.cumsum(visits**NOISE_EXPONENT),
        inputs,
        outputs,
        registers,
        window,
        negative,
        epochs,
        rng.integers(2**64, dtype=np.uint64),
    )
    return inputs[:, :dimensions], outputs[:, :dimensions]


def _kept_share(visits: NDArray[np.int64], frequent_share: float) -> NDArray[np.float64]:
    """Chance of each visit to be kept, min(1, sqrt(t) + t) with t = frequent share / share of visits (word2vec.c)."""
    if frequent_share == 0:
        return np.ones(len(visits))
    ratio = frequent_share * visits.sum() / np.maximum(visits, 1)
    return np.asarray(np.minimum(1.0, np.sqrt(ratio) + ratio), dtype=np.float64)


@njit(cache=True)
def _first_guesses(cumulative):  # type: ignore[no-untyped-def] # pragma: no cover
    """For j = 0 … n - 1 the first k with cumulative[k] > j/n of the total, from where a draw needs a step or so."""
    count = len(cumulative)
    guesses = np.empty(count, np.int32)
    k = 0
    for j in range(count):
        while k < count - 1 and cumulative[k] <= j * (cumulative[-1] / count):
            k += 1
        guesses[j] = k
    return guesses


# With Python's errors, a test of every divisor for zero would keep the loop from becoming vector instructions.
@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _to_steps(logits, rates, labels):  # type: ignore[no-untyped-def] # pragma: no cover
    """Replace each logit f by rate · (label - σ(f)), where σ(f) = 1/2 + tanh(f/2)/2 and `labels` are less 1/2."""
    for first in range(0, len(logits), LANES):
        f, rate, label = (
            logits[first : first + LANES],
            rates[first : first + LANES],
            labels[first : first + LANES],
        )
        for k in range(LANES):
            y = min(max(_HALF * f[k], -_TANH_BOUND), _TANH_BOUND)
            q = y * y
            tanh = y * (_TOP[0] + q * (_TOP[1] + q * (_TOP[2] + q)))
            tanh /= _BOTTOM[0] + q * (_BOTTOM[1] + q * (_BOTTOM[2] + q * _BOTTOM[3]))
            f[k] = rate[k] * (label[k] - _HALF * tanh)


@njit(cache=True)
def _thinned(walk, kept_share, state, nodes):  # type: ignore[no-untyped-def] # pragma: no cover
    """Write the visits that are kept to `nodes`; returns their number and the state of the stream."""
    size = 0
    for node in walk:
        if kept_share[node] < 1.0:
            state += GOLDEN
            if unit(state) >= kept_share[node]:
                continue
        nodes[size] = node
        size += 1
    return size, state


@njit(cache=True)
def _draw_targets(centre, negative, cumulative, guesses, state, chosen, weights):  # type: ignore[no-untyped-def] # pragma: no cover
    """Write the centre and its distinct negatives to `chosen`, how often each counts to `weights` (0 beyond them).

    The centre is no noise to its own contexts; a node drawn twice counts twice. Returns the number of targets and the
    state of the stream.
    """
    num_nodes, total = len(cumulative), cumulative[-1]
    weights[:] = _ZERO
    chosen[0], weights[0] = centre, _ONE
    taken = 1
    for _ in range(negative):
        state += GOLDEN
        drawn = unit(state)
        k = guesses[int(drawn * num_nodes)]
        while k < num_nodes - 1 and cumulative[k] <= drawn * total:
            k += 1
        place = 0
        while place < taken and chosen[place] != k:
            place += 1
        if place == taken:
            chosen[taken] = k
            taken += 1
        if place > 0:
            weights[place] += _ONE
    return taken, state


@njit(cache=True, fastmath={"contract", "reassoc", "nsz"})
def _update(inputs, contexts, targets, rates, labels, logits, pair, registers):  # type: ignore[no-untyped-def] # pragma: no cover
    """Gradient steps on two contexts at a time, each on all targets and from the values before it.

    With x a context, y a target: f = x·y, g = rate (label - σ(f)), then x += Σ_y g y and y += Σ_x g x. `pair` holds
    the two contexts and what is added to them.

    The width is a constant to the compiler, which then sees that no two rows of a block overlap and turns the inner
    loops into vector instructions.
    """
    width = LANES * len(registers)
    groups = len(targets) // (TARGETS * width)
    for c in range(0, len(contexts), CONTEXTS):
        first, second = inputs[contexts[c]], inputs[contexts[min(c + 1, len(contexts) - 1)]]
        # The last context of an odd number is on its own.
        second_counts = _ONE if c + 1 < len(contexts) else _ZERO
        for d in range(width):
            pair[d] = first[d]
            pair[width + d] = second[d]
            pair[2 * width + d] = _ZERO
            pair[3 * width + d] = _ZERO
        for group in range(groups):
            y = targets[group * TARGETS * width : (group + 1) * TARGETS * width]
            f00 = f01 = f02 = f10 = f11 = f12 = _ZERO
            for d in range(width):
                x0, x1 = pair[d], pair[width + d]
                y0, y1, y2 = y[d], y[width + d], y[2 * width + d]
                f00 += x0 * y0
                f01 += x0 * y1
                f02 += x0 * y2
                f10 += x1 * y0
                f11 += x1 * y1
                f12 += x1 * y2
            f = logits[group * BLOCK : (group + 1) * BLOCK]
            f[0], f[1], f[2], f[3], f[4], f[5] = f00, f01, f02, f10, f11, f12
        _to_steps(logits, rates, labels)
        for group in range(groups):
            y = targets[group * TARGETS * width : (group + 1) * TARGETS * width]
            g = logits[group * BLOCK : (group + 1) * BLOCK]
            g00, g01, g02 = g[0], g[1], g[2]
            g10, g11, g12 = second_counts * g[3], second_counts * g[4], second_counts * g[5]
            for d in range(width):
                x0, x1 = pair[d], pair[width + d]
                y0, y1, y2 = y[d], y[width + d], y[2 * width + d]
                pair[2 * width + d] += g00 * y0 + g01 * y1 + g02 * y2
                pair[3 * width + d] += g10 * y0 + g11 * y1 + g12 * y2
                y[d] = y0 + g00 * x0 + g10 * x1
                y[width + d] = y1 + g01 * x0 + g11 * x1
                y[2 * width + d] = y2 + g02 * x0 + g12 * x1
        # One after the other: the two may be the same node.
        for d in range(width):
            first[d] += pair[2 * width + d]
        for d in range(width):
            second[d] += pair[3 * width + d]


@njit(cache=True)
def _run(  # type: ignore[no-untyped-def] # pragma: no cover
    walks, kept_share, cumulative, inputs, outputs, registers, window, negative, epochs, state
):
    """The training loop, compiled for vectors of one width."""
    width = LANES * len(registers)
    num_walks, length = walks.shape
    guesses = _first_guesses(cumulative)
    groups = (1 + negative + TARGETS - 1) // TARGETS
    nodes = np.empty(length, np.int32)
    contexts = np.empty(2 * window, np.int32)
    # What was drawn for the centre at hand and for the one after it, by turns.
    reaches = np.empty(2, np.int64)
    taken = np.empty(2, np.int64)
    chosen = np.empty((2, groups * TARGETS), np.int32)
    weights = np.zeros((2, groups * TARGETS), np.float32)
    targets = np.zeros(groups * TARGETS * width, np.float32)
    padded = (groups * BLOCK + LANES - 1) // LANES * LANES
    logits, rates = np.zeros(padded, np.float32), np.zeros(padded, np.float32)
    labels = np.full(padded, -_HALF)
    labels[0] = labels[TARGETS] = _HALF
    pair = np.zeros(2 * CONTEXTS * width, np.float32)
    for turn in range(epochs * num_walks):
        rate = np.float32(FIRST_RATE - (FIRST_RATE - LAST_RATE) * turn / (epochs * num_walks))
        size, state = _thinned(walks[turn % num_walks], kept_share, state, nodes)
        if size == 1:
            # A node on its own draws a reach, although there is nothing to reach.
            state += GOLDEN
            continue
        # Vectors of large graphs are far away in memory: each is asked for one centre ahead of its use.
        for i in range(-1, size):
            ahead = (i + 1) % 2
            if i + 1 < size:
                state += GOLDEN
                reaches[ahead] = 1 + int(unit(state) * window)
                taken[ahead], state = _draw_targets(
                    nodes[i + 1], negative, cumulative, guesses, state, chosen[ahead], weights[ahead]
                )
                prefetch_rows(outputs, chosen[ahead, : taken[ahead]])
                prefetch(inputs, nodes[min(i + 1 + window, size - 1)])
            if i < 0:
                continue
            now = i % 2
            before, after = min(reaches[now], i), min(reaches[now], size - 1 - i)
            contexts[:before] = nodes[i - before : i]
            contexts[before : before + after] = nodes[i + 1 : i + 1 + after]
            for place in range(groups * TARGETS):
                at = place // TARGETS * BLOCK + place % TARGETS
                rates[at] = rates[at + TARGETS] = rate * weights[now, place]
            for place in range(taken[now]):
                targets[place * width : (place + 1) * width] = outputs[chosen[now, place]]
            _update(inputs, contexts[: before + after], targets, rates, labels, logits, pair, registers)
            for place in range(taken[now]):
                outputs[chosen[now, place]] = targets[place * width : (place + 1) * width]
