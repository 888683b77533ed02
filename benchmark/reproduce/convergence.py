"""Losses, privacy and utility along a training, for different μ.

With a constant step size, as in the paper, a training cut short is the beginning of the longer one, down to its random
numbers: privacy and utility after 100 steps are those of a training of 100 steps.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from ppgsl_bench.defenses import Defense
from ppgsl_bench.leaderboard.measurements import UNDEFENDED, UTILITIES
from ppgsl_bench.plan import Choice
from ppgsl_bench.reproduce.drawing import legend_inside, look, panels
from ppgsl_bench.reproduce.evidence import Evidence, Trace
from ppgsl_bench.reproduce.experiment import (
    LINK_PREDICTION,
    NODE_CLASSIFICATION,
    Experiment,
    Result,
    Scope,
    Table,
    defenses_named,
)
from ppgsl_bench.reproduce.losses import fall, learner_loss, sensitive_pairs, settled_after
from ppgsl_bench.reproduce.verdicts import (
    DIRECTION_RULE,
    Outcome,
    Verdict,
    above,
    at_least,
    below,
    over_seeds,
    shown,
    together,
)

INTERVALS = (1, 10, 50)
CHECKPOINTS = (25, 50, 100, 200, 500)
QUICK_CHECKPOINTS = (10, 30, 60)
QUICK_INTERVALS = (10, 20)
ATTACK = "gae-cos"
# The default price, at which ppgsl is about half way down its curve.
ALPHA = 0.03

SERIES = {
    "attack AUC": (ATTACK, "auc"),
    "link prediction AUC": (LINK_PREDICTION, UTILITIES[LINK_PREDICTION].metric),
    "node classification F1": (NODE_CLASSIFICATION, UTILITIES[NODE_CLASSIFICATION].metric),
}


def plan(scope: Scope) -> Sequence[Choice]:
    """A training for each μ and each length."""
    defenses = [cut(scope, mu, steps) for mu in _intervals(scope) for steps in _checkpoints(scope)]
    defenses += [_with_schedule(scope, mu) for mu in _intervals(scope)[-1:]]
    return [scope.choice([*defenses_named(UNDEFENDED), *defenses], [ATTACK], [LINK_PREDICTION, NODE_CLASSIFICATION])]


def cut(scope: Scope, mu: int, steps: int) -> Defense:
    """A training of so many steps."""
    return scope.ppgsl(alpha=ALPHA, mu=mu, learner_steps=steps, schedule="constant")


def conclude(evidence: Evidence, scope: Scope) -> Result:
    """Whether losses and attack fall, and utility rises."""
    verdicts: list[Verdict] = []
    lines: list[tuple[object, ...]] = []
    notes = [
        (
            "Step sizes are constant here, as in the paper, so that a shorter training is the beginning of a longer "
            "one. The suite's default lets the step size fall along a cosine (docs/ppgsl.md)."
        ),
    ]
    figure, grid = panels(len(scope.labels) * 2, len(_intervals(scope)))
    for d, dataset in enumerate(scope.labels):
        traces = {mu: evidence.traces(dataset, _longest(scope, mu).label) for mu in _intervals(scope)}
        hidden = sensitive_pairs(evidence, dataset)
        values = {mu: _along(evidence, scope, dataset, mu) for mu in _intervals(scope)}
        for column, mu in enumerate(_intervals(scope)):
            top, bottom = grid[2 * d][column], grid[2 * d + 1][column]
            for trace in list(traces[mu].values())[:1]:
                top.plot(learner_loss(trace, ALPHA, hidden), linewidth=0.8, label="whole loss")
                top.plot(trace["privacy_loss"], linewidth=0.8, label="privacy loss")
            top.set(title=f"{dataset}, μ={mu}", xlabel="learner step", ylabel="loss")
            for i, (name, found) in enumerate(values[mu].items()):
                bottom.plot(list(found), [np.mean(list(v.values())) for v in found.values()], label=name, **look(i))
            bottom.set(xlabel="learner step", ylabel="AUC or F1")
            lines += [
                (dataset, mu, steps, name, float(np.mean(list(v.values()))), len(v))
                for name, found in values[mu].items()
                for steps, v in found.items()
            ]
        verdicts += _of_losses(dataset, traces, hidden) + _of_values(dataset, values)
        cosine = evidence.traces(dataset, _with_schedule(scope, _intervals(scope)[-1]).label)
        constant = traces[_intervals(scope)[-1]]
        if cosine and constant:
            falls = [np.mean([fall(learner_loss(t, ALPHA, hidden)) for t in ts.values()]) for ts in (cosine, constant)]
            notes.append(
                f"{dataset}, μ={_intervals(scope)[-1]}: the loss falls by {falls[0]:.0%} with the cosine schedule and "
                f"by {falls[1]:.0%} with a constant step size."
            )
    legend_inside(grid[0][-1])
    legend_inside(grid[1][-1])
    return Result(Table(("dataset", "μ", "learner steps", "measure", "mean", "seeds"), lines), figure, verdicts, notes)


def _of_losses(dataset: str, traces: Mapping[int, Mapping[int, Trace]], hidden: int) -> list[Verdict]:
    losses = {mu: [learner_loss(t, ALPHA, hidden) for t in found.values()] for mu, found in traces.items() if found}
    if len(losses) < len(traces):
        return []
    falls = {mu: over_seeds([fall(loss) for loss in found]) for mu, found in losses.items()}
    verdicts = [
        Verdict(
            f"{dataset}: the training loss falls in general, whatever μ",
            "–",
            ", ".join(f"μ={mu}: by the share {shown(f)}" for mu, f in falls.items()),
            together(above(f, 0.0) for f in falls.values()),
            f"mean of the last tenth of the steps below that of the first, {DIRECTION_RULE}; every μ must agree",
        )
    ]
    longest = max(traces)
    jumps = [jump for trace in traces[longest].values() for jump in _jumps(trace, longest)]
    if jumps:
        share = float(np.mean(np.array(jumps) > 0))
        verdicts.append(
            Verdict(
                f"{dataset}: with μ={longest} the privacy loss jumps up at every retraining",
                "–",
                f"up at {share:.0%} of {len(jumps)} retrainings, by {np.mean(jumps):.3f} in mean",
                at_least(share, 0.9, 0.5),
                "confirmed: up at 90 % of the retrainings; partly: at half of them",
            )
        )
    after = {mu: float(np.mean([settled_after(loss) for loss in found])) for mu, found in losses.items()}
    in_order = [after[mu] for mu in sorted(after)]
    outcome: Outcome = "not confirmed"
    if len(in_order) > 1 and in_order[0] < in_order[-1]:
        outcome = "confirmed" if in_order == sorted(in_order) else "partly"
    verdicts.append(
        Verdict(
            f"{dataset}: the smaller μ, the sooner the training converges",
            "–",
            ", ".join(f"μ={mu}: settled after {steps:.0f} steps" for mu, steps in sorted(after.items())),
            outcome,
            "settled: the loss stays within a tenth of its range from its final mean; confirmed: in the order of μ; "
            "partly: only the smallest before the largest",
        )
    )
    return verdicts


def _of_values(dataset: str, values: Mapping[int, Mapping[str, Mapping[int, Mapping[int, float]]]]) -> list[Verdict]:
    verdicts = []
    for name, statement, rises in (
        ("attack AUC", "the attack gets weaker along the training", False),
        ("link prediction AUC", "link prediction gets better along the training", True),
        ("node classification F1", "node classification gets better along the training", True),
    ):
        changes = {}
        for mu, found in values.items():
            steps = sorted(found.get(name, {}))
            if len(steps) > 1:
                first, last = found[name][steps[0]], found[name][steps[-1]]
                common = sorted(set(first) & set(last))
                if common:
                    changes[mu] = over_seeds([last[s] - first[s] for s in common])
        verdicts.append(
            Verdict(
                f"{dataset}: {statement}",
                "rises" if rises else "falls",
                ", ".join(f"μ={mu}: {shown(change)}" for mu, change in changes.items()) or "–",
                together((above if rises else below)(change, 0.0) for change in changes.values())
                if len(changes) == len(values)
                else "not measured",
                f"last checkpoint minus first, {DIRECTION_RULE}; every μ must agree",
            )
        )
    return verdicts


def _jumps(trace: Trace, mu: int) -> list[float]:
    loss = trace["privacy_loss"]
    return [float(loss[step] - loss[step - 1]) for step in range(mu, len(loss), mu)]


def _along(evidence: Evidence, scope: Scope, dataset: str, mu: int) -> dict[str, dict[int, dict[int, float]]]:
    """Measures by name, learner steps and seed."""
    found: dict[str, dict[int, dict[int, float]]] = {}
    for name, (evaluator, metric) in SERIES.items():
        read = evidence.attack if evaluator == ATTACK else evidence.utility
        by_steps = {
            steps: read(dataset, cut(scope, mu, steps).label, evaluator, metric) for steps in _checkpoints(scope)
        }
        found[name] = {steps: by_seed for steps, by_seed in by_steps.items() if by_seed}
    return found


def _with_schedule(scope: Scope, mu: int) -> Defense:
    return scope.ppgsl(alpha=ALPHA, mu=mu)


def _longest(scope: Scope, mu: int) -> Defense:
    return cut(scope, mu, _checkpoints(scope)[-1])


def _intervals(scope: Scope) -> tuple[int, ...]:
    return QUICK_INTERVALS if scope.quick else INTERVALS


def _checkpoints(scope: Scope) -> tuple[int, ...]:
    return QUICK_CHECKPOINTS if scope.quick else CHECKPOINTS


EXPERIMENT = Experiment(
    name="convergence",
    title="Convergence of the training",
    source="Figure of losses and evaluations along the training",
    plan=plan,
    conclude=conclude,
    arrays=frozenset({"publish"}),
)
