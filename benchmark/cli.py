"""The command line. Commands import what they need when they run, so that listing and help answer at once."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ppgsl_bench import __version__
from ppgsl_bench.contribute import commands as contribute_commands
from ppgsl_bench.errors import UserError
from ppgsl_bench.leaderboard import commands as leaderboard_commands
from ppgsl_bench.own_graph import commands as own_graph_commands
from ppgsl_bench.perf import commands as perf_commands
from ppgsl_bench.reproduce import commands as reproduce_commands
from ppgsl_bench.run_options import (
    DEFAULT_RESULTS,
    DEFAULT_TIMEOUT,
    RUNNING,
    WHERE,
    DataDirOption,
    DeviceOption,
    JobsOption,
    JsonOption,
    MemoryOption,
    OfflineOption,
    PluginOption,
    ResultsOption,
    ThreadsOption,
    cells_at_once,
    fair_share,
    load_plugins,
    named_sources,
)

if TYPE_CHECKING:
    from ppgsl_bench.datasets import Sources
    from ppgsl_bench.datasets.sources import DatasetStatus
    from ppgsl_bench.execute import Settings
    from ppgsl_bench.plan import Cell
    from ppgsl_bench.store import Results

EXIT_FAILED_CELLS = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

app = typer.Typer(
    help="Benchmark of link-privacy defenses and attacks on published graphs.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

SuiteTimeoutOption = Annotated[
    str | None,
    typer.Option("--timeout", help="Time limit a cell: 90s, 10m, 2h; by default the suite's.", rich_help_panel=RUNNING),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        help="Run cells on a dask cluster: tcp://host:port, or local:4 for 4 workers here (docs/cluster.md).",
        rich_help_panel=RUNNING,
    ),
]
CacheDirOption = Annotated[
    Path | None,
    typer.Option(
        "--cache-dir",
        help="Folder that all workers of the scheduler see, for arrays; otherwise these travel through the scheduler.",
        rich_help_panel=WHERE,
    ),
]

# What to write for --attack or --utility to have none at all, and only publish.
NO_EVALUATORS = "none"


def main() -> NoReturn:
    """Entry point: bad input is one line on stderr and exit code 2, never a traceback."""
    try:
        app()
    except UserError as error:
        _fail(str(error))
    except OSError as error:
        # A full disk, a file that may not be read, a name that is too long: the machine's refusal, not a bug.
        _fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
    sys.exit(0)


def _fail(message: str) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    sys.exit(EXIT_USAGE)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"ppgsl-bench {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version.")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    defense: Annotated[
        list[str] | None, typer.Option("--defense", help="NAME, NAME[param=value,…], NAME[sweep], all.")
    ] = None,
    attack: Annotated[
        list[str] | None, typer.Option("--attack", help="NAME[…], all, paper (the paper's eight), or none.")
    ] = None,
    utility: Annotated[list[str] | None, typer.Option("--utility", help="NAME[…], all or none.")] = None,
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", help="NAME[…], ogb:NAME, or a path to your file.")
    ] = None,
    seeds: Annotated[str | None, typer.Option("--seeds", help="How many (5 means 0 to 4), or which (0,3,).")] = None,
    suite: Annotated[
        str, typer.Option("--suite", help="What to run where no flag says otherwise; a name or a .toml file.")
    ] = "quick",
    jobs: JobsOption = None,
    threads: ThreadsOption = 1,
    device: DeviceOption = "cpu",
    timeout: SuiteTimeoutOption = None,
    memory: MemoryOption = None,
    scheduler: SchedulerOption = None,
    shard: Annotated[
        str | None,
        typer.Option("--shard", help="Run part i of n, i/n; `merge` joins the parts.", rich_help_panel=RUNNING),
    ] = None,
    results: ResultsOption = DEFAULT_RESULTS,
    cache_dir: CacheDirOption = None,
    data_dir: DataDirOption = None,
    offline: OfflineOption = False,
    plugin: PluginOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the cells and which are done; run nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run defenses against attacks and utility tasks.

    Cells that have a row in the results folder are not run again: the same command resumes where it stopped.
    Exit code 0: every cell done; 1: some failed; 2: bad usage; 130: interrupted.

    Examples:
    - `ppgsl-bench run --defense all`
    - `ppgsl-bench run --defense 'edgerand[epsilon=6]' --attack paper --dataset cora --seeds 5`
    - `ppgsl-bench run --defense 'random[sweep]' --dataset my-graph.csv --dry-run`
    """
    from ppgsl_bench.plan import choose, plan
    from ppgsl_bench.quantities import parse_seeds
    from ppgsl_bench.sharding import Shard
    from ppgsl_bench.suite import load_suite

    load_plugins(plugin)
    chosen = load_suite(suite)
    sources = named_sources(data_dir, offline)
    seed_list = parse_seeds(seeds if seeds is not None else _seed_text(chosen.seeds))
    choice = choose(
        datasets=_listed(dataset, chosen.datasets),
        defenses=_listed(defense, chosen.defenses),
        attacks=_evaluators(attack, chosen.attacks),
        utilities=_evaluators(utility, chosen.utilities),
        seeds=seed_list,
    )
    cells = plan(choice, sources)
    if shard is not None:
        cells = Shard.parse(shard).of(cells)
    if dry_run:
        _print_plan(cells, results, as_json=as_json)
        return
    place = _Place(jobs, device, scheduler, cache_dir)
    settings = _settings(place, threads, timeout or chosen.timeout, memory or chosen.memory, sources, plugin)
    _execute(cells, results, settings, as_json=as_json)


