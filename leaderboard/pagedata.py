"""What the web page knows: plain data, small enough to be written into it.

Rankings, with their intervals, are computed here for every view. The points of the curves are not: the page gets the
values of every seed, rounded, and derives means, charges and the answer to "utility I can give up" from them by the
rules of `measurements` and `points`; a test in a browser compares the two.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import scipy.special

from ppgsl_bench import PROTOCOL_VERSION, __version__
from ppgsl_bench.leaderboard.costs import cost_of, growth
from ppgsl_bench.leaderboard.measurements import (
    PAPER_ATTACKS,
    UTILITIES,
    WORST,
    WORST_OF_PAPER,
    Entry,
    Grid,
    Measurements,
)
from ppgsl_bench.leaderboard.ranking import KEPT_SHARE, SUMMARIES, Standing, rank
from ppgsl_bench.rows import Row

ALL_DATASETS = "*"

# What tables show, and what shares are computed from.
_DECIMALS = 5
_SEED_DECIMALS = 6
_SIGNIFICANT = 4
_KEY_DIGITS = 12
# Above this many seeds Student's quantile is near enough to the last one of the table.
_T_TABLE_LENGTH = 31

_PUBLISHED_METRICS = ("links", "links_kept", "links_removed", "links_added", "sensitive_published", "epsilon")
_SHARED_PROVENANCE = (
    *("ppgsl_bench", "protocol", "revision", "python", "libraries", "system", "processor"),
    *("device", "threads", "plugin"),
)


def page_data(measurements: Measurements) -> dict[str, Any]:
    """Everything, as data that JSON can hold."""
    origins: dict[str, int] = {}
    provenances: list[Mapping[str, Any]] = []

    def origin(row: Row) -> int:
        shared = {name: row.provenance[name] for name in _SHARED_PROVENANCE if name in row.provenance}
        key = repr(sorted(shared.items()))
        if key not in origins:
            origins[key] = len(provenances)
            provenances.append(shared)
        return origins[key]

    entries = measurements.entries
    return {
        "version": __version__,
        "protocol": PROTOCOL_VERSION,
        "measured": _measured(measurements.rows),
        "keptShare": KEPT_SHARE,
        "tQuantiles": [_number(float(scipy.special.stdtrit(n - 1, 0.975))) for n in range(2, _T_TABLE_LENGTH)],
        "summaries": [
            {
                "name": name,
                "title": measure.title,
                "higherIsBetter": measure.higher_is_better,
                "range": [measure.lowest, measure.highest],
                "percent": measure.percent,
            }
            for name, measure in SUMMARIES.items()
        ],
        "attacks": measurements.attack_views,
        "worst": {WORST: None, WORST_OF_PAPER: list(PAPER_ATTACKS)},
        "utilities": [{"name": name, "title": UTILITIES[name].title} for name in measurements.utilities],
        "entries": [
            {
                "label": entry.label,
                "name": entry.defense,
                "source": entry.source,
                "settings": [_setting(measurements, entry, label) for label in measurements.settings[entry]],
            }
            for entry in entries
        ],
        "grids": [_grid(measurements, grid, origin) for grid in measurements.grids.values()],
        "rankings": _rankings(measurements),
        "growth": [
            {
                "entry": g.label,
                "dataset": g.dataset,
                "nodes": g.nodes,
                "links": g.links,
                "seconds": _seconds(g.cost.seconds),
                "host": g.cost.host_bytes,
                "gpu": g.cost.gpu_bytes,
                "status": g.status,
                "generated": g.generated,
            }
            for g in growth(measurements.rows)
        ],
        "provenances": provenances,
    }


def _grid(measurements: Measurements, grid: Grid, origin: Any) -> dict[str, Any]:
    entries = measurements.entries
    own = [row for row in measurements.rows if row.dataset_label == grid.dataset]
    splits = {row.seed: row.digests["split"] for row in own if "split" in row.digests}
    sizes = next((row.metrics for row in own if row.kind == "split" and row.status == "ok"), {})
    costs = [cost_of(measurements.publications[entry], [grid.dataset]) for entry in entries]
    return {
        "dataset": grid.dataset,
        "nodes": sizes.get("nodes"),
        "links": sizes.get("links"),
        "digest": next((row.digests["dataset"] for row in own if "dataset" in row.digests), ""),
        "seeds": list(grid.seeds),
        "splits": [splits.get(seed, "") for seed in grid.seeds],
        "attacks": list(grid.attacks),
        "utilities": list(grid.utilities),
        "strength": [_numbers(grid.strength[entry]) for entry in entries],
        "utility": [_numbers(grid.utility[entry]) for entry in entries],
        "undefendedStrength": _numbers(grid.undefended_strength),
        "undefendedUtility": _numbers(grid.undefended_utility),
        "floorStrength": _numbers(grid.floor_strength),
        "floorUtility": _numbers(grid.floor_utility),
        "costs": [[_seconds(c.seconds), c.host_bytes, c.gpu_bytes, c.runs, c.failed] for c in costs],
        "publications": [
            [
                [_publication(measurements, entry, grid.dataset, seed, setting, origin) for seed in grid.seeds]
                for setting in measurements.settings[entry]
            ]
            for entry in entries
        ],
        "gaps": _gaps(measurements, grid),
    }


def _publication(
    measurements: Measurements, entry: Entry, dataset: str, seed: int, setting: str, origin: Any
) -> list[Any] | None:
    row = measurements.publication(entry, dataset, seed, setting)
    if row is None:
        return None
    return [
        row.status,
        row.key[:_KEY_DIGITS],
        row.digests.get("published", "")[:_KEY_DIGITS],
        str(row.provenance.get("finished", "")),
        _seconds(row.wall_seconds),
        row.peak_host_bytes,
        row.peak_gpu_bytes,
        [row.metrics.get(name) for name in _PUBLISHED_METRICS],
        origin(row),
    ]


def _gaps(measurements: Measurements, grid: Grid) -> list[list[Any]]:
    """Cells that count and have a row but no value: entry, setting, seed, evaluator, status, reason."""
    index = {entry: i for i, entry in enumerate(measurements.entries)}
    counted = {"", *grid.attacks, *grid.utilities}
    found = []
    for row in measurements.rows:
        entry = Entry(row.defense, row.provenance.get("source", ""))
        unsound = row.status != "ok" and row.kind in {"publish", "attack", "utility"}
        if unsound and row.dataset_label == grid.dataset and entry in index and row.evaluator_label in counted:
            setting = measurements.settings[entry].index(row.defense_label)
            found.append([index[entry], setting, row.seed, row.evaluator_label, row.status, row.reason])
    return found


def _rankings(measurements: Measurements) -> dict[str, Any]:
    """By dataset (`*` for all), attack and utility task: a line an entry, then the references."""
    rankings: dict[str, dict[str, dict[str, Any]]] = {}
    for dataset in [ALL_DATASETS, *measurements.datasets]:
        chosen = [] if dataset == ALL_DATASETS else [dataset]
        for attack in measurements.attack_views:
            for utility in measurements.utilities:
                if measurements.grids_of(chosen, attack, utility):
                    ranking = rank(measurements, chosen, attack, utility)
                    by_label = {s.label: s for s in ranking.standings}
                    lines = [_line(by_label[entry.label]) for entry in measurements.entries]
                    lines += [[s.label, *_line(s)] for s in ranking.standings if s.is_reference]
                    rankings.setdefault(dataset, {}).setdefault(attack, {})[utility] = {
                        "seeds": ranking.seeds,
                        "unmeasured": ranking.unmeasured,
                        "lines": lines,
                    }
    return rankings


def _line(standing: Standing) -> list[Any]:
    """Cells, sound cells, then for each summary value, low, high and, unless it is a reference, the place."""
    line: list[Any] = [standing.cells, standing.sound]
    for name, estimate in standing.estimates.items():
        values = [_number(estimate.value), _number(estimate.low), _number(estimate.high)]
        place = standing.place.get(name)
        if place is not None:
            values += [place.rank, place.best, place.worst, place.group]
        line.append(values)
    return line


def _setting(measurements: Measurements, entry: Entry, label: str) -> dict[str, Any]:
    row = next(r for r in measurements.rows if r.defense_label == label and r.defense == entry.defense)
    return {"label": label, "params": row.defense_params}


def _measured(rows: Iterable[Row]) -> list[str]:
    """The first and the last day on which a row was finished."""
    days = sorted({str(row.provenance["finished"])[:10] for row in rows if row.provenance.get("finished")})
    return [days[0], days[-1]] if days else []


def _numbers(array: "np.ndarray[Any, np.dtype[np.float64]]") -> Any:
    """Nested lists, rounded, None for what is missing."""
    if array.ndim == 0:
        return _number(float(array), _SEED_DECIMALS)
    return [_numbers(part) for part in array]


def _number(value: float | None, decimals: int = _DECIMALS) -> float | int | None:
    if value is None or math.isnan(value):
        return None
    rounded = round(value, decimals)
    return int(rounded) if rounded.is_integer() else rounded


def _seconds(value: float | None) -> float | None:
    """Times span many orders of magnitude."""
    return None if value is None else float(f"{value:.{_SIGNIFICANT}g}")
