"""From a name to pages: plan the cells, run what is missing, conclude, write."""

import importlib
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib as mpl
from rich.console import Console

from ppgsl_bench.datasets import Dataset
from ppgsl_bench.errors import UnknownNameError, UserError
from ppgsl_bench.execute import Settings, execute, failures
from ppgsl_bench.leaderboard.packed import packed_key
from ppgsl_bench.leaderboard.sources import rows_in, shipped_rows
from ppgsl_bench.plan import Cell, Kind, choose, plan
from ppgsl_bench.progress import RunProgress
from ppgsl_bench.quantities import parse_seeds
from ppgsl_bench.reproduce import NAMES
from ppgsl_bench.reproduce.drawing import STYLE
from ppgsl_bench.reproduce.evidence import Evidence
from ppgsl_bench.reproduce.experiment import Experiment, Result, Scope
from ppgsl_bench.reproduce.pages import Page, write
from ppgsl_bench.rows import Row
from ppgsl_bench.store import Results

# Of the cells that did not end well, a page lists so many kinds.
_MOST_PROBLEMS = 12


@dataclass(frozen=True)
class Wish:
    """What the user typed.

    Attributes:
        datasets: expressions; empty for the experiment's own.
        seeds: as typed; None for the experiment's own.
        quick: the small version.
        with_shipped: whether rows that ship with the package stand for cells that have none here.
        rows: packed files or results folders whose rows do so too, after the shipped ones.
        run: whether to run what is missing.
    """

    datasets: Sequence[str] = ()
    seeds: str | None = None
    quick: bool = False
    with_shipped: bool = False
    rows: Sequence[Path] = ()
    run: bool = True


def experiment_named(name: str) -> Experiment:
    """An experiment by name."""
    if name not in NAMES:
        raise UnknownNameError(f"there is nothing to reproduce called {name!r}; choose from {', '.join(NAMES)}, all")
    found: Experiment = importlib.import_module(f"ppgsl_bench.reproduce.{name}").EXPERIMENT
    return found


def scope_of(experiment: Experiment, wish: Wish) -> Scope:
    """The graphs and seeds that a wish comes to."""
    own = experiment.quick_datasets if wish.quick else experiment.datasets
    chosen: Sequence[Dataset] = choose(
        datasets=wish.datasets or own, defenses=(), attacks=(), utilities=(), seeds=()
    ).datasets
    strange = [dataset.label for dataset in chosen if experiment.family and dataset.name != experiment.family]
    if strange:
        raise UserError(f"{experiment.name} is about the graphs {experiment.family}[n=…], not {strange[0]!r}")
    seeds = wish.seeds or str(experiment.quick_seeds if wish.quick else experiment.seeds)
    return Scope(tuple(chosen), tuple(parse_seeds(seeds)), wish.quick)


def cells_of(experiment: Experiment, scope: Scope, settings: Settings) -> list[Cell]:
    """Every cell that the experiment needs, once."""
    found = {cell.key: cell for choice in experiment.plan(scope) for cell in plan(choice, settings.sources)}
    return list(found.values())


def borrowed(wish: Wish) -> dict[str, Row]:
    """Rows from elsewhere that stand for cells, by packed key: metrics and no arrays."""
    rows = [*(shipped_rows() if wish.with_shipped else ()), *(row for place in wish.rows for row in rows_in(place))]
    found: dict[str, Row] = {}
    for row in rows:
        found.setdefault(packed_key(row.key), row)
    return found


def outstanding(cells: Sequence[Cell], lent: Collection[str], arrays: Collection[Kind]) -> list[Cell]:
    """The cells that must have rows of their own: those that no borrowed row stands for, and what these build on.

    Args:
        cells: of an experiment, each after those that it requires.
        lent: packed keys of the borrowed rows.
        arrays: kinds of cells that the experiment needs more of than metrics.
    """
    needed: set[str] = set()
    for cell in reversed(cells):
        # An embedding is not lent, and only attacks have a use for it.
        served = cell.kind == "embed" or packed_key(cell.key) in lent
        if cell.key in needed or cell.kind in arrays or not served:
            needed.update((cell.key, *cell.requires))
    return [cell for cell in cells if cell.key in needed]


@dataclass(frozen=True)
class Reproduction:
    """What came out, and where it was written."""

    result: Result
    files: list[Path]
    failed: list[Row]


def reproduce(experiment: Experiment, wish: Wish, settings: Settings, folder: Path, output: Path) -> Reproduction:
    """Run what is missing (unless told not to), conclude from all rows, and write the pages."""
    scope = scope_of(experiment, wish)
    cells = cells_of(experiment, scope, settings)
    lent = borrowed(wish)
    own_cells = outstanding(cells, lent, experiment.arrays)
    if wish.run:
        _execute(own_cells, folder, replace(settings, jobs=experiment.jobs or settings.jobs))
    with Results(folder) as results:
        wanted = {cell.key for cell in cells}
        own = {row.key: row for row in results.rows() if row.key in wanted}
        rows = [row for cell in cells if (row := own.get(cell.key) or lent.get(packed_key(cell.key))) is not None]
        if not any(row.status == "ok" for row in rows):
            raise UserError(f"{experiment.name}: there is no sound row of its cells in {folder}")
        evidence = Evidence(rows, results.objects, settings.sources)
        with mpl.rc_context(STYLE):
            result = experiment.conclude(evidence, scope)
    problems = [f"{what} ({count} rows)" for what, count in evidence.problems().most_common(_MOST_PROBLEMS)]
    page = Page(
        command(experiment, wish),
        evidence.seeds(),
        wish.quick,
        evidence.machine(),
        problems,
        (sum(cell.key not in own for cell in own_cells), len(cells)),
    )
    return Reproduction(result, write(experiment, result, page, output), failures(rows))


def command(experiment: Experiment, wish: Wish) -> str:
    """What to type to get the same page."""
    words = ["ppgsl-bench", "reproduce", experiment.name]
    words += ["--quick"] * wish.quick
    words += ["--dataset", ",".join(wish.datasets)] if wish.datasets else []
    words += ["--seeds", wish.seeds] if wish.seeds else []
    words += ["--with-shipped"] * wish.with_shipped
    words += [word for place in wish.rows for word in ("--rows", str(place))]
    words += ["--no-run"] * (not wish.run)
    return shlex.join(words)


def _execute(cells: list[Cell], folder: Path, settings: Settings) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    with Results(folder).writing() as store, RunProgress(console, settings.jobs) as progress:
        try:
            execute(cells, store, settings, progress)
        except OSError as error:
            raise UserError(f"{error.strerror or error}; finished cells are kept in {folder}") from error
        for notice in store.notices:
            console.print(f"note: {notice}", markup=False)
