"""`ppgsl-bench perf …`. Everything heavy is imported when a command runs, so that help and listings answer at once."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ppgsl_bench.run_options import PluginOption, cells_at_once, load_plugins

if TYPE_CHECKING:
    from ppgsl_bench.perf.baseline import Baseline, Quality
    from ppgsl_bench.perf.benchmarks import Benchmark
    from ppgsl_bench.perf.verdict import Verdict

EXIT_REGRESSION = 1
MANIFEST = "manifest.txt"
GOLDEN = "golden.json"
# Random streams of a measurement. With one, `n2v-svc`, which is near chance to begin with, could look at every second
# pair only and go unnoticed in 20 of 24 trials; with three, no attack could in any of 8.
MEASURED_STREAMS = 3

JobsOption = Annotated[int | None, typer.Option("--jobs", min=1, help="Processes for quality; by default one a core.")]
OnlyOption = Annotated[
    list[str] | None, typer.Option("--only", help="Only benchmarks whose name begins so; may be repeated.")
]


def add_commands(app: typer.Typer) -> None:
    """Add the group to the command line."""
    group = typer.Typer(help="Measure speed, memory and quality, and catch what got worse.", no_args_is_help=True)
    group.command("measure")(measure)
    group.command("golden")(golden)
    group.command("compare")(compare)
    group.command("list")(list_)
    app.add_typer(group, name="perf")


def measure(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the measurements (JSON).")],
    quick: Annotated[bool, typer.Option("--quick", help="No growth, no quality.")] = False,
    jobs: JobsOption = None,
    only: OnlyOption = None,
    plugin: PluginOption = None,
) -> None:
    """Measure every benchmark, and how well every attack does against every defense.

    Benchmarks run one at a time on one thread; quality is computed on all cores afterwards. What each number is, and
    how to renew the baseline, is in docs/performance.md.

    Examples:
    - `ppgsl-bench perf measure -o head.json`
    - `ppgsl-bench perf measure -o quick.json --quick --only kernel/ --only attack/aa`
    - `ppgsl-bench perf measure -o tests/perf/baseline.json`
    """
    from ppgsl_bench.perf.baseline import Measurement
    from ppgsl_bench.perf.measuring import measure_all, on_one_thread

    chosen = _chosen(only, plugin)
    measurements: dict[str, Measurement] = {}
    refusals = {benchmark.name: benchmark.refusal for benchmark in chosen if benchmark.refusal is not None}

    def report(name: str, found: Measurement | Exception) -> None:
        if isinstance(found, Exception):
            refusals[name] = f"failed with {type(found).__name__}: {found}"
            typer.echo(f"{name}: {refusals[name]}", err=True)
        else:
            typer.echo(f"{name}: {1e3 * found.seconds:.3g} ms, {found.counters}", err=True)

    willing = [benchmark for benchmark in chosen if benchmark.refusal is None]
    on_one_thread(lambda: measurements.update(measure_all(willing, quick=quick, report=report)))
    values = {} if quick or only else _quality(MEASURED_STREAMS, jobs, plugin)
    _file(quick=quick, measurements=measurements, refusals=refusals, quality=values).write(output)
    typer.echo(f"wrote {len(measurements)} benchmarks and {len(values)} values of quality to {output}")


def golden(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the golden values (JSON).")],
    streams: Annotated[
        int, typer.Option("--streams", min=2, help="Random streams a value; more make intervals narrower.")
    ] = 36,
    jobs: JobsOption = None,
    plugin: PluginOption = None,
) -> None:
    """Record how well every attack does against every defense, to be held against later versions.

    Examples:
    - `ppgsl-bench perf golden -o tests/perf/golden.json`
    """
    values = _quality(streams, jobs, plugin)
    _file(quality=values).write(output)
    typer.echo(f"wrote {len(values)} values from {streams} random streams to {output}")


def compare(
    base: Annotated[Path, typer.Argument(help="What to compare with, e.g. tests/perf/baseline.json.")],
    head: Annotated[Path, typer.Argument(help="What `perf measure` wrote just now.")],
    manifest: Annotated[
        Path | None, typer.Option("--manifest", help="Names that must be there; by default manifest.txt beside BASE.")
    ] = None,
    golden: Annotated[
        Path | None, typer.Option("--golden", help="Golden values; by default golden.json beside BASE.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show every quantity, not only those that moved.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Say what got worse.

    Exit code 0: nothing; 1: a regression, or something that must run did not; 2: bad usage.

    Examples:
    - `ppgsl-bench perf compare tests/perf/baseline.json head.json`
    - `ppgsl-bench perf compare base.json head.json --all`
    """
    from ppgsl_bench.perf.baseline import Baseline, read_manifest
    from ppgsl_bench.perf.verdict import FAILING, notes
    from ppgsl_bench.perf.verdict import compare as judge

    before, after = Baseline.read(base), Baseline.read(head)
    required = _given_or_beside(manifest, base, MANIFEST)
    expected = _given_or_beside(golden, base, GOLDEN)
    names = read_manifest(required) if required else []
    values = Baseline.read(expected).quality if expected else None
    verdicts, said = judge(before, after, names, values), notes(before, after, values)
    failed = [v for v in verdicts if v.outcome in FAILING]
    if as_json:
        _print_json(verdicts, said)
    else:
        _print_tables(before, after, verdicts, said, everything=everything)
    if failed:
        raise typer.Exit(EXIT_REGRESSION)


