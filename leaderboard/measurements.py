"""Rows as arrays: what every setting of every defense reached on every seed of every dataset.

The undefended graph sets the denominators. A cell counts if the same attack or utility task has a sound value on the
undefended graph of that dataset and seed, and then it counts for every setting of every defense: whatever is missing,
failed or refused there is a gap that `ranking` charges, never one that it skips.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.collector import collector_paused
from ppgsl_bench.errors import UnknownNameError
from ppgsl_bench.leaderboard.front import CHANCE
from ppgsl_bench.metrics import strength
from ppgsl_bench.rows import Row

Floats = NDArray[np.float64]

UNDEFENDED = "none"
FEATURES_ATTACK = "feature-cos"
PAPER_ATTACKS = ("cn", "aa", "ra", "seal", "n2v-cos", "n2v-svc", "gae-cos", "gae-svc")
WORST = "worst"
WORST_OF_PAPER = "worst-paper"

# Erdős–Rényi graphs have no structure that an attack could use or a defense keep: they measure time and memory.
SCALING_DATASET = "er"

MISSING = "missing"
"""The status of a cell that has no row at all."""


@dataclass(frozen=True)
class UtilityMeasure:
    """The number that stands for a utility task, and the one that features alone reach."""

    metric: str
    title: str
    floor: str = ""


UTILITIES: Mapping[str, UtilityMeasure] = {
    "link-prediction": UtilityMeasure("auc", "link prediction (AUC)", "floor_auc"),
    "node-classification": UtilityMeasure("micro_f1", "node classification (micro F1)", "floor_micro_f1"),
    "structure": UtilityMeasure("edge_jaccard", "structure (Jaccard index of the links)"),
}


@dataclass(frozen=True, order=True)
class Entry:
    """A competitor: a defense, and whose results they are if not this project's."""

    defense: str
    source: str = ""

    @property
    def label(self) -> str:
        """As tables show it."""
        return f"{self.defense} ({self.source})" if self.source else self.defense


@dataclass(frozen=True)
class Grid:
    """All values of one dataset.

    Attributes:
        dataset: its label.
        reference: whose undefended graphs the others are compared with.
        seeds, attacks, utilities: the axes of the arrays.
        settings: the settings of each entry, as a person would type them.
        strength: by entry, shape [settings, seeds, attacks]; NaN where there is no sound cell.
        utility: by entry, shape [settings, seeds, utilities].
        undefended_strength, undefended_utility: of the undefended graph, shapes [seeds, attacks], [seeds, utilities].
        floor_strength, floor_utility: of features alone, shapes [seeds], [seeds, utilities].
    """

    dataset: str
    reference: Entry
    seeds: tuple[int, ...]
    attacks: tuple[str, ...]
    utilities: tuple[str, ...]
    settings: Mapping[Entry, tuple[str, ...]]
    strength: Mapping[Entry, Floats]
    utility: Mapping[Entry, Floats]
    undefended_strength: Floats
    undefended_utility: Floats
    floor_strength: Floats
    floor_utility: Floats

    def attacks_of(self, view: str) -> list[int]:
        """Which attacks a view looks at: one, the paper's eight, or all."""
        if view == WORST:
            return list(range(len(self.attacks)))
        wanted = PAPER_ATTACKS if view == WORST_OF_PAPER else (view,)
        return [i for i, name in enumerate(self.attacks) if name in wanted]


@dataclass(frozen=True)
class Curve:
    """One entry's settings on one dataset in one view, seed by seed.

    Attributes:
        settings: labels, the order of the arrays' first axis.
        seeds: the seeds that count in this view, the order of the last axis.
        strength: of the view's worst attack, shape [settings, seeds]; the undefended graph's where charged.
        kept: utility as a share of the undefended graph's, same shape; 1 where charged.
        charged: whether a cell of the view is missing, same shape: the setting then counts as undefended on that seed.
        undefended: strength on the undefended graph, shape [seeds].
        undefended_utility: the utility of the undefended graph, shape [seeds].
        cells, sound: how many cells of the view there should be and are.
    """

    settings: tuple[str, ...]
    seeds: tuple[int, ...]
    strength: Floats
    kept: Floats
    charged: NDArray[np.bool_]
    undefended: Floats
    undefended_utility: Floats
    cells: int
    sound: int

    def with_undefended(self, seed: int) -> tuple[Floats, Floats]:
        """Shares and strengths on one seed, the undefended graph among them: it can always be published."""
        return np.append(self.kept[:, seed], 1.0), np.append(self.strength[:, seed], self.undefended[seed])


