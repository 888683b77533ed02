"""The plugin under examination: found by name, file or import path, and called as the harness would call it."""

import hashlib
import importlib
import inspect
import math
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from ppgsl_bench import attacks, defenses
from ppgsl_bench.attacks import Attack, EmbeddingAttack
from ppgsl_bench.contribute.cases import Case, standard
from ppgsl_bench.contribute.verdicts import Kind, Verdict, checks_for, fail, not_applicable
from ppgsl_bench.defenses import Defense, Publication
from ppgsl_bench.errors import UnknownNameError, UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs
from ppgsl_bench.plugin import Plugin
from ppgsl_bench.registry import load_plugin_file
from ppgsl_bench.seeds import generator

P = TypeVar("P", bound=Plugin)


class Subject(ABC, Generic[P]):
    """A plugin class, and what its calls returned so far."""

    kind: Kind
    method: str

    def __init__(self, cls: type[P]) -> None:
        self.cls = cls
        self.quickest_call = math.inf
        self._results: dict[tuple[str, int, tuple[tuple[str, object], ...]], Any] = {}
        self._verdicts: dict[str, Verdict] = {}

    @abstractmethod
    def call(self, plugin: P, case: Case, rng: np.random.Generator) -> Any:
        """One call, with copies of everything that the plugin could spoil."""

    @abstractmethod
    def fingerprint(self, result: Any) -> str:
        """Equal for equal results."""

    @property
    def is_built_in(self) -> bool:
        """Whether it lies in this package, where every process finds it by name."""
        return self.cls.__module__.startswith("ppgsl_bench.")

    @cached_property
    def module_source(self) -> str:
        """The text of the module that defines the plugin."""
        try:
            return inspect.getsource(sys.modules[self.cls.__module__])
        except (OSError, TypeError):
            not_applicable("its source cannot be read: it was typed into a session")

    def plugin(self, **given: object) -> P:
        """A new instance."""
        return self.cls(**given)

    def fresh(self, case: Case, seed: int = 0, given: Mapping[str, object] | None = None) -> Any:
        """Call a new instance."""
        plugin = self.plugin(**(given or {}))
        begun = time.perf_counter()
        result = self.call(plugin, case, check_rng(seed))
        self.quickest_call = min(self.quickest_call, time.perf_counter() - begun)
        return result

    def result(self, case: Case, seed: int = 0, given: Mapping[str, object] | None = None) -> Any:
        """As `fresh`, but called once only; for checks that look at the result alone."""
        key = (case.name, seed, tuple(sorted((given or {}).items())))
        if key not in self._results:
            self._results[key] = self.fresh(case, seed, given)
        return self._results[key]

    @cached_property
    def is_random(self) -> bool:
        """Whether it draws a number, or spawns a stream, from the generator that it is given."""
        return _draws(lambda rng: self.call(self.plugin(), standard(), rng))

    def unless_refused(self, case: Case) -> Any:
        """The result on a case; the check does not apply if the plugin gives a reason why it cannot work there."""
        reason = self.plugin().why_not(case.graph)
        if reason is not None:
            not_applicable(f"it refuses: {reason}")
        return self.result(case)

    def usual_result(self) -> Any:
        """The result on the plain small graph that nearly every check builds on; refusing that one is a failure."""
        reason = self.plugin().why_not(standard().graph)
        if reason is not None:
            fail(f"it refuses a small connected graph with features and labels: {reason}")
        return self.result(standard())

    def verdicts(self, names: list[str]) -> Iterator[Verdict]:
        """The verdicts of some checks, one by one, each after those that it needs."""
        for name in names:
            yield self._verdict(name)

    def _verdict(self, name: str) -> Verdict:
        if name not in self._verdicts:
            known = {check.name: check for check in checks_for(self.kind)}
            check = known[name]
            unmet = [v for need in check.needs if need in known and (v := self._verdict(need)).outcome != "pass"]
            if unmet and unmet[0].outcome == "fail":
                self._verdicts[name] = Verdict(name, "not applicable", f"not looked at until {unmet[0].check} passes")
            elif unmet:
                self._verdicts[name] = Verdict(name, "not applicable", unmet[0].message)
            else:
                self._verdicts[name] = check.verdict(self)
        return self._verdicts[name]


class DefenseSubject(Subject[Defense]):
    """A defense under examination."""

    kind: Kind = "defense"
    method = "publish"

    def call(self, plugin: Defense, case: Case, rng: np.random.Generator) -> Graph | Publication:
        """Publish; a defense that does not declare that it looks at the sensitive links gets none."""
        return plugin.publish(case.graph, self.shown(case), rng)

    def shown(self, case: Case) -> Pairs:
        """The sensitive links as the harness would pass them."""
        return case.hidden.copy() if self.cls.uses_sensitive else case.hidden[:0].copy()

    def fingerprint(self, result: Any) -> str:
        """Digest of the published graph."""
        return published(result).digest


