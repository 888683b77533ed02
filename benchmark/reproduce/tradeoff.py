"""The trade-off of all defenses: attack AUC of `gae-cos` against link prediction and node classification."""

from collections.abc import Mapping, Sequence

import numpy as np

from ppgsl_bench.defenses import Defense
from ppgsl_bench.leaderboard.measurements import UNDEFENDED
from ppgsl_bench.plan import Choice
from ppgsl_bench.reproduce.curves import Curve, Curves, curves_of
from ppgsl_bench.reproduce.drawing import draw_tradeoffs
from ppgsl_bench.reproduce.evidence import Evidence
from ppgsl_bench.reproduce.experiment import (
    LINK_PREDICTION,
    NODE_CLASSIFICATION,
    Experiment,
    Result,
    Scope,
    Table,
    defenses_named,
)
from ppgsl_bench.reproduce.verdicts import (
    DIRECTION_RULE,
    EVERY_RULE,
    MOST_RULE,
    Outcome,
    Verdict,
    above,
    close_to,
    close_to_rule,
    every,
    most,
    over_seeds,
    shown,
)

ATTACK = "gae-cos"
BASELINES = ("random", "dice", "privgraph", "edgerand", "lapgraph", "rw-lp", "ppne")
OURS = ADD_AND_DELETE, DELETE_ONLY = "ppgsl (k=1)", "ppgsl (k=0)"
TASKS = (LINK_PREDICTION, NODE_CLASSIFICATION)
QUICK_BASELINES = ("random", "dice", "edgerand")
QUICK_PRICES = (0.3, 0.05, 0.0)
DATASETS = ("cora", "citeseer", "polblogs", "lastfm-asia", "pubmed", "deezer-europe")

# The paper's headline on Cora: link prediction AUC about 0.81, attack AUC about 0.50.
HEADLINE_UTILITY, HEADLINE_ATTACK = 0.81, 0.50
# "About 81 %" in a figure read by eye.
UTILITY_SLACK = 0.01
# An AUC near 0.57 on one split of Cora has a standard error of 0.018; beside it stands what the paper leaves open. Set
# when the curve of ppgsl on Cora was known already (docs/ppgsl-curve.md), so it is no prediction.
ATTACK_TOLERANCE = 0.05


def settings(scope: Scope) -> dict[str, list[Defense]]:
    """The settings of every curve."""
    if scope.quick:
        baselines = {name: defenses_named(f"{name}[sweep]")[-2:] for name in QUICK_BASELINES}
        learned = {k: [scope.ppgsl(alpha=alpha, k=k) for alpha in QUICK_PRICES] for k in (1, 0)}
    else:
        baselines = {name: defenses_named(f"{name}[sweep]") for name in BASELINES}
        learned = {k: defenses_named(f"ppgsl[sweep,k={k}]") for k in (1, 0)}
    return {ADD_AND_DELETE: learned[1], DELETE_ONLY: learned[0], **baselines}


def plan(scope: Scope) -> Sequence[Choice]:
    """All curves on all graphs."""
    defenses = [defense for group in settings(scope).values() for defense in group]
    return [scope.choice([*defenses_named(UNDEFENDED), *defenses], [ATTACK], TASKS)]


def conclude(evidence: Evidence, scope: Scope) -> Result:
    """Curves, and who is best."""
    drawn = {label: (ATTACK, defenses) for label, defenses in settings(scope).items()}
    curves = curves_of(evidence, scope.labels, TASKS, drawn)
    verdicts = [
        verdict
        for dataset in scope.labels
        for verdict in _of_dataset(dataset, curves, complete=_all_tried(evidence, scope, dataset))
    ]
    if len(scope.labels) > 1:
        verdicts += _over_datasets(curves, scope.labels)
    notes = [
        (
            "The star is the undefended graph. A curve's quality is its hypervolume: the share of the plane (utility "
            "kept, privacy) that it dominates, as on the board; curves are compared seed by seed."
        ),
        (
            "The attack looks at links. `feature-cos`, which looks at features alone, is not lowered by any of these "
            "defenses; see docs/undefended.md."
        ),
    ]
    return Result(tradeoff_table(curves), draw_tradeoffs(curves, f"attack AUC ({ATTACK})"), verdicts, notes)


def tradeoff_table(curves: Curves) -> Table:
    """Every point of every curve."""
    columns = (
        "dataset",
        "utility task",
        "curve",
        "setting",
        "utility",
        "utility sd",
        "attack AUC",
        "attack sd",
        "seeds",
    )
    lines = [
        (
            dataset,
            task,
            curve.label,
            setting,
            utility.mean,
            _known(utility.sd),
            attack.mean,
            _known(attack.sd),
            attack.count,
        )
        for (dataset, task), found in curves.items()
        for curve in found
        for i, setting in enumerate(curve.settings)
        for utility, attack in [(curve.utility_at(i), curve.attack_at(i))]
    ]
    return Table(columns, lines)


def better(first: Curve, second: Curve) -> Outcome:
    """Whether the first curve dominates more of the plane, seed by seed."""
    return above(over_seeds(first.hypervolumes() - second.hypervolumes()), 0.0)


def _all_tried(evidence: Evidence, scope: Scope, dataset: str) -> bool:
    """Whether every publication by a baseline has a row, be it a refusal: without that, nothing is known about all.

    Seeds that have not been begun do not count: what is known rests on those that are there.
    """
    seeds = set(evidence.all_rows("publish", dataset, UNDEFENDED))
    baselines = {label: group for label, group in settings(scope).items() if label not in OURS}
    wanted = [defense.label for group in baselines.values() for defense in group]
    return bool(seeds) and all(seeds <= set(evidence.all_rows("publish", dataset, label)) for label in wanted)