def _given_or_beside(given: Path | None, base: Path, name: str) -> Path | None:
    beside = base.parent / name
    return given or (beside if beside.exists() else None)


def list_(only: OnlyOption = None, plugin: PluginOption = None) -> None:
    """Print the names of all benchmarks, as the manifest holds them."""
    for benchmark in _chosen(only, plugin):
        typer.echo(benchmark.name)


def _chosen(only: list[str] | None, plugin: list[Path] | None) -> "list[Benchmark]":
    from ppgsl_bench.errors import UserError
    from ppgsl_bench.perf.benchmarks import benchmarks

    load_plugins(plugin)
    chosen = [b for b in benchmarks() if only is None or b.name.startswith(tuple(only))]
    if not chosen:
        raise UserError(f"--only {', '.join(only or ())}: no benchmark's name begins so; see `ppgsl-bench perf list`")
    return chosen


def _quality(streams: int, jobs: int | None, plugin: list[Path] | None) -> "Quality":
    from ppgsl_bench.perf.quality import quality

    typer.echo("quality: every attack against every defense", err=True)
    return quality(streams, cells_at_once(jobs), list(load_plugins(plugin)))


def _file(**found: Any) -> "Baseline":
    from ppgsl_bench.perf.baseline import Baseline
    from ppgsl_bench.perf.clock import REFERENCE_VERSION
    from ppgsl_bench.provenance import provenance

    return Baseline(machine=provenance(device="cpu", threads=1, jobs=1), reference=REFERENCE_VERSION, **found)


def _print_json(verdicts: "Sequence[Verdict]", said: Sequence[str]) -> None:
    from dataclasses import asdict

    typer.echo(json.dumps({"notes": list(said), "verdicts": [asdict(v) for v in verdicts]}, indent=2))


def _print_tables(
    before: "Baseline", after: "Baseline", verdicts: "Sequence[Verdict]", said: Sequence[str], *, everything: bool
) -> None:
    from tabulate import tabulate

    from ppgsl_bench.perf.verdict import FAILING, KINDS

    shown = [v for v in verdicts if everything or v.outcome != "ok"]
    if shown:
        lines = [
            [v.benchmark, v.quantity, _number(v.base), _number(v.head), _change(v), v.limit, v.outcome] for v in shown
        ]
        header = ["benchmark", "quantity", "base", "head", "change", "limit", "verdict"]
        typer.echo(tabulate(lines, headers=header, disable_numparse=True) + "\n")
    if everything and before.same_machine(after):
        both = [name for name in after.measurements if name in before.measurements]
        lines = [[n, _number(before.measurements[n].seconds), _number(after.measurements[n].seconds)] for n in both]
        typer.echo(tabulate(lines, headers=["seconds (not judged)", "base", "head"], disable_numparse=True) + "\n")
    for note in said:
        typer.echo(f"note: {note}")
    outcomes = Counter((v.kind, v.outcome) for v in verdicts)
    summary = [[kind, *(outcomes[kind, o] for o in ("ok", "better", "new", "missing", "regression"))] for kind in KINDS]
    typer.echo(tabulate(summary, headers=["kind", "ok", "better", "new", "missing", "regression"]))
    failed = sum(v.outcome in FAILING for v in verdicts)
    typer.echo(f"\n{failed} of {len(verdicts)} quantities failed" if failed else f"\nall {len(verdicts)} held")


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _change(verdict: "Verdict") -> str:
    if verdict.base is None or verdict.head is None:
        return ""
    if verdict.kind in {"exponents", "quality"} or not verdict.base:
        return f"{verdict.head - verdict.base:+.3g}"
    return f"× {verdict.head / verdict.base:.2f}"
