"""Noisy counts made plausible again, as PrivGraph does it: truncated to integers, then NormSub.

NormSub (Wang et al., "Locally Differentially Private Frequency Estimation with Consistency", NDSS 2020) subtracts one
number δ from all counts and clips at 0 so that their sum changes least.
"""

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.pairs import Ranks, ranks_outside, sample_distinct
from ppgsl_bench.randomness import truncated_laplace_histogram

Counts = NDArray[np.int64]


def noisy_vector(counts: Counts, scale: float, rng: np.random.Generator) -> Counts:
    """NormSub of the counts with Laplace(0, scale) noise, cut off to integers towards zero."""
    if not len(counts):
        return counts
    noisy = np.trunc(counts + rng.laplace(0, scale, len(counts))).astype(np.int64)
    return np.maximum(noisy - norm_sub_shift(*np.unique(noisy, return_counts=True)), 0)


def noisy_cells(
    cells: Ranks, counts: Counts, num_cells: int, scale: float, rng: np.random.Generator
) -> tuple[Ranks, Counts]:
    """The same for a long vector that is zero but for a few cells; the result is as sparse.

    The noise on the zero cells is drawn as a histogram, which is all that NormSub looks at. Only noise above δ
    survives, and as zero cells are alike, it falls on uniformly drawn ones. The law is that of `noisy_vector` on the
    whole vector.

    Args:
        cells: sorted numbers of the cells that are not zero, out of range(num_cells).
        counts: what is in them.
        num_cells: length of the whole vector.
        scale: of the Laplace noise on every cell.
        rng: the source of randomness.

    Returns:
        The cells that are positive afterwards, in random order, and what is in them.
    """
    occupied = np.trunc(counts + rng.laplace(0, scale, len(cells))).astype(np.int64)
    values, frequencies = truncated_laplace_histogram(scale, num_cells - len(cells), rng)
    shift = norm_sub_shift(np.concatenate([occupied, values]), np.concatenate([np.ones_like(occupied), frequencies]))
    survives, survived = occupied > shift, values > shift
    risen = np.repeat(values[survived], frequencies[survived])
    places = ranks_outside(cells, sample_distinct(num_cells - len(cells), len(risen), rng))
    return np.concatenate([cells[survives], places]), np.concatenate([occupied[survives], risen]) - shift


def norm_sub_shift(values: Counts, frequencies: Counts) -> int:
    """The smallest integer δ in {0, …, |min| - 1} that minimises |Σ max(x - δ, 0) - Σ x|; 0 if nothing is negative.

    The sum f(δ) = Σ max(x - δ, 0) falls strictly until it is 0, so the minimum is where it crosses Σ x (or 0, if Σ x is
    negative), or one before.

    Args:
        values: the numbers x, in any order, repetitions allowed.
        frequencies: how often each of them occurs.
    """
    if not len(values) or values.min() >= 0:
        return 0
    order = np.argsort(values)
    values, frequencies = values[order], frequencies[order]
    number = np.append(np.cumsum(frequencies[::-1])[::-1], 0)
    mass = np.append(np.cumsum((values * frequencies)[::-1])[::-1], 0)
    target = int(mass[0])

    def remaining(shift: int) -> int:
        above = np.searchsorted(values, shift, side="right")
        return int(mass[above] - shift * number[above])

    low, high = 0, -int(values[0]) - 1
    while low < high:
        middle = (low + high) // 2
        if remaining(middle) <= max(target, 0):
            high = middle
        else:
            low = middle + 1
    if low and abs(remaining(low - 1) - target) <= abs(remaining(low) - target):
        return low - 1
    return low
