"""The board's commands. Everything heavy is imported when a command runs, so that help and listings answer at once."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ppgsl_bench.errors import UserError

if TYPE_CHECKING:
    from ppgsl_bench.leaderboard.measurements import Measurements
    from ppgsl_bench.leaderboard.ranking import Ranking
    from ppgsl_bench.leaderboard.submission import Report

EXIT_REFUSED = 1

_VIEW = "What is compared"
_WHERE = "Where rows come from"

DatasetOption = Annotated[
    list[str] | None,
    typer.Option("--dataset", help="NAME,…; by default the mean over all graphs.", rich_help_panel=_VIEW),
]
AttackOption = Annotated[
    str,
    typer.Option(
        "--attack",
        help="NAME, `worst` (of all) or `worst-paper` (of the paper's eight).",
        rich_help_panel=_VIEW,
    ),
]
UtilityOption = Annotated[
    str,
    typer.Option("--utility", help="link-prediction, node-classification or structure.", rich_help_panel=_VIEW),
]
ResultsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--results",
        help="Results folder or .jsonl.gz file to read instead of the shipped rows; may be repeated.",
        rich_help_panel=_WHERE,
    ),
]
ShippedOption = Annotated[
    bool,
    typer.Option("--with-shipped", help="Read the shipped rows as well as --results.", rich_help_panel=_WHERE),
]


def add_commands(app: typer.Typer) -> None:
    """Add the commands of the board to the command line."""
    app.command("leaderboard")(leaderboard)
    app.command("plot")(plot)
    app.command("submit-check")(submit_check)


def leaderboard(
    dataset: DatasetOption = None,
    attack: AttackOption = "worst",
    utility: UtilityOption = "link-prediction",
    sort: Annotated[
        str,
        typer.Option(
            "--sort",
            help="Rank by strength, kept-0.55, kept-0.60, kept-0.70 or hypervolume; or order by defense, "
            "coverage, time, memory or gpu.",
        ),
    ] = "strength",
    file_format: Annotated[str, typer.Option("--format", help="table, markdown, csv, json or latex.")] = "table",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the whole board as one self-contained page instead.")
    ] = None,
    results: ResultsOption = None,
    with_shipped: ShippedOption = False,
) -> None:
    """Rank the defenses: which one to use, at what price, and how sure that is.

    Reads the rows that ship with the package, or those of `--results`. What a column means is in docs/leaderboard.md.

    Examples:
    - `ppgsl-bench leaderboard --dataset cora --attack gae-cos`
    - `ppgsl-bench leaderboard --utility node-classification --sort hypervolume --format markdown`
    - `ppgsl-bench leaderboard --html board.html`
    - `ppgsl-bench leaderboard --results results --with-shipped`
    """
    from ppgsl_bench.leaderboard.tables import ranking_text

    measurements = _measurements(results, with_shipped)
    if html is not None:
        from rich.console import Console

        from ppgsl_bench.leaderboard.webpage import write_page

        with Console(stderr=True).status("computing the rankings of every view"):
            size = write_page(measurements, html)
        typer.echo(f"wrote {html} ({size / 2**20:.1f} MiB): open it in a browser, it needs no network")
        return
    summary, order = _sorting(sort)
    ranking = _ranking(measurements, dataset, attack, utility, summary)
    typer.echo(ranking_text(ranking, "json" if as_json else file_format, order))


def plot(
    what: Annotated[str, typer.Argument(help="tradeoff, heatmap or scaling.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write; .pdf, .png or .svg.")],
    dataset: DatasetOption = None,
    attack: AttackOption = "worst",
    utility: UtilityOption = "link-prediction",
    summary: Annotated[
        str, typer.Option("--summary", help="For the heat map: what its cells show; see `leaderboard --sort`.")
    ] = "strength",
    results: ResultsOption = None,
    with_shipped: ShippedOption = False,
) -> None:
    """Draw a figure for a paper: trade-off curves, defenses against attacks, or cost against size.

    Examples:
    - `ppgsl-bench plot tradeoff --dataset cora --attack worst -o cora.pdf`
    - `ppgsl-bench plot heatmap --utility node-classification -o heatmap.svg`
    - `ppgsl-bench plot scaling -o scaling.png`
    """
    from ppgsl_bench.leaderboard import figures

    drawers = {
        "tradeoff": lambda board: figures.tradeoff(board, _names(dataset), attack, utility),
        "heatmap": lambda board: figures.heatmap(board, _names(dataset), utility, summary),
        "scaling": figures.scaling,
    }
    if what not in drawers:
        raise UserError(f"`plot {what}`: choose from {', '.join(drawers)}")
    if output.suffix.lower() not in figures.SUFFIXES:
        raise UserError(
            f"{output}: cannot draw to {output.suffix or 'a file without suffix'!r}; use {', '.join(figures.SUFFIXES)}"
        )
    figures.save(drawers[what](_measurements(results, with_shipped)), output)
    typer.echo(f"wrote {output}")


def submit_check(
    submission: Annotated[Path, typer.Argument(help="Results folder, or a .jsonl.gz or .zip file made by --output.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="If all is well, pack it: .jsonl.gz for rows, .zip with scores."),
    ] = None,
    source: Annotated[
        str, typer.Option("--source", help="With --output: whose results these are, as the board shows it.")
    ] = "",
    results: ResultsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Check rows before they join the board.

    Schema, protocol version, digests of datasets and splits against the board's, and metrics recomputed from stored
    scores. Exit code 0: all rows can be taken; 1: some are refused, with reasons.

    Examples:
    - `ppgsl-bench submit-check results`
    - `ppgsl-bench submit-check results -o my-defense.zip --source "A. Author, 2026"`
    - `ppgsl-bench submit-check my-defense.zip`
    """
    from ppgsl_bench.leaderboard.sources import board_rows
    from ppgsl_bench.leaderboard.submission import check, known_digests, opened, write

    if output is not None and not source:
        raise UserError("--output needs --source: whose results these are, as the board is to show it")
    known = known_digests(board_rows(results or ()))
    with opened(submission) as given:
        report = check(given, known)
        _print_report(report, as_json=as_json)
        if report.refusals:
            raise typer.Exit(EXIT_REFUSED)
        if output is not None:
            count = write(given, output, source)
            typer.echo(f"wrote {count} rows to {output}", err=as_json)


