"""Write docs/costs.md: time and memory of every defense at its default, on real graphs and as graphs grow.

ppgsl-bench run --defense all --attack none --utility none --seeds 1 --jobs 1 --results DIR \
    --dataset 'cora,citeseer,polblogs,lastfm-asia,pubmed,deezer-europe,er[n=1000],er[n=10000],er[n=100000]'
python docs/scripts/costs.py DIR      # or without DIR, from the rows in docs/data/
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from tabulate import tabulate

from ppgsl_bench.leaderboard.packed import pack
from ppgsl_bench.leaderboard.sources import board_rows
from ppgsl_bench.quantities import format_bytes, format_duration
from ppgsl_bench.rows import Row

DOCS = Path(__file__).parents[1]
TARGET = DOCS / "costs.md"
STORED = DOCS / "data" / "costs.jsonl.gz"
# Below these, what is measured is the clock and the allocator.
LEAST_SECONDS, LEAST_BYTES = 0.01, 2**20

INTRODUCTION = """# What the defenses cost

Time and peak memory (above what the process held before) of publishing at each defense's default, one seed, one thread,
one cell at a time; `growth` is the exponent fitted to the Erdős–Rényi graphs of mean degree 10, where at least two of
them took long enough to measure. Made by `python docs/scripts/costs.py` from the rows in docs/data/.
Machine: {machine}.
"""

# The paper's figure for one iteration of PPNE on 100,000 nodes.
PAPER_ITERATION = 16.7 * 60
ONE_ITERATION = """
The default of `ppne` makes 30 iterations, which take hours with 100,000 nodes. One iteration there, training of
DeepWalk included (`ppne[flips=0.01]`), took {time}: {ratio:.1f} times as fast as the 16.7 minutes of
the paper.
"""


def main() -> None:
    """Read rows, keep them, write the page."""
    rows = board_rows([Path(p) for p in sys.argv[1:]] or [STORED])
    rows = [row for row in rows if row.kind in {"split", "publish"}]
    if sys.argv[1:]:
        pack(rows, STORED)
    sizes = {row.dataset_label: int(row.metrics["nodes"]) for row in rows if row.kind == "split"}
    cells: defaultdict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        if row.kind == "publish" and row.defense_label == row.defense != "none":
            cells[row.defense][row.dataset_label] = row
    generated = sorted({row.dataset_label for row in rows if row.dataset == "er"}, key=sizes.__getitem__)
    datasets = [*sorted(sizes.keys() - set(generated), key=sizes.__getitem__), *generated]
    provenance = rows[0].provenance
    parts = [
        INTRODUCTION.format(
            machine=f"{provenance['processor']}, {provenance['cores']} cores, Python {provenance['python']}"
        )
    ]
    parts += [
        ONE_ITERATION.format(time=format_duration(row.wall_seconds), ratio=PAPER_ITERATION / row.wall_seconds)
        for row in rows
        if row.defense_label == "ppne[flips=0.01]" and row.status == "ok" and row.wall_seconds
    ]
    parts.append("\n## Time\n\n" + _table(cells, datasets, generated, sizes, _seconds, format_duration, LEAST_SECONDS))
    parts.append("\n\n## Memory\n\n" + _table(cells, datasets, generated, sizes, _bytes, format_bytes, LEAST_BYTES))
    TARGET.write_text("".join(parts) + "\n", encoding="utf-8")


def _table(
    cells: Mapping[str, Mapping[str, Row]],
    datasets: list[str],
    generated: list[str],
    sizes: Mapping[str, int],
    measure: Callable[[Row], float | None],
    shown: Callable[[float], str],
    least: float,
) -> str:
    lines = []
    for defense, found in cells.items():
        texts = [_shown(found.get(dataset), measure, shown) for dataset in datasets]
        points = [
            (sizes[dataset], value)
            for dataset in generated
            if dataset in found and (value := measure(found[dataset])) is not None and value >= least
        ]
        lines.append([f"`{defense}`", *texts, _exponent(points)])
    titles = [f"er, {sizes[dataset]:,}" if dataset in generated else f"`{dataset}`" for dataset in datasets]
    headers = ["defense", *titles, "growth"]
    return tabulate(lines, headers=headers, tablefmt="github", disable_numparse=True)


def _shown(row: Row | None, measure: Callable[[Row], float | None], shown: Callable[[float], str]) -> str:
    if row is None:
        return ""
    value = measure(row)
    return row.status if value is None else shown(value)


def _exponent(points: list[tuple[int, float]]) -> str:
    """Slope of log(cost) over log(nodes)."""
    if len(points) < 2:
        return ""
    nodes, values = np.log(points).T
    return f"{np.polyfit(nodes, values, 1)[0]:.2f}"


def _seconds(row: Row) -> float | None:
    return row.wall_seconds if row.status == "ok" else None


def _bytes(row: Row) -> float | None:
    return row.peak_host_bytes if row.status == "ok" else None


if __name__ == "__main__":
    main()
