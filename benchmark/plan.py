"""The plan: every cell of a run, and what each depends on.

    split ─▶ publish ─▶ embed ─▶ attack
                 └────────────▶ utility

A cell is frozen and serialisable, so that a list of cells *is* the run, and one of them can be shipped and run alone.
Its key is a hash over the stage, the plugin's name, version and parameters, and the keys of what it depends on, back to
the fingerprint of the dataset's raw files: known before anything runs, and another one as soon as any of it changes.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from ppgsl_bench import PROTOCOL_VERSION
from ppgsl_bench import attacks as attack_plugins
from ppgsl_bench import datasets as dataset_plugins
from ppgsl_bench import defenses as defense_plugins
from ppgsl_bench import utilities as utility_plugins
from ppgsl_bench.attacks import Attack, EmbeddingAttack
from ppgsl_bench.datasets import Dataset, Sources
from ppgsl_bench.datasets.files import SUFFIXES
from ppgsl_bench.defenses import Defense
from ppgsl_bench.errors import UserError
from ppgsl_bench.expressions import Expression, parse
from ppgsl_bench.plugin import Plugin
from ppgsl_bench.registry import Registry
from ppgsl_bench.rows import Row
from ppgsl_bench.utilities import Utility

Kind = Literal["split", "publish", "embed", "attack", "utility"]
P = TypeVar("P", bound=Plugin)

ALL = "all"


@dataclass(frozen=True, slots=True)
class PluginRef:
    """A plugin with its parameters, as it stands in a cell.

    Attributes:
        name: its registered name; for an encoder, the name of an attack that has it.
        identity: name and version (see `Plugin.identity`).
        params: canonical JSON of all its parameters.
        label: `NAME[…]` as a person would type it.
    """

    name: str
    identity: str
    params: str
    label: str

    @classmethod
    def of(cls, plugin: Plugin, name: str | None = None) -> "PluginRef":
        """Reference to a plugin instance."""
        return cls(name or plugin.name, plugin.identity(), plugin.canonical, plugin.label)

    @property
    def given(self) -> dict[str, Any]:
        """The parameters, decoded."""
        decoded: dict[str, Any] = json.loads(self.params)
        return decoded


@dataclass(frozen=True, slots=True)
class Cell:
    """One unit of work: a stage of the flow on one dataset, seed, defense and evaluator."""

    kind: Kind
    dataset: PluginRef
    seed: int
    defense: PluginRef | None
    evaluator: PluginRef | None
    requires: tuple[str, ...]
    key: str

    @property
    def label(self) -> str:
        """For people: what is run on what."""
        parts = [self.dataset.label, f"seed {self.seed}"]
        parts += [ref.label for ref in (self.defense, self.evaluator) if ref is not None]
        return f"{self.kind}: {' · '.join(parts)}"


@dataclass(frozen=True)
class Choice:
    """What a run is made of: plugin instances on each axis."""

    datasets: Sequence[Dataset]
    defenses: Sequence[Defense]
    attacks: Sequence[Attack]
    utilities: Sequence[Utility]
    seeds: Sequence[int]


def plan(choice: Choice, sources: Sources) -> list[Cell]:
    """All cells of a run, each after those that it requires."""
    cells: dict[str, Cell] = {}
    # Made once: tens of thousands of cells share them.
    defenses = [PluginRef.of(defense) for defense in choice.defenses]
    attacks = [(PluginRef.of(attack), _encoder_of(attack)) for attack in choice.attacks]
    utilities = [PluginRef.of(utility) for utility in choice.utilities]

    def add(kind: Kind, seed: int, refs: _Refs, *ingredients: str, requires: tuple[str, ...] = ()) -> Cell:
        plugin = refs.evaluator or refs.defense or refs.dataset
        key = _hash(PROTOCOL_VERSION, kind, plugin.identity, plugin.params, *ingredients, *requires)
        cell = Cell(kind, refs.dataset, seed, refs.defense, refs.evaluator, requires, key)
        return cells.setdefault(key, cell)

    for dataset in choice.datasets:
        on_dataset = _Refs(PluginRef.of(dataset))
        fingerprint = dataset.fingerprint(sources)
        for seed in choice.seeds:
            split = add("split", seed, on_dataset, fingerprint, str(seed))
            for defense in defenses:
                refs = _Refs(on_dataset.dataset, defense)
                published = add("publish", seed, refs, requires=(split.key,))
                for attack, encoder in attacks:
                    requires: tuple[str, ...] = (published.key,)
                    if encoder is not None:
                        embedded = add("embed", seed, refs.evaluated_by(encoder), requires=requires)
                        requires = (published.key, embedded.key)
                    add("attack", seed, refs.evaluated_by(attack), requires=requires)
                for utility in utilities:
                    add("utility", seed, refs.evaluated_by(utility), requires=(published.key,))
    return list(cells.values())


def split_key(dataset: Dataset, seed: int, sources: Sources) -> str:
    """The key of a split of the dataset as its files are now."""
    ref, fingerprint = PluginRef.of(dataset), dataset.fingerprint(sources)
    return _hash(PROTOCOL_VERSION, "split", ref.identity, ref.params, fingerprint, str(seed))


def choose(
    *,
    datasets: Iterable[str],
    defenses: Iterable[str],
    attacks: Iterable[str],
    utilities: Iterable[str],
    seeds: Sequence[int],
) -> Choice:
    """Resolve expressions to plugin instances; every wrong name or parameter is an error here, before anything runs."""
    return Choice(
        datasets=_unique(_dataset(text) for text in datasets),
        defenses=_unique(p for text in defenses for p in _plugins(text, defense_plugins.registry)),
        attacks=_unique(p for text in attacks for p in _plugins(text, attack_plugins.registry)),
        utilities=_unique(p for text in utilities for p in _plugins(text, utility_plugins.registry)),
        seeds=seeds,
    )


def replan(rows: Iterable[Row], sources: Sources) -> list[Cell]:
    """The cells that these rows came from, and what they depend on, for code and data as they are now."""
    cells: dict[str, Cell] = {}
    for row in rows:
        dataset = _named(dataset_plugins.registry, row.dataset, row.dataset_params)
        defense = [_named(defense_plugins.registry, row.defense, row.defense_params)] if row.defense else []
        is_attack = row.kind in {"attack", "embed"}
        attacks = [_named(attack_plugins.registry, row.evaluator, row.evaluator_params)] if is_attack else []
        is_utility = row.kind == "utility"
        utilities = [_named(utility_plugins.registry, row.evaluator, row.evaluator_params)] if is_utility else []
        choice = Choice([dataset], defense, attacks, utilities, [row.seed])
        cells |= {cell.key: cell for cell in plan(choice, sources)}
    return list(cells.values())


@dataclass(frozen=True)
class _Refs:
    dataset: PluginRef
    defense: PluginRef | None = None
    evaluator: PluginRef | None = None

    def evaluated_by(self, evaluator: PluginRef) -> "_Refs":
        return _Refs(self.dataset, self.defense, evaluator)


def _encoder_of(attack: Attack) -> PluginRef | None:
    return PluginRef.of(attack.encoder, name=attack.name) if isinstance(attack, EmbeddingAttack) else None


def _hash(*parts: str | int) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _dataset(text: str) -> Dataset:
    # A user's own file, and OGB's names, which are not plugin names.
    if os.sep in text or Path(text).suffix.lower() in SUFFIXES:
        return _create(dataset_plugins.registry, Expression("file", {"path": text}))
    if text.startswith("ogb:"):
        return _create(dataset_plugins.registry, Expression("ogb", {"dataset": text.removeprefix("ogb:")}))
    expression = parse(text)
    if expression.sweep:
        raise UserError(f"{text!r}: only a defense has a sweep")
    return _create(dataset_plugins.registry, expression)


def _plugins(text: str, registry: Registry[P]) -> Iterator[P]:
    expression = parse(text)
    names = [expression.name]
    if expression.name not in registry and (tagged := registry.names(expression.name)):
        names = tagged
    elif expression.name == ALL:
        names = registry.names()
    for name in names:
        if expression.sweep:
            cls = registry.get(name)
            if not issubclass(cls, Defense):
                raise UserError(f"{text!r}: only a defense has a sweep")
            for setting in cls.sweep:
                yield _create(registry, Expression(name, {**setting, **expression.given}))
        else:
            yield _create(registry, Expression(name, expression.given))


def _create(registry: Registry[P], expression: Expression) -> P:
    return registry.get(expression.name).create(**expression.given)


def _named(registry: Registry[P], name: str, params: str) -> P:
    return registry.get(name).create(**json.loads(params))


def _unique(plugins: Iterable[P]) -> list[P]:
    return list({(p.identity(), p.canonical): p for p in plugins}.values())
