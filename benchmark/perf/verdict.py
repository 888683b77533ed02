"""Comparing two files of measurements: what counts as a regression, quantity by quantity.

A verdict is made of what noise cannot move much:

counters    exact numbers, with the slack that other versions of libraries need
exponents   slopes of growth
ratios      one-sided Mann–Whitney test of head against base × a tolerance, over rounds
quality     inside or outside the prediction interval that golden values from several random streams give
manifest    whether everything ran that must run
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit
from scipy.stats import mannwhitneyu

from ppgsl_bench.perf.baseline import SEPARATOR, Baseline, Measurement, Quality

Kind = Literal["counters", "exponents", "ratios", "quality", "manifest"]
Outcome = Literal["ok", "regression", "better", "missing", "new"]
KINDS: tuple[Kind, ...] = ("counters", "exponents", "ratios", "quality", "manifest")
FAILING: frozenset[Outcome] = frozenset({"regression", "missing"})

KIB, MIB = 2**10, 2**20


@dataclass(frozen=True)
class Slack:
    """How much more than base a counter may be: base × factor + extra."""

    factor: float = 1.0
    extra: int = 0

    def exceeded(self, base: float, head: float) -> bool:
        """Whether head is too much."""
        return head > base * self.factor + self.extra

    def __str__(self) -> str:
        parts = [f"+{100 * (self.factor - 1):.0f} %"] if self.factor > 1 else []
        parts += [f"+{self.extra // KIB} KiB"] if self.extra else []
        return " ".join(parts) or "exact"


# Counters that a benchmark adds of its own, such as `recomputed`, must not rise at all.
COUNTER_SLACK: Mapping[str, Slack] = {
    # The least peak of a benchmark is 16.5 KiB: twice that must not pass.
    "peak_bytes": Slack(1.1, 12 * KIB),
    "touched": Slack(1.02),
    "resident_bytes": Slack(1.5, 2 * MIB),
}
# Exponents of counters are exact but for rounding; that of time depends on what fits into a cache.
EXPONENT_SLACK: Mapping[str, float] = {"peak_bytes": 0.1, "touched": 0.05, "time": 0.35}
# A ratio may be this many times base's. Another processor has other caches and another balance of memory and
# arithmetic, which no reference kernel makes up for.
RATIO_TOLERANCE, RATIO_TOLERANCE_ELSEWHERE = 1.25, 2.0
# Unchanged code lies far inside the null hypothesis, "at most 1.25 times as slow", so that false alarms are rarer than
# this level.
RATIO_LEVEL = 0.005
# Some two hundred intervals are looked at: at this level, all of them hold new random streams with probability 0.98.
QUALITY_LEVEL = 1e-4
# Below this a difference in AUC, or in a share of links, is a tie broken otherwise by another version of a library.
QUALITY_FLOOR = 0.02
ALL = "all"


@dataclass(frozen=True)
class Verdict:
    """One quantity of one benchmark, in base and in head."""

    kind: Kind
    benchmark: str
    quantity: str
    base: float | None
    head: float | None
    limit: str
    outcome: Outcome


def compare(
    base: Baseline, head: Baseline, manifest: Iterable[str] = (), golden: Quality | None = None
) -> list[Verdict]:
    """Everything that can be told about head, given base, what must run, and how good it must be."""
    verdicts = list(_manifest(base, head, manifest))
    tolerance = RATIO_TOLERANCE if base.same_machine(head) else RATIO_TOLERANCE_ELSEWHERE
    for name, after in head.measurements.items():
        if name in base.measurements:
            before = base.measurements[name]
            verdicts += _counters(name, before, after)
            verdicts += _exponents(name, before, after, judged=not (base.quick or head.quick))
            if base.reference == head.reference:
                verdicts.append(_ratio(name, before, after, tolerance))
    if golden and not head.quick:
        verdicts += _quality(golden, head.quality)
    return verdicts


def notes(base: Baseline, head: Baseline, golden: Quality | None = None) -> list[str]:
    """What a reader of the verdicts must know about what was compared, and what was not."""
    found = []
    if not base.same_machine(head):
        found.append(
            "measured on different machines: counters, exponents, ratios and quality are compared, seconds are not; "
            f"a ratio may be up to {RATIO_TOLERANCE_ELSEWHERE:g} times base's instead of {RATIO_TOLERANCE:g}"
        )
    if base.machine.get("libraries") != head.machine.get("libraries"):
        found.append("measured with different versions of libraries")
    if base.reference != head.reference:
        found.append("measured against different reference kernels: ratios are not compared")
    if base.quick or head.quick:
        found.append(f"{'base' if base.quick else 'head'} was measured with --quick: growth is not judged")
    if head.quick or not golden:
        why = "head was measured with --quick" if head.quick else "there is no file of golden values"
        found.append(f"{why}: quality is not judged")
    return found


def _manifest(base: Baseline, head: Baseline, manifest: Iterable[str]) -> Iterator[Verdict]:
    for name in sorted({*manifest, *base.measurements} - set(head.measurements)):
        yield Verdict("manifest", name, head.refusals.get(name, "did not run"), None, None, "must run", "missing")
    for name in sorted(set(head.measurements) - set(base.measurements)):
        yield Verdict("manifest", name, "not in base", None, None, "", "new")


def _counters(name: str, before: Measurement, after: Measurement) -> Iterator[Verdict]:
    for quantity, old in before.counters.items():
        slack = COUNTER_SLACK.get(quantity, Slack())
        new = after.counters.get(quantity)
        if new is None:
            if quantity != "resident_bytes":
                yield Verdict("counters", name, quantity, old, None, str(slack), "missing")
            continue
        outcome: Outcome = "regression" if slack.exceeded(old, new) else "better" if slack.exceeded(new, old) else "ok"
        yield Verdict("counters", name, quantity, old, new, str(slack), outcome)


def _exponents(name: str, before: Measurement, after: Measurement, *, judged: bool) -> Iterator[Verdict]:
    for quantity, old in before.exponents.items() if judged else ():
        slack = EXPONENT_SLACK[quantity]
        new = after.exponents.get(quantity)
        if new is None:
            yield Verdict("exponents", name, quantity, old, None, f"+{slack:g}", "missing")
            continue
        outcome: Outcome = "regression" if new > old + slack else "better" if new < old - slack else "ok"
        yield Verdict("exponents", name, quantity, old, new, f"+{slack:g}", outcome)


def _ratio(name: str, before: Measurement, after: Measurement, tolerance: float) -> Verdict:
    outcome: Outcome = "ok"
    if _slower(before.ratios, after.ratios, tolerance):
        outcome = "regression"
    elif _slower(after.ratios, before.ratios, tolerance):
        outcome = "better"
    old, new = (float(np.median(m.ratios)) for m in (before, after))
    return Verdict("ratios", name, "time", old, new, f"× {tolerance:g}", outcome)


def _slower(before: Sequence[float], after: Sequence[float], tolerance: float) -> bool:
    """Whether `after` is, beyond chance, more than `tolerance` times `before` (Mann–Whitney, one-sided)."""
    if np.median(after) <= tolerance * np.median(before):
        return False  # nothing to be tested: the excess would have to lie in the tails
    test = mannwhitneyu(after, np.multiply(before, tolerance), alternative="greater", method="exact")
    return bool(test.pvalue < RATIO_LEVEL)


def _quality(golden: Quality, values: Quality) -> Iterator[Verdict]:
    for expected in expectations(golden):
        cells = [values[name] for name in expected.cells if values.get(name)]
        middle = expected.middle
        if len(cells) < len(expected.cells):
            yield Verdict("quality", expected.name, "value", middle, None, "must be there", "missing")
            continue
        value = float(np.mean(cells))
        half = expected.half_width(min(map(len, cells)))
        outcome: Outcome = "ok" if abs(value - middle) <= half else "regression"
        yield Verdict("quality", expected.name, "value", middle, value, f"± {half:.3f}", outcome)


@dataclass(frozen=True)
class Expectation:
    """Where a value of quality, or a mean of several, should lie.

    Attributes:
        name: `defense × attack`, or `all × attack` for the mean over defenses.
        cells: the values that it is the mean of.
        middle: mean of the golden values.
        sd: standard deviation of the mean over `cells` for one random stream.
        freedom: degrees of freedom of that; few where a cell's own spread is used, and its interval is wider for it.
        streams: golden values a cell.
    """

    name: str
    cells: tuple[str, ...]
    middle: float
    sd: float
    freedom: int
    streams: int

    def half_width(self, count: int) -> float:
        """Half the prediction interval for a mean over `count` streams: t · sd · sqrt(1/streams + 1/count)."""
        t = float(stdtrit(self.freedom, 1 - QUALITY_LEVEL / 2))
        return max(QUALITY_FLOOR, t * self.sd * math.sqrt(1 / self.streams + 1 / count))


def expectations(golden: Quality) -> Iterator[Expectation]:
    """For every (defense, attack), and for the mean of an attack over all defenses.

    A few golden values say little about their spread, so that of an attack is pooled over the defenses; a cell that is
    more uncertain keeps its own, and one that never varied is deterministic. What is weaker by little is weaker
    everywhere: the mean over nine cells has a third of the spread of one.
    """
    columns: defaultdict[str, list[str]] = defaultdict(list)
    for name, values in golden.items():
        if len(values) > 1:
            columns[name.partition(SEPARATOR)[2]].append(name)
    for what, names in sorted(columns.items()):
        streams = min(len(golden[name]) for name in names)
        variances = {name: float(np.var(golden[name], ddof=1)) for name in names}
        pooled = float(np.mean(list(variances.values())))
        freedom = len(names) * (streams - 1)
        means = {name: float(np.mean(golden[name])) for name in names}
        for name, own in variances.items():
            sd = math.sqrt(max(own, pooled)) if len(set(golden[name])) > 1 else 0.0
            known_by = streams - 1 if own > pooled else freedom
            yield Expectation(name, (name,), means[name], sd, known_by, streams)
        overall = float(np.mean(list(means.values())))
        yield Expectation(
            f"{ALL}{SEPARATOR}{what}", tuple(names), overall, math.sqrt(pooled / len(names)), freedom, streams
        )
