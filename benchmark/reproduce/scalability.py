"""Time and memory of PPGSL on Erdős–Rényi graphs, and PPNE beside it.

A whole training on the largest graphs takes hours, so a short one is measured and scaled. In a training of few steps
with some retrainings, the trace tells apart what a learner step costs (t_step), what an update of the surrogate costs
(t_update) and what happens once (t_once). A training as in the paper then takes

    T(μ) = t_once + N₂ · t_step + ⌈N₂ / μ⌉ · N₁ · t_update

On small graphs whole trainings are run as well, to check the scaling: if they disagree, no statement about time is
judged. On one thread of a processor, seconds are the processor's, which other programs disturb least.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy.special
from numpy.typing import NDArray

from ppgsl_bench.defenses import Defense
from ppgsl_bench.defenses import registry as defenses
from ppgsl_bench.metrics import MeanInterval
from ppgsl_bench.plan import Choice
from ppgsl_bench.quantities import format_duration
from ppgsl_bench.reproduce.drawing import legend_below, log_scale, look, panels
from ppgsl_bench.reproduce.evidence import Evidence, Trace
from ppgsl_bench.reproduce.experiment import Experiment, Result, Scope, Table
from ppgsl_bench.reproduce.verdicts import Verdict, at_least, at_most, close_to, close_to_rule, shown
from ppgsl_bench.rows import Row

# The paper's training: 500 learner steps, and about 1,000 surrogate updates with μ = 50.
LEARNER_STEPS, SURROGATE_UPDATES = 500, 100
UPDATE_INTERVALS = (1, 10, 50)

SPARSE: Mapping[str, Mapping[str, object]] = {"k=0": {"k": 0}, "k=1": {"k": 1}, "k=5": {"k": 5}}
FULL = "all pairs"
VARIANTS: Mapping[str, Mapping[str, object]] = {**SPARSE, FULL: {"structure": "full"}}

SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 500_000)
QUICK_SIZES = (100, 300, 1_000, 3_000)
# Whole trainings, to check the scaling.
CHECKED_NODES = (300, 1_000)
# On a quiet machine scaled trainings of these sizes come out 7 to 16 % too long; much more than that is disturbance.
CHECK_FACTOR = 1.5
# One iteration of PPNE at 100,000 nodes takes minutes; beyond, the paper says nothing of it.
PPNE_NODES = 100_000
# Exponents are fitted from here: below, a step costs what calling into libraries costs.
FITTED_FROM = 1_000

# The paper's figures at 100,000 nodes, k = 1, μ = 50, on a GPU; and of PPNE, from its own paper.
PAPER_NODES, PAPER_MINUTES, PAPER_GIGABYTES = 100_000, 9.2, 6.2
PPNE_MINUTES, PPNE_ITERATIONS = 16.7, 3_000
PAPER_SPEEDUP = PPNE_MINUTES * PPNE_ITERATIONS / PAPER_MINUTES
EXPONENT_TOLERANCE = 0.15


@dataclass(frozen=True)
class Costs:
    """Seconds of the parts of a training.

    Attributes:
        once: candidates and publication.
        step: a learner step.
        update: an update of the surrogate.
    """

    once: float
    step: float
    update: float

    def training(self, mu: int) -> float:
        """Seconds of a training as in the paper."""
        return self.once + LEARNER_STEPS * self.step + math.ceil(LEARNER_STEPS / mu) * SURROGATE_UPDATES * self.update


@dataclass(frozen=True)
class Short:
    """A short training: as many retrainings as fit, the first before any step.

    Attributes:
        steps, mu, updates: as `learner_steps`, `mu` and `surrogate_updates` of `ppgsl`.
    """

    steps: int
    mu: int
    updates: int

    def defense(self, given: Mapping[str, object]) -> Defense:
        """PPGSL trained so."""
        own = {"learner_steps": self.steps, "mu": self.mu, "surrogate_updates": self.updates}
        return defenses.get("ppgsl").create(**own, **given)

    def costs(self, seconds: NDArray[np.float64], total: float) -> Costs:
        """Take the times after each step, and at the end, apart.

        Steps without a retraining show t_step; retrainings that follow some steps show the rest.
        """
        taken = np.diff(seconds)
        retrained = np.arange(1, len(seconds)) % self.mu == 0
        step = float(np.median(taken[~retrained]))
        update = max(0.0, float(np.median(taken[retrained])) - step) / self.updates
        once = max(0.0, float(seconds[0]) - step - self.updates * update) + max(0.0, total - float(seconds[-1]))
        return Costs(once, step, update)


# On small graphs a step takes milliseconds, and the median of some more of them costs nothing.
SMALL_NODES = 3_000
SHORT, SHORTEST = Short(steps=20, mu=5, updates=10), Short(steps=4, mu=2, updates=5)


@dataclass(frozen=True)
class Growth:
    """One way of publishing on graphs of growing size.

    Attributes:
        label: for people.
        nodes, seconds, gigabytes: of each graph, ascending; memory is NaN if it was not measured.
    """

    label: str
    nodes: NDArray[np.float64]
    seconds: NDArray[np.float64]
    gigabytes: NDArray[np.float64]


def plan(scope: Scope) -> Sequence[Choice]:
    """Publications only; μ plays no part in a short training, for it is scaled."""
    sizes = sizes_of(scope)
    checked = [d for d in scope.datasets if sizes[d.label] in CHECKED_NODES]
    with_ppne = [d for d in scope.datasets if sizes[d.label] <= PPNE_NODES]
    return [
        *(
            scope.choice([short_for(sizes[d.label]).defense(g) for g in VARIANTS.values()], datasets=[d])
            for d in scope.datasets
        ),
        scope.choice([_whole()], datasets=checked),
        scope.choice([_ppne()], datasets=with_ppne),
    ]


def conclude(evidence: Evidence, scope: Scope) -> Result:
    """Scale, fit, and compare with the paper's figures."""
    grown = [
        *(_growth(evidence, scope, label, 50) for label in SPARSE),
        _growth(evidence, scope, FULL, 50),
        *(_growth(evidence, scope, "k=0", mu) for mu in UPDATE_INTERVALS if mu != 50),
    ]
    found = {growth.label: growth for growth in grown if len(growth.nodes)}
    ppne = _ppne_growth(evidence, scope)
    everything = [*found.values(), ppne] if len(ppne.nodes) else list(found.values())
    # Not drawn, as in the paper: the other pairs of k and μ.
    pairs = [(label, mu) for label in VARIANTS if label != "k=0" for mu in UPDATE_INTERVALS if mu != 50]
    undrawn = [_growth(evidence, scope, label, mu) for label, mu in pairs]
    columns = ("curve", "nodes", "seconds", "peak GB")
    lines = [
        (g.label, int(n), float(s), None if np.isnan(b) else float(b))
        for g in [*everything, *undrawn]
        for n, s, b in zip(g.nodes, g.seconds, g.gigabytes, strict=True)
    ]
    figure, [[time_axes, memory_axes]] = panels(1, 2)
    for i, growth in enumerate(everything):
        time_axes.plot(growth.nodes, growth.seconds, label=growth.label, **look(i))
        if not np.isnan(growth.gigabytes).all() and ", μ=1" not in growth.label:
            memory_axes.plot(growth.nodes, growth.gigabytes, **look(i))
    for axes, label in ((time_axes, "time of a training (s)"), (memory_axes, "peak memory (GB)")):
        log_scale(axes, y=True)
        axes.set(xlabel="nodes", ylabel=label)
    legend_below(figure, time_axes)
    checks = _checks(evidence, scope)
    about_time = [_trusted(verdict, checks) for verdict in _about_time(found, ppne)]
    verdicts = [*about_time, *_about_memory(found)]
    return Result(Table(columns, lines), figure, verdicts, _notes(everything, checks))


