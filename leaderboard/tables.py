"""Rankings as text: for a terminal, Markdown, LaTeX, CSV and JSON."""

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tabulate import tabulate

from ppgsl_bench.errors import UserError
from ppgsl_bench.leaderboard.ranking import SUMMARIES, Ranking, Standing, Summary
from ppgsl_bench.leaderboard.resampling import Estimate, Place
from ppgsl_bench.quantities import format_bytes, format_duration

FORMATS = ("table", "markdown", "csv", "json", "latex")
UNKNOWN = "–"

_UNSEEN = math.inf

SORT_KEYS: Mapping[str, Callable[[Standing], Any]] = {
    "defense": lambda s: s.label,
    "coverage": lambda s: -s.coverage,
    "time": lambda s: _or_last(s.cost.seconds),
    "memory": lambda s: _or_last(s.cost.host_bytes),
    "gpu": lambda s: _or_last(s.cost.gpu_bytes),
}
"""Orders that are no ranking; the ranks shown with them are those of the default summary."""


def ranking_text(ranking: Ranking, file_format: str = "table", sort: str | None = None) -> str:
    """A ranking in one of `FORMATS`, in the order of its ranks or of a key of `SORT_KEYS`."""
    standings = list(ranking.standings)
    if sort is not None:
        ranked = sorted((s for s in standings if not s.is_reference), key=SORT_KEYS[sort])
        standings = ranked + [s for s in standings if s.is_reference]
    if file_format == "json":
        return json.dumps([record(s, ranking.summary) for s in standings], indent=2, ensure_ascii=False)
    if file_format == "csv":
        return _csv([record(s, ranking.summary) for s in standings])
    if file_format not in FORMATS:
        raise UserError(f"--format {file_format!r}: choose from {', '.join(FORMATS)}")
    headers = ["rank", "group", "defense", *(m.title for m in SUMMARIES.values())]
    headers += ["coverage", "time", "memory", "GPU"]
    lines = [_line(s, ranking.summary) for s in standings]
    if file_format == "markdown":
        return _markdown(headers, lines)
    if file_format == "latex":
        return _latex(headers, lines, caption(ranking))
    headers = [header.replace(" at ", "\nat ").replace("utility kept", "utility\nkept") for header in headers]
    parts = [caption(ranking), tabulate(lines, headers=headers, disable_numparse=True), charges(standings)]
    return "\n\n".join(part for part in parts if part)


def caption(ranking: Ranking) -> str:
    """What the table shows, in one sentence."""
    counts = sorted(set(ranking.seeds.values()))
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    graphs = ", ".join(ranking.seeds)
    interval = "95 % intervals in brackets" if counts[0] > 1 else "no intervals, as some graph has one seed only"
    return (
        f"Ranked by {SUMMARIES[ranking.summary].title}; attack: {ranking.attack}; utility: {ranking.utility}; "
        f"{graphs}; {seeds} seed{'' if counts == [1] else 's'}; {interval}."
        + (f" Attacks that count for nobody there: {', '.join(ranking.unmeasured)}." if ranking.unmeasured else "")
    )


def charges(standings: Sequence[Standing]) -> str:
    """Which cells are charged as undefended, a line a defense."""
    lines = [
        f"  {s.label}: " + ", ".join(f"{count} {status}" for status, count in sorted(s.problems.items()))
        for s in standings
        if s.problems
    ]
    return "\n".join(["Cells without a sound result, charged as undefended:", *lines]) if lines else ""


def record(standing: Standing, summary: str) -> dict[str, Any]:
    """A standing as plain data, numbers unrounded."""
    place = standing.place.get(summary)
    cost = standing.cost
    document: dict[str, Any] = {
        "rank": place and place.rank,
        "rank_best": place and place.best,
        "rank_worst": place and place.worst,
        "group": place and place.group,
        "defense": standing.label,
        "source": standing.source,
    }
    for name, estimate in standing.estimates.items():
        document |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    return document | {
        "coverage": standing.coverage,
        "cells": standing.cells,
        "cells_sound": standing.sound,
        "problems": dict(sorted(standing.problems.items())),
        "seconds": cost.seconds,
        "host_bytes": cost.host_bytes,
        "gpu_bytes": cost.gpu_bytes,
        "publications_failed": cost.failed,
    }


def _line(standing: Standing, summary: str) -> list[str]:
    place = standing.place.get(summary)
    cost = standing.cost
    return [
        _rank(place),
        UNKNOWN if place is None or place.group is None else str(place.group),
        standing.label,
        *(_estimate(standing.estimates[name], measure) for name, measure in SUMMARIES.items()),
        _coverage(standing),
        UNKNOWN if cost.seconds is None else format_duration(cost.seconds),
        UNKNOWN if cost.host_bytes is None else format_bytes(cost.host_bytes),
        UNKNOWN if cost.gpu_bytes is None else format_bytes(cost.gpu_bytes),
    ]


def _rank(place: Place | None) -> str:
    if place is None:
        return UNKNOWN
    if place.best is None or place.worst is None or place.best == place.worst:
        return str(place.rank)
    return f"{place.rank} ({place.best}–{place.worst})"


def _estimate(estimate: Estimate, measure: Summary) -> str:
    def shown(value: float) -> str:
        return f"{100 * value:.0f}" if measure.percent else f"{value:.3f}"

    unit = " %" if measure.percent else ""
    if estimate.low is None or estimate.high is None:
        return f"{shown(estimate.value)}{unit}"
    return f"{shown(estimate.value)}{unit} [{shown(estimate.low)}, {shown(estimate.high)}]"


def _coverage(standing: Standing) -> str:
    """Rounded down: 100 % means that nothing is missing."""
    return UNKNOWN if standing.is_reference else f"{math.floor(100 * standing.coverage)} %"


def _or_last(value: float | None) -> float:
    return _UNSEEN if value is None else value


def _csv(records: Sequence[Mapping[str, Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(records[0]) if records else [], lineterminator="\n")
    writer.writeheader()
    for document in records:
        writer.writerow({**document, "problems": " ".join(f"{k}={v}" for k, v in document["problems"].items())})
    return buffer.getvalue().rstrip("\n")


def _markdown(headers: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    escaped = [[_markdown_text(cell) for cell in line] for line in lines]
    return tabulate(escaped, headers=headers, tablefmt="pipe", disable_numparse=True)


def _markdown_text(text: str) -> str:
    """Names come from outside: no bar may end a cell, and no markup may start."""
    return "".join(f"\\{c}" if c in "\\|`*_<>#!" else " " if c in "\r\n" else c for c in text)


_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "≤": r"$\leq$",
    "–": "--",
    "\n": " ",
    "\r": " ",
    **{c: f"\\{c}" for c in "&%$#_{}"},
}


def _latex(headers: Sequence[str], lines: Sequence[Sequence[str]], text: str) -> str:
    def row(cells: Sequence[str]) -> str:
        return " & ".join(_latex_text(cell) for cell in cells) + r" \\"

    columns = "rrl" + "r" * (len(headers) - 3)
    return "\n".join(
        [
            f"% {' '.join(text.split())}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            row(headers),
            r"\midrule",
            *(row(line) for line in lines),
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _latex_text(text: str) -> str:
    return "".join(_LATEX_ESCAPES.get(c, c) for c in text)
