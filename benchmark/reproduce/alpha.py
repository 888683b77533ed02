"""How to choose the price α of distortion: what it does, and how it depends on the size of the graph.

Here the distortion is divided by the number of sensitive links, in the paper's formula it is not: α(paper) = α / |E_s|
(see docs/ppgsl.md).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import scipy.stats

from ppgsl_bench.defenses import Defense
from ppgsl_bench.leaderboard.measurements import UNDEFENDED
from ppgsl_bench.plan import Choice
from ppgsl_bench.reproduce.drawing import legend_below, log_scale, look, panels
from ppgsl_bench.reproduce.evidence import Evidence
from ppgsl_bench.reproduce.experiment import LINK_PREDICTION, Experiment, Result, Scope, Table, defenses_named
from ppgsl_bench.reproduce.losses import sensitive_pairs
from ppgsl_bench.reproduce.verdicts import Verdict, at_least

ATTACK = "gae-cos"
# Of PPGSL's sweep, so that the trade-off curves have these points as well.
PRICES = (1.0, 0.3, 0.1, 0.05, 0.03, 0.01)
QUICK_PRICES = (0.3, 0.1, 0.03)
# The range from which the paper's appendix takes α, in its own unit.
PAPER_RANGE = (0.001, 0.01)
# A publication that changes fewer links than the first share hardly protects, and more than the second hardly serves.
USEFUL_DISTORTION = (0.05, 0.5)
# Prices are compared where this share of the links is changed.
COMPARED_DISTORTION = 0.2
ORDERED, PARTLY_ORDERED = 0.9, 0.5

Points = Mapping[float, tuple[float, float, float]]


def settings(scope: Scope) -> dict[float, Defense]:
    """PPGSL at each price."""
    return {a: scope.ppgsl(alpha=a) for a in (QUICK_PRICES if scope.quick else PRICES)}


def plan(scope: Scope) -> Sequence[Choice]:
    """The same prices on all graphs."""
    return [scope.choice([*defenses_named(UNDEFENDED), *settings(scope).values()], [ATTACK], [LINK_PREDICTION])]


def conclude(evidence: Evidence, scope: Scope) -> Result:
    """What α does to distortion, attack and utility."""
    points: dict[str, Points] = {}
    for dataset in scope.labels:
        measured = {a: _point(evidence, dataset, d.label) for a, d in settings(scope).items()}
        complete = {a: point for a, point in measured.items() if point is not None}
        if len(complete) > 1:
            points[dataset] = complete
    hidden = {dataset: sensitive_pairs(evidence, dataset) for dataset in points}
    nodes = {d: next(iter(evidence.sound("split", d).values())).metrics["nodes"] for d in points}
    columns = (
        "dataset",
        "nodes",
        "alpha",
        "alpha in the paper's unit",
        "distortion",
        "attack AUC",
        "link prediction AUC",
    )
    lines = [
        (dataset, int(nodes[dataset]), a, a / hidden[dataset], *point)
        for dataset, found in points.items()
        for a, point in found.items()
    ]
    figure, [[ours, papers, attack]] = panels(1, 3)
    for i, (dataset, found) in enumerate(points.items()):
        prices, distortions = np.array(list(found)), [point[0] for point in found.values()]
        ours.plot(prices, distortions, label=dataset, **look(i))
        papers.plot(prices / hidden[dataset], distortions, **look(i))
        attack.plot(distortions, [point[1] for point in found.values()], **look(i))
    papers.axvspan(*PAPER_RANGE, color="grey", alpha=0.15)
    log_scale(ours)
    log_scale(papers)
    ours.set(xlabel="α", ylabel="distortion (share of links)")
    papers.set(xlabel="α in the paper's unit, its range grey", ylabel="distortion")
    attack.set(xlabel="distortion", ylabel=f"attack AUC ({ATTACK})")
    legend_below(figure, ours)
    notes = [
        "Distortion: links removed and added, as a share of the visible links.",
        "For a graph of your own: `ppgsl-bench suggest-alpha GRAPH --sensitive PAIRS --distortion 0.2`.",
    ]
    return Result(Table(columns, lines), figure, _verdicts(points, hidden, nodes), notes)


def price_for(points: Points, distortion: float) -> float | None:
    """The α at which so many links change, by interpolation in log α; None outside what was measured."""
    prices = np.array(sorted(points))
    changed = np.array([points[a][0] for a in prices])
    if not changed.min() <= distortion <= changed.max():
        return None
    order = np.argsort(changed)
    return float(np.exp(np.interp(distortion, changed[order], np.log(prices)[order])))


def _point(evidence: Evidence, dataset: str, label: str) -> tuple[float, float, float] | None:
    values = (
        evidence.distortion(dataset, label),
        evidence.attack(dataset, label, ATTACK),
        evidence.utility(dataset, label, LINK_PREDICTION, "auc"),
    )
    if not all(values):
        return None
    distortion, attack, utility = (float(np.mean(list(by_seed.values()))) for by_seed in values)
    return distortion, attack, utility


def _verdicts(points: Mapping[str, Points], hidden: Mapping[str, int], nodes: Mapping[str, float]) -> list[Verdict]:
    verdicts = []
    for dataset, found in points.items():
        prices = list(found)
        with_attack = _rank_correlation(prices, [p[1] for p in found.values()])
        with_utility = _rank_correlation(prices, [p[2] for p in found.values()])
        verdicts.append(
            Verdict(
                f"{dataset}: a larger α keeps more utility, a smaller one protects better",
                "–",
                f"rank correlation of α with attack AUC {with_attack:.2f}, with link prediction {with_utility:.2f}",
                at_least(min(with_attack, with_utility), ORDERED, PARTLY_ORDERED),
                f"confirmed: both at least {ORDERED}; partly: both at least {PARTLY_ORDERED}",
            )
        )
        useful = [a / hidden[dataset] for a, p in found.items() if USEFUL_DISTORTION[0] <= p[0] <= USEFUL_DISTORTION[1]]
        inside = [a for a in useful if PAPER_RANGE[0] <= a <= PAPER_RANGE[1]]
        share = len(inside) / len(useful) if useful else 0.0
        verdicts.append(
            Verdict(
                f"{dataset}: α is usually to be taken from [0.001, 0.01] (in the paper's unit)",
                "[0.001, 0.01]",
                f"[{min(useful):.2g}, {max(useful):.2g}] changes 5 % to 50 % of the links" if useful else "–",
                at_least(share, 0.5, 1e-9) if useful else "not measured",
                "of the prices measured that change 5 % to 50 % of the links, confirmed: half are in the "
                "range; partly: some",
            )
        )
    wanted = {d: price_for(found, COMPARED_DISTORTION) for d, found in points.items()}
    known = sorted((d for d in wanted if wanted[d] is not None), key=lambda d: nodes[d])
    if len(known) > 1:
        literal = [(wanted[d] or 0.0) / hidden[d] for d in known]
        correlation = -_rank_correlation([nodes[d] for d in known], literal)
        verdicts.append(
            Verdict(
                "larger graphs need a smaller α (in the paper's unit) for a like effect",
                "–",
                f"for a distortion of {COMPARED_DISTORTION:.0%}: "
                + ", ".join(
                    f"{d} ({nodes[d]:,.0f} nodes) {a:.2g}, here {wanted[d]:.2g}"
                    for d, a in zip(known, literal, strict=True)
                ),
                at_least(correlation, ORDERED, PARTLY_ORDERED),
                f"rank correlation of nodes and α; confirmed: at most -{ORDERED}; partly: at most -{PARTLY_ORDERED}",
            )
        )
    return verdicts


def _rank_correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's; 0 where one of the two does not vary."""
    if len(set(x)) < 2 or len(set(y)) < 2:
        return 0.0
    return float(scipy.stats.spearmanr(x, y).statistic)


EXPERIMENT = Experiment(
    name="alpha",
    title="Choosing the price α",
    source="Appendix on the selection of α",
    plan=plan,
    conclude=conclude,
    datasets=("synthetic[n=500]", "synthetic", "synthetic[n=2000]", "cora"),
    quick_datasets=("synthetic[n=200]", "synthetic[n=400]"),
    seeds=3,
)
