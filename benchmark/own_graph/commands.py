"""Its commands. Everything heavy is imported when a command runs, so that help and listings answer at once."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ppgsl_bench.run_options import (
    DEFAULT_TIMEOUT,
    DeviceOption,
    JobsOption,
    JsonOption,
    PluginOption,
    TimeoutOption,
)

if TYPE_CHECKING:
    from ppgsl_bench.datasets.files import FileContent
    from ppgsl_bench.own_graph.document import Document
    from ppgsl_bench.own_graph.evaluation import Request
    from ppgsl_bench.own_graph.naming import NamedGraph
    from ppgsl_bench.own_graph.reporting import Report

EXIT_UNREACHABLE = 1

_FILES = "Your files"
_EVALUATION = "How it is evaluated"

SensitiveOption = Annotated[
    Path,
    typer.Option(
        "--sensitive",
        help="The links that must stay hidden, one pair of ids a line (.csv, .tsv, .txt).",
        rich_help_panel=_FILES,
    ),
]
FeaturesOption = Annotated[
    Path | None,
    typer.Option("--features", help="CSV: id, then numbers; as published.", rich_help_panel=_FILES),
]
LabelsOption = Annotated[
    Path | None,
    typer.Option("--labels", help="CSV: id, class; used to measure utility.", rich_help_panel=_FILES),
]
ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        help="Write a report (.html, .md or .json). It names the most exposed links: keep it to yourself.",
        rich_help_panel=_FILES,
    ),
]
AttackOption = Annotated[
    list[str] | None,
    typer.Option(
        "--attack",
        help="NAME[…],… or all; by default the quick ones of every kind. See `ppgsl-bench list attacks`.",
        rich_help_panel=_EVALUATION,
    ),
]
UtilityOption = Annotated[
    list[str] | None,
    typer.Option("--utility", help="NAME[…],… or none; by default all that apply.", rich_help_panel=_EVALUATION),
]
SeedOption = Annotated[
    int,
    typer.Option("--seed", min=0, help="The same seed gives the same graph.", rich_help_panel=_EVALUATION),
]


def add_commands(app: typer.Typer) -> None:
    """Add them to the command line."""
    app.command("protect")(protect)
    app.command("audit")(audit)


def protect(
    graph: Annotated[Path, typer.Argument(help="Your graph: .csv, .tsv, .txt, .graphml, .gml or .npz.")],
    sensitive: SensitiveOption,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Where to write the published graph, in the same format.", rich_help_panel=_FILES
        ),
    ],
    defense: Annotated[
        str,
        typer.Option(
            "--defense",
            help="NAME, NAME[param=value,…], several of them, or auto to try the sweeps of all quick ones.",
        ),
    ] = "ppgsl",
    target_auc: Annotated[
        float | None,
        typer.Option("--target-auc", help="Search for the weakest setting that holds every attack to this AUC."),
    ] = None,
    keep_utility: Annotated[
        float | None,
        typer.Option("--keep-utility", help="Search for the strongest setting that keeps this share of utility."),
    ] = None,
    features: FeaturesOption = None,
    labels: LabelsOption = None,
    report: ReportOption = None,
    attack: AttackOption = None,
    utility: UtilityOption = None,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    device: DeviceOption = "cpu",
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hide sensitive links of your own graph, and write what can be published.

    The sensitive links are left out, a defense changes the rest so that they are hard to infer, and the result is
    written in the format of your file, with your ids and nothing else in it. Attacks are run on it as an outsider would
    run them. Exit code 0: written; 1: no setting does what you asked for, nothing is written; 2: bad usage or input.

    Examples:
    - `ppgsl-bench protect friends.csv --sensitive secret.csv --defense ppgsl -o published.csv`
    - `ppgsl-bench protect friends.csv --sensitive secret.csv --target-auc 0.6 -o published.csv --report report.html`
    - `ppgsl-bench protect net.graphml --sensitive secret.csv --defense auto --keep-utility 0.95 -o published.graphml`
    """
    from ppgsl_bench.own_graph.naming import read_sensitive
    from ppgsl_bench.own_graph.reporting import protected
    from ppgsl_bench.own_graph.search import UnreachableError, Wanted
    from ppgsl_bench.own_graph.writing import refuse_other_format, write_graph

    refuse_other_format(graph, output)
    _refuse_report(report)
    wanted = Wanted(target_auc, keep_utility)
    content, nodes = _read(graph, features, labels)
    hidden = read_sensitive(sensitive, nodes)
    _tell(hidden.notes)
    request = _request(attack, utility, seed, jobs, timeout, device, plugin)
    try:
        safe, made = protected(nodes, hidden.pairs, defense, wanted, request)
    except UnreachableError as error:
        typer.echo(f"nothing was written: {error}", err=True)
        raise typer.Exit(EXIT_UNREACHABLE) from None
    # Features and labels from files of their own are not part of the graph's file.
    published = replace(safe, x=content.graph.x, y=content.graph.y)
    write_graph(output, published, content.ids, content.layout)
    _show(made.document.public(), as_json=as_json)
    _save(made, report)
    typer.echo(f"wrote {output}: {published.num_edges} links, nothing else", err=as_json)
    if report is None and not as_json:
        typer.echo("which links are most exposed: add --report FILE.html, or run `ppgsl-bench audit`")


