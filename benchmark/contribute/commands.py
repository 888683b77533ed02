"""Its commands. Everything heavy is imported when a command runs, so that help and listings answer at once."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ppgsl_bench.run_options import JsonOption

if TYPE_CHECKING:
    from ppgsl_bench.contribute.checking import Report

EXIT_BROKEN_RULES = 1

DEFAULT_RESULTS = Path("comparison")


def add_commands(app: typer.Typer) -> None:
    """Add them to the command line."""
    app.command("new")(new)
    app.command("check")(check)
    app.command("compare")(compare)


def new(
    kind: Annotated[str, typer.Argument(help="defense or attack.")],
    name: Annotated[str, typer.Argument(help="What users will type, such as thin-out.")],
    package: Annotated[
        bool, typer.Option("--package", help="Write a package of its own, even inside a checkout of ppgsl-bench.")
    ] = False,
) -> None:
    """Start a defense or an attack: one file that works already, its test, and a page about it.

    Inside a checkout of ppgsl-bench the files go where they belong; anywhere else (or with `--package`) they form a
    package that adds the method through an entry point.

    Examples:
    - `ppgsl-bench new defense thin-out`
    - `ppgsl-bench new attack triangle-hunter --package`
    """
    from ppgsl_bench import attacks, defenses
    from ppgsl_bench.contribute.scaffold import scaffold
    from ppgsl_bench.errors import UserError
    from ppgsl_bench.registry import Registry

    registries: dict[str, Registry[Any]] = {"defense": defenses.registry, "attack": attacks.registry}
    taken = registries.get(kind)
    if taken is not None and name in taken:
        raise UserError(f"there is {kind} {name!r} already ({taken.entry(name).source}); choose another name")
    here = Path.cwd()
    made = scaffold(kind, name, here, package=package)
    made.write()
    for path in made.files:
        typer.echo(f"wrote {path.relative_to(here) if path.is_relative_to(here) else path}")
    typer.echo(f"\nFill in {next(iter(made.files)).name}; it works as it is, so that you can check after each change:")
    for step in made.next_steps:
        typer.echo(f"  {step}")


def check(
    target: Annotated[str, typer.Argument(help="NAME, FILE.py or MODULE:CLASS of a defense or an attack.")],
    show_all: Annotated[bool, typer.Option("--all", help="Also list what passed and what does not apply.")] = False,
    as_json: JsonOption = False,
) -> None:
    """See whether a defense or an attack keeps the rules, and how to mend it where it does not.

    More than fifty checks on small graphs, in processes of their own: a plugin that hangs or crashes fails a check.
    Exit code 0: all rules kept; 1: some broken; 2: bad usage.

    Examples:
    - `ppgsl-bench check edgerand`
    - `ppgsl-bench check my_defense.py`
    - `ppgsl-bench check my_package.my_attack:MyAttack --json`
    """
    from dataclasses import asdict

    from rich.console import Console

    from ppgsl_bench.contribute.checking import check_apart
    from ppgsl_bench.contribute.subject import find_subjects

    # Processes of the checks have no working folder of their own to find a relative path from.
    place = str(Path(target).resolve()) if _is_path(target) else target
    reports = []
    with Console(stderr=True).status("checking") as status:
        for subject in find_subjects(place):
            name = subject.cls.__name__
            reports.append(check_apart(place, name, lambda v: status.update(f"checked {v.check}")))
    if as_json:
        documents = [
            {
                "plugin": report.plugin,
                "kind": report.kind,
                "conforms": report.conforms,
                "checks": [asdict(verdict) for verdict in report.verdicts],
            }
            for report in reports
        ]
        typer.echo(json.dumps(documents, indent=2, ensure_ascii=False))
    else:
        for report in reports:
            typer.echo(_shown(report, show_all=show_all))
    if not all(report.conforms for report in reports):
        raise typer.Exit(EXIT_BROKEN_RULES)


def compare(
    target: Annotated[str, typer.Argument(help="NAME or FILE.py of a defense or an attack.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Two small graphs, cheap references, three seeds: minutes on a laptop.")
    ] = False,
    results: Annotated[
        Path, typer.Option("--results", help="Folder of rows; what is there is not computed again.")
    ] = DEFAULT_RESULTS,
) -> None:
    """Give a method a provisional place among others, with intervals.

    A defense stands beside random, dice and edgerand against four attacks, ranked as the board ranks; an attack beside
    seven others against four defenses. Exit code 0: placed; 1: some cells failed and count as undefended; 2: bad usage.

    Examples:
    - `ppgsl-bench compare my_defense.py --quick`
    - `ppgsl-bench compare rw-lp --quick`
    """
    from rich.console import Console

    from ppgsl_bench.contribute.comparison import compare as compare_subject
    from ppgsl_bench.contribute.subject import find_subjects
    from ppgsl_bench.errors import UserError

    if not quick:
        raise UserError(
            "without --quick a comparison is the board itself: `ppgsl-bench run --suite paper` with your method, then "
            "`ppgsl-bench leaderboard --results results --with-shipped`"
        )
    if ":" in target:
        raise UserError(f"{target}: cells find a plugin by NAME or FILE.py; give one of these")
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for subject in find_subjects(target):
        file = Path(target) if _is_path(target) and not subject.is_built_in else None
        comparison = compare_subject(subject, file, results, console)
        typer.echo(f"{comparison.table}\n\n{subject.kind} {subject.cls.name}: {comparison.sentence}")
        if comparison.failed:
            from ppgsl_bench.tables import failure_table

            typer.echo(f"{len(comparison.failed)} cells failed:\n{failure_table(list(comparison.failed))}", err=True)
            raise typer.Exit(EXIT_BROKEN_RULES)


def _is_path(target: str) -> bool:
    return target.endswith(".py") or os.sep in target


def _shown(report: "Report", *, show_all: bool) -> str:
    from tabulate import tabulate

    parts = []
    if show_all:
        lines = [[v.outcome, v.check, v.message] for v in report.verdicts if v.outcome != "fail"]
        parts.append(tabulate(lines, headers=["verdict", "check", "what was seen"], maxcolwidths=[None, None, 80]))
    parts += [f"FAIL  {v.check}: {v.message}\n      {v.hint}" for v in report.failures]
    count = {outcome: sum(v.outcome == outcome for v in report.verdicts) for outcome in ("pass", "not applicable")}
    seconds = sum(v.seconds for v in report.verdicts)
    parts.append(
        f"{report.kind} {report.plugin}: {count['pass']} checks passed, {len(report.failures)} failed, "
        f"{count['not applicable']} do not apply ({seconds:.1f} s of computing)"
    )
    return "\n\n".join(parts)
