"""What k and μ matter for the trade-off of PPGSL."""

from collections.abc import Mapping, Sequence

from ppgsl_bench.defenses import Defense
from ppgsl_bench.leaderboard.measurements import UNDEFENDED
from ppgsl_bench.plan import Choice
from ppgsl_bench.reproduce.curves import Curve, curves_of
from ppgsl_bench.reproduce.drawing import draw_tradeoffs
from ppgsl_bench.reproduce.evidence import Evidence
from ppgsl_bench.reproduce.experiment import LINK_PREDICTION, Experiment, Result, Scope, defenses_named
from ppgsl_bench.reproduce.tradeoff import ATTACK, TASKS, better, tradeoff_table
from ppgsl_bench.reproduce.verdicts import (
    DIRECTION_RULE,
    Verdict,
    over_seeds,
    shown,
    together,
    within,
    within_rule,
)

# Part of PPGSL's sweep: with the undefended graph, from the beginning of a curve to nearly its end (an attack at 0.57
# on Cora). One more price would cost twenty minutes a seed, for learning all pairs and for retraining at every step.
PRICES = (0.1, 0.03)
QUICK_PRICES = (0.1, 0.0)
FEW, MANY, ALL = "k=1", "k=5", "all pairs"
# Hypervolumes that differ by less are "similar": over five splits of Cora one curve's has a standard deviation of 0.05.
SIMILAR = 0.05

VARIANTS: Mapping[str, Mapping[str, object]] = {
    "k=0": {"k": 0},
    FEW: {},
    MANY: {"k": 5},
    ALL: {"structure": "full"},
    "k=1, μ=10": {"mu": 10},
    "k=1, μ=1": {"mu": 1},
}


def settings(scope: Scope) -> dict[str, list[Defense]]:
    """The settings of every curve; `k=1` and `k=5` have μ = 50."""
    prices = QUICK_PRICES if scope.quick else PRICES
    return {label: [scope.ppgsl(alpha=a, **given) for a in prices] for label, given in VARIANTS.items()}


def plan(scope: Scope) -> Sequence[Choice]:
    """A short curve for every variant."""
    defenses = [defense for group in settings(scope).values() for defense in group]
    return [scope.choice([*defenses_named(UNDEFENDED), *defenses], [ATTACK], TASKS)]


def conclude(evidence: Evidence, scope: Scope) -> Result:
    """Compare curves by hypervolume."""
    wanted = settings(scope)
    curves = curves_of(evidence, scope.labels, TASKS, {name: (ATTACK, defenses) for name, defenses in wanted.items()})
    verdicts = []
    for dataset in scope.labels:
        found = curves.get((dataset, LINK_PREDICTION), [])
        verdicts += _verdicts(dataset, {c.label: c for c in found if is_whole(c, wanted[c.label])})
    notes = [
        (
            "Curves without a named μ have μ = 50. Verdicts are about link prediction and compare hypervolumes seed "
            f"by seed, over the prices α = {', '.join(f'{a:g}' for a in (QUICK_PRICES if scope.quick else PRICES))}."
        ),
        (
            "At each retraining the surrogate gets the same number of updates, so that μ = 1 trains it fifty times "
            "as long as μ = 50."
        ),
    ]
    return Result(tradeoff_table(curves), draw_tradeoffs(curves, f"attack AUC ({ATTACK})"), verdicts, notes)


def is_whole(curve: Curve, defenses: Sequence[Defense]) -> bool:
    """Whether every setting was measured: the hypervolume of fewer points is smaller, whatever they are worth."""
    return {defense.label for defense in defenses} <= set(curve.settings)


def _verdicts(dataset: str, curves: Mapping[str, Curve]) -> list[Verdict]:
    verdicts = []
    for statement, first, second in (
        ("μ = 10 does as well as μ = 50", "k=1, μ=10", FEW),
        ("μ = 1 does as well as μ = 50", "k=1, μ=1", FEW),
        ("k = 5 does as well as k = 1", MANY, FEW),
    ):
        if first in curves and second in curves:
            difference = over_seeds(curves[first].hypervolumes() - curves[second].hypervolumes())
            outcome, measured = within(difference, SIMILAR), f"difference {shown(difference)}"
        else:
            outcome, measured = "not measured", "–"
        verdicts.append(Verdict(f"{dataset}: {statement}", "similar curves", measured, outcome, within_rule(SIMILAR)))
    for statement, loser in (("only deleting (k = 0)", "k=0"), ("learning all pairs", ALL)):
        winners = [curves[label] for label in (FEW, MANY) if label in curves]
        known = loser in curves and len(winners) == 2
        verdicts.append(
            Verdict(
                f"{dataset}: k = 1 and k = 5 are much better than {statement}",
                "better curves",
                ", ".join(f"{c.label} {c.hypervolumes().mean():.3f}" for c in [*winners, curves[loser]])
                if known
                else "–",
                together(better(w, curves[loser]) for w in winners) if known else "not measured",
                f"larger hypervolume, {DIRECTION_RULE}; both must agree",
            )
        )
    return verdicts


EXPERIMENT = Experiment(
    name="sensitivity",
    title="Sensitivity to k and μ",
    source="Figure of the parameter analysis",
    plan=plan,
    conclude=conclude,
)
