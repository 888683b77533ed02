"""Results as tables for a terminal."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tabulate import tabulate

from ppgsl_bench.metrics import mean_interval
from ppgsl_bench.quantities import format_bytes, format_duration
from ppgsl_bench.rows import Row

# The number that stands for an evaluator in the overview.
_ATTACK_HEADLINE = "auc"
_UTILITY_HEADLINES = ("auc", "micro_f1", "edge_jaccard")
# More defenses than this, and the table is turned round.
_MAX_COLUMNS = 9


def result_tables(rows: Iterable[Row]) -> str:
    """One table a dataset: evaluators down, defenses across, mean over seeds ± sample standard deviation."""
    by_dataset: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.kind in {"publish", "attack", "utility"}:
            by_dataset[row.dataset_label].append(row)
    return "\n\n".join(_dataset_table(name, group) for name, group in by_dataset.items())


def _dataset_table(name: str, rows: Sequence[Row]) -> str:
    defenses = list(dict.fromkeys(row.defense_label for row in rows))
    lines: dict[str, dict[str, str]] = {}
    grouped: defaultdict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row.kind, row.evaluator_label, row.defense_label].append(row)
    for (kind, evaluator, defense), cells in grouped.items():
        for metric, text in _summaries(kind, cells).items():
            lines.setdefault(f"{evaluator} {metric}".strip(), {})[defense] = text
    seeds = len({row.seed for row in rows})
    title = f"{name} (mean over {seeds} seeds ± standard deviation)" if seeds > 1 else name
    if len(defenses) <= _MAX_COLUMNS:
        table = [[line, *(cells.get(d, "–") for d in defenses)] for line, cells in lines.items()]
        return f"{title}\n{tabulate(table, headers=['', *defenses], disable_numparse=True)}"
    table = [[d, *(cells.get(d, "–") for cells in lines.values())] for d in defenses]
    return f"{title}\n{tabulate(table, headers=['', *lines], disable_numparse=True)}"


def _summaries(kind: str, cells: Sequence[Row]) -> dict[str, str]:
    sound = [row for row in cells if row.status == "ok"]
    if not sound:
        metric = "" if kind != "attack" else _ATTACK_HEADLINE
        return {"links" if kind == "publish" else metric: cells[0].status}
    incomplete = "" if len(sound) == len(cells) else f" ({len(sound)}/{len(cells)})"
    if kind == "publish":
        return {
            "links": _mean([r.metrics["links"] for r in sound], ".0f") + incomplete,
            "time": format_duration(sum(r.wall_seconds or 0 for r in sound) / len(sound)),
            "memory": format_bytes(max(r.peak_host_bytes or 0 for r in sound)),
        }
    wanted = (_ATTACK_HEADLINE,) if kind == "attack" else _UTILITY_HEADLINES
    return {
        metric: _mean([r.metrics[metric] for r in sound], ".3f") + incomplete
        for metric in wanted
        if all(metric in r.metrics for r in sound)
    }


def _mean(values: Sequence[float], number_format: str) -> str:
    summary = mean_interval(values)
    spread = f" ±{summary.sd:{number_format}}" if len(values) > 1 else ""
    return f"{summary.mean:{number_format}}{spread}"


def failure_table(rows: Sequence[Row]) -> str:
    """What went wrong, a line a cell."""
    table = [
        [r.key[:10], r.kind, r.dataset_label, r.seed, r.defense_label, r.evaluator_label, r.status, r.reason]
        for r in rows
    ]
    headers = ["row", "kind", "dataset", "seed", "defense", "evaluator", "status", "reason"]
    return tabulate(table, headers=headers, disable_numparse=True, maxcolwidths=[None] * 7 + [60])
