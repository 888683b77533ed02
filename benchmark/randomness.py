"""Exact samplers for noise on all N(N-1)/2 node pairs in time that grows with what comes out.

Each function has the law of a plain dense sampler, which its tests compare it with, and no array of the dense size.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.pairs import Ranks

_INT64_MAX = np.iinfo(np.int64).max


def bernoulli_positions(probability: float, total: int, rng: np.random.Generator) -> Ranks:
    """Sorted positions of the successes among `total` independent trials, in O(successes).

    The gaps between successes are geometric: their cumulative sums, less one, are the positions.
    """
    if probability <= 0 or total <= 0:
        return np.empty(0, dtype=np.int64)
    parts = []
    last = -1
    while last < total:
        expected = probability * (total - 1 - last)
        size = int(expected + 4 * math.sqrt(expected)) + 16
        # Gaps are cut off just past the end, and so few drawn at once, that their sum stays within int64.
        size = min(size, _INT64_MAX // (total + 1) - 1)
        gaps = np.minimum(rng.geometric(probability, size=size), total + 1)
        positions = last + np.cumsum(gaps)
        parts.append(positions[: np.searchsorted(positions, total)])
        last = int(positions[-1])
    return np.concatenate(parts)


def two_sided_geometric(epsilon: float, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Integer noise with P(k) proportional to e^(-epsilon |k|): ε-DP for an integer of sensitivity 1.

    The difference of two geometric variables has this law (Ghosh, Roughgarden & Sundararajan, STOC 2009).
    """
    stop = -math.expm1(-epsilon)
    first, second = rng.geometric(stop, size=(2, size))
    return np.asarray(first - second, dtype=np.int64)


def laplace_top(total: int, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """The `count` largest of `total` independent Laplace(0, 1) variables, in descending order, in O(count).

    The order statistics U_1 < U_2 < … of `total` uniforms satisfy -ln(1 - U_j) = Σ_{t<j} Exp(1)/(total - t) (Rényi
    1953). With U as upper-tail probability, the quantile is -ln(2U) above the median and ln(2(1 - U)) below it.
    """
    spacings = rng.standard_exponential(count) / (total - np.arange(count, dtype=np.float64))
    hazard = np.cumsum(spacings)
    tail = -np.expm1(-hazard)
    return np.where(tail < 0.5, -np.log(2 * tail), math.log(2) - hazard)


def truncated_laplace_histogram(
    scale: float, total: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How often each integer occurs among `total` Laplace(0, scale) variables cut off to integers towards zero.

    With a = e^(-1/scale) the law is P(0) = 1 - a and P(±k) = a^k (1 - a)/2. The counts are drawn one value after the
    other, each binomial given those before, so time and memory grow with the largest value, not with `total`.

    Returns:
        The values that occur, ascending, and their counts, which add up to `total`.
    """
    # P(|X| >= k + 1 | |X| >= k) = a at every k.
    beyond = math.exp(-1 / scale)
    nonzero = int(rng.binomial(total, beyond))
    counts = {0: total - nonzero}
    positive = int(rng.binomial(nonzero, 0.5))
    for sign, remaining in ((1, positive), (-1, nonzero - positive)):
        magnitude, left = 1, remaining
        while left:
            further = int(rng.binomial(left, beyond))
            counts[sign * magnitude] = left - further
            magnitude, left = magnitude + 1, further
    occurring = sorted(value for value, count in counts.items() if count)
    return np.array(occurring, dtype=np.int64), np.array([counts[v] for v in occurring], dtype=np.int64)