@dataclass(frozen=True)
class Check:
    """A whole training beside what scaling a short one makes of it, in seconds."""

    dataset: str
    whole: float
    scaled: float

    @property
    def holds(self) -> bool:
        """Whether they agree."""
        return max(self.whole, self.scaled) <= CHECK_FACTOR * min(self.whole, self.scaled)

    def __str__(self) -> str:
        return f"{self.dataset}: whole {self.whole:.1f} s, scaled {self.scaled:.1f} s"


def _checks(evidence: Evidence, scope: Scope) -> list[Check]:
    found = []
    for dataset, nodes in sizes_of(scope).items():
        rows, traces = evidence.sound("publish", dataset, _whole().label), evidence.traces(dataset, _whole().label)
        if traces and (scaled := _scaled(evidence, dataset, short_for(nodes), "k=0", 50)):
            whole = float(np.median([clock(trace, rows[s])[1] for s, trace in traces.items()]))
            found.append(Check(dataset, whole, float(np.median(scaled))))
    return found


def _trusted(about_time: Verdict, checks: Sequence[Check]) -> Verdict:
    """A statement about time is judged only if every check of the scaling holds."""
    broken = [str(check) for check in checks if not check.holds]
    if not broken:
        return about_time
    doubt = f"not trusted, for whole and scaled trainings disagree ({'; '.join(broken)})"
    return replace(about_time, measured=f"{about_time.measured}; {doubt}", outcome="not measured")