def audit(
    published: Annotated[Path, typer.Argument(help="The published graph: .csv, .tsv, .txt, .graphml, .gml or .npz.")],
    sensitive: SensitiveOption,
    original: Annotated[
        Path | None,
        typer.Option(
            "--original",
            help="The graph before it was protected: exact numbers, and a comparison with no defense.",
            rich_help_panel=_FILES,
        ),
    ] = None,
    features: FeaturesOption = None,
    labels: LabelsOption = None,
    report: ReportOption = None,
    attack: AttackOption = None,
    utility: UtilityOption = None,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    device: DeviceOption = "cpu",
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """How well would each attack do on a published graph, and which links are most exposed?

    The output names sensitive links. An edge list does not mention nodes without links: if a sensitive pair has such a
    node, name the original as well. Exit code 0: done; 2: bad usage or input.

    Examples:
    - `ppgsl-bench audit published.csv --sensitive secret.csv --original friends.csv`
    - `ppgsl-bench audit published.csv --sensitive secret.csv --attack all --report audit.html`
    """
    from ppgsl_bench.own_graph.conversion import aligned
    from ppgsl_bench.own_graph.naming import read_sensitive
    from ppgsl_bench.own_graph.reporting import audited

    _refuse_report(report)
    before = None
    if original is None:
        _, nodes = _read(published, features, labels)
    else:
        _, before = _read(original, features, labels)
        _, released = _read(published, None, None)
        nodes = aligned(released, before)
    hidden = read_sensitive(sensitive, before or nodes, must_be_links=before is not None)
    _tell(hidden.notes)
    request = _request(attack, utility, seed, jobs, timeout, device, plugin)
    made = audited(nodes, hidden.pairs, before, request)
    _show(made.document, as_json=as_json)
    _save(made, report)


def _read(path: Path, features: Path | None, labels: Path | None) -> "tuple[FileContent, NamedGraph]":
    from ppgsl_bench.datasets.files import read_tidied
    from ppgsl_bench.own_graph.naming import NamedGraph
    from ppgsl_bench.own_graph.node_tables import with_node_tables

    content = read_tidied(path)
    nodes, notes = with_node_tables(NamedGraph(content.graph, content.ids, str(path)), features, labels)
    _tell([*content.notes, *notes])
    return content, nodes


def _request(
    attack: list[str] | None,
    utility: list[str] | None,
    seed: int,
    jobs: int | None,
    timeout: str,
    device: str,
    plugin: list[Path] | None,
) -> "Request":
    from ppgsl_bench.own_graph.api import make_request, run_settings
    from ppgsl_bench.own_graph.evaluation import DEFAULT_ATTACKS, DEFAULT_UTILITIES

    settings = run_settings(jobs, timeout, device, plugin or ())
    return make_request(attack or DEFAULT_ATTACKS, utility or DEFAULT_UTILITIES, seed, settings, progress=True)


def _tell(notes: Sequence[str]) -> None:
    for note in notes:
        typer.echo(f"note: {note}", err=True)


def _refuse_report(report: Path | None) -> None:
    if report is not None:
        from ppgsl_bench.own_graph.rendering import refuse_unknown_format

        refuse_unknown_format(report)


def _show(document: "Document", *, as_json: bool) -> None:
    from ppgsl_bench.own_graph import rendering

    typer.echo(rendering.as_json(document).rstrip() if as_json else rendering.as_text(document) + "\n")


def _save(made: "Report", report: Path | None) -> None:
    if report is not None:
        made.save(report)
        typer.echo(f"wrote {report}; it names sensitive links, keep it to yourself", err=True)
