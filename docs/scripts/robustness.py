"""Write docs/robustness.md: faults tried for real, load, a long run, bad input.

python tests/chaos/suite.py --report docs/data/robustness-chaos.json
python tests/perf/load_harness.py --json docs/data/robustness-load.json
python tests/perf/load_harness.py --real 125,250,500 --rounds 1 --json docs/data/robustness-cells.json
python tests/perf/load_soak.py --json docs/data/robustness-soak.json
python docs/scripts/robustness.py
"""

import json
from pathlib import Path
from typing import Any

from tabulate import tabulate

DOCS = Path(__file__).parents[1]
TARGET = DOCS / "robustness.md"

INTRODUCTION = """# Robustness

What happens to a run when things go wrong, and what tens of thousands of cells cost. Made by
`python docs/scripts/robustness.py` from the reports in docs/data/ that the scripts named below wrote.

## Faults, tried for real

`tox -e chaos` (tests/chaos/) puts faults into real commands. A commit point is the moment before or after a file is
created, synced, renamed or removed or a transaction is committed, in the supervisor or in a cell; with one cell at a
time their order is always the same, so each is tried in turn. After every fault the same command is given again until
it goes through (after `retry`, where a cell was killed and has a row that says so), and its export must equal that of
a quiet run in everything but times, memory and time of day. `points` is at how many commit points a fault can be put;
where fewer were injected, the first, the last and a random choice of the others were tried. A row is *lost* if it had
been stored and a later run had to compute it again without being damaged, or if the export lacks it; *wrong* if the
export has a line that a quiet run does not have. Rows that the fault itself damaged must be computed again; how many
were is shown.
"""

EXPLANATION = """
Cells are forked from their supervisor in this suite and not from the fork server, which would spend seconds on imports
for each of the runs; all else is the command as users give it. One kind can be tried again alone (`--only`): torn
writes were, after the others, because their first trial had put some where no write happens. The normal tests try a few
faults of each kind, and tests/chaos/test_store_damage.py flips single bits all over the database and its log.

What keeps the rows: each has a checksum of its own; a database that SQLite refuses, or a log in which it stops at a
wrong byte, is read page by page (benchmark/salvage.py); a damaged database stays in place until the new one is whole;
arrays are named by their SHA-256 and checked whenever they are read; a full disk or a read-only folder is never taken
for damage. What is not promised: an array that nobody reads again may be damaged without anybody noticing, until
`submit-check` or a later cell reads it; and the board takes the newest of two rows for the same cell by the time of day
that they carry, which a wrong clock can turn round.
"""

SUPERVISOR = """The supervisor's own part, `python tests/perf/load_harness.py`: real cells (five graphs, 83 settings of
three defenses, nine attacks and two utility tasks, 4,985 cells a seed) that are planned, stored, resumed, exported and
ranked, but whose work is a function in the same process that returns canned metrics. Processor seconds, user and
system. `run` is everything that the supervisor does for a cell but starting its process, the progress display
included; memory is its growth during `run`. Each size has a process of its own, all are measured in turn, and of the
rounds the least time and the largest growth are shown. An exponent is the slope of log time over log cells."""

PROCESSES = """With cells of an attack that does nothing, each in a process of its own as always, `python
tests/perf/load_harness.py --real …`: time a cell of the supervisor's processor and of the wall clock (in which is what
else the machine had to do), and growth of the supervisor's memory and open files."""

BAD_INPUT = """
## Bad input

tests/fuzz/ hands damaged files to everything that reads what a user can hand in: expressions, plugin names, suites,
packed rows, archives of submissions, rows and databases of results folders, stored arrays, graph files. The answer must
be a result or one clear error, nothing may be written beside the place where it belongs, and it must not hang. With
hypothesis this is part of the normal tests; `python tests/fuzz/fuzz_atheris.py READER` searches on with coverage.
No file that a user can hand in is unpickled: tests/fuzz/test_no_pickles.py searches the source, as syntax.
"""


def main() -> None:
    """Read the reports that there are, write the page."""
    parts = [INTRODUCTION, _chaos(_report("chaos")), EXPLANATION, "\n## Load\n"]
    for name, section in (("load", _load), ("cells", _cells), ("soak", _soak)):
        if (DOCS / "data" / f"robustness-{name}.json").exists():
            parts.append(section(_report(name)))
    TARGET.write_text("\n".join(part.strip("\n") + "\n" for part in (*parts, BAD_INPUT, _atheris())), encoding="utf-8")