@dataclass
class _Cells:
    """Rows by what they measured."""

    attack: dict[tuple[str, str, int, str, str], Row] = field(default_factory=dict)
    utility: dict[tuple[str, str, int, str, str], Row] = field(default_factory=dict)
    publish: dict[tuple[str, str, int, str], Row] = field(default_factory=dict)


class Measurements:
    """Everything that a set of rows says about defenses, whatever the order of the rows."""

    @collector_paused()
    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = _without_duplicates(rows)
        ranked = [row for row in self.rows if row.dataset != SCALING_DATASET]
        self._cells = _index(ranked)
        self.settings = _settings(ranked)
        self.entries = [entry for entry in self.settings if entry.defense != UNDEFENDED]
        datasets = sorted({row.dataset_label for row in ranked if row.defense_label == UNDEFENDED})
        self.grids = {name: grid for name in datasets if (grid := self._grid(name, ranked)) is not None}

    @property
    def datasets(self) -> list[str]:
        """Datasets with an undefended graph to compare with."""
        return list(self.grids)

    @property
    def attacks(self) -> list[str]:
        """Attacks measured on some undefended graph, the paper's first."""
        names = {name for grid in self.grids.values() for name in grid.attacks}
        paper = [name for name in PAPER_ATTACKS if name in names]
        return [*paper, *sorted(names - set(paper))]

    @property
    def attack_views(self) -> list[str]:
        """The worst of all, the worst of the paper's eight if there is any of them, and each attack alone."""
        paper = [WORST_OF_PAPER] if set(self.attacks) & set(PAPER_ATTACKS) else []
        return [WORST, *paper, *self.attacks]

    @property
    def utilities(self) -> list[str]:
        """Utility tasks measured on some undefended graph."""
        return [u for u in UTILITIES if any(u in grid.utilities for grid in self.grids.values())]

    def grids_of(self, datasets: Sequence[str], attack: str, utility: str) -> list[Grid]:
        """Those of the datasets on which the view has a reference."""
        for wanted, known, what in (
            (datasets, self.datasets, "dataset"),
            ([attack], self.attack_views, "attack"),
            ([utility], self.utilities, "utility task"),
        ):
            unknown = [name for name in wanted if name not in known]
            if unknown:
                raise UnknownNameError(
                    f"no results for the {what} {unknown[0]!r}; there are results for {', '.join(known) or 'none'}"
                )
        chosen = datasets or self.datasets
        return [self.grids[name] for name in chosen if counted_seeds(self.grids[name], attack, utility).any()]

    @cached_property
    def publications(self) -> Mapping[Entry, list[Row]]:
        """All publish rows of each entry, scaling runs included."""
        found: defaultdict[Entry, list[Row]] = defaultdict(list)
        for row in self.rows:
            if row.kind == "publish":
                found[_entry(row)].append(row)
        return found

    def problems(self, entry: Entry, grid: Grid, attack: str, utility: str) -> Counter[str]:
        """How many cells of a view are not sound, by status."""
        source = entry.source
        counter: Counter[str] = Counter()
        seeds = counted_seeds(grid, attack, utility)
        for i in np.flatnonzero(seeds):
            seed = grid.seeds[i]
            counted = [grid.attacks[k] for k in grid.attacks_of(attack) if not np.isnan(grid.undefended_strength[i, k])]
            for setting in grid.settings[entry]:
                cells = [self._cells.attack.get((source, grid.dataset, seed, setting, name)) for name in counted]
                cells.append(self._cells.utility.get((source, grid.dataset, seed, setting, utility)))
                counter.update(MISSING if row is None else row.status for row in cells)
        del counter["ok"]
        return counter

    def unmeasured(self, grid: Grid, attack: str, utility: str) -> list[str]:
        """Attacks of a view that apply but lack an undefended value on some seed: they count for nobody there."""
        wanted = {WORST: self.attacks, WORST_OF_PAPER: list(PAPER_ATTACKS)}.get(attack, [])
        seeds = [grid.seeds[i] for i in np.flatnonzero(counted_seeds(grid, attack, utility))]
        found = []
        for name in wanted:
            rows = [self._cells.attack.get((grid.reference.source, grid.dataset, s, UNDEFENDED, name)) for s in seeds]
            sound = sum(row is not None and row.status in {"ok", "inapplicable"} for row in rows)
            if sound < len(seeds):
                found.append(f"{name} on {grid.dataset} ({sound} of {len(seeds)} seeds)")
        return found

    def publication(self, entry: Entry, dataset: str, seed: int, setting: str) -> Row | None:
        """One publish row."""
        return self._cells.publish.get((entry.source, dataset, seed, setting))

    def _grid(self, dataset: str, rows: Sequence[Row]) -> Grid | None:
        """None if the undefended graph was published but nothing measured on it."""
        undefended = [row for row in rows if row.dataset_label == dataset and row.defense_label == UNDEFENDED]
        # This project's own reference where there is one: its source is empty and sorts first.
        source = min(row.provenance.get("source", "") for row in undefended)
        measured = [r for r in undefended if r.provenance.get("source", "") == source and r.status == "ok"]
        seeds = tuple(sorted({row.seed for row in measured if row.kind in {"attack", "utility"}}))
        if not seeds:
            return None
        attacks = tuple(sorted({row.evaluator_label for row in measured if row.kind == "attack"}))
        tasks = {row.evaluator_label for row in measured if row.kind == "utility"}
        utilities = tuple(name for name in UTILITIES if name in tasks)
        reference = Entry(UNDEFENDED, source)
        strengths, shares = {}, {}
        for entry, settings in self.settings.items():
            strengths[entry] = np.array(
                [[[self._strength(entry, dataset, i, s, a) for a in attacks] for i in seeds] for s in settings]
            ).reshape(len(settings), len(seeds), len(attacks))
            shares[entry] = np.array(
                [[[self._utility(entry, dataset, i, s, u) for u in utilities] for i in seeds] for s in settings]
            ).reshape(len(settings), len(seeds), len(utilities))
        plain = self.settings[reference].index(UNDEFENDED)
        return Grid(
            dataset,
            reference,
            seeds,
            attacks,
            utilities,
            self.settings,
            strengths,
            shares,
            strengths[reference][plain],
            shares[reference][plain],
            np.array([self._features_strength(reference, dataset, i) for i in seeds]),
            np.array([[self._floor(reference, dataset, i, u) for u in utilities] for i in seeds]).reshape(
                len(seeds), len(utilities)
            ),
        )

    def _strength(self, entry: Entry, dataset: str, seed: int, setting: str, attack: str) -> float:
        row = self._cells.attack.get((entry.source, dataset, seed, setting, attack))
        return strength(row.metrics["auc"]) if row is not None and _is_sound(row, "auc") else np.nan

    def _utility(self, entry: Entry, dataset: str, seed: int, setting: str, utility: str) -> float:
        row = self._cells.utility.get((entry.source, dataset, seed, setting, utility))
        metric = UTILITIES[utility].metric
        return row.metrics[metric] if row is not None and _is_sound(row, metric) else np.nan

    def _features_strength(self, reference: Entry, dataset: str, seed: int) -> float:
        """Features alone; where the graph has none, the attack says so, and there is nothing to infer from."""
        row = self._cells.attack.get((reference.source, dataset, seed, UNDEFENDED, FEATURES_ATTACK))
        if row is not None and row.status == "inapplicable":
            return CHANCE
        return self._strength(reference, dataset, seed, UNDEFENDED, FEATURES_ATTACK)

    def _floor(self, reference: Entry, dataset: str, seed: int, utility: str) -> float:
        row = self._cells.utility.get((reference.source, dataset, seed, UNDEFENDED, utility))
        metric = UTILITIES[utility].floor
        return row.metrics[metric] if row is not None and _is_sound(row, metric) else np.nan