@app.command()
def retry(
    timeout: SuiteTimeoutOption = None,
    memory: MemoryOption = None,
    jobs: JobsOption = None,
    threads: ThreadsOption = 1,
    device: DeviceOption = "cpu",
    scheduler: SchedulerOption = None,
    results: ResultsOption = DEFAULT_RESULTS,
    cache_dir: CacheDirOption = None,
    data_dir: DataDirOption = None,
    offline: OfflineOption = False,
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the cells again that failed, timed out or ran out of memory, with other limits perhaps."""
    from ppgsl_bench.execute import failures
    from ppgsl_bench.plan import replan
    from ppgsl_bench.store import Results

    load_plugins(plugin)
    sources = named_sources(data_dir, offline)
    with Results(results).writing() as store:
        failed = failures(store.rows())
        if not failed:
            typer.echo(f"no failed cells in {results}")
            return
        # Before anything is forgotten: a limit may be mistyped, or the scheduler not there.
        place = _Place(jobs, device, scheduler, cache_dir)
        settings = _settings(place, threads, timeout or DEFAULT_TIMEOUT, memory, sources, plugin)
        cells = replan(failed, sources)
        store.delete(row.key for row in failed)
    _execute(cells, results, settings, as_json=as_json)


@app.command("list")
def list_(
    kind: Annotated[str, typer.Argument(help="defenses, attacks, utilities, datasets or suites.")],
    name: Annotated[str | None, typer.Argument(help="One of them: its parameters, sweep and documentation.")] = None,
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what can be named, or everything about one plugin."""
    from ppgsl_bench.catalogue import describe, entries

    load_plugins(plugin)
    if name is not None:
        typer.echo(describe(kind, name, as_json=as_json))
    else:
        _print_table(["name", "what it is"], entries(kind), as_json=as_json)


@app.command()
def show(
    row: Annotated[str, typer.Argument(help="The beginning of a row's key, as tables print it.")],
    results: ResultsOption = DEFAULT_RESULTS,
    as_json: JsonOption = False,
) -> None:
    """Everything that is stored about one row."""
    from ppgsl_bench.export import row_document

    found = [r for r in _existing(results).rows() if r.key.startswith(row)]
    if len(found) != 1:
        count = "no row" if not found else f"{len(found)} rows"
        raise UserError(
            f"{count} in {results} with a key that begins with {row!r}; `ppgsl-bench export` lists the keys"
        )
    document = row_document(found[0])
    if as_json:
        typer.echo(json.dumps(document, indent=2))
        return
    lines = [[name, _shown(value)] for name, value in document.items() if value not in ("", None, {}, [])]
    _print_table(["field", "value"], lines, as_json=False)


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="Where to write; .csv, .jsonl or .parquet.")],
    file_format: Annotated[
        str | None, typer.Option("--format", help="csv, jsonl or parquet; by default the suffix.")
    ] = None,
    results: ResultsOption = DEFAULT_RESULTS,
) -> None:
    """Write all rows as one long table, a line a metric."""
    from ppgsl_bench.export import export as write

    lines = write(_existing(results).rows(), file, file_format)
    typer.echo(f"wrote {lines} lines to {file}")


