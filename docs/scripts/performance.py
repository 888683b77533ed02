"""Write what proofs of the gate found into docs/performance.md: all files docs/data/gate*.json, one after the other.

python tests/perf/prove_gate.py --json docs/data/gate.json
python docs/scripts/performance.py
"""

import json
import re
from pathlib import Path
from typing import Any

from tabulate import tabulate

from ppgsl_bench.perf.baseline import SEPARATOR

DOCS = Path(__file__).parents[1]
TARGET = DOCS / "performance.md"
DATA = DOCS / "data"
BEGIN, END = "<!-- docs/scripts/performance.py -->", "<!-- end -->"


def main() -> None:
    """Replace the generated part of the page."""
    proofs = [json.loads(path.read_text("utf-8")) for path in sorted(DATA.glob("gate*.json"))]
    parts = [described(proof) for proof in proofs]
    made = max(len(proof["runs"]) for proof in proofs)
    planned = max(proof["planned_runs"] for proof in proofs)
    if made < planned:
        parts.append(
            f"**{made} of {planned} planned runs** of unchanged code have been made: how often it raises an alarm is "
            "not known well yet."
        )
    text = "\n\n".join(parts)
    page = TARGET.read_text("utf-8")
    TARGET.write_text(
        re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n\n{text}\n\n{END}", page, flags=re.DOTALL), encoding="utf-8"
    )


def described(found: dict[str, Any]) -> str:
    """The proof in words and a table."""
    lines = [
        [f"{what}, one at a time", f"{f['tried'] - len(f['missed'])} of {f['tried']} caught", _named(f["missed"])]
        for what, f in found["injected"].items()
    ]
    runs = found["runs"]
    alarms = [alarm for run in runs for alarm in run["alarms"]]
    if runs:
        lines.append([f"none, {len(runs)} runs", f"{len(alarms)} alarms", _named(sorted(set(alarms)))])
    headers = ["regression put in", "outcome", "which were missed, or raised one"]
    machine = found["machine"]
    parts = [
        (
            f"{found['benchmarks']} benchmarks on {machine['processor']}, {machine['cores']} cores{_load(runs)}, as "
            "`--quick` measures them, and every (defense, attack) with random numbers that the golden values have not "
            "seen:"
        ),
        tabulate(lines, headers=headers, tablefmt="github"),
    ]
    if runs:
        seconds = sorted(run["processor_seconds"] for run in runs)
        parts.append(f"A run takes {seconds[len(seconds) // 2]:.0f} s on the processor (median).")
    if any(SEPARATOR in alarm for alarm in alarms):
        parts.append(
            "Alarms about a (defense, attack) come from other random numbers than the golden values', which "
            "understate how much a noisy defense varies. `perf measure` draws the same numbers each time: only a "
            "change that draws others meets these alarms."
        )
    return "\n\n".join(parts)


def _load(runs: list[dict[str, Any]]) -> str:
    loads = [run["load"] for run in runs if "load" in run]
    return f" at a load average of {min(loads):.1f} to {max(loads):.1f}" if loads else ""


def _named(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "–"


if __name__ == "__main__":
    main()
