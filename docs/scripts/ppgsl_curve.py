"""Write docs/ppgsl-curve.md: the trade-off curve of `ppgsl` on Cora, setting by setting.

Rows come from `ppgsl-bench run --defense 'none,ppgsl[sweep]' --attack gae-cos,feature-cos --utility
link-prediction,node-classification --dataset cora --seeds 5 --results DIR`: give DIR as argument, or nothing to use the
rows in docs/data/. The figure beside it is `ppgsl-bench plot tradeoff --results docs/data/ppgsl-cora.jsonl.gz`.
"""

import sys
from collections import defaultdict
from pathlib import Path

from tabulate import tabulate

from ppgsl_bench.leaderboard.sources import board_rows
from ppgsl_bench.metrics import mean_interval

DOCS = Path(__file__).parents[1]
TARGET = DOCS / "ppgsl-curve.md"
STORED = DOCS / "data" / "ppgsl-cora.jsonl.gz"

COLUMNS = {
    ("publish", "links_kept"): "links kept",
    ("publish", "links_added"): "added",
    ("gae-cos", "auc"): "`gae-cos` AUC",
    ("feature-cos", "auc"): "`feature-cos` AUC",
    ("link-prediction", "auc"): "link prediction AUC",
    ("node-classification", "micro_f1"): "node classification F1",
}

INTRODUCTION = """# `ppgsl` on Cora, point by point

Mean over {seeds} seeds ± sample standard deviation, weakest setting first; made by `python docs/scripts/ppgsl_curve.py`
from the rows in docs/data/. The paper reports an attack AUC near 0.50 at a link-prediction AUC near 0.81 and F1 near
0.73. No setting lowers `feature-cos`, which looks at no link.

![trade-off](figures/ppgsl-cora.png)

"""


def main() -> None:
    """Read rows, write the page."""
    values: defaultdict[str, defaultdict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    seeds = set()
    for row in board_rows([Path(p) for p in sys.argv[1:]] or [STORED]):
        if row.status == "ok" and row.kind != "split":
            seeds.add(row.seed)
            for metric, value in row.metrics.items():
                values[row.defense_label][row.evaluator or "publish", metric].append(value)
    settings = sorted(values, key=lambda label: -sum(values[label]["publish", "links_kept"]))
    lines = [[f"`{label}`", *(_shown(values[label][column]) for column in COLUMNS)] for label in settings]
    table = tabulate(lines, headers=["setting", *COLUMNS.values()], tablefmt="github", disable_numparse=True)
    TARGET.write_text(INTRODUCTION.format(seeds=len(seeds)) + table + "\n", encoding="utf-8")


def _shown(values: list[float]) -> str:
    summary = mean_interval(values)
    digits = 0 if summary.mean > 1 else 3
    spread = f" ±{summary.sd:.{digits}f}" if len(values) > 1 else ""
    return f"{summary.mean:.{digits}f}{spread}"


if __name__ == "__main__":
    main()
