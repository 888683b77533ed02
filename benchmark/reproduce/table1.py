"""Table 1: how alike the ends of visible links, hidden links and unlinked pairs are.

Distances are those in the visible graph, from which hidden and test links are gone. Of the unlinked pairs a uniform
sample is measured.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ppgsl_bench.graph import Features, Graph
from ppgsl_bench.hops import hops_between
from ppgsl_bench.leaderboard.figures import COLOURS
from ppgsl_bench.metrics import MeanInterval
from ppgsl_bench.pairs import Pairs, num_pairs, ranks_of, sample_pairs_outside
from ppgsl_bench.plan import Choice
from ppgsl_bench.reproduce.drawing import legend_below, panels
from ppgsl_bench.reproduce.evidence import Evidence
from ppgsl_bench.reproduce.experiment import Experiment, Result, Scope, Table, defenses_named
from ppgsl_bench.reproduce.verdicts import (
    APART_RULE,
    Verdict,
    apart,
    close_to,
    close_to_rule,
    over_seeds,
    shown,
    together,
)
from ppgsl_bench.seeds import generator
from ppgsl_bench.similarity import row_cosines
from ppgsl_bench.split import Split

KINDS = ("visible link", "hidden link", "no link")
UNDEFENDED, ENCODER, ATTACK = "none", "gae", "gae-cos"
# Unlinked pairs are measured on a sample of this size: the distance is then known to about 0.02 hops.
UNLINKED_SAMPLE = 20_000


@dataclass(frozen=True)
class Measure:
    """A column of the table: its title, whether alike pairs have less of it, and how near counts as near."""

    title: str
    less_is_alike: bool
    relative: bool
    tolerance: float

    def tolerance_at(self, published: float) -> float:
        """In the unit of the figure."""
        return self.tolerance * published if self.relative else self.tolerance


MEASURES: Mapping[str, Measure] = {
    "distance": Measure("shortest path", True, True, 0.05),
    "disconnected": Measure("share without a path", True, False, 0.03),
    "attributes": Measure("cosine of the features", False, True, 0.2),
    "embedding": Measure("cosine of the embeddings", False, False, math.nan),
}
# Not a column of its own: another reading of the paper's column `attributes`.
ATTRIBUTE_PRODUCT = "attribute_product"
PRODUCT = Measure("product of the features, each divided by their sum", False, True, 0.2)

# The paper's table: dataset, kind of pair, then distance, disconnected, attributes, embedding (GraphSAGE).
PAPER: Mapping[str, Mapping[str, tuple[float, float, float, float]]] = {
    "cora": {
        "visible link": (1.000, 0.000, 0.011, 0.900),
        "hidden link": (3.206, 0.164, 0.011, 0.702),
        "no link": (7.007, 0.254, 0.003, 0.499),
    },
    "lastfm-asia": {
        "visible link": (1.000, 0.000, 0.010, 0.978),
        "hidden link": (2.480, 0.089, 0.010, 0.947),
        "no link": (5.560, 0.124, 0.008, 0.820),
    },
}

Samples = Mapping[str, NDArray[np.float64]]
Found = Mapping[str, Mapping[str, Mapping[str, MeanInterval]]]
"""By dataset, kind of pair and measure."""


def plan(scope: Scope) -> Sequence[Choice]:
    """The undefended graph, embedded."""
    return [scope.choice(defenses_named(UNDEFENDED), [ATTACK])]


def conclude(evidence: Evidence, scope: Scope) -> Result:
    """Measure all pairs of all splits."""
    found: dict[str, dict[str, dict[str, MeanInterval]]] = {}
    for dataset in scope.labels:
        embeddings = evidence.embeddings(dataset, UNDEFENDED, ENCODER)
        measured = {seed: measure(split, embeddings.get(seed)) for seed, split in evidence.splits(dataset).items()}
        if measured:
            found[dataset] = {kind: _summary([m[kind] for m in measured.values()]) for kind in KINDS}
    columns = ("dataset", "pairs", "measure", "mean", "low", "high", "paper")
    lines = [
        (dataset, kind, name, value.mean, value.low, value.high, _published(dataset, kind, name))
        for dataset, kinds in found.items()
        for kind, values in kinds.items()
        for name, value in values.items()
    ]
    verdicts = [verdict for dataset, kinds in found.items() for verdict in _verdicts(dataset, kinds)]
    return Result(Table(columns, lines), _figure(found), verdicts, _notes(found))


def measure(split: Split, embedding: NDArray[np.float32] | None) -> dict[str, Samples]:
    """One value a pair for every kind of pair and every measure; `distance` only where there is a path."""
    graph = split.visible
    pairs = {"visible link": graph.edges, "hidden link": split.sensitive, "no link": unlinked_sample(split)}
    return {kind: _of_pairs(graph, pairs[kind], embedding) for kind in KINDS}


def unlinked_sample(split: Split) -> Pairs:
    """A uniform sample of the pairs that are not linked in the original graph."""
    n = split.visible.num_nodes
    links = np.concatenate([split.visible.edges, split.sensitive, split.test_links])
    taken = np.sort(ranks_of(links, n))
    count = min(UNLINKED_SAMPLE, num_pairs(n) - len(taken))
    return sample_pairs_outside(taken, n, count, generator("reproduce", "table1", split.digest))


def _of_pairs(graph: Graph, pairs: Pairs, embedding: NDArray[np.float32] | None) -> Samples:
    hops = hops_between(graph, pairs)
    values = {"distance": hops[hops >= 0].astype(np.float64), "disconnected": (hops < 0).astype(np.float64)}
    if graph.x is not None:
        values["attributes"] = row_cosines(graph.x, pairs)
        values[ATTRIBUTE_PRODUCT] = _products_of_shares(graph.x, pairs)
    if embedding is not None:
        values["embedding"] = row_cosines(embedding, pairs)
    return values


def _products_of_shares(x: Features, pairs: Pairs) -> NDArray[np.float64]:
    """x̂_u · x̂_v with x̂ the features divided by their sum, as graph networks commonly take them."""
    rows = sp.csr_array(x, dtype=np.float64)
    sums = np.asarray(abs(rows).sum(axis=1)).ravel()
    scaled = sp.csr_array(sp.diags_array(np.divide(1.0, sums, out=np.zeros(len(sums)), where=sums > 0)) @ rows)
    products: NDArray[np.float64] = np.asarray(scaled[pairs[:, 0]].multiply(scaled[pairs[:, 1]]).sum(axis=1)).ravel()
    return products


def _summary(samples: Sequence[Samples]) -> dict[str, MeanInterval]:
    """Over splits; of a single split, over its pairs."""
    names = [name for name in samples[0] if all(name in sample and len(sample[name]) for sample in samples)]
    if len(samples) == 1:
        return {name: over_seeds(samples[0][name]) for name in names}
    return {name: over_seeds([float(sample[name].mean()) for sample in samples]) for name in names}


def _published(dataset: str, kind: str, name: str) -> float | None:
    if dataset not in PAPER:
        return None
    return PAPER[dataset][kind][list(MEASURES).index("attributes" if name == ATTRIBUTE_PRODUCT else name)]


def _verdicts(dataset: str, kinds: Mapping[str, Mapping[str, MeanInterval]]) -> list[Verdict]:
    hidden, unlinked = kinds["hidden link"], kinds["no link"]
    parts = {
        name: apart(hidden[name], unlinked[name]) if m.less_is_alike else apart(unlinked[name], hidden[name])
        for name, m in MEASURES.items()
        if name in hidden and name in unlinked
    }
    values = "; ".join(f"{MEASURES[n].title} {hidden[n].mean:.3g} against {unlinked[n].mean:.3g}" for n in parts)
    verdicts = [
        Verdict(
            f"{dataset}: hidden links join nodes that are more alike than unlinked ones, by every measure",
            "–",
            values,
            together(parts.values()),
            f"each measure: {APART_RULE}; all must agree",
        )
    ]
    if dataset in PAPER:
        verdicts += _figures(dataset, kinds)
    if all("embedding" in kinds[kind] for kind in KINDS):
        visible = kinds["visible link"]["embedding"]
        steps = [(unlinked["embedding"], hidden["embedding"]), (hidden["embedding"], visible)]
        verdicts.append(
            Verdict(
                f"{dataset}: embeddings are most alike across visible links, then hidden links, then unlinked pairs",
                " > ".join(f"{PAPER[dataset][kind][-1]:.3f}" for kind in KINDS) if dataset in PAPER else "–",
                " > ".join(shown(kinds[kind]["embedding"]) for kind in KINDS),
                together(apart(lower, higher) for lower, higher in steps),
                f"both steps: {APART_RULE}",
            )
        )
    return verdicts


def _figures(dataset: str, kinds: Mapping[str, Mapping[str, MeanInterval]]) -> list[Verdict]:
    """The paper's figures one by one, except those of embeddings, which come from another encoder."""
    verdicts = []
    compared = {name: m for name, m in MEASURES.items() if name != "embedding"} | {ATTRIBUTE_PRODUCT: PRODUCT}
    for kind in KINDS[1:]:
        for name, measure_ in compared.items():
            published, found = _published(dataset, kind, name), kinds[kind].get(name)
            if published is None:
                continue
            tolerance = measure_.tolerance_at(published)
            verdicts.append(
                Verdict(
                    f"{dataset}, {kind}: {measure_.title}",
                    f"{published:.3f}",
                    shown(found),
                    "not measured" if found is None else close_to(found, published, tolerance),
                    close_to_rule(tolerance),
                )
            )
    return verdicts