def short_for(nodes: int) -> Short:
    """The short training that is measured on a graph of so many nodes."""
    return SHORT if nodes <= SMALL_NODES else SHORTEST


def clock(trace: Trace, row: Row) -> tuple[NDArray[np.float64], float]:
    """Seconds after each step of a training, and at the end of the publication.

    With one thread on a CPU they are the processor's, but for the drawing of the graph at the end.
    """
    wall = trace["seconds"]
    seconds = trace["processor_seconds"] if _one_thread(row) and "processor_seconds" in trace else wall
    return seconds, float(seconds[-1]) + max(0.0, (row.wall_seconds or 0.0) - float(wall[-1]))


def _one_thread(row: Row) -> bool:
    """Whether time on the processor is what the work would take undisturbed."""
    return row.provenance.get("device") == "cpu" and row.provenance.get("threads") == 1


def exponent(nodes: NDArray[np.float64], values: NDArray[np.float64]) -> MeanInterval | None:
    """Slope of log value against log nodes by least squares, with its 95 % t-interval; None of fewer than two sizes."""
    used = (nodes >= FITTED_FROM) & (values > 0)
    x, y = np.log(nodes[used]), np.log(values[used])
    n = len(x)
    if n < 2:
        return None
    centred = x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    if n == 2:
        return MeanInterval(slope, math.nan, math.nan, math.nan, n)
    residual = y - y.mean() - slope * centred
    error = math.sqrt(float(residual @ residual) / (n - 2) / float(centred @ centred))
    half = float(scipy.special.stdtrit(n - 2, 0.975)) * error
    return MeanInterval(slope, error, slope - half, slope + half, n)


def _whole() -> Defense:
    return defenses.get("ppgsl").create(k=0, learner_steps=LEARNER_STEPS, surrogate_updates=SURROGATE_UPDATES)


def _ppne() -> Defense:
    """One iteration: one training of DeepWalk, one gradient, one batch of flips."""
    return defenses.get("ppne").create(flips=0.01, flips_per_step=0.01, retrain_every=1)


def sizes_of(scope: Scope) -> dict[str, int]:
    """Nodes of each graph, by its label; all are Erdős–Rényi graphs, which are asked for by size."""
    return {dataset.label: int(getattr(dataset, "n", 0)) for dataset in scope.datasets}


def _scaled(evidence: Evidence, dataset: str, short: Short, label: str, mu: int) -> list[float]:
    """Seconds of trainings as in the paper, one a seed."""
    name = short.defense(VARIANTS[label]).label
    rows, traces = evidence.sound("publish", dataset, name), evidence.traces(dataset, name)
    return [short.costs(*clock(trace, rows[seed])).training(mu) for seed, trace in traces.items()]


