"""Which price α of PPGSL changes a wanted share of the links of a given graph.

The share falls as α rises, so the price is found by bracketing and interpolation in log α. That uses short trainings (a
seventh of a whole one each, at most `MOST_SHORT` of them); since these change somewhat fewer or more links
than a whole training does, one or two whole trainings at the end correct for it. Altogether it costs about as much as
one and a half to three and a half whole trainings, counted in steps.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppgsl_bench.defenses import Publication
from ppgsl_bench.defenses import registry as defenses
from ppgsl_bench.errors import UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs
from ppgsl_bench.seeds import generator

# A short training: 100 learner steps and 2 × 50 surrogate updates, against 500 and 10 × 100.
SHORT: dict[str, Any] = {"learner_steps": 100, "surrogate_updates": 50}
MOST_SHORT = 9
MOST_WHOLE = 2
# Where the search starts, how far it goes, and by which factor it gropes for a bracket.
FIRST, LEAST, LARGEST, FACTOR = 0.03, 1e-4, 30.0, 4.0
# A distortion within this share of the wanted one is good enough.
TOLERANCE = 0.1
# Interpolated prices keep this far from the ends of their bracket, so that every trial narrows it.
_INSET = 0.1


@dataclass(frozen=True)
class Trial:
    """A training at one price.

    Attributes:
        alpha: the price.
        distortion: expected number of links removed and added, as a share of the links.
        kept, added: expected numbers of links.
        whole: whether it was a whole training.
        seconds: how long it took.
    """

    alpha: float
    distortion: float
    kept: float
    added: float
    whole: bool
    seconds: float


@dataclass(frozen=True)
class Suggestion:
    """The best whole training, and all trials.

    Attributes:
        chosen: a whole training at the suggested price.
        trials: in the order in which they were made.
        reached: whether its distortion is within the tolerance of the wanted one.
    """

    chosen: Trial
    trials: Sequence[Trial]
    reached: bool


Train = Callable[[float, bool], Trial]
"""Trains at a price, wholly or not."""


def trainer(graph: Graph, sensitive: Pairs, *, k: float, seed: int) -> Train:
    """Trainings on a visible graph; all share their random numbers, so that they differ by the price alone."""

    def train(alpha: float, whole: bool) -> Trial:
        defense = defenses.get("ppgsl").create(alpha=alpha, k=k, **({} if whole else SHORT))
        if reason := defense.why_not(graph):
            raise UserError(reason)
        started = time.perf_counter()
        outcome = defense.publish(graph, sensitive, generator("suggest-alpha", graph.digest, seed))
        if not isinstance(outcome, Publication):
            raise TypeError("ppgsl leaves a trace")
        kept, added = (float(outcome.trace[name][-1]) for name in ("links_kept", "links_added"))
        changed = graph.num_edges - kept + added
        return Trial(alpha, changed / graph.num_edges, kept, added, whole, time.perf_counter() - started)

    return train


def suggest(distortion: float, train: Train, on_trial: Callable[[Trial], None] | None = None) -> Suggestion:
    """Search the price at which the wanted share of links changes."""
    trials: list[Trial] = []

    def attempt(alpha: float, whole: bool) -> Trial:
        trial = train(alpha, whole)
        trials.append(trial)
        if on_trial is not None:
            on_trial(trial)
        return trial

    short = _bracketed(distortion, lambda alpha: attempt(alpha, False))
    whole = [attempt(_interpolated(short, distortion), True)]
    while len(whole) < MOST_WHOLE and not _near(whole[-1].distortion, distortion):
        # The whole training changes more or fewer links than the short one at the same price: aim off by that factor.
        expected = _expected(short, whole[-1].alpha)
        if whole[-1].distortion <= 0 or expected <= 0:
            break
        alpha = _interpolated(short, distortion * expected / whole[-1].distortion)
        if np.isclose(alpha, whole[-1].alpha, rtol=1e-3):
            break
        whole.append(attempt(alpha, True))
    chosen = min(whole, key=lambda trial: abs(trial.distortion - distortion))
    return Suggestion(chosen, trials, _near(chosen.distortion, distortion))


def _bracketed(distortion: float, attempt: Callable[[float], Trial]) -> list[Trial]:
    """Short trainings on both sides of the wanted distortion, the nearest within the tolerance if possible."""
    found = [attempt(FIRST)]
    rising = found[0].distortion > distortion
    while (found[-1].distortion > distortion) == rising and len(found) < MOST_SHORT:
        alpha = min(max(found[-1].alpha * (FACTOR if rising else 1 / FACTOR), LEAST), LARGEST)
        if alpha == found[-1].alpha:
            return found
        found.append(attempt(alpha))
    while len(found) < MOST_SHORT and not any(_near(trial.distortion, distortion) for trial in found):
        low = max((t for t in found if t.distortion > distortion), key=lambda t: t.alpha)
        high = min((t for t in found if t.distortion <= distortion), key=lambda t: t.alpha)
        share = (low.distortion - distortion) / (low.distortion - high.distortion)
        share = min(max(share, _INSET), 1 - _INSET)
        found.append(attempt(low.alpha * (high.alpha / low.alpha) ** share))
    return found


def _interpolated(trials: Sequence[Trial], distortion: float) -> float:
    """The price of a distortion, linear in log α between trials; the nearest end outside."""
    ordered = sorted(trials, key=lambda t: t.distortion)
    logs = np.log([t.alpha for t in ordered])
    return float(np.exp(np.interp(distortion, [t.distortion for t in ordered], logs)))


def _expected(trials: Sequence[Trial], alpha: float) -> float:
    """The distortion of a price, by the same lines."""
    ordered = sorted(trials, key=lambda t: t.alpha)
    return float(np.interp(np.log(alpha), np.log([t.alpha for t in ordered]), [t.distortion for t in ordered]))


def _near(found: float, wanted: float) -> bool:
    return abs(found - wanted) <= TOLERANCE * wanted