def counted_seeds(grid: Grid, attack: str, utility: str) -> NDArray[np.bool_]:
    """The seeds of a view: those with an undefended utility above 0 and the most attacks of it.

    The worst of few attacks is not the worst of many: a seed on which fewer were run would water the mean down.
    """
    chosen = grid.attacks_of(attack)
    if not chosen or utility not in grid.utilities:
        return np.zeros(len(grid.seeds), dtype=np.bool_)
    measured = (~np.isnan(grid.undefended_strength[:, chosen])).sum(axis=1)
    attacked: NDArray[np.bool_] = (measured > 0) & (measured == measured.max())
    used: NDArray[np.bool_] = grid.undefended_utility[:, grid.utilities.index(utility)] > 0
    return attacked & used


def curve(grid: Grid, entry: Entry, attack: str, utility: str) -> Curve:
    """An entry's curve in a view; `worst` is the strongest attack on each published graph."""
    seeds = counted_seeds(grid, attack, utility)
    chosen = grid.attacks_of(attack)
    counts = ~np.isnan(grid.undefended_strength[seeds][:, chosen])
    strengths = grid.strength[entry][:, seeds][:, :, chosen]
    utilities = grid.utility[entry][:, seeds, grid.utilities.index(utility)]
    attacked = ~np.isnan(strengths) & counts
    used = ~np.isnan(utilities)
    charged = ~((attacked == counts).all(axis=2) & used)
    undefended = undefended_curve(grid, attack, utility)
    worst = np.max(strengths, axis=2, where=attacked, initial=0.0)
    return replace(
        undefended,
        settings=grid.settings[entry],
        strength=np.where(charged, undefended.undefended, worst),
        kept=np.where(charged, 1.0, utilities / undefended.undefended_utility),
        charged=charged,
        cells=len(charged) * undefended.cells,
        sound=int(attacked.sum() + used.sum()),
    )


