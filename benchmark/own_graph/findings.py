"""What the rows of an evaluation say: attacks with intervals, utility, and the links that are most exposed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ppgsl_bench.graph import Graph
from ppgsl_bench.metrics import outranked_share, strength
from ppgsl_bench.pairs import Pairs
from ppgsl_bench.rows import Row
from ppgsl_bench.split import NEGATIVE_FAMILIES, Queries

if TYPE_CHECKING:
    from ppgsl_bench.own_graph.bench import Bench

# The number that stands for a utility task, and what it is called; a share of it is what a defense keeps.
HEADLINES = {
    "link-prediction": ("auc", "link prediction (AUC)"),
    "node-classification": ("micro_f1", "node classification (micro F1)"),
}
# The structural distances that a reader can make something of without a textbook, and what they are called.
STRUCTURE = {
    "mean_degree_ratio": "links a node, published over original",
    "degree_ks": "distance of the degree distributions (0 to 1)",
    "clustering_difference": "difference in clustering",
    "path_length_difference": "difference in mean path length",
    "modularity_difference": "difference in modularity of the communities",
    "spectral_distance": "relative distance of the largest eigenvalues",
}
# The attack that looks at no link at all: no change of the links can stop it.
FEATURES_ATTACK = "feature-cos"
MOST_EXPOSED = 10

# Half the width of a 95 % interval, in standard errors.
_NORMAL_95 = 1.96
# What never happened in n trials has a probability below 3/n, at 95 % confidence (Hanley and Lippman-Hand 1983).
_RULE_OF_THREE = 3.0


@dataclass(frozen=True)
class AttackFinding:
    """One attack on one published graph.

    Attributes:
        name, label: of the attack, without and with parameters.
        auc: against uniform unlinked pairs; None if the attack gave no result.
        low, high: 95 % interval of the AUC (DeLong; the rule of three where the ranking is perfect); None where there
            are too few pairs.
        hard_auc: against unlinked pairs two hops apart.
        found: share of the sensitive links above a threshold that lets one unlinked pair in a hundred through.
        reason: why there is no result.
        failed: whether it should have worked.
    """

    name: str
    label: str
    auc: float | None = None
    low: float | None = None
    high: float | None = None
    hard_auc: float | None = None
    found: float | None = None
    reason: str = ""
    failed: bool = False

    @classmethod
    def of(cls, row: Row, hidden: int) -> "AttackFinding":
        """What an attack row says, of so many hidden links."""
        if row.status != "ok":
            failed = row.status != "inapplicable"
            return cls(row.evaluator, row.evaluator_label, reason=row.reason or row.status, failed=failed)
        auc, error = row.metrics["auc"], row.metrics.get("auc_se")
        interval: tuple[float | None, float | None] = (None, None)
        if error is not None:
            # A perfect ranking has a standard error of 0, which no finite sample deserves.
            half = _RULE_OF_THREE / hidden if auc in {0.0, 1.0} else _NORMAL_95 * error
            interval = (max(0.0, auc - half), min(1.0, auc + half))
        return cls(
            row.evaluator,
            row.evaluator_label,
            auc,
            *interval,
            hard_auc=row.metrics.get("auc_hard"),
            found=row.metrics["tpr_at_1pct_fpr"],
        )

    @property
    def strength(self) -> float:
        """max(AUC, 1 - AUC); 0 without a result, so that it is never the strongest."""
        return 0.0 if self.auc is None else strength(self.auc)

    @property
    def strength_interval(self) -> tuple[float, float] | None:
        """The interval of the AUC, turned round for an attack that is reliably wrong."""
        if self.auc is None or self.low is None or self.high is None:
            return None
        return (self.low, self.high) if self.auc >= 0.5 else (1 - self.high, 1 - self.low)


@dataclass(frozen=True)
class UtilityFinding:
    """One number about what the published graph is good for.

    Attributes:
        title: what was measured.
        before, after: on the graph less the sensitive links, and on the published one; before is None for distances.
        floor: what features alone reach.
        rehearsed: whether it was measured on a rehearsal with a tenth of the links held back.
    """

    title: str
    before: float | None
    after: float
    floor: float | None = None
    rehearsed: bool = False

    @property
    def kept(self) -> float | None:
        """After as a share of before."""
        return self.after / self.before if self.before else None


@dataclass(frozen=True)
class Exposure:
    """How exposed one sensitive link is.

    Attributes:
        pair: node numbers.
        risk: the share of unlinked pairs that it outranks in the eyes of the strongest attack; 1/2 is no risk.
        mean_risk: the same on average over all attacks.
        published: whether the link itself is in the published graph.
    """

    pair: tuple[int, int]
    risk: float
    mean_risk: float
    published: bool


@dataclass(frozen=True)
class Edits:
    """How a published graph differs from what there was to publish.

    Attributes:
        original: links before, without the sensitive ones.
        kept, removed, added: of the published links.
        sensitive: number of sensitive links.
        sensitive_published: how many of them are published all the same.
        isolated: nodes without a published link that had one before.
    """

    original: int
    kept: int
    removed: int
    added: int
    sensitive: int
    sensitive_published: int
    isolated: int

    @classmethod
    def between(cls, visible: Graph, published: Graph, sensitive: Pairs) -> "Edits":
        """Compare two graphs."""
        kept = int(published.has_edges(visible.edges).sum())
        return cls(
            visible.num_edges,
            kept,
            visible.num_edges - kept,
            published.num_edges - kept,
            len(sensitive),
            int(published.has_edges(sensitive).sum()),
            int(((published.degrees == 0) & (visible.degrees > 0)).sum()),
        )


def strongest(attacks: Sequence[AttackFinding]) -> AttackFinding | None:
    """The strongest attack that gave a result."""
    return max((attack for attack in attacks if attack.auc is not None), key=lambda a: a.strength, default=None)


def utility_findings(before: Sequence[Row], after: Sequence[Row], *, rehearsed: bool) -> list[UtilityFinding]:
    """Pair up the utility rows of two graphs; tasks without a result on either are left out."""
    undefended = {(row.evaluator, row.evaluator_params): row for row in before if row.status == "ok"}
    found: list[UtilityFinding] = []
    for row in after:
        if row.status != "ok":
            continue
        reference = undefended.get((row.evaluator, row.evaluator_params))
        if row.evaluator in HEADLINES:
            metric, title = HEADLINES[row.evaluator]
            value = None if reference is None else reference.metrics[metric]
            found.append(
                UtilityFinding(title, value, row.metrics[metric], row.metrics.get(f"floor_{metric}"), rehearsed)
            )
        else:
            names = STRUCTURE if row.evaluator == "structure" else {name: name for name in row.metrics}
            found += [
                UtilityFinding(title, None, row.metrics[name], rehearsed=rehearsed) for name, title in names.items()
            ]
    return found


def lowest_kept(utilities: Sequence[UtilityFinding]) -> float | None:
    """The share of utility that is left of the task that suffers most."""
    return min((u.kept for u in utilities if u.kept is not None), default=None)


def exposures(bench: "Bench", attacks: Sequence[Row], queries: Queries, published: Graph) -> list[Exposure]:
    """All sensitive links, the most exposed first: those published outright, then by what the strongest attack says."""
    hidden = queries.group == 0
    uniform = queries.group == 1 + NEGATIVE_FAMILIES.index("uniform")
    risks, strengths = [], []
    for row in attacks:
        if row.status == "ok":
            scores = bench.scores(row)
            risk = outranked_share(scores[hidden], scores[uniform])
            risks.append(risk if row.metrics["auc"] >= 0.5 else 1 - risk)
            strengths.append(row.metrics["strength"])
    pairs = queries.pairs[hidden]
    if not risks:
        return []
    is_published = published.has_edges(pairs)
    of_strongest, mean = risks[int(np.argmax(strengths))], np.mean(risks, axis=0)
    order = np.lexsort((pairs[:, 1], pairs[:, 0], -mean, -of_strongest, ~is_published))
    return [
        Exposure((int(pairs[i, 0]), int(pairs[i, 1])), float(of_strongest[i]), float(mean[i]), bool(is_published[i]))
        for i in order
    ]


def in_words(attack: AttackFinding) -> str:
    """What the strength of an attack means, for somebody who has never heard of an AUC."""
    interval = attack.strength_interval
    if interval is not None and interval[0] <= 0.5:
        return "cannot be told from guessing"
    for limit, words in ((0.6, "is a little better than guessing"), (0.75, "is clearly better than guessing")):
        if attack.strength < limit:
            return words
    return "finds most hidden links" if attack.strength < 0.9 else "finds nearly all hidden links"


def percent(share: float | None) -> str:
    """`63 %`, or a dash."""
    return "–" if share is None or math.isnan(share) else f"{100 * share:.0f} %"