class AttackSubject(Subject[Attack]):
    """An attack under examination."""

    kind: Kind = "attack"
    method = "score"

    def call(self, plugin: Attack, case: Case, rng: np.random.Generator) -> Any:
        """Score the case's pairs on its graph, without labels."""
        graph = case.graph if case.graph.y is None else case.graph.without_labels()
        return plugin.score(graph, case.pairs, rng)

    def fingerprint(self, result: Any) -> str:
        """Digest of the scores."""
        return hashlib.sha256(np.ascontiguousarray(result).data).hexdigest()

    @cached_property
    def is_random(self) -> bool:
        """An embedding attack spawns two streams in any case; what counts is whether they are drawn from."""
        plugin = self.plugin()
        if not isinstance(plugin, EmbeddingAttack):
            return super().is_random
        graph, pairs = standard().graph.without_labels(), standard().pairs
        embedding = plugin.encoder.embed(graph, check_rng())
        return _draws(lambda rng: plugin.encoder.embed(graph, rng)) or _draws(
            lambda rng: plugin.score_embedding(embedding, graph, pairs, rng)
        )


AnySubject = DefenseSubject | AttackSubject


def check_rng(seed: int = 0) -> np.random.Generator:
    """The stream that a call of a check is given."""
    return generator("check", seed)


def _draws(call: Callable[[np.random.Generator], object]) -> bool:
    rng = check_rng()
    before = _state(rng)
    call(rng)
    return _state(rng) != before


def _state(rng: np.random.Generator) -> tuple[str, int]:
    bits: Any = rng.bit_generator
    return str(bits.state), bits.seed_seq.n_children_spawned


def published(result: object) -> Graph:
    """The graph of a publication."""
    graph = result.graph if isinstance(result, Publication) else result
    if not isinstance(graph, Graph):
        fail(f"it returned {type(graph).__name__}; expected a Graph or a Publication")
    return graph


def subject_of(cls: type[Plugin]) -> AnySubject:
    """A class as a subject."""
    if issubclass(cls, Defense):
        return DefenseSubject(cls)
    if issubclass(cls, Attack):
        return AttackSubject(cls)
    raise UserError(f"{cls.__name__} is neither a Defense nor an Attack; derive it from one of them")


def find_subjects(target: str) -> list[AnySubject]:
    """What `NAME`, `FILE.py` or `MODULE:CLASS` means; a file may define several plugins."""
    if target.endswith(".py") or "/" in target:
        return _in_file(Path(target))
    if ":" in target:
        return [subject_of(_imported(target))]
    for registry in (defenses.registry, attacks.registry):
        if target in registry:
            return [subject_of(registry.get(target))]
    try:
        defenses.registry.entry(target)
    except UnknownNameError as error:
        known = f"{error}; attacks: {', '.join(attacks.registry.names())}"
        raise UnknownNameError(f"{known} (or name a FILE.py, or MODULE:CLASS)") from None
    raise AssertionError("unreachable: the name was not in the registry")


def _in_file(path: Path) -> list[AnySubject]:
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    module = _built_in_module(path) or f"ppgsl_bench_plugin_{load_plugin_file(path)[:16]}"
    found = [
        cls
        for cls in vars(sys.modules[module]).values()
        if isinstance(cls, type) and issubclass(cls, (Defense, Attack)) and cls.__module__ == module
    ]
    concrete = [cls for cls in found if not inspect.isabstract(cls)]
    if found and not concrete:
        missing = ", ".join(sorted(getattr(found[0], "__abstractmethods__", ())))
        raise UserError(f"{path}: {found[0].__name__} does not implement {missing}")
    if not concrete:
        raise UserError(f"{path} defines no defense and no attack: a class derived from Defense or Attack")
    return [subject_of(cls) for cls in concrete]


def _built_in_module(path: Path) -> str | None:
    """The module of a file in the folder of a registry: loading it as a stranger's file would take its name twice."""
    for package in (defenses, attacks):
        folder = Path(str(package.__file__)).resolve().parent
        if path.resolve().parent == folder:
            importlib.import_module(f"{package.__name__}.{path.stem}")
            return f"{package.__name__}.{path.stem}"
    return None


def _imported(target: str) -> type[Plugin]:
    module, _, name = target.partition(":")
    try:
        cls = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise UserError(f"{target}: cannot import {module} ({error}); install it, or name the file") from error
    except AttributeError:
        raise UserError(f"{target}: the module {module} has no {name!r}") from None
    if not isinstance(cls, type) or not issubclass(cls, Plugin):
        raise UserError(f"{target}: {name} is not a plugin class")
    return cls