def undefended_curve(grid: Grid, attack: str, utility: str) -> Curve:
    """A curve without settings: the undefended graph is all there is."""
    seeds = counted_seeds(grid, attack, utility)
    strengths = grid.undefended_strength[seeds][:, grid.attacks_of(attack)]
    none = np.empty((0, int(seeds.sum())))
    cells = int((~np.isnan(strengths)).sum()) + len(strengths)
    return Curve(
        settings=(),
        seeds=tuple(int(seed) for seed in np.array(grid.seeds)[seeds]),
        strength=none,
        kept=none,
        charged=none.astype(np.bool_),
        undefended=np.nanmax(strengths, axis=1),
        undefended_utility=grid.undefended_utility[seeds, grid.utilities.index(utility)],
        cells=cells,
        sound=cells,
    )


def floor_curve(grid: Grid, attack: str, utility: str) -> Curve | None:
    """Features alone as a defense of one setting, which publishes no links; None where it was not measured."""
    seeds = counted_seeds(grid, attack, utility)
    strengths, utilities = grid.floor_strength[seeds], grid.floor_utility[seeds, grid.utilities.index(utility)]
    if np.isnan(strengths).any() or np.isnan(utilities).any():
        return None
    undefended = undefended_curve(grid, attack, utility)
    return replace(
        undefended,
        settings=("features only",),
        strength=strengths[None],
        kept=(utilities / undefended.undefended_utility)[None],
        charged=np.zeros((1, len(strengths)), dtype=np.bool_),
    )


def _is_sound(row: Row, metric: str) -> bool:
    return row.status == "ok" and metric in row.metrics


def _entry(row: Row) -> Entry:
    return Entry(row.defense, row.provenance.get("source", ""))


def _without_duplicates(rows: Iterable[Row]) -> list[Row]:
    """One row a cell and source: a sound one before others, then the newest."""

    def preference(row: Row) -> tuple[bool, str, str]:
        return row.status == "ok", str(row.provenance.get("finished", "")), row.key

    by_cell: defaultdict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        cell = (row.provenance.get("source", ""), row.dataset_label, row.seed, row.defense_label, row.kind)
        by_cell[*cell, row.evaluator_label].append(row)
    return [max(by_cell[cell], key=preference) for cell in sorted(by_cell)]


def _index(rows: Iterable[Row]) -> _Cells:
    cells = _Cells()
    for row in rows:
        where = (row.provenance.get("source", ""), row.dataset_label, row.seed, row.defense_label)
        if row.kind == "attack":
            cells.attack[*where, row.evaluator_label] = row
        elif row.kind == "utility":
            cells.utility[*where, row.evaluator_label] = row
        elif row.kind == "publish":
            cells.publish[where] = row
    return cells


def _settings(rows: Iterable[Row]) -> dict[Entry, tuple[str, ...]]:
    """Every setting seen on any dataset counts on all of them."""
    found: defaultdict[Entry, set[str]] = defaultdict(set)
    for row in rows:
        if row.defense:
            found[_entry(row)].add(row.defense_label)
    return {entry: tuple(sorted(found[entry], key=_natural)) for entry in sorted(found)}


def _natural(label: str) -> list[tuple[bool, float, str]]:
    """Numbers inside a label sort as numbers."""
    parts = re.split(r"(\d+(?:\.\d+)?(?:e-?\d+)?)", label)
    return [(i % 2 == 1, float(part) if i % 2 else 0.0, "" if i % 2 else part) for i, part in enumerate(parts)]
