"""What a conformance check is, and what it can find."""

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

Outcome = Literal["pass", "fail", "not applicable"]
Kind = Literal["defense", "attack"]
Group = Literal["rules", "graphs"]
"""Checks of the same group run in one process and share the plugin's results; the two groups run side by side."""

BOTH: tuple[Kind, ...] = ("defense", "attack")
SOUND = ("keeps-the-nodes", "scores-are-finite")
"""What must hold of a defense, and of an attack, for anything further to be looked at."""
REPEATABLE = (*SOUND, "repeats-under-the-same-seed")
"""What must hold for two results to be compared."""


class Failed(Exception):  # noqa: N818 - a finding, not an error
    """The plugin does not keep the rule."""


class NotApplicable(Exception):  # noqa: N818 - a finding, not an error
    """The rule does not concern this plugin."""


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    Attributes:
        check: its name.
        outcome: pass, fail or not applicable.
        message: what was seen, or why the check does not apply.
        hint: how to mend it; empty unless it failed.
        seconds: how long it took.
    """

    check: str
    outcome: Outcome
    message: str = ""
    hint: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Check:
    """A rule, and a function that sees whether a plugin keeps it.

    Attributes:
        name: what reports call it.
        rule: the rule in one sentence.
        hint: how to mend a plugin that breaks it.
        kinds: which kinds of plugin it concerns.
        needs: checks that must have passed for this one to make sense; those of another kind do not count.
        group: which checks it shares a process with.
        look: given the subject; raises `Failed` or `NotApplicable`, or returns what there is to say of a pass.
    """

    name: str
    rule: str
    hint: str
    kinds: tuple[Kind, ...]
    needs: tuple[str, ...]
    group: Group
    look: Callable[[Any], str | None]

    def verdict(self, subject: Any) -> Verdict:
        """Look, with whatever the plugin raises as a failure."""
        begun = time.perf_counter()
        outcome: Outcome = "pass"
        hint = ""
        try:
            message = self.look(subject) or ""
        except NotApplicable as reason:
            outcome, message = "not applicable", str(reason)
        except Failed as problem:
            outcome, message, hint = "fail", str(problem), self.hint
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises is what the check has found
            outcome, message, hint = "fail", _raised(error), self.hint
        return Verdict(self.name, outcome, message, hint, time.perf_counter() - begun)


_checks: dict[str, Check] = {}

Look = TypeVar("Look", bound=Callable[[Any], str | None])


def check(
    *, hint: str, kinds: tuple[Kind, ...] = BOTH, needs: tuple[str, ...] = (), group: Group = "rules"
) -> Callable[[Look], Look]:
    """Make a check of a function; it is named after the function, and its docstring's first line is the rule."""

    def add(look: Look) -> Look:
        name = look.__name__.replace("_", "-")
        rule = (look.__doc__ or "").strip().split("\n")[0]
        _checks[name] = Check(name, rule, hint, kinds, needs, group, look)
        return look

    return add


def checks_for(kind: Kind) -> list[Check]:
    """All checks of one kind of plugin, in the order in which they are reported."""
    from ppgsl_bench.contribute import (  # noqa: F401 - importing them fills the table
        attack_checks,
        conduct_checks,
        declaration_checks,
        defense_checks,
        graph_checks,
    )

    order = ["declaration_checks", "defense_checks", "attack_checks", "conduct_checks", "graph_checks"]
    found = [c for c in _checks.values() if kind in c.kinds]
    return sorted(found, key=lambda c: order.index(c.look.__module__.rpartition(".")[2]))


def fail(message: str) -> NoReturn:
    """End a check: the rule is broken."""
    raise Failed(message)


def not_applicable(reason: str) -> NoReturn:
    """End a check: the rule does not concern this plugin."""
    raise NotApplicable(reason)


def _raised(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"it raised {type(error).__name__}: {error}{where}"
