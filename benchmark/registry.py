"""Plugins by name: one generic registry, four instances (defenses, attacks, utilities, datasets).

Listing names imports no plugin. A built-in plugin is a class decorated with `@register("name", …)` in a module
of the registry's folder; the folder is read as syntax, so that one file is all that a contributor adds. Third
parties join through entry points, or through a file passed with `--plugin`.
"""

import ast
import difflib
import hashlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Generic, TypeVar

from ppgsl_bench.errors import UnknownNameError, UserError

P = TypeVar("P")


@dataclass(frozen=True)
class Entry:
    """What is known of a plugin before it is imported."""

    name: str
    summary: str
    source: str
    tags: frozenset[str] = field(default_factory=frozenset)
    extra: str | None = None
    target: str | None = None


class Registry(Generic[P]):
    """Plugins of one kind, by name, imported on first use.

    Args:
        kind: what a plugin of this registry is called, e.g. `defense`.
        package: the package whose modules hold the built-in plugins; also the entry-point group.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.package = package
        self._classes: dict[str, type[P]] = {}
        self._entries: dict[str, Entry] | None = None

    def register(
        self, name: str, *, version: int, tags: tuple[str, ...] = (), extra: str | None = None
    ) -> Callable[[type[P]], type[P]]:
        """Class decorator. Raise `version` whenever a change alters what the plugin computes.

        Args:
            name: what users type.
            version: part of every cache key.
            tags: groups that select the plugin, e.g. `paper`.
            extra: the optional dependency group without which the module cannot be imported.
        """

        def add(cls: type[P]) -> type[P]:
            known = self._classes.get(name)
            origin = f"{cls.__module__}:{cls.__qualname__}"
            entry = self._known().get(name)
            taken = known is not None or (entry is not None and not (entry.target or "").startswith(cls.__module__))
            if taken and not (known and f"{known.__module__}:{known.__qualname__}" == origin):
                holder = entry.source if entry else "another class"
                raise UserError(f"{self.kind} {name!r} of {origin} is taken already, by {holder}; choose another name")
            cls.name = name  # type: ignore[attr-defined]
            cls.version = version  # type: ignore[attr-defined]
            self._classes[name] = cls
            if entry is None:
                summary = (cls.__doc__ or "").strip().split("\n")[0]
                self._known()[name] = Entry(name, summary, cls.__module__, frozenset(tags), extra)
            return cls

        return add

    def names(self, tag: str | None = None) -> list[str]:
        """All names, sorted; with `tag`, those that carry it."""
        return sorted(n for n, e in self._known().items() if tag is None or tag in e.tags)

    def entry(self, name: str) -> Entry:
        """What can be said of a plugin without importing it."""
        known = self._known()
        if name in known:
            return known[name]
        close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"known: {', '.join(sorted(known))}"
        raise UnknownNameError(f"there is no {self.kind} {name!r}; {hint}")

    def built_in_module(self, name: str) -> str | None:
        """The module of the suite that holds a plugin; None for plugins from elsewhere."""
        target = self.entry(name).target
        return target if target is not None and target.startswith(f"{self.package}.") else None

    def get(self, name: str) -> type[P]:
        """The plugin class, imported now if need be."""
        entry = self.entry(name)
        if name not in self._classes and entry.target is not None:
            module, _, attribute = entry.target.partition(":")
            try:
                loaded = import_module(module)
            except ImportError as error:
                hint = f"; install it with: pip install 'ppgsl-bench[{entry.extra}]'" if entry.extra else ""
                raise UserError(f"{self.kind} {name!r} cannot be imported ({error}){hint}") from error
            if attribute and name not in self._classes:
                self.register(name, version=getattr(loaded, attribute).version)(getattr(loaded, attribute))
        if name not in self._classes:
            raise UserError(f"importing {entry.source} did not register the {self.kind} {name!r}")
        return self._classes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._known()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def _known(self) -> dict[str, Entry]:
        if self._entries is None:
            self._entries = {}
            for entry in [*_built_in(self.package), *_entry_points(self.package)]:
                if entry.name in self._entries:
                    first = self._entries[entry.name].source
                    _warn(f"{self.kind} {entry.name!r} of {entry.source} is ignored: {first} has that name already")
                else:
                    self._entries[entry.name] = entry
        return self._entries


def load_plugin_file(path: Path) -> str:
    """Import a Python file so that its `@register` decorators run; returns the SHA-256 of its text."""
    if not path.is_file():
        raise UserError(f"--plugin {path}: no such file")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    name = f"ppgsl_bench_plugin_{digest[:16]}"
    if name in sys.modules:
        return digest
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"--plugin {path}: not a Python file (its name must end in .py)")
    module = importlib.util.module_from_spec(spec)
    module.__dict__["__plugin_digest__"] = digest
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except UserError:
        del sys.modules[name]
        raise
    except Exception as error:  # whatever a stranger's file raises is shown as that file's error
        del sys.modules[name]
        raise UserError(f"--plugin {path}: importing it failed with {type(error).__name__}: {error}") from error
    return digest


def _built_in(package: str) -> Iterator[Entry]:
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(folder).glob("*.py")):
            if path.name != "__init__.py":
                yield from _registered_in(path, f"{package}.{path.stem}")


def _registered_in(path: Path, module: str) -> Iterator[Entry]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name):
                if decorator.func.id != "register":
                    continue
                options: dict[str, Any] = {
                    k.arg: ast.literal_eval(k.value) for k in decorator.keywords if k.arg is not None
                }
                yield Entry(
                    name=ast.literal_eval(decorator.args[0]),
                    summary=(ast.get_docstring(node) or "").split("\n")[0],
                    source=module,
                    tags=frozenset(options.get("tags", ())),
                    extra=options.get("extra"),
                    target=module,
                )


def _entry_points(group: str) -> Iterator[Entry]:
    for point in metadata.entry_points(group=group):
        package = point.dist.name if point.dist else point.module
        yield Entry(point.name, f"from the package {package}", package, target=point.value)


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=3)