def _print_report(report: "Report", *, as_json: bool) -> None:
    from dataclasses import asdict

    from tabulate import tabulate

    if as_json:
        typer.echo(json.dumps(asdict(report), indent=2))
        return
    if report.refusals:
        lines = [[refusal.row, refusal.reason] for refusal in report.refusals]
        typer.echo(tabulate(lines, headers=["row", "refused because"], disable_numparse=True, maxcolwidths=[60, 80]))
    verdict = f"{len(report.refusals)} objections" if report.refusals else "all rows can be taken"
    typer.echo(
        f"{report.rows} rows: {verdict}; {report.recomputed} recomputed from stored arrays, {report.on_trust} on trust "
        "(utility tasks, and attacks without scores)"
    )


def _measurements(results: list[Path] | None, with_shipped: bool) -> "Measurements":
    from ppgsl_bench.leaderboard.measurements import Measurements
    from ppgsl_bench.leaderboard.sources import board_rows

    measurements = Measurements(board_rows(results or (), with_shipped=with_shipped))
    if not measurements.rows:
        raise UserError("there are no rows to show")
    return measurements


def _ranking(
    measurements: "Measurements", dataset: list[str] | None, attack: str, utility: str, summary: str
) -> "Ranking":
    from ppgsl_bench.leaderboard.ranking import rank

    return rank(measurements, _names(dataset), attack, utility, summary)


def _sorting(sort: str) -> tuple[str, str | None]:
    """The summary to rank by, and the order if it is another one."""
    from ppgsl_bench.leaderboard.ranking import DEFAULT_SUMMARY, SUMMARIES
    from ppgsl_bench.leaderboard.tables import SORT_KEYS

    if sort in SUMMARIES:
        return sort, None
    if sort in SORT_KEYS:
        return DEFAULT_SUMMARY, sort
    raise UserError(f"--sort {sort!r}: choose from {', '.join([*SUMMARIES, *SORT_KEYS])}")


def _names(given: list[str] | None) -> Sequence[str]:
    from ppgsl_bench.expressions import split_list

    return [name for text in given or () for name in split_list(text)]
