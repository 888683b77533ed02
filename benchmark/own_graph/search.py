"""Which setting of a defense to publish with: along the knob of one defense, or the best of a list of candidates.

A defense's sweep goes from weak to strong, so its knob can be searched by bisection: a handful of publications instead
of a fine grid of them. Chance makes the curve uneven; what is found is a good setting, and the report on it is made
from pairs that the search has not seen.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ppgsl_bench.defenses import Defense
from ppgsl_bench.errors import UserError

# Steps of bisection between two neighbouring settings of the sweep.
REFINEMENTS = 3
# The share of utility that a recommendation keeps if the user does not say.
KEPT_BY_DEFAULT = 0.9

D = TypeVar("D", bound=Defense)


@dataclass(frozen=True)
class Trial:
    """What one setting came to in the search.

    Attributes:
        defense: the defense with its parameters.
        strength: max(AUC, 1 - AUC) of the strongest attack.
        kept: utility as a share of the undefended graph's, of the task that suffers most; None if none was measured.
        attack: the strongest attack.
    """

    defense: Defense
    strength: float
    kept: float | None
    attack: str = ""


@dataclass(frozen=True)
class Wanted:
    """What the user asked for.

    Attributes:
        strength: no attack may be stronger.
        kept: the share of utility that must be kept.
    """

    strength: float | None = None
    kept: float | None = None

    def __post_init__(self) -> None:
        if self.strength is not None and not 0.5 < self.strength <= 1:
            raise UserError(f"--target-auc {self.strength:g}: expected a number above 0.5 (guessing) and up to 1")
        if self.kept is not None and not 0 < self.kept <= 1:
            raise UserError(f"--keep-utility {self.kept:g}: expected a share above 0 and up to 1, such as 0.95")

    def __bool__(self) -> bool:
        return self.strength is not None or self.kept is not None

    def hides(self, trial: Trial) -> bool:
        """Whether the attacks are weak enough."""
        return self.strength is None or trial.strength <= self.strength

    def keeps(self, trial: Trial) -> bool:
        """Whether enough utility is left."""
        return self.kept is None or (trial.kept is not None and trial.kept >= self.kept)


class UnreachableError(UserError):
    """No setting does what was asked for; nothing is published.

    Attributes:
        nearest: the setting that comes nearest, if any could be tried.
    """

    def __init__(self, message: str, nearest: Trial | None = None) -> None:
        super().__init__(message)
        self.nearest = nearest


def knob_settings(defense: type[D], given: Mapping[str, Any]) -> list[D]:
    """The settings of a defense's sweep with the parameters that the user has fixed, weakest first."""
    varied = {name for setting in defense.sweep for name in setting}
    if not varied or len(defense.sweep) < 2:
        raise UserError(f"{defense.name} has no setting to search; give its parameters yourself")
    fixed = varied & set(given)
    if fixed:
        raise UserError(
            f"{defense.name}: {', '.join(sorted(fixed))} is what the search varies; leave it out of the brackets, "
            "or leave out --target-auc and --keep-utility"
        )
    return [defense.create(**setting, **given) for setting in defense.sweep]


def searched(settings: Sequence[D], wanted: Wanted, measure: Callable[[D], Trial]) -> Trial:
    """The weakest setting that hides enough or, if only utility was asked for, the strongest that keeps enough."""
    trials: dict[str, Trial] = {}

    def tried(defense: D) -> Trial:
        if defense.canonical not in trials:
            trials[defense.canonical] = measure(defense)
        return trials[defense.canonical]

    if wanted.strength is not None:
        if not wanted.hides(tried(settings[-1])):
            best = min(trials.values(), key=lambda trial: trial.strength)
            raise UnreachableError(
                f"no setting of {settings[0].name} brings the strongest attack down to {wanted.strength:g}: "
                f"{best.defense.label} comes to {best.strength:.3f} ({best.attack}); accept a higher one, or try "
                "--defense auto",
                best,
            )
        _bisect(settings, lambda defense: wanted.hides(tried(defense)))
        sound = [trial for trial in trials.values() if wanted.hides(trial)]
        # The weakest of them keeps most utility or, where that was not measured, comes nearest the target.
        found = max(sound, key=lambda trial: (trial.strength if trial.kept is None else trial.kept, trial.strength))
        if not wanted.keeps(found):
            raise UnreachableError(
                f"{found.defense.label} brings the strongest attack to {found.strength:.3f} but keeps "
                f"{_percent(found.kept)} of the utility, not {_percent(wanted.kept)}; lower one of the two demands, "
                "or try --defense auto",
                found,
            )
        return found
    if not wanted.keeps(tried(settings[0])):
        weakest = trials[settings[0].canonical]
        raise UnreachableError(
            f"even {weakest.defense.label} keeps {_percent(weakest.kept)} of the utility, not {_percent(wanted.kept)}; "
            "ask for less, or try --defense auto",
            weakest,
        )
    _bisect(settings, lambda defense: not wanted.keeps(tried(defense)))
    sound = [trial for trial in trials.values() if wanted.keeps(trial)]
    return min(sound, key=lambda trial: trial.strength)


def recommended(trials: Sequence[Trial], wanted: Wanted) -> Trial:
    """The best of several candidates.

    Of those that do what was asked for, the one that keeps most utility if attacks were to be held down, else the one
    with the weakest attack. Who asks for nothing gets the weakest attack among those that keep 90 % of the utility.
    """
    if not trials:
        raise UnreachableError("none of the candidate defenses could be run on this graph")
    asked = wanted or Wanted(kept=KEPT_BY_DEFAULT)
    fit = [trial for trial in trials if asked.hides(trial) and asked.keeps(trial)]
    if not fit and wanted:
        near = min(trials, key=lambda trial: (not asked.keeps(trial), trial.strength))
        raise UnreachableError(
            f"none of the {len(trials)} settings tried does what you ask for; the nearest is {near.defense.label}: "
            f"strongest attack {near.strength:.3f} ({near.attack}), utility kept {_percent(near.kept)}",
            near,
        )
    if wanted.strength is not None:
        return max(fit, key=lambda trial: (trial.kept or 0.0, -trial.strength))
    return min(fit or trials, key=lambda trial: (trial.strength, -(trial.kept or 0.0)))


def _bisect(settings: Sequence[D], holds: Callable[[D], bool]) -> None:
    """Close in on the place in the sweep, and then between two of its settings, from which on `holds` holds."""
    low, high = -1, len(settings)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(settings[middle]) else (middle, high)
    if not 0 < high < len(settings):
        return
    weak, strong = settings[high - 1], settings[high]
    for _ in range(REFINEMENTS):
        between = halfway(weak, strong)
        if between is None:
            return
        weak, strong = (weak, between) if holds(between) else (between, strong)


def halfway(weak: D, strong: D) -> D | None:
    """The setting between two that differ in one number; None if there is none.

    The geometric mean where it exists, since sweeps of rates and prices span orders of magnitude.
    """
    first, second = weak.model_dump(), strong.model_dump()
    differing = [name for name in first if first[name] != second[name]]
    if len(differing) != 1:
        return None
    a, b = first[differing[0]], second[differing[0]]
    if isinstance(a, bool) or not isinstance(a, int | float) or not isinstance(b, int | float):
        return None
    middle = math.sqrt(a * b) if a > 0 and b > 0 else (a + b) / 2
    value: float = round(middle) if isinstance(a, int) and isinstance(b, int) else float(f"{middle:.3g}")
    return None if value in {a, b} else type(weak).create(**{**first, differing[0]: value})


def _percent(share: float | None) -> str:
    return "an unknown share" if share is None else f"{share:.0%}"
