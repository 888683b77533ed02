"""Its commands. Everything heavy is imported when a command runs, so that help and listings answer at once."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ppgsl_bench.reproduce import NAMES
from ppgsl_bench.run_options import (
    DEFAULT_RESULTS,
    DEFAULT_TIMEOUT,
    WHERE,
    DataDirOption,
    DeviceOption,
    JobsOption,
    JsonOption,
    MemoryOption,
    OfflineOption,
    ResultsOption,
    ThreadsOption,
    TimeoutOption,
    cells_at_once,
    fair_share,
    named_sources,
)

if TYPE_CHECKING:
    from ppgsl_bench.datasets import Sources
    from ppgsl_bench.execute import Settings
    from ppgsl_bench.graph import Graph
    from ppgsl_bench.pairs import Pairs
    from ppgsl_bench.reproduce.experiment import Experiment
    from ppgsl_bench.reproduce.running import Wish
    from ppgsl_bench.reproduce.suggestion import Trial

ALL = "all"
EXIT_FAILED_CELLS = 1
EXIT_INTERRUPTED = 130


def add_commands(app: typer.Typer) -> None:
    """Add them to the command line."""
    app.command("reproduce")(reproduce)
    app.command("suggest-alpha")(suggest_alpha)


def reproduce(
    what: Annotated[str, typer.Argument(help=f"{', '.join(NAMES)}, or {ALL}.")],
    quick: Annotated[bool, typer.Option("--quick", help="The small version: minutes, to see that all works.")] = False,
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", help="NAME[…],… instead of the paper's; see `run`.")
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", help="How many (5 means 0 to 4), or which (0,3,); by default the paper's 5."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for figures, tables and verdicts.", rich_help_panel=WHERE)
    ] = Path("reproduction"),
    results: ResultsOption = DEFAULT_RESULTS,
    data_dir: DataDirOption = None,
    offline: OfflineOption = False,
    jobs: JobsOption = None,
    threads: ThreadsOption = 1,
    device: DeviceOption = "cpu",
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    memory: MemoryOption = None,
    no_run: Annotated[
        bool, typer.Option("--no-run", help="Run nothing: write the pages from the rows that are there.")
    ] = False,
    with_shipped: Annotated[
        bool,
        typer.Option(
            "--with-shipped", help="Take measurements that ship with the package as done, where metrics are enough."
        ),
    ] = False,
    rows: Annotated[
        list[Path] | None,
        typer.Option("--rows", help="The same with a results folder or packed file; may be repeated."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print which cells are done; run and write nothing.")
    ] = False,
) -> None:
    """Compute a table or figure of the paper again, and judge its statements.

    Writes a figure (png, pdf), a CSV and a page that puts the paper's statements beside the measured numbers. Cells
    that have a row in the results folder are not run again, whichever command made it. Exit code 0: every cell done; 1:
    some failed, and the page says which; 2: bad usage; 130: interrupted.

    Examples:
    - `ppgsl-bench reproduce table1 --data-dir ../shared/datasets`
    - `ppgsl-bench reproduce tradeoff --dataset cora --seeds 5 --jobs 2`
    - `ppgsl-bench reproduce tradeoff --with-shipped --no-run`
    - `ppgsl-bench reproduce all --quick -o quick-look`
    """
    from ppgsl_bench.expressions import split_list
    from ppgsl_bench.reproduce.running import Wish, experiment_named
    from ppgsl_bench.reproduce.running import reproduce as carry_out

    datasets = [name for text in dataset or () for name in split_list(text)]
    settings = _settings(jobs, threads, device, timeout, memory, named_sources(data_dir, offline))
    failed = 0
    for experiment in [experiment_named(name) for name in (NAMES if what == ALL else [what])]:
        # Of all experiments, some are about graphs of their own.
        own_graphs = what == ALL and experiment.family
        wish = Wish(() if own_graphs else datasets, seeds, quick, with_shipped, rows or (), run=not no_run)
        if dry_run:
            _print_state(experiment, wish, settings, results)
            continue
        try:
            done = carry_out(experiment, wish, settings, results, output)
        except KeyboardInterrupt:
            typer.echo("interrupted; finished cells are kept, the same command goes on from there", err=True)
            sys.exit(EXIT_INTERRUPTED)
        from ppgsl_bench.reproduce.pages import verdict_table

        typer.echo(
            f"\n{experiment.title}\n\n{verdict_table(done.result)}\n\nwrote {done.files[0]} and the files beside it"
        )
        failed += len(done.failed)
    if not dry_run:
        typer.echo(f"all verdicts: {output / 'index.md'}")
    if failed:
        typer.echo(f"{failed} cells failed; run them again with: ppgsl-bench retry --results {results}", err=True)
        sys.exit(EXIT_FAILED_CELLS)


def suggest_alpha(
    graph: Annotated[str, typer.Argument(help="Your graph: a file as for `run --dataset`, or a dataset's name.")],
    sensitive: Annotated[
        Path | None,
        typer.Option("--sensitive", help="File of the links to hide, two names a line; by default a random tenth."),
    ] = None,
    distortion: Annotated[
        float, typer.Option("--distortion", min=0.001, max=2.0, help="Share of the links that may be removed or added.")
    ] = 0.2,
    k: Annotated[float, typer.Option("--k", min=0, help="As for `ppgsl`: 0 only deletes links.")] = 1.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the trainings, and of the random tenth.")] = 0,
    data_dir: DataDirOption = None,
    offline: OfflineOption = False,
    threads: ThreadsOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Find the price α at which `ppgsl` changes a wanted share of your links.

    Takes some short trainings and one or two whole ones: about as long as two to four publications. Exit code 0: found;
    1: no price changes about that many links, and the nearest is printed; 2: bad usage.

    Examples:
    - `ppgsl-bench suggest-alpha friends.csv --sensitive private.csv --distortion 0.2`
    - `ppgsl-bench suggest-alpha cora --distortion 0.1 --k 0 --data-dir ../shared/datasets`
    """
    import torch

    from ppgsl_bench.reproduce.suggestion import suggest, trainer

    visible, hidden = _visible_and_hidden(graph, sensitive, seed, data_dir, offline)
    torch.set_num_threads(threads)

    def report(trial: "Trial") -> None:
        training = f"{'whole' if trial.whole else 'short'} training of {trial.seconds:.1f} s"
        typer.echo(f"α = {trial.alpha:.4g}: {trial.distortion:.1%} of the links changed ({training})", err=True)

    found = suggest(distortion, trainer(visible, hidden, k=k, seed=seed), report)
    chosen = found.chosen
    defense = f"ppgsl[alpha={chosen.alpha:.3g}" + (f",k={k:g}]" if k != 1 else "]")
    if as_json:
        document = {
            "defense": defense,
            "reached": found.reached,
            **asdict(chosen),
            "trials": [*map(asdict, found.trials)],
        }
        typer.echo(json.dumps(document, indent=2))
    else:
        typer.echo(
            f"{defense}: expect {chosen.distortion:.1%} of {visible.num_edges:,} links changed: "
            f"{visible.num_edges - chosen.kept:,.0f} removed, {chosen.added:,.0f} added"
        )
        if not found.reached:
            typer.echo(f"no price was found that changes about {distortion:.0%}; this is the nearest", err=True)
    if not found.reached:
        sys.exit(EXIT_FAILED_CELLS)