def _of_dataset(dataset: str, curves: Curves, *, complete: bool) -> list[Verdict]:
    by_task = {task: {c.label: c for c in curves.get((dataset, task), [])} for task in TASKS}
    linked = by_task[LINK_PREDICTION]
    if ADD_AND_DELETE not in linked:
        return []
    ours = linked[ADD_AND_DELETE]
    verdicts = []
    lowest = ours.attack_at(ours.most_private())
    verdicts.append(
        Verdict(
            f"{dataset}: with k=1 the attack can be brought down to chance",
            f"AUC about {HEADLINE_ATTACK}",
            f"{shown(lowest)} at `{ours.settings[ours.most_private()]}`",
            close_to(lowest, HEADLINE_ATTACK, ATTACK_TOLERANCE),
            close_to_rule(ATTACK_TOLERANCE),
        )
    )
    if dataset == "cora":
        best = ours.most_private(HEADLINE_UTILITY - UTILITY_SLACK)
        attack = ours.attack_at(best)
        verdicts.append(
            Verdict(
                f"cora: at a link prediction AUC of about {HEADLINE_UTILITY}, the attack with k=1 is at chance",
                f"attack AUC about {HEADLINE_ATTACK}",
                f"{shown(attack)} {at_setting(ours, best)}",
                close_to(attack, HEADLINE_ATTACK, ATTACK_TOLERANCE),
                f"the most private setting with mean utility ≥ {HEADLINE_UTILITY - UTILITY_SLACK:.2f}; "
                + close_to_rule(ATTACK_TOLERANCE),
            )
        )
    baselines = [c for label, c in linked.items() if label not in OURS]
    if baselines and complete:
        lows = {c.label: over_seeds(c.strength[c.most_private()]) for c in baselines}
        reached = HEADLINE_ATTACK + ATTACK_TOLERANCE
        verdicts.append(
            Verdict(
                f"{dataset}: most baselines cannot bring the attack to chance",
                "lowest AUC above 0.5",
                ", ".join(f"{label} {shown(low)}" for label, low in lows.items()),
                most(above(low, reached) for low in lows.values()),
                f"a baseline cannot if its most private setting is above {reached:.2f}, {DIRECTION_RULE}; {MOST_RULE}",
            )
        )
        verdicts += [_best_of_all(dataset, task, by_task[task]) for task in TASKS if ADD_AND_DELETE in by_task[task]]
    return verdicts


def at_setting(curve: Curve, setting: int) -> str:
    """Which setting a point of the curve is, and what lies beyond it: the rule looks at no setting below the limit."""
    text = f"at `{curve.settings[setting]}`, utility {shown(curve.utility_at(setting))}"
    means = curve.utility.mean(axis=1)
    lower = np.flatnonzero(means < means[setting])
    if not len(lower):
        return text
    beyond = lower[np.argmax(means[lower])]
    return f"{text}; the next, `{curve.settings[beyond]}`, has {shown(curve.attack_at(beyond))} at {means[beyond]:.3f}"


def _best_of_all(dataset: str, task: str, curves: Mapping[str, Curve]) -> Verdict:
    ours = [curves[label] for label in OURS if label in curves]
    leader = max(ours, key=lambda c: c.hypervolumes().mean())
    others = [c for c in curves.values() if c not in ours]
    outcomes = [better(leader, other) for other in others]
    values = sorted(curves.values(), key=lambda c: -c.hypervolumes().mean())
    return Verdict(
        f"{dataset}, {task}: {'the better of ' * (len(ours) > 1)}{' and '.join(c.label for c in ours)} beats every "
        "baseline",
        "lower right corner",
        "hypervolumes: " + ", ".join(f"{c.label} {c.hypervolumes().mean():.3f}" for c in values),
        every(outcomes),
        f"larger hypervolume than each baseline; {DIRECTION_RULE}; {EVERY_RULE}",
    )


def _over_datasets(curves: Curves, datasets: Sequence[str]) -> list[Verdict]:
    verdicts = []
    for task, winner, loser, paper in (
        (LINK_PREDICTION, ADD_AND_DELETE, DELETE_ONLY, "best on all six datasets"),
        (NODE_CLASSIFICATION, DELETE_ONLY, ADD_AND_DELETE, "best on more datasets"),
    ):
        outcomes: list[Outcome] = []
        margins = []
        for (dataset, of_task), found in curves.items():
            by_label = {c.label: c for c in found}
            if of_task == task and winner in by_label and loser in by_label:
                outcomes.append(better(by_label[winner], by_label[loser]))
                margin = np.mean(by_label[winner].hypervolumes() - by_label[loser].hypervolumes())
                margins.append(f"{dataset} {margin:+.3f}")
        everywhere = task == LINK_PREDICTION
        outcome = every(outcomes) if everywhere else most(outcomes)
        if outcome == "confirmed" and len(outcomes) < len(datasets):
            outcome = "partly"
        elif not everywhere and 2 * len(outcomes) <= len(datasets):
            outcome = "not measured"
        verdicts.append(
            Verdict(
                f"{task}: {winner} has the better trade-off than {loser}",
                paper,
                "difference of hypervolumes: " + (", ".join(margins) or "–"),
                outcome,
                f"per dataset {DIRECTION_RULE}; "
                + (EVERY_RULE if everywhere else f"{MOST_RULE}; not judged on half of the graphs or fewer")
                + f"; at best partly unless measured on all {len(datasets)}",
            )
        )
    return verdicts


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


EXPERIMENT = Experiment(
    name="tradeoff",
    title="Privacy against utility, all defenses",
    source="Figures of the trade-off under link prediction and node classification",
    plan=plan,
    conclude=conclude,
    datasets=DATASETS,
)
