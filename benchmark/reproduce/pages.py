"""Writing results down: CSV, figure, a page of verdicts, and an index of all pages in the folder."""

import csv
import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tabulate import tabulate

from ppgsl_bench.errors import UserError
from ppgsl_bench.reproduce import NAMES
from ppgsl_bench.reproduce.experiment import Experiment, Result, Table
from ppgsl_bench.reproduce.verdicts import OUTCOMES

# A page shows so many lines of the table; the CSV file has them all.
_SHOWN_LINES = 30

_INDEX = """# The paper's tables and figures, computed again

Wu, Yang, Han, Wang and Wu, "Learning-based Privacy-Preserving Graph Publishing Against Sensitive Link Inference
Attacks", IEEE TIFS 2025. Each page puts the paper's statements and the measured numbers side by side. Every verdict
comes from a rule that stands on the page and is evaluated by the program; none is typed by hand. Where a verdict is
`partly` or `not confirmed`, read the notes of the page: the paper leaves points open, and docs/ppgsl.md
says what was chosen.

"""


@dataclass(frozen=True)
class Page:
    """What there is to say beside the result itself.

    Attributes:
        command: that makes the page.
        seeds: what it was measured on: the seeds of each dataset.
        quick: whether it is the small version.
        machine: where.
        problems: cells that did not end well.
        missing: how many of the planned cells have no row, and of how many.
    """

    command: str
    seeds: Mapping[str, Sequence[int]]
    quick: bool
    machine: str
    problems: Sequence[str]
    missing: tuple[int, int] = (0, 0)


def write(experiment: Experiment, result: Result, page: Page, folder: Path) -> list[Path]:
    """Write everything about one experiment, and the index anew; returns the files."""
    from ppgsl_bench.reproduce.drawing import save_both

    try:
        folder.mkdir(parents=True, exist_ok=True)
        stem = folder / experiment.name
        _write_csv(result.table, stem.with_suffix(".csv"))
        save_both(result.figure, stem)
        stem.with_suffix(".md").write_text(_markdown(experiment, result, page), encoding="utf-8")
        summary = {
            "title": experiment.title,
            "source": experiment.source,
            "seeds": {dataset: list(seeds) for dataset, seeds in page.seeds.items()},
            "quick": page.quick,
            "missing": page.missing[0],
            "verdicts": [asdict(verdict) for verdict in result.verdicts],
        }
        stem.with_suffix(".json").write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        (folder / "index.md").write_text(_index(folder), encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror or error}") from error
    return [stem.with_suffix(suffix) for suffix in (".md", ".csv", ".png", ".pdf", ".json")] + [folder / "index.md"]


def verdict_table(result: Result) -> str:
    """For a terminal."""
    lines = [[v.outcome, v.statement, v.paper, v.measured] for v in result.verdicts]
    headers = ["verdict", "the paper says", "its figure", "measured"]
    return tabulate(lines, headers=headers, disable_numparse=True, maxcolwidths=[None, 56, 22, 34])


def _write_csv(table: Table, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.columns)
        writer.writerows([[_plain(value) for value in line] for line in table.lines])


def _markdown(experiment: Experiment, result: Result, page: Page) -> str:
    parts = [
        f"# {experiment.title}",
        f"{experiment.source}. Measured on {_listed(page.seeds)}; made by `{page.command}`"
        + (f" on {page.machine}." if page.machine else "."),
    ]
    if page.quick:
        parts.append("**The small version:** it shows that everything runs. Its numbers do not speak about the paper.")
    if page.missing[0]:
        parts.append(
            f"**Incomplete:** {page.missing[0]} of {page.missing[1]} cells have not been run yet. Statements that need "
            "them are not judged."
        )
    name = experiment.name
    parts.append(f"![{experiment.title}]({name}.png)\n\n[figure as PDF]({name}.pdf) · [numbers as CSV]({name}.csv)")
    parts.append("## Verdicts\n\n" + _verdicts(result))
    parts.append("## Numbers\n\n" + _shown_table(result.table, name))
    notes = [*result.notes, *(f"Not measured: {problem}" for problem in page.problems)]
    if notes:
        parts.append("## Notes\n\n" + "\n".join(f"- {note}" for note in notes))
    return "\n\n".join(parts) + "\n"


def _verdicts(result: Result) -> str:
    lines = [[v.statement, v.paper, v.measured, f"**{v.outcome}**", v.rule] for v in result.verdicts]
    headers = ["the paper says", "its figure", "measured [95 % interval]", "verdict", "rule"]
    return _table(lines, headers)


def _shown_table(table: Table, name: str) -> str:
    lines = [[_plain(value) for value in line] for line in table.lines[:_SHOWN_LINES]]
    more = len(table.lines) - len(lines)
    text = _table(lines, table.columns)
    return f"{text}\n\n… and {more} more lines in [{name}.csv]({name}.csv)" if more > 0 else text


def _index(folder: Path) -> str:
    documents = {
        name: json.loads(path.read_text("utf-8")) for name in NAMES if (path := folder / f"{name}.json").exists()
    }
    lines = [[f"[{d['title']}]({name}.md)", d["source"], _measured_on(d), *_counts(d)] for name, d in documents.items()]
    overview = _table(lines, ["experiment", "in the paper", "measured on", *OUTCOMES])
    every = [
        [f"[{name}]({name}.md)", v["statement"], v["paper"], v["measured"], f"**{v['outcome']}**"]
        for name, d in documents.items()
        for v in d["verdicts"]
    ]
    details = _table(every, ["page", "the paper says", "its figure", "measured [95 % interval]", "verdict"])
    absent = [f"`ppgsl-bench reproduce {name}`" for name in NAMES if name not in documents]
    missing = f"\n\nStill to be made: {', '.join(absent)}." if absent else ""
    return f"{_INDEX}{overview}{missing}\n\n## Every verdict\n\n{details}\n"


def _measured_on(document: dict[str, Any]) -> str:
    text = _listed(document["seeds"])
    remarks = ["small version"] * document["quick"] + ["incomplete"] * bool(document["missing"])
    return ", ".join([text, *remarks])


def _counts(document: dict[str, Any]) -> list[str]:
    counted = Counter(verdict["outcome"] for verdict in document["verdicts"])
    return [str(counted[outcome] or "") for outcome in OUTCOMES]


def _table(lines: Sequence[Sequence[str]], headers: Sequence[str]) -> str:
    escaped = [[str(cell).replace("|", "\\|") for cell in line] for line in lines]
    return str(tabulate(escaped, headers=headers, tablefmt="github", disable_numparse=True))


def _listed(seeds: Mapping[str, Sequence[int]]) -> str:
    """Graphs with their numbers of seeds; graphs in a row that have equally many share the number."""
    groups = [
        (count, ", ".join(f"`{name}`" for name in names))
        for count, names in itertools.groupby(seeds, key=lambda name: len(seeds[name]))
    ]
    return ", ".join(f"{names} ({count} seed{'s' if count > 1 else ''})" for count, names in groups)


def _plain(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)