@app.command()
def merge(
    sources: Annotated[list[Path], typer.Argument(help="Results folders of other machines.")],
    results: ResultsOption = DEFAULT_RESULTS,
    as_json: JsonOption = False,
) -> None:
    """Take over rows and stored arrays from other results folders."""
    from ppgsl_bench.merging import merge as merge_folder
    from ppgsl_bench.store import Results

    with Results(results).writing() as store:
        reports = [(str(source), merge_folder(_existing(source), store)) for source in sources]
    lines = [[name, r.added, r.known, r.damaged, r.differing] for name, r in reports]
    _print_table(["folder", "added", "known already", "damaged", "differing"], lines, as_json=as_json)
    if any(r.differing for _, r in reports):
        typer.echo("differing rows: the same cell with other metrics; the rows of this folder were kept", err=True)
        sys.exit(EXIT_FAILED_CELLS)


@app.command()
def datasets(
    action: Annotated[str | None, typer.Argument(help="`fetch` to download.")] = None,
    names: Annotated[list[str] | None, typer.Argument(help="Which; all if none is named.")] = None,
    data_dir: DataDirOption = None,
    offline: OfflineOption = False,
    as_json: JsonOption = False,
) -> None:
    """What is here, where it comes from, checksums; `datasets fetch NAME` downloads."""
    from ppgsl_bench.datasets import registry
    from ppgsl_bench.datasets.sources import fetch, status

    if action not in {None, "fetch"}:
        raise UserError(f"`datasets {action}`: the only action is `fetch`")
    sources = named_sources(data_dir, offline)
    chosen = names or [name for name in registry.names() if registry.get(name).layouts]
    if action == "fetch":
        for name in chosen:
            for path in fetch(registry.get(name), sources):
                typer.echo(f"{name}: {path}", err=as_json)
    reports = [status(name, sources) for name in chosen]
    if as_json:
        typer.echo(json.dumps([asdict(report) for report in reports], indent=2, default=str))
        return
    lines = [[r.name, _availability(r), r.origin, r.licence] for r in reports]
    _print_table(["dataset", "here?", "origin", "licence"], lines, as_json=False, widths=[None, None, 60, 40])


def _availability(report: "DatasetStatus") -> str:
    if not report.files:
        return "–"
    damaged = [file for file in report.files if file.intact is False]
    if damaged:
        return f"damaged: {damaged[0].found}"
    places = sorted({file.place for file in report.files if file.found is not None})
    if report.ready:
        return f"yes ({', '.join(places)})"
    return "no, can be fetched" if report.downloadable else "no, see the docs"


for commands in (
    leaderboard_commands,
    own_graph_commands,
    contribute_commands,
    reproduce_commands,
    perf_commands,
):
    commands.add_commands(app)


def _execute(cells: "Sequence[Cell]", folder: Path, settings: "Settings", *, as_json: bool) -> None:
    """Run cells with a live display, then say what came out, where it is, and what to do next."""
    from rich.console import Console

    from ppgsl_bench.execute import execute, failures
    from ppgsl_bench.export import row_document
    from ppgsl_bench.progress import RunProgress
    from ppgsl_bench.store import Results
    from ppgsl_bench.tables import failure_table, result_tables

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    with Results(folder).writing() as store, RunProgress(console, settings.jobs) as progress:
        try:
            execute(list(cells), store, settings, progress)
        except OSError as error:
            raise UserError(f"{error.strerror or error}; finished cells are kept in {folder}") from error
        except KeyboardInterrupt:
            typer.echo("interrupted; finished cells are kept, the same command goes on from there", err=True)
            sys.exit(EXIT_INTERRUPTED)
        stored = {row.key: row for row in store.rows()}
        rows = [stored[cell.key] for cell in cells if cell.key in stored]
        notices = store.notices
    for notice in notices:
        typer.echo(f"note: {notice}", err=True)
    failed = failures(rows)
    if as_json:
        typer.echo(json.dumps([row_document(row) for row in rows], indent=2))
    else:
        typer.echo(result_tables(rows))
        if failed:
            typer.echo(f"\n{len(failed)} cells failed:\n{failure_table(failed)}")
        typer.echo(f"\nrows: {folder / 'rows.sqlite'} (ppgsl-bench export results.csv --results {folder})")
    if failed:
        typer.echo(f"look closer with: ppgsl-bench show {failed[0].key[:10]} --results {folder}", err=True)
        typer.echo(f"run them again with: ppgsl-bench retry --results {folder}", err=True)
        sys.exit(EXIT_FAILED_CELLS)


