"""How sure a mean over seeds is: hierarchical bootstrap, datasets over seeds.

Datasets are fixed; within each, seeds are drawn with replacement. A seed is drawn as a whole: split, noise of the
defense, noise of the attack and sample of pairs all come new with it, so their variance is in the differences between
seeds already, and drawing pairs again inside a seed would count it twice (Davison and Hinkley, *Bootstrap Methods and
their Application*, 1997, section 3.8). All defenses share each draw, so that comparisons are paired.

With n seeds the deviations of plain bootstrap means are too small by √((n-1)/n), and normal where Student's t with
n - 1 degrees of freedom is right (Hesterberg, *What Teachers Should Know About the Bootstrap*, 2015). With two to five
seeds that is no detail: deviations are stretched by `stretch(n)`. One seed says nothing about spread: no interval then.
"""

import hashlib
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.special
from numpy.typing import NDArray

Floats = NDArray[np.float64]

REPLICATES = 2000
CONFIDENCE = 0.95
_TAILS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)

# Values that differ by less are the same: rounding must not decide a rank.
TIE = 1e-9


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval; None for both ends where one seed is too few."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Place:
    """A rank, the 95 % interval of it, and the group of those that cannot be told apart; None where undefined."""

    rank: int
    best: int | None = None
    worst: int | None = None
    group: int | None = None


def stretch(seeds: int) -> float:
    """Factor for bootstrap deviations of a mean over `seeds` values: √(n / (n-1)) · t₀.₉₇₅(n-1) / z₀.₉₇₅."""
    t = float(scipy.special.stdtrit(seeds - 1, _TAILS[1]))
    return math.sqrt(seeds / (seeds - 1)) * t / float(scipy.special.ndtri(_TAILS[1]))


class Sample:
    """Values of K competitors on the seeds of some datasets, and bootstrap replicates of their means.

    Attributes:
        means: shape [K], the mean over datasets of the means over seeds.
        replicates: shape [B, K], draws of the same; None if some dataset has one seed only.
    """

    def __init__(self, values: Mapping[str, Floats]) -> None:
        """Args: values: by name of the dataset, shape [K, seeds]."""
        self.means: Floats = np.mean([array.mean(axis=1) for array in values.values()], axis=0)
        self.replicates: Floats | None = None
        if all(array.shape[1] > 1 for array in values.values()):
            deviations = [_deviations(name, array) for name, array in values.items()]
            self.replicates = self.means + np.mean(deviations, axis=0)

    def estimates(self, lowest: float, highest: float) -> list[Estimate]:
        """Means with percentile intervals, cut to the range that the values can have."""
        if self.replicates is None:
            return [Estimate(float(mean)) for mean in self.means]
        low, high = np.clip(np.quantile(self.replicates, _TAILS, axis=0), lowest, highest)
        return [Estimate(float(m), float(a), float(b)) for m, a, b in zip(self.means, low, high, strict=True)]

    def places(self, *, higher_is_better: bool, complete: NDArray[np.bool_]) -> list[Place]:
        """Ranks from 1; competitors with equal means share one.

        A competitor that is not `complete` (cells are missing) gets no benefit of the doubt that its own failures
        raised: its rank interval does not reach above its rank, and it shares no group with those ahead of it.
        """
        sign = 1.0 if higher_is_better else -1.0
        merit = sign * self.means
        ranks = _ranks(merit[None])[0]
        if self.replicates is None:
            return [Place(int(rank)) for rank in ranks]
        drawn = sign * self.replicates
        best, worst = np.quantile(_ranks(drawn), _TAILS, axis=0, method="inverted_cdf").astype(np.int64)
        best = np.where(complete, np.minimum(best, ranks), ranks)
        worst = np.maximum(worst, ranks)
        groups = _groups(merit, drawn, complete)
        return [Place(*map(int, place)) for place in zip(ranks, best, worst, groups, strict=True)]


def _deviations(name: str, values: Floats) -> Floats:
    """Stretched deviations of resampled means, shape [B, K]."""
    centred = values - values.mean(axis=1, keepdims=True)
    deviations: Floats = _weights(name, values.shape[1]) @ centred.T
    return deviations


@lru_cache(maxsize=256)
def _weights(name: str, seeds: int) -> Floats:
    """How often each seed is drawn, as a stretched share, shape [B, seeds]; depends on the dataset's name alone."""
    rng = np.random.default_rng(list(hashlib.sha256(name.encode()).digest()))
    counts = rng.multinomial(seeds, np.full(seeds, 1 / seeds), size=REPLICATES)
    return np.asarray(counts * (stretch(seeds) / seeds), dtype=np.float64)


def _ranks(merit: Floats) -> NDArray[np.int64]:
    """Along the last axis: 1 + how many are better."""
    ahead = merit[..., None, :] > merit[..., :, None] + TIE
    ranks: NDArray[np.int64] = 1 + ahead.sum(axis=-1, dtype=np.int64)
    return ranks


def _groups(merit: Floats, drawn: Floats, complete: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Down the ranking, each joins the group of the best one in it unless the paired interval says that it is worse."""
    groups = np.ones(len(merit), dtype=np.int64)
    unlikely = math.floor(_TAILS[0] * len(drawn))
    order = np.lexsort((~complete, -np.round(merit / TIE)))
    leader = order[0]
    for previous, i in itertools.pairwise(order):
        tied = merit[previous] - merit[i] <= TIE and complete[previous] == complete[i]
        lead = drawn[:, leader] - drawn[:, i]
        told_apart = np.partition(lead, unlikely)[unlikely] > TIE
        groups[i] = groups[previous] + (not tied and (told_apart or not complete[i]))
        if groups[i] > groups[previous]:
            leader = i
    return groups
