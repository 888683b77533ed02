"""One trade-off curve on one split: points (utility, attack strength), and what can be read off them.

Utility is a share of the undefended graph's, more is better; strength is max(AUC, 1 - AUC), less is better. Nothing is
interpolated: every value below is that of a setting that was measured. So a point taken away never improves any of
them, which a line drawn through the front would not guarantee (a point above the line between its neighbours makes the
line worse).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

CHANCE = 0.5
CERTAINTY = 1.0

# Rounding in u / u0 must not push a setting below a share that it keeps exactly.
_ROUNDING = 1e-12


def nondominated(utility: ArrayLike, strength: ArrayLike) -> NDArray[np.bool_]:
    """Which points no other one beats: at least as good in both coordinates and better in one. Twins beat no twin."""
    u, a = np.asarray(utility, dtype=np.float64), np.asarray(strength, dtype=np.float64)
    as_good = (u[:, None] >= u) & (a[:, None] <= a)
    better = (u[:, None] > u) | (a[:, None] < a)
    return np.asarray(~(as_good & better).any(axis=0))


def strength_at(utility: ArrayLike, strength: ArrayLike, kept: float) -> float:
    """The lowest strength among the points that keep at least the share `kept`; certainty if there is none."""
    u, a = np.asarray(utility, dtype=np.float64), np.asarray(strength, dtype=np.float64)
    return float(a[u >= kept - _ROUNDING].min(initial=CERTAINTY))


def utility_at(utility: ArrayLike, strength: ArrayLike, limit: float) -> float:
    """The largest share, at most 1, among the points whose attack is no stronger than `limit`; 0 if there is none."""
    u, a = np.asarray(utility, dtype=np.float64), np.asarray(strength, dtype=np.float64)
    return min(float(u[a <= limit + _ROUNDING].max(initial=0.0)), 1.0)


def hypervolume(utility: ArrayLike, strength: ArrayLike) -> float:
    """The share of the unit square that the points dominate: ∪ [0, u] × [0, (1 - a) / (1 - ½)].

    Both sides are cut to [0, 1]: 1 is full utility with attacks at chance, 0 is nothing kept or everything exposed.
    """
    u = np.clip(np.asarray(utility, dtype=np.float64), 0.0, 1.0)
    privacy = np.clip((CERTAINTY - np.asarray(strength, dtype=np.float64)) / (CERTAINTY - CHANCE), 0.0, 1.0)
    # From the most useful point down, each one adds a strip as wide as its utility and as high as its gain in privacy.
    order = np.argsort(-u, kind="stable")
    reached = np.maximum.accumulate(privacy[order])
    return float((u[order] * np.diff(reached, prepend=0.0)).sum())