def _growth(evidence: Evidence, scope: Scope, label: str, mu: int) -> Growth:
    points = []
    for dataset, nodes in sizes_of(scope).items():
        if times := _scaled(evidence, dataset, short_for(nodes), label, mu):
            rows = evidence.sound("publish", dataset, short_for(nodes).defense(VARIANTS[label]).label)
            points.append((nodes, float(np.median(times)), _peak_gigabytes(rows)))
    return _ascending(f"{label}, μ={mu}", points)


def _ppne_growth(evidence: Evidence, scope: Scope) -> Growth:
    """A training of PPNE: as many iterations as its paper needs."""
    points = []
    for dataset, nodes in sizes_of(scope).items():
        if rows := evidence.sound("publish", dataset, _ppne().label):
            traces = evidence.traces(dataset, _ppne().label)
            once = np.median([_iteration_seconds(row, traces.get(seed, {})) for seed, row in rows.items()])
            points.append((nodes, PPNE_ITERATIONS * float(once), _peak_gigabytes(rows)))
    return _ascending(f"ppne, {PPNE_ITERATIONS:,} iterations", points)


def _iteration_seconds(row: Row, trace: Trace) -> float:
    if _one_thread(row) and "processor_seconds" in trace:
        return float(trace["processor_seconds"][-1])
    return row.wall_seconds or 0.0


def _peak_gigabytes(rows: Mapping[int, Row]) -> float:
    return max(row.peak_host_bytes or 0 for row in rows.values()) / 1e9


def _ascending(label: str, points: Sequence[tuple[int, float, float]]) -> Growth:
    """From nodes, seconds and gigabytes of each graph."""
    columns = np.array(sorted(points), dtype=np.float64).reshape(-1, 3).T
    return Growth(label, *columns)


def _at(growth: Growth | None, nodes: int) -> tuple[float, float] | None:
    """Seconds and gigabytes on the graph of so many nodes."""
    if growth is None or nodes not in growth.nodes:
        return None
    place = int(np.flatnonzero(growth.nodes == nodes)[0])
    return float(growth.seconds[place]), float(growth.gigabytes[place])


def _about_time(found: Mapping[str, Growth], ppne: Growth) -> list[Verdict]:
    base, often = found.get("k=0, μ=50"), found.get("k=0, μ=1")
    verdicts = [_linear("time", base, "seconds")]
    if base is not None and often is not None:
        ratio = float(often.seconds[-1] / base.seconds[-1])
        verdicts.append(
            Verdict(
                "retraining less often saves most of the time",
                "–",
                f"μ=1 takes {ratio:.1f} times as long as μ=50 at {int(base.nodes[-1]):,} nodes (scaled)",
                at_least(ratio, 5, 1.5),
                "confirmed: at least 5 times; partly: at least 1.5 times",
            )
        )
    here, other = _at(found.get("k=1, μ=50"), PAPER_NODES), _at(ppne, PAPER_NODES)
    speedup = other[0] / here[0] if here and other else math.nan
    return [
        *verdicts,
        Verdict(
            f"k=1, μ=50 trains on {PAPER_NODES:,} nodes in minutes",
            f"{PAPER_MINUTES} min (GPU)",
            format_duration(here[0]) if here else "–",
            at_most(here[0] / 60, PAPER_MINUTES, 5) if here else "not measured",
            "confirmed: at most the paper's time; partly: at most 5 times as long, for one core stands against a GPU",
        ),
        Verdict(
            f"ppgsl trains thousands of times faster than ppne on {PAPER_NODES:,} nodes",
            f"{PAPER_SPEEDUP:,.0f} times",
            f"{speedup:,.0f} times; an iteration of ppne takes {format_duration(other[0] / PPNE_ITERATIONS)}"
            if here and other
            else "–",
            at_least(speedup, PAPER_SPEEDUP / 2, 10) if here and other else "not measured",
            f"confirmed: at least half of the paper's ratio, with {PPNE_ITERATIONS:,} iterations of ppne; partly: at "
            "least 10 times",
        ),
    ]


