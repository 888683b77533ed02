"""What a defense costs: time and memory of publishing, on each dataset and as graphs grow."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ppgsl_bench.leaderboard.measurements import SCALING_DATASET, UNDEFENDED
from ppgsl_bench.rows import FAILURES, Row


@dataclass(frozen=True)
class Cost:
    """Of publishing on some datasets.

    Attributes:
        seconds: the slowest dataset's median over settings and seeds; None if no publication succeeded.
        host_bytes: the largest peak of any publication, above the memory it started from.
        gpu_bytes: the largest peak allocated on a GPU; None on a CPU.
        runs, failed: publications that were tried, and those that failed, ran out of time or of memory.
    """

    seconds: float | None = None
    host_bytes: int | None = None
    gpu_bytes: int | None = None
    runs: int = 0
    failed: int = 0


@dataclass(frozen=True)
class Growth:
    """Cost of one defense on one graph, by the size of the graph.

    Attributes:
        status: `ok`, or how the publications ended if none succeeded.
        generated: whether it is one of the Erdős–Rényi graphs.
    """

    label: str
    source: str
    dataset: str
    nodes: int
    links: int
    cost: Cost
    status: str
    generated: bool


def cost_of(publications: Iterable[Row], datasets: Sequence[str]) -> Cost:
    """Cost over some datasets."""
    by_dataset: defaultdict[str, list[Row]] = defaultdict(list)
    for row in publications:
        if row.dataset_label in datasets:
            by_dataset[row.dataset_label].append(row)
    tried = [row for rows in by_dataset.values() for row in rows]
    sound = [row for row in tried if row.status == "ok"]
    medians = [statistics.median(times) for rows in by_dataset.values() if (times := _times(rows))]
    return Cost(
        max(medians, default=None),
        max((row.peak_host_bytes for row in sound if row.peak_host_bytes is not None), default=None),
        max((row.peak_gpu_bytes for row in sound if row.peak_gpu_bytes is not None), default=None),
        len(tried),
        sum(row.status in FAILURES for row in tried),
    )


def growth(rows: Iterable[Row]) -> list[Growth]:
    """Cost of every defense on every graph, smaller graphs first."""
    rows = list(rows)
    sizes = {row.dataset_label: row.metrics for row in rows if row.kind == "split" and row.status == "ok"}
    groups: defaultdict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.kind == "publish" and row.defense != UNDEFENDED and row.dataset_label in sizes:
            groups[row.defense, row.provenance.get("source", ""), row.dataset_label].append(row)
    found = []
    for (defense, source, dataset), group in groups.items():
        cost = cost_of(group, [dataset])
        size = sizes[dataset]
        statuses = sorted({row.status for row in group})
        found.append(
            Growth(
                f"{defense} ({source})" if source else defense,
                source,
                dataset,
                int(size["nodes"]),
                int(size["links"]),
                cost,
                "ok" if "ok" in statuses else ", ".join(statuses),
                group[0].dataset == SCALING_DATASET,
            )
        )
    return sorted(found, key=lambda g: (g.label, g.nodes, g.links, g.dataset))


def _times(rows: Iterable[Row]) -> list[float]:
    return [row.wall_seconds for row in rows if row.status == "ok" and row.wall_seconds is not None]