def _print_plan(cells: "Sequence[Cell]", folder: Path, *, as_json: bool) -> None:
    from ppgsl_bench.store import Results

    states = {row.key: row.status for row in Results(folder).rows()}
    lines = [
        [
            cell.key[:10],
            cell.kind,
            cell.dataset.label,
            cell.seed,
            cell.defense.label if cell.defense else "",
            cell.evaluator.label if cell.evaluator else "",
            {"ok": "done"}.get(states.get(cell.key, ""), states.get(cell.key, "to do")),
        ]
        for cell in cells
    ]
    _print_table(["row", "kind", "dataset", "seed", "defense", "evaluator", "state"], lines, as_json=as_json)
    if not as_json:
        done = sum(line[-1] == "done" for line in lines)
        typer.echo(f"\n{len(lines)} cells, {done} done")


@dataclass(frozen=True)
class _Place:
    """Where cells run, as the user said."""

    jobs: int | None
    device: str
    scheduler: str | None
    cache_dir: Path | None


def _settings(
    place: _Place, threads: int, timeout: str, memory: str | None, sources: "Sources", plugin: list[Path] | None
) -> "Settings":
    from ppgsl_bench.device import resolve_device
    from ppgsl_bench.execute import Settings
    from ppgsl_bench.processes import Limits
    from ppgsl_bench.quantities import parse_duration, parse_size

    limits = Limits(parse_duration(timeout), parse_size(memory) if memory else None, threads)
    if place.scheduler is not None:
        # The workers' machines count, not this one: they have the GPUs, and share out their memory themselves.
        jobs, device = _cluster_room(place, place.scheduler), place.device
    else:
        if place.cache_dir is not None:
            raise UserError(f"--cache-dir {place.cache_dir}: only the workers of a --scheduler need a folder in common")
        jobs, device = cells_at_once(place.jobs, threads), resolve_device(place.device)
        limits = replace(limits, memory_bytes=limits.memory_bytes or fair_share(jobs))
    return Settings(
        jobs=jobs,
        device=device,
        scheduler=place.scheduler,
        cache_dir=place.cache_dir,
        limits=limits,
        sources=sources,
        plugin_files=tuple(path.resolve() for path in plugin or ()),
    )


def _cluster_room(place: _Place, scheduler: str) -> int:
    from ppgsl_bench.cluster import room_on

    if place.jobs is not None:
        raise UserError(f"--jobs {place.jobs}: with --scheduler, the workers say how many cells run side by side")
    return room_on(scheduler, place.device)


def _listed(given: list[str] | None, otherwise: list[str]) -> list[str]:
    from ppgsl_bench.expressions import split_list

    return [item for text in (given or otherwise) for item in split_list(text)]


def _evaluators(given: list[str] | None, otherwise: list[str]) -> list[str]:
    return [] if given == [NO_EVALUATORS] else _listed(given, otherwise)


def _seed_text(seeds: int | list[int]) -> str:
    return str(seeds) if isinstance(seeds, int) else ",".join(map(str, seeds)) + ","


def _existing(folder: Path) -> "Results":
    from ppgsl_bench.store import Results

    if not (folder / "rows.sqlite").exists():
        raise UserError(
            f"there are no results in {folder}; run `ppgsl-bench run` first, or name a folder with --results"
        )
    return Results(folder)


def _print_table(
    headers: list[str], lines: list[list[Any]], *, as_json: bool, widths: list[int | None] | None = None
) -> None:
    if as_json:
        typer.echo(json.dumps([dict(zip(headers, line, strict=True)) for line in lines], indent=2))
        return
    from tabulate import tabulate

    typer.echo(tabulate(lines, headers=headers, disable_numparse=True, maxcolwidths=widths))


def _shown(value: object) -> str:
    return "\n".join(f"{k}: {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
