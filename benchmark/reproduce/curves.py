"""Trade-off curves as the paper draws them: attack AUC against utility, one point a setting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.defenses import Defense
from ppgsl_bench.leaderboard.front import CHANCE, hypervolume
from ppgsl_bench.leaderboard.measurements import UNDEFENDED, UTILITIES
from ppgsl_bench.metrics import MeanInterval
from ppgsl_bench.reproduce.evidence import Evidence
from ppgsl_bench.reproduce.verdicts import over_seeds

Floats = NDArray[np.float64]
Curves = Mapping[tuple[str, str], Sequence["Curve"]]
"""By dataset and by what utility is measured with."""


@dataclass(frozen=True)
class Curve:
    """Settings of one defense on one graph; those that lack a value on some seed are left out.

    Attributes:
        label: for people.
        settings: as a person would type them, the order of the arrays' first axis; the last is the undefended graph,
            which can always be published.
        attack, utility: shape [settings, seeds].
    """

    label: str
    settings: tuple[str, ...]
    attack: Floats
    utility: Floats

    @property
    def strength(self) -> Floats:
        """An attack that is reliably wrong is right once inverted: max(AUC, 1 - AUC)."""
        return np.abs(self.attack - CHANCE) + CHANCE

    def most_private(self, least_utility: float = 0.0) -> int:
        """Of the settings whose mean utility is at least so much, the one with the weakest attack in mean.

        One setting for all seeds: the best of each seed would flatter.
        """
        useful = self.utility.mean(axis=1) >= least_utility
        useful[-1] = True
        return int(np.argmin(np.where(useful, self.strength.mean(axis=1), np.inf)))

    def attack_at(self, setting: int) -> MeanInterval:
        """Attack AUC of a setting."""
        return over_seeds(self.attack[setting])

    def utility_at(self, setting: int) -> MeanInterval:
        """Utility of a setting."""
        return over_seeds(self.utility[setting])

    @property
    def undefended_utility(self) -> float:
        """Mean over seeds."""
        return float(self.utility[-1].mean())

    def hypervolumes(self) -> Floats:
        """The share of the plane (utility kept, privacy) that the curve dominates, seed by seed: more is better."""
        kept = self.utility / self.utility[-1]
        return np.array([hypervolume(kept[:, i], self.strength[:, i]) for i in range(self.attack.shape[1])])


def curve_of(
    evidence: Evidence, dataset: str, label: str, defenses: Sequence[Defense], attack: str, utility: str
) -> Curve | None:
    """The curve that these settings draw; None if none of them, or not the undefended graph, was measured."""
    metric = UTILITIES[utility].metric
    attacks = {name: evidence.attack(dataset, name, attack) for name in _names(defenses)}
    utilities = {name: evidence.utility(dataset, name, utility, metric) for name in _names(defenses)}
    seeds = sorted(set(attacks[UNDEFENDED]) & set(utilities[UNDEFENDED]))
    complete = [n for n in _names(defenses) if all(s in attacks[n] and s in utilities[n] for s in seeds)]
    if not seeds or len(complete) < 2:
        return None
    return Curve(label, tuple(complete), _array(attacks, complete, seeds), _array(utilities, complete, seeds))


def curves_of(
    evidence: Evidence,
    datasets: Sequence[str],
    tasks: Sequence[str],
    drawn: Mapping[str, tuple[str, Sequence[Defense]]],
) -> Curves:
    """The curves of all graphs and utility tasks, without graphs that have none.

    Args:
        evidence: what was measured.
        datasets: labels of the graphs.
        tasks: utility tasks by name.
        drawn: the attack and the settings of each curve, by the curve's label.
    """
    found = {
        (dataset, task): [
            curve
            for label, (attack, defenses) in drawn.items()
            if (curve := curve_of(evidence, dataset, label, defenses, attack, task)) is not None
        ]
        for dataset in datasets
        for task in tasks
    }
    return {where: curves for where, curves in found.items() if curves}


def _names(defenses: Sequence[Defense]) -> list[str]:
    return [*dict.fromkeys(d.label for d in defenses if d.label != UNDEFENDED), UNDEFENDED]


def _array(values: Mapping[str, Mapping[int, float]], names: Sequence[str], seeds: Sequence[int]) -> Floats:
    return np.array([[values[name][seed] for seed in seeds] for name in names])
