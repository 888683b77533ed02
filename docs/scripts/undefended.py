"""Write docs/undefended.md: what every attack and utility task reaches on graphs published as they are.

ppgsl-bench run --defense none --attack all --utility all --dataset cora,citeseer,polblogs --seeds 5 --results DIR
python docs/scripts/undefended.py DIR      # or without DIR, from the rows that ship with the package
"""

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tabulate import tabulate

from ppgsl_bench.leaderboard.sources import board_rows
from ppgsl_bench.metrics import mean_interval
from ppgsl_bench.quantities import format_bytes, format_duration
from ppgsl_bench.rows import Row

DOCS = Path(__file__).parents[1]
TARGET = DOCS / "undefended.md"
STORED = DOCS / "data" / "undefended.jsonl.gz"
ATTACK_METRICS = {
    "auc": "AUC",
    "auc_degree": "degree-matched",
    "auc_hard": "two hops",
    "tpr_at_1pct_fpr": "TPR at 1 % FPR",
}
UTILITY_METRICS = ("auc", "floor_auc", "micro_f1", "macro_f1", "floor_micro_f1")

INTRODUCTION = """# Undefended graphs

What each attack and utility task reaches when the visible graph is published as it is (`none`): mean over seeds ±
sample standard deviation, time (mean) and peak memory above the baseline (largest). No defense can be judged without
these numbers. Made by `python docs/scripts/undefended.py` from the rows in docs/data/.
"""


def main() -> None:
    """Read rows, write the page."""
    places = [Path(p) for p in sys.argv[1:]] or [STORED]
    rows = [row for row in board_rows(places) if row.defense == "none" and row.status == "ok"]
    by_dataset: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.kind in {"attack", "utility"}:
            by_dataset[row.dataset_label].append(row)
    parts = [INTRODUCTION]
    for dataset, group in by_dataset.items():
        seeds = len({row.seed for row in group})
        parts.append(f"\n## {dataset} ({seeds} seed{'s' * (seeds > 1)})\n\n{_attacks(group)}\n\n{_utilities(group)}\n")
    TARGET.write_text("".join(parts), encoding="utf-8")


def _attacks(rows: Iterable[Row]) -> str:
    grouped = _grouped(rows, "attack")
    ranked = sorted(grouped, key=lambda name: -_mean(grouped[name], "auc")[0])
    lines = [[name, *(_shown(grouped[name], m) for m in ATTACK_METRICS), *_cost(grouped[name])] for name in ranked]
    return tabulate(lines, headers=["attack", *ATTACK_METRICS.values(), "time", "memory"], tablefmt="github")


def _utilities(rows: Iterable[Row]) -> str:
    lines = [
        [name, metric, _shown(group, metric), *_cost(group)]
        for name, group in sorted(_grouped(rows, "utility").items())
        for metric in UTILITY_METRICS
        if metric in group[0].metrics
    ]
    return tabulate(lines, headers=["utility", "metric", "value", "time", "memory"], tablefmt="github")


def _grouped(rows: Iterable[Row], kind: str) -> dict[str, list[Row]]:
    grouped: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.kind == kind:
            grouped[row.evaluator_label].append(row)
    return grouped


def _mean(rows: list[Row], metric: str) -> tuple[float, float]:
    summary = mean_interval([row.metrics[metric] for row in rows])
    return summary.mean, summary.sd


def _shown(rows: list[Row], metric: str) -> str:
    mean, sd = _mean(rows, metric)
    return f"{mean:.3f} ±{sd:.3f}" if len(rows) > 1 else f"{mean:.3f}"


def _cost(rows: list[Row]) -> tuple[str, str]:
    seconds = sum(row.wall_seconds or 0 for row in rows) / len(rows)
    return format_duration(seconds), format_bytes(max(row.peak_host_bytes or 0 for row in rows))


if __name__ == "__main__":
    main()