def _settings(
    jobs: int | None, threads: int, device: str, timeout: str, memory: str | None, sources: "Sources"
) -> "Settings":
    from ppgsl_bench.device import resolve_device
    from ppgsl_bench.execute import Settings
    from ppgsl_bench.processes import Limits
    from ppgsl_bench.quantities import parse_duration, parse_size

    jobs = cells_at_once(jobs, threads)
    share = parse_size(memory) if memory else fair_share(jobs)
    limits = Limits(parse_duration(timeout), share, threads)
    return Settings(jobs=jobs, device=resolve_device(device), limits=limits, sources=sources)


def _print_state(experiment: "Experiment", wish: "Wish", settings: "Settings", folder: Path) -> None:
    from collections import Counter

    from ppgsl_bench.reproduce.running import borrowed, cells_of, outstanding, scope_of
    from ppgsl_bench.store import Results

    cells = cells_of(experiment, scope_of(experiment, wish), settings)
    to_do = {cell.key for cell in outstanding(cells, borrowed(wish), experiment.arrays)}
    states = {row.key: row.status for row in Results(folder).rows()}
    counted = Counter(states.get(cell.key, "to do" if cell.key in to_do else "elsewhere") for cell in cells)
    typer.echo(f"{experiment.name}: {len(cells)} cells, " + ", ".join(f"{n} {state}" for state, n in counted.items()))


def _visible_and_hidden(
    graph: str, sensitive: Path | None, seed: int, data_dir: list[Path] | None, offline: bool
) -> "tuple[Graph, Pairs]":
    """The graph without the links to hide, and these."""
    from ppgsl_bench.plan import choose
    from ppgsl_bench.split import make_split

    if sensitive is not None:
        return _own_graph(Path(graph), sensitive)
    dataset = choose(datasets=[graph], defenses=(), attacks=(), utilities=(), seeds=()).datasets[0]
    split = make_split(dataset.load(named_sources(data_dir, offline)), seed)
    return split.visible, split.sensitive


def _own_graph(path: Path, sensitive: Path) -> "tuple[Graph, Pairs]":
    from ppgsl_bench.datasets.files import read_graph_file
    from ppgsl_bench.own_graph.naming import NamedGraph, read_sensitive

    graph, names = read_graph_file(path)
    hidden = read_sensitive(sensitive, NamedGraph(graph, names, str(path)))
    for note in hidden.notes:
        typer.echo(f"note: {note}", err=True)
    return graph.without_edges(hidden.pairs), hidden.pairs
