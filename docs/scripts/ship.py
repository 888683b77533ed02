"""Put measured rows into leaderboard/results/, and their ranking into the README.

ppgsl-bench run --suite paper --results DIR      # for hours or days: it resumes
python docs/scripts/ship.py DIR                  # what is complete so far, with what shipped before

A run need not be whole: other datasets, seeds or attacks may come from other machines and other days.

Rows count if the suite `paper` of this version plans them. A dataset's seed ships once every setting of every sweep was
published there (or failed to be), and an attack or utility task with it once it has a row for each of them: what is
still to be run is nobody's failure, and must not be charged as one. What is not complete waits in docs/data/ for the
rest. A learned defense publishes other graphs on other kinds of processors; all rows of one setting on one split are of
the graph that most evaluators were run on. Of the suite `scale`, whose graphs nobody is ranked on, every publication
ships.
"""

import os
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path

from ppgsl_bench.datasets import Sources
from ppgsl_bench.leaderboard.measurements import Measurements
from ppgsl_bench.leaderboard.packed import PACKED_KINDS, SUFFIX, pack, packed_key
from ppgsl_bench.leaderboard.ranking import rank
from ppgsl_bench.leaderboard.sources import board_rows
from ppgsl_bench.leaderboard.tables import ranking_text
from ppgsl_bench.plan import Cell, choose, plan
from ppgsl_bench.rows import Row
from ppgsl_bench.suite import load_suite

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("PPGSL_BENCH_DATA") or ROOT.parent / "shared" / "datasets")
README = ROOT / "README.md"
SHIPPED = ROOT / "leaderboard" / "results"
WAITING = ROOT / "docs" / "data" / "incomplete.jsonl.gz"
BEGIN, END = "<!-- ppgsl-bench leaderboard --format markdown -->", "<!-- end -->"


def main() -> None:
    """Pack one file a dataset, then quote the ranking."""
    packed = [*sorted(SHIPPED.glob(f"*{SUFFIX}")), *WAITING.parent.glob(WAITING.name)]
    known = board_rows([*packed, *map(Path, sys.argv[1:])])
    cells = _cells("paper")
    rows = complete(known, cells)
    counted = {row.key for row in rows}
    pack((row for row in _one_a_cell(known, cells) if row.key not in counted), WAITING)
    rows += [row for row in _one_a_cell(known, _cells("scale")) if row.kind in {"split", "publish"}]
    SHIPPED.mkdir(exist_ok=True)
    by_dataset: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_dataset[row.dataset].append(row)
    for dataset, group in by_dataset.items():
        pack(group, SHIPPED / f"{dataset}{SUFFIX}")
    text = ranking_text(rank(Measurements(rows)), "markdown")
    quoted = f"{BEGIN}\n\n{text}\n\n{END}"
    before = README.read_text(encoding="utf-8")
    README.write_text(re.sub(f"{BEGIN}.*?{END}", lambda _: quoted, before, flags=re.DOTALL), encoding="utf-8")
    for (dataset, seed), group in sorted(_by_split(rows).items()):
        evaluators = {row.evaluator_label for row in group if row.evaluator}
        sys.stdout.write(f"{dataset}, seed {seed}: {len(group)} rows, {len(evaluators)} attacks and utility tasks\n")


def _cells(name: str) -> list[Cell]:
    """What a suite plans."""
    suite = load_suite(name)
    choice = choose(
        datasets=suite.datasets,
        defenses=suite.defenses,
        attacks=suite.attacks,
        utilities=suite.utilities,
        seeds=suite.seeds if isinstance(suite.seeds, list) else range(suite.seeds),
    )
    return plan(choice, Sources(data_dirs=(DATA,), offline=True))


def _one_a_cell(rows: Iterable[Row], cells: Iterable[Cell]) -> list[Row]:
    """The planned rows; of two for one cell, the later, or the quicker if both are sound.

    Sound rows of a cell have the same metrics, but for the last digits where processors differ. They differ by what
    else the machine had to do, and the quicker one says better what the cell costs.
    """
    planned = {packed_key(cell.key) for cell in cells if cell.kind in PACKED_KINDS}
    chosen: dict[str, Row] = {}
    for row in _of_one_publication([row for row in rows if packed_key(row.key) in planned]):
        key = packed_key(row.key)
        known = chosen.get(key)
        both_sound = known is not None and known.status == row.status == "ok"
        if not (both_sound and known.wall_seconds <= row.wall_seconds):
            chosen[key] = row
    return list(chosen.values())


def _of_one_publication(rows: Collection[Row]) -> list[Row]:
    """Without the rows of graphs that were also published for the same setting and split, but less evaluated."""
    seen: defaultdict[tuple[str, int, str], defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        if published := row.digests.get("published"):
            seen[row.dataset_label, row.seed, row.defense_label][published].add(row.evaluator_label)
    # Of two that were evaluated as often, the later.
    most = {key: max(reversed(found), key=lambda digest: len(found[digest])) for key, found in seen.items()}
    return [
        row
        for row in rows
        if row.digests.get("published") in {None, most.get((row.dataset_label, row.seed, row.defense_label))}
    ]


def complete(rows: Iterable[Row], cells: Collection[Cell]) -> list[Row]:
    """The planned rows of complete seeds and evaluators."""
    settings = {cell.defense.label for cell in cells if cell.defense}
    kept: list[Row] = []
    for group in _by_split(_one_a_cell(rows, cells)).values():
        met: defaultdict[str, set[str]] = defaultdict(set)
        for row in group:
            met[row.evaluator_label].add(row.defense_label)
        if met[""] >= settings:
            kept += [row for row in group if not row.evaluator or met[row.evaluator_label] >= settings]
    return kept


def _by_split(rows: Iterable[Row]) -> dict[tuple[str, int], list[Row]]:
    groups: defaultdict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.dataset_label, row.seed].append(row)
    return groups


if __name__ == "__main__":
    main()
