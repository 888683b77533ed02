"""The points of a trade-off curve as they are drawn: one a setting, means over seeds with 95 % intervals."""

from dataclasses import dataclass

import numpy as np

from ppgsl_bench.leaderboard.front import nondominated
from ppgsl_bench.leaderboard.measurements import Entry, Grid, curve
from ppgsl_bench.metrics import MeanInterval, mean_interval


@dataclass(frozen=True)
class Point:
    """One setting in one view.

    Attributes:
        setting: as a person would type it.
        strength, utility, kept: mean over seeds and t-interval; `kept` is the share of the undefended utility.
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
            mean_interval(found.strength[i]),
            mean_interval(found.kept[i] * found.undefended_utility),
            mean_interval(found.kept[i]),
            tuple(seed for seed, charged in zip(found.seeds, found.charged[i], strict=True) if charged),
            not good[i],
        )
        for i, setting in enumerate(found.settings)
    ]
