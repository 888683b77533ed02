"""From a name to pages: plan the cells, run what is missing, conclude, write."""

import importlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib as mpl
from rich.console import Console

from ppgsl_bench.datasets import Dataset
from ppgsl_bench.errors import UnknownNameError, UserError
from ppgsl_bench.execute import Settings, execute, failures
from ppgsl_bench.plan import Cell, choose, plan
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
    """

    datasets: Sequence[str] = ()
    seeds: str | None = None
    quick: bool = False


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


@dataclass(frozen=True)
class Reproduction:
    """What came out, and where it was written."""

    result: Result
    files: list[Path]
    failed: list[Row]


def reproduce(
    experiment: Experiment, wish: Wish, settings: Settings, folder: Path, output: Path, *, run: bool = True
) -> Reproduction:
    """Run what is missing (unless told not to), conclude from all rows, and write the pages."""
    scope = scope_of(experiment, wish)
    cells = cells_of(experiment, scope, settings)
    if run:
        _execute(cells, folder, replace(settings, jobs=experiment.jobs or settings.jobs))
    with Results(folder) as results:
        wanted = {cell.key for cell in cells}
        rows = [row for row in results.rows() if row.key in wanted]
        if not any(row.status == "ok" for row in rows):
            raise UserError(f"{experiment.name}: there is no sound row of its cells in {folder}")
        evidence = Evidence(rows, results.objects, settings.sources)
        with mpl.rc_context(STYLE):
            result = experiment.conclude(evidence, scope)
    problems = [f"{what} ({count} rows)" for what, count in evidence.problems().most_common(_MOST_PROBLEMS)]
    page = Page(
        command(experiment, wish),
        scope.labels,
        scope.seeds,
        wish.quick,
        evidence.machine(),
        problems,
        (len(wanted) - len(rows), len(wanted)),
    )
    return Reproduction(result, write(experiment, result, page, output), failures(rows))


def command(experiment: Experiment, wish: Wish) -> str:
    """What to type to get the same page."""
    words = ["ppgsl-bench", "reproduce", experiment.name]
    words += ["--quick"] * wish.quick
    words += ["--dataset", ",".join(wish.datasets)] if wish.datasets else []
    words += ["--seeds", wish.seeds] if wish.seeds else []
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