def _about_memory(found: Mapping[str, Growth]) -> list[Verdict]:
    base, full = found.get("k=0, μ=50"), found.get(f"{FULL}, μ=50")
    verdicts = [_linear("memory", base, "gigabytes")]
    if base is not None and full is not None:
        nodes = int(max(set(base.nodes) & set(full.nodes)))
        here, there = _at(base, nodes), _at(full, nodes)
        ratio = there[1] / here[1] if here and there and here[1] > 0 else math.nan
        verdicts.append(
            Verdict(
                "learning sampled pairs takes far less memory than learning all pairs",
                "–",
                f"all pairs take {ratio:.0f} times as much as k=0 at {nodes:,} nodes",
                at_least(ratio, 10, 2),
                "confirmed: at least 10 times at the largest size that all pairs could be run on; partly: at "
                "least 2 times",
            )
        )
    recommended = _at(found.get("k=1, μ=50"), PAPER_NODES)
    return [
        *verdicts,
        Verdict(
            f"k=1, μ=50 on {PAPER_NODES:,} nodes takes little memory",
            f"{PAPER_GIGABYTES} GB",
            f"{recommended[1]:.1f} GB" if recommended else "–",
            at_most(recommended[1], PAPER_GIGABYTES, 2) if recommended else "not measured",
            "confirmed: at most the paper's figure; partly: at most twice as much",
        ),
    ]


def _linear(what: str, growth: Growth | None, attribute: Literal["seconds", "gigabytes"]) -> Verdict:
    slope = None if growth is None else exponent(growth.nodes, getattr(growth, attribute))
    return Verdict(
        f"{what} grows about linearly with the nodes (k=0, μ=50)",
        "exponent about 1",
        f"exponent {shown(slope, 2)}",
        "not measured" if slope is None else close_to(slope, 1.0, EXPONENT_TOLERANCE),
        close_to_rule(EXPONENT_TOLERANCE),
    )


def _notes(grown: Sequence[Growth], checks: Sequence[Check]) -> list[str]:
    notes = [
        (
            f"Times are scaled: measured is a training of {_described(SHORT)} on graphs of at most {SMALL_NODES:,} "
            f"nodes and of {_described(SHORTEST)} on larger ones; shown is what {LEARNER_STEPS} steps and "
            f"{SURROGATE_UPDATES} updates a retraining take at the same cost each. For that reason μ changes the time "
            "by count alone. Times on one thread of a CPU are the processor's. Memory is the measured peak, not scaled."
        ),
        (
            "`ppne` is one measured iteration (one DeepWalk training and one batch of flips) times "
            f"{PPNE_ITERATIONS:,}. It is not the released program: gradients are sparse, and on large graphs the "
            "spectrum is sketched and pairs are sampled (see defenses/ppne.py), so that the paper's ratio is about "
            "another implementation."
        ),
    ]
    slopes = [
        f"{g.label}: time {shown(exponent(g.nodes, g.seconds), 2)}, memory {shown(exponent(g.nodes, g.gigabytes), 2)}"
        for g in grown
    ]
    notes.append(f"Exponents fitted from {FITTED_FROM:,} nodes up: " + "; ".join(slopes) + ".")
    for check in checks:
        text = f"Check of the scaling, k=0, μ=50: {check}."
        if not check.holds:
            text += f" **They differ by more than a factor of {CHECK_FACTOR:g}, so that no time here is judged.**"
        notes.append(text)
    return notes


def _described(short: Short) -> str:
    retrainings = math.ceil(short.steps / short.mu)
    return f"{short.steps} learner steps and {retrainings} × {short.updates} surrogate updates"


EXPERIMENT = Experiment(
    name="scalability",
    title="Time and memory as graphs grow",
    source="Figure of memory and time on Erdős–Rényi graphs",
    plan=plan,
    conclude=conclude,
    arrays=frozenset({"split", "publish"}),
    datasets=tuple(f"er[n={n}]" for n in SIZES),
    quick_datasets=tuple(f"er[n={n}]" for n in QUICK_SIZES),
    seeds=1,
    jobs=1,
    family="er",
)
