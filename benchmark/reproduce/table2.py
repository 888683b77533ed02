"""Table 2: sizes of the datasets, counting links in each of the ways that are in use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from ppgsl_bench.datasets import Dataset
from ppgsl_bench.datasets.sources import read_raw
from ppgsl_bench.plan import Choice
from ppgsl_bench.reproduce.drawing import legend_inside, log_scale, look, panels
from ppgsl_bench.reproduce.evidence import Evidence
from ppgsl_bench.reproduce.experiment import Experiment, Result, Scope, Table, defenses_named
from ppgsl_bench.reproduce.verdicts import Outcome, Verdict


@dataclass(frozen=True)
class Size:
    """A line of the paper's table."""

    nodes: int
    links: int
    features: int
    labels: int


PAPER: Mapping[str, Size] = {
    "polblogs": Size(1_490, 19_025, 0, 2),
    "lastfm-asia": Size(7_624, 27_806, 128, 18),
    "deezer-europe": Size(28_281, 185_504, 128, 2),
    "cora": Size(2_708, 10_556, 1_433, 7),
    "citeseer": Size(3_327, 9_104, 3_703, 6),
    "pubmed": Size(19_717, 88_648, 500, 3),
}
# Raw files that list directed links as they were recorded, some in one direction only.
DIRECTED_FILES: Mapping[str, str] = {"polblogs": "adjacency.tsv"}

EACH_ONCE, BOTH_WAYS, AS_RECORDED = "each link once", "each link in both directions", "directed entries of the raw file"
RULE = (
    "confirmed: nodes, features and labels are equal, and so is the number of links in one of the three ways of "
    "counting; partly: nodes and links only; not confirmed otherwise"
)


@dataclass(frozen=True)
class Counted:
    """Sizes as found here.

    Attributes:
        size: with each link counted once.
        recorded: directed entries of the raw file, self-loops included; None if the file has links both ways.
    """

    size: Size
    recorded: int | None

    @property
    def ways(self) -> dict[str, int]:
        """The number of links in each way of counting."""
        found = {EACH_ONCE: self.size.links, BOTH_WAYS: 2 * self.size.links}
        return found if self.recorded is None else {**found, AS_RECORDED: self.recorded}


def plan(scope: Scope) -> Sequence[Choice]:
    """Only loading."""
    return [scope.choice(defenses_named("none"))]


def conclude(evidence: Evidence, scope: Scope) -> Result:
    """Count."""
    counted = {d.label: found for d in scope.datasets if (found := _counted(evidence, d)) is not None}
    columns = (
        "dataset",
        "nodes",
        "links",
        "directed",
        "entries of the raw file",
        "features",
        "labels",
        "paper's links",
    )
    lines = [
        (
            name,
            c.size.nodes,
            c.size.links,
            2 * c.size.links,
            c.recorded,
            c.size.features,
            c.size.labels,
            PAPER[name].links if name in PAPER else None,
        )
        for name, c in counted.items()
    ]
    verdicts = [verdict(name, PAPER[name], c) for name, c in counted.items() if name in PAPER]
    ways = sorted({way for name, c in counted.items() if name in PAPER and (way := way_of(PAPER[name], c))})
    notes = []
    if len(ways) > 1:
        notes.append(f"The paper's column of links counts in {len(ways)} different ways: {'; '.join(ways)}.")
    notes.append(
        "This suite counts each link once, drops self-loops and directions, and keeps nodes without links. LastFMAsia "
        "has its 128 features only if SNAP's archive is at hand."
    )
    return Result(Table(columns, lines), _figure(counted), verdicts, notes)


def verdict(name: str, paper: Size, counted: Counted) -> Verdict:
    """Compare one line."""
    size, way = counted.size, way_of(paper, counted)
    outcome: Outcome = "not confirmed"
    if size.nodes == paper.nodes and way is not None:
        same = (size.features, size.labels) == (paper.features, paper.labels)
        outcome = "confirmed" if same else "partly"
    return Verdict(
        f"size of {name}",
        f"{paper.nodes:,} nodes, {paper.links:,} links, {paper.features:,} features, {paper.labels} labels",
        f"{size.nodes:,} nodes, {size.links:,} links (paper: {way or 'no way of counting fits'}), "
        f"{size.features:,} features, {size.labels} labels",
        outcome,
        RULE,
    )


def way_of(paper: Size, counted: Counted) -> str | None:
    """In which way the paper counts the links."""
    return next((way for way, count in counted.ways.items() if count == paper.links), None)


def _counted(evidence: Evidence, dataset: Dataset) -> Counted | None:
    rows = evidence.sound("split", dataset.label)
    if not rows:
        return None
    row = next(iter(rows.values()))
    labels = evidence.objects.get_graph({"graph": row.artifacts["graph"]}).y
    classes = 0 if labels is None else len(np.unique(labels[labels >= 0]))
    metrics = row.metrics
    size = Size(int(metrics["nodes"]), int(metrics["links"]), int(metrics["features"]), classes)
    file = DIRECTED_FILES.get(dataset.name)
    recorded = None if file is None else len(read_raw(type(dataset), evidence.sources)[file].splitlines())
    return Counted(size, recorded)


def _figure(counted: Mapping[str, Counted]) -> Figure:
    figure, [[axes]] = panels(1, 1)
    for i, (name, c) in enumerate(counted.items()):
        axes.plot(c.size.nodes, c.size.links, **{**look(i), "linestyle": ""}, label=name)
        if name in PAPER:
            axes.plot(PAPER[name].nodes, PAPER[name].links, "kx", markersize=4)
    log_scale(axes, y=True)
    axes.set(xlabel="nodes", ylabel="links (× as in the paper)")
    legend_inside(axes)
    return figure


EXPERIMENT = Experiment(
    name="table2",
    title="Table 2: sizes of the datasets",
    source="Table 2",
    plan=plan,
    conclude=conclude,
    arrays=frozenset({"split"}),
    datasets=tuple(PAPER),
    quick_datasets=("karate", "synthetic"),
    seeds=1,
)
