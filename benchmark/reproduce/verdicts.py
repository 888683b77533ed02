"""Rules that turn numbers into verdicts: a verdict is computed, never typed.

Every rule looks at a mean with its 95 % interval. Where there is a single value there is no interval, and a rule about
a direction says at best `partly`: one number may be luck.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.metrics import MeanInterval, mean_interval

Outcome = Literal["confirmed", "partly", "not confirmed", "not measured"]
"""`not measured`: the cells that would tell were refused, failed, or were not part of this run."""

OUTCOMES: tuple[Outcome, ...] = ("confirmed", "partly", "not confirmed", "not measured")


@dataclass(frozen=True)
class Verdict:
    """One statement of the paper beside what was measured here.

    Attributes:
        statement: what the paper says, in our words.
        paper: its figure, or – if it gives none.
        measured: ours, with an interval where there is one.
        outcome: what the rule makes of it.
        rule: when the outcome is `confirmed` and when `partly`, in words.
    """

    statement: str
    paper: str
    measured: str
    outcome: Outcome
    rule: str


def close_to(found: MeanInterval, published: float, tolerance: float) -> Outcome:
    """Confirmed within the tolerance; partly within twice the tolerance, or if the interval holds the figure."""
    distance = abs(found.mean - published)
    if distance <= tolerance:
        return "confirmed"
    return "partly" if distance <= 2 * tolerance or found.low <= published <= found.high else "not confirmed"


def close_to_rule(tolerance: float) -> str:
    """`close_to` in words."""
    return (
        f"confirmed: mean within {tolerance:.3g} of the paper's figure; partly: within {2 * tolerance:.3g}, or the "
        "figure lies in the interval"
    )


def surely_close_to(found: MeanInterval, published: float, tolerance: float) -> Outcome:
    """`close_to`, but a mean whose interval leaves the tolerance, or has none, is within it by luck: partly."""
    outcome = close_to(found, published, tolerance)
    sure = published - tolerance <= found.low and found.high <= published + tolerance
    return "partly" if outcome == "confirmed" and not sure else outcome


def surely_close_to_rule(tolerance: float) -> str:
    """`surely_close_to` in words."""
    return (
        f"confirmed: the whole 95 % interval within {tolerance:.3g} of the paper's figure; partly: the mean within "
        f"{2 * tolerance:.3g}, or the figure lies in the interval"
    )


def below(found: MeanInterval, bound: float) -> Outcome:
    """Confirmed if the whole interval is below the bound; partly if the mean is, or if the interval reaches below."""
    if math.isnan(found.low):
        return "partly" if found.mean < bound else "not confirmed"
    if found.high < bound:
        return "confirmed"
    return "partly" if found.low < bound else "not confirmed"


def above(found: MeanInterval, bound: float) -> Outcome:
    """`below`, mirrored."""
    return below(MeanInterval(-found.mean, found.sd, -found.high, -found.low, found.count), -bound)


DIRECTION_RULE = "confirmed: the whole 95 % interval is on the stated side; partly: only part of it, or a single seed"


def within(found: MeanInterval, margin: float) -> Outcome:
    """That something makes no difference: confirmed if the whole interval is within ±margin; partly if the mean is."""
    if abs(found.mean) > margin:
        return "not confirmed"
    return "confirmed" if -margin <= found.low and found.high <= margin else "partly"


def within_rule(margin: float) -> str:
    """`within` in words."""
    return f"confirmed: the whole 95 % interval within ±{margin:.3g}; partly: only its mean, or a single seed"


def apart(lower: MeanInterval, higher: MeanInterval) -> Outcome:
    """That one is less than the other: confirmed if the intervals do not touch, partly if the means are in order."""
    if lower.high < higher.low:
        return "confirmed"
    return "partly" if lower.mean < higher.mean else "not confirmed"


APART_RULE = "confirmed: the 95 % intervals do not touch; partly: only the means are in this order"


def at_most(found: float, bound: float, slack: float) -> Outcome:
    """Confirmed up to the bound, partly up to `slack` times the bound."""
    if found <= bound:
        return "confirmed"
    return "partly" if found <= slack * bound else "not confirmed"


def at_least(found: float, bound: float, low: float) -> Outcome:
    """Confirmed from the bound up, partly from `low` up."""
    if found >= bound:
        return "confirmed"
    return "partly" if found >= low else "not confirmed"


def together(outcomes: Iterable[Outcome]) -> Outcome:
    """A statement with several parts: confirmed or refuted if all parts are; partly otherwise."""
    known = [outcome for outcome in outcomes if outcome != "not measured"]
    if not known:
        return "not measured"
    return known[0] if len(set(known)) == 1 else "partly"


def every(outcomes: Iterable[Outcome]) -> Outcome:
    """A statement that holds only if all its parts do: as confirmed as the least of them, refuted if one is."""
    known = set(outcomes)
    if not known or "not measured" in known:
        return "not measured"
    return max(known, key=OUTCOMES.index)


EVERY_RULE = "confirmed if all parts are, not confirmed if one is not"


def most(outcomes: Iterable[Outcome]) -> Outcome:
    """A statement about most cases: as confirmed as more than half of them are."""
    known = [outcome for outcome in outcomes if outcome != "not measured"]
    if not known:
        return "not measured"
    if sum(outcome == "confirmed" for outcome in known) > len(known) / 2:
        return "confirmed"
    return "partly" if sum(outcome != "not confirmed" for outcome in known) > len(known) / 2 else "not confirmed"


MOST_RULE = "confirmed: confirmed in more than half of the cases; partly: at least partly in more than half"


def shown(found: MeanInterval | None, digits: int = 3) -> str:
    """A mean with its interval."""
    if found is None:
        return "–"
    if math.isnan(found.low):
        return f"{found.mean:.{digits}f} (single value)"
    return f"{found.mean:.{digits}f} [{found.low:.{digits}f}, {found.high:.{digits}f}]"


def over_seeds(values: "NDArray[np.float64] | Iterable[float]") -> MeanInterval:
    """Mean and interval over seeds."""
    return mean_interval(np.asarray(list(values), dtype=np.float64))
