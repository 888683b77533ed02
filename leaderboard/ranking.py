"""The ranking: what each defense's curve is worth in one view, how sure that is, and what it costs.

A view is a choice of datasets, an attack (one, or the worst of several) and a utility task. A summary is read off the
curve of each seed and averaged over seeds, then over datasets. It is read seed by seed for three reasons: each split
is compared with the undefended graph of the very same split; the mean over seeds estimates the same quantity whether
there are two seeds or ten; and a setting that did not finish on a seed can be charged as undefended on that seed, which
never helps (see `front`), since the undefended graph is a point of every curve anyway.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.errors import UserError
from ppgsl_bench.leaderboard.costs import Cost, cost_of
from ppgsl_bench.leaderboard.front import CERTAINTY, CHANCE, hypervolume, strength_at, utility_at
from ppgsl_bench.leaderboard.measurements import (
    UNDEFENDED,
    Curve,
    Entry,
    Grid,
    Measurements,
    curve,
    floor_curve,
    undefended_curve,
)
from ppgsl_bench.leaderboard.resampling import Estimate, Place, Sample

Floats = NDArray[np.float64]

FEATURES_ONLY = "features only"

KEPT_SHARE = 0.95
STRENGTH_LIMITS = (0.55, 0.60, 0.70)


@dataclass(frozen=True)
class Summary:
    """A number read off one curve.

    Attributes:
        title: column heading.
        higher_is_better: which end of it is good.
        lowest, highest: the range it can have.
        read: from utility shares and strengths of the points on one seed.
        percent: whether it is shown as a percentage.
    """

    title: str
    higher_is_better: bool
    lowest: float
    highest: float
    read: Callable[[Floats, Floats], float]
    percent: bool = False


def _kept_at(limit: float) -> Summary:
    title = f"utility kept at attack ≤ {limit:.2f}"
    return Summary(title, True, 0.0, 1.0, lambda u, a: utility_at(u, a, limit), percent=True)


SUMMARIES: Mapping[str, Summary] = {
    "strength": Summary(
        f"attack at {KEPT_SHARE:.0%} utility".replace("%", " %"),
        higher_is_better=False,
        lowest=CHANCE,
        highest=CERTAINTY,
        read=lambda u, a: strength_at(u, a, KEPT_SHARE),
    ),
    **{f"kept-{limit:.2f}": _kept_at(limit) for limit in STRENGTH_LIMITS},
    "hypervolume": Summary("hypervolume", higher_is_better=True, lowest=0.0, highest=1.0, read=hypervolume),
}
DEFAULT_SUMMARY = "strength"


@dataclass(frozen=True)
class Standing:
    """A line of the ranking.

    Attributes:
        label, source: the competitor, or a reference.
        estimates: by summary.
        place: by summary; empty for a reference, which is not ranked.
        cells, sound: how many cells the view has for it, and how many of them are there.
        problems: what became of the others, by status.
        cost: of publishing, over the view's datasets.
    """

    label: str
    source: str
    estimates: Mapping[str, Estimate]
    place: Mapping[str, Place]
    cells: int
    sound: int
    problems: Mapping[str, int]
    cost: Cost

    @property
    def coverage(self) -> float:
        """Share of the cells that are sound."""
        return self.sound / self.cells

    @property
    def is_reference(self) -> bool:
        """Whether it stands beside the ranking rather than in it."""
        return not self.place


@dataclass(frozen=True)
class Ranking:
    """The ranking of a view.

    Attributes:
        attack, utility, summary: the view, and what it is ranked by.
        seeds: how many seeds each dataset has.
        unmeasured: attacks of the view that do not count on some dataset, since they lack an undefended value there.
        standings: in the order of the summary, then the references.
    """

    attack: str
    utility: str
    summary: str
    seeds: Mapping[str, int]
    unmeasured: Sequence[str]
    standings: Sequence[Standing]


def rank(
    measurements: Measurements,
    datasets: Sequence[str] = (),
    attack: str = "worst",
    utility: str = "link-prediction",
    summary: str = DEFAULT_SUMMARY,
) -> Ranking:
    """Rank all defenses in a view; without names, on all datasets that have it."""
    if summary not in SUMMARIES:
        raise UserError(f"cannot rank by {summary!r}; choose from {', '.join(SUMMARIES)}")
    grids = measurements.grids_of(datasets, attack, utility)
    if not grids:
        raise UserError(f"no dataset has both the attack {attack!r} and the utility task {utility!r} undefended")
    entries = measurements.entries
    curves = {grid.dataset: [curve(grid, entry, attack, utility) for entry in entries] for grid in grids}
    complete = np.array([all(not curves[g.dataset][k].charged.any() for g in grids) for k in range(len(entries))])
    estimates: list[dict[str, Estimate]] = [{} for _ in entries]
    places: list[dict[str, Place]] = [{} for _ in entries]
    values = {dataset: read_off(found) for dataset, found in curves.items()}
    for name, measure in SUMMARIES.items() if entries else ():
        sample = Sample({dataset: found[name] for dataset, found in values.items()})
        for k, estimate in enumerate(sample.estimates(measure.lowest, measure.highest)):
            estimates[k][name] = estimate
        for k, place in enumerate(sample.places(higher_is_better=measure.higher_is_better, complete=complete)):
            places[k][name] = place
    standings = [
        Standing(
            entry.label,
            entry.source,
            estimates[k],
            places[k],
            sum(curves[g.dataset][k].cells for g in grids),
            sum(curves[g.dataset][k].sound for g in grids),
            _problems(measurements, entry, [g for g in grids if curves[g.dataset][k].charged.any()], attack, utility),
            cost_of(measurements.publications[entry], [g.dataset for g in grids]),
        )
        for k, entry in enumerate(entries)
    ]
    standings.sort(key=lambda s: (s.place[summary].rank, s.label))
    seeds = {grid.dataset: len(undefended_curve(grid, attack, utility).seeds) for grid in grids}
    unmeasured = [text for grid in grids for text in measurements.unmeasured(grid, attack, utility)]
    return Ranking(attack, utility, summary, seeds, unmeasured, [*standings, *_references(grids, attack, utility)])


def _problems(
    measurements: Measurements, entry: Entry, grids: Sequence[Grid], attack: str, utility: str
) -> Counter[str]:
    return sum((measurements.problems(entry, grid, attack, utility) for grid in grids), Counter())


def read_off(curves: Sequence[Curve]) -> dict[str, Floats]:
    """Every summary of each curve on each seed, shape [curves, seeds]."""
    points = [[c.with_undefended(i) for i in range(len(c.seeds))] for c in curves]
    return {
        name: np.array([[measure.read(*on_seed) for on_seed in of_curve] for of_curve in points])
        for name, measure in SUMMARIES.items()
    }


def _references(grids: Sequence[Grid], attack: str, utility: str) -> list[Standing]:
    """The undefended graph, and features alone where every dataset of the view has been measured so."""
    found: dict[str, list[Curve | None]] = {
        UNDEFENDED: [undefended_curve(grid, attack, utility) for grid in grids],
        FEATURES_ONLY: [floor_curve(grid, attack, utility) for grid in grids],
    }
    standings = []
    for label, curves in found.items():
        known = {grid.dataset: c for grid, c in zip(grids, curves, strict=True) if c is not None}
        if len(known) == len(grids):
            values = {dataset: read_off([c]) for dataset, c in known.items()}
            estimates = {
                name: Sample({d: v[name] for d, v in values.items()}).estimates(m.lowest, m.highest)[0]
                for name, m in SUMMARIES.items()
            }
            cells = sum(c.cells for c in known.values())
            standings.append(Standing(label, "", estimates, {}, cells, cells, {}, Cost()))
    return standings