def _report(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((DOCS / "data" / f"robustness-{name}.json").read_text(encoding="utf-8"))
    return document


def _chaos(report: dict[str, Any]) -> str:
    counted = ("injected", "points", "finished", "again", "lost", "wrong", "tracebacks")
    titles = [
        "fault",
        "injected",
        "points",
        "rows stored before",
        "damaged, computed again",
        "lost",
        "wrong",
        "tracebacks",
    ]
    lines = [
        [kind, *(tally[name] or ("" if name == "points" else 0) for name in counted)]
        for kind, tally in report["faults"].items()
    ]
    totals = {name: sum(tally[name] for tally in report["faults"].values()) for name in counted} | {"points": ""}
    lines.append(["all", *totals.values()])
    how = "\n".join(f"- {kind}: {tally['how']}." for kind, tally in report["faults"].items())
    left_out = "".join(f"\nLeft out: {line}." for line in report["left_out"])
    broken = "".join(f"\nNot as expected: {line:.200}" for line in report["broken"])
    machine = f"{report['system']}, Python {report['python']}, chance seeded by {report['seed']}"
    table = tabulate(lines, headers=titles, tablefmt="github")
    return f"{table}\n\n{machine}.\n{left_out}{broken}\nHow each was made:\n\n{how}"


def _load(report: dict[str, Any]) -> str:
    parts = list(report["exponents"])
    lines = [
        [
            f"{run['cells']:,}",
            *(f"{run['seconds'][part]:.2f} s" for part in parts),
            f"{run['growth_bytes'] / 2**20:.0f} MiB",
        ]
        for run in report["runs"]
    ]
    lines.append(["exponent", *_exponents(report)])
    table = tabulate(lines, headers=["cells", *parts, "memory"], tablefmt="github")
    return f"{SUPERVISOR}\n\n{table}\n\n{_conditions(report)}"


def _exponents(report: dict[str, Any]) -> list[str]:
    return [f"{slope:.2f}" for slope in report["exponents"].values()]


def _conditions(report: dict[str, Any]) -> str:
    low, high = report["load_average"]
    return (
        f"{report['system']}, Python {report['python']}, {report['cores']} cores, {report['rounds']} "
        f"round{'s' * (report['rounds'] > 1)}; load average of the machine meanwhile {low:g} to {high:g}."
    )


def _cells(report: dict[str, Any]) -> str:
    parts = list(report["exponents"])
    lines = [
        [
            run["cells"],
            *(f"{run['seconds'][part] / run['cells'] * 1e3:.1f} ms" for part in parts),
            f"{run['growth_bytes'] / 2**20:.1f} MiB",
            f"{run['open_files']:+d}",
        ]
        for run in report["runs"]
    ]
    lines.append(["exponent", *_exponents(report), "", ""])
    table = tabulate(lines, headers=["cells", *parts, "memory", "open files"], tablefmt="github")
    return f"\n{PROCESSES}\n\n{table}\n\n{_conditions(report)}"


def _soak(report: dict[str, Any]) -> str:
    low, high = report["open_files"]
    begin, end = report["memory_mib"]
    planned = report["cells_planned"]
    imports, chosen, with_plan = (report[f"memory_mib_{step}"] for step in ("imports", "chosen", "planned"))
    cell = (with_plan - chosen) * 2**20 / planned
    setting = (chosen - imports) * 2**20 / planned
    return f"""
A long run, `python tests/perf/load_soak.py`: {report["minutes"]:g} minutes, {report["cells"]:,} cells, each in a
process of its own, looked at {report["samples"]:,} times. Without the first fifth, in which buffers are filled, the
supervisor's memory went from {begin} to {end} MiB, {report["bytes_a_cell"]:.0f} bytes a cell by a fitted line (the
samples are kept in the same memory), and it had {low} to {high} files open ({report["open_files_an_hour"]:+.1f} an
hour). Of that memory {imports:.0f} MiB are imported libraries; the rest is there before the first cell starts, for
{planned:,} cells are planned, more than an hour can take, at {cell:.0f} bytes each in the plan, and each is a setting
of its own here, at {setting:.0f} bytes."""


def _atheris() -> str:
    path = DOCS / "data" / "robustness-atheris.json"
    if not path.exists():
        return ""
    runs: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    lines = [
        [name, f"{run['inputs']:,}", f"{run['seconds']} s" if run["seconds"] else "until then", run["found"]]
        for name, run in runs.items()
    ]
    return "With atheris, so far:\n\n" + str(
        tabulate(lines, headers=["reader", "inputs", "time", "found"], tablefmt="github")
    )


if __name__ == "__main__":
    main()