def _notes(found: Found) -> list[str]:
    notes = [
        (
            "Mean path lengths are over pairs that have a path; the share without one stands beside them. Visible "
            "links have distance 1 by definition."
        ),
        (
            f"Unlinked pairs: {UNLINKED_SAMPLE:,} drawn uniformly. With one split the intervals are over pairs, "
            "else over splits."
        ),
        (
            "The paper embeds with GraphSAGE, this page with the graph autoencoder of `gae-cos`: the order of the "
            "three kinds of pairs is comparable, the figures are not."
        ),
    ]
    for dataset, kinds in found.items():
        if ATTRIBUTE_PRODUCT in kinds["hidden link"]:
            values = ", ".join(f"{kinds[kind][ATTRIBUTE_PRODUCT].mean:.4f}" for kind in KINDS)
            notes.append(
                f"{dataset}: the paper calls its column of attribute similarity a cosine. Cosines of the features are "
                "far larger than its figures; products of features that were divided by their sum, as graph networks "
                f"commonly take them, are {values} for visible, hidden and no link."
            )
        else:
            notes.append(f"{dataset}: the graph has no features here, so nothing can be said of attribute similarity.")
    return notes


def _figure(found: Found) -> Figure:
    figure, grid = panels(1, len(MEASURES))
    for axes, (name, measure_) in zip(grid[0], MEASURES.items(), strict=True):
        for k, kind in enumerate(KINDS):
            values = [kinds[kind].get(name) for kinds in found.values()]
            places = [i + 0.27 * (k - 1) for i, value in enumerate(values) if value is not None]
            means = [value.mean for value in values if value is not None]
            axes.bar(places, means, width=0.25, color=COLOURS[k], label=kind)
            for i, dataset in enumerate(found):
                published = _published(dataset, kind, name)
                if published is not None:
                    axes.plot(i + 0.27 * (k - 1), published, "kx", markersize=5)
        axes.set_xticks(range(len(found)), list(found))
        axes.set_title(f"{measure_.title} (× paper)")
    legend_below(figure, grid[0][0])
    return figure


EXPERIMENT = Experiment(
    name="table1",
    title="Table 1: how alike the ends of hidden links are",
    source="Table 1",
    plan=plan,
    conclude=conclude,
    arrays=frozenset({"split", "embed"}),
    datasets=("cora", "lastfm-asia"),
)
