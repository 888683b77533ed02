"""The points of a trade-off curve as they are drawn: one a setting, means over seeds with 95 % intervals."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.leaderboard.front import CERTAINTY, CHANCE, nondominated
from ppgsl_bench.leaderboard.measurements import Entry, Grid, curve
from ppgsl_bench.metrics import MeanInterval, mean_interval


@dataclass(frozen=True)
class Point:
    """One setting in one view.

    Attributes:
        setting: as a person would type it.
        strength, utility, kept: mean over seeds and t-interval, cut to the range that the values can have; `kept` is
            the share of the undefended utility.
        charged: seeds on which the setting counts as undefended, since a cell is missing.
        dominated: whether another setting of the same defense, or the undefended graph, is better in mean.
    """

    setting: str
    strength: MeanInterval
    utility: MeanInterval
    kept: MeanInterval
    charged: tuple[int, ...]
    dominated: bool


def points_of(grid: Grid, entry: Entry, attack: str, utility: str) -> list[Point]:
    """The points of an entry's curve, in the order of its settings."""
    found = curve(grid, entry, attack, utility)
    strengths = np.append(found.strength.mean(axis=1), found.undefended.mean())
    kept = np.append(found.kept.mean(axis=1), 1.0)
    good = nondominated(kept, strengths)
    return [
        Point(
            setting,
            _over_seeds(found.strength[i], CHANCE, CERTAINTY),
            _over_seeds(found.kept[i] * found.undefended_utility, 0.0, 1.0),
            _over_seeds(found.kept[i], 0.0, math.inf),
            tuple(seed for seed, charged in zip(found.seeds, found.charged[i], strict=True) if charged),
            not good[i],
        )
        for i, setting in enumerate(found.settings)
    ]


def _over_seeds(values: NDArray[np.float64], lowest: float, highest: float) -> MeanInterval:
    found = mean_interval(values)
    if found.count == 1:
        return found
    return replace(found, low=max(found.low, lowest), high=min(found.high, highest))
