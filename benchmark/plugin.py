"""What every plugin is: a frozen set of declared parameters plus the method that does the work."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pydantic
from pydantic import BaseModel, ConfigDict

from ppgsl_bench.errors import UnknownNameError, UserError
from ppgsl_bench.graph import Graph


def Field(default: Any, *, help: str, **limits: Any) -> Any:  # noqa: N802, A002
    """A parameter: its default, its help text and its limits (`ge`, `gt`, `le`, `lt`)."""
    return pydantic.Field(default, description=help, **limits)


@dataclass(frozen=True)
class Parameter:
    """A parameter as `--help`, the docs and error messages show it."""

    name: str
    type: str
    default: object
    help: str


class Plugin(BaseModel):
    """Base of defenses, attacks, utilities and datasets.

    Parameters are annotated class attributes made with `Field`; the command line, validation, the docs and the cache
    key read them from there. Instances are frozen: a plugin keeps no state between calls.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    name: ClassVar[str] = ""
    version: ClassVar[int] = 0
    brief: ClassVar[Mapping[str, object]] = {}
    """Parameters with which a plugin that trains runs through the same code in an instant (see `warm_up`)."""

    @classmethod
    def summary(cls) -> str:
        """First line of the docstring."""
        return (cls.__doc__ or "").strip().split("\n")[0]

    @classmethod
    def parameters(cls) -> list[Parameter]:
        """The declared parameters, in order."""
        return [
            Parameter(name, _type_name(info.annotation), info.default, info.description or "")
            for name, info in cls.model_fields.items()
        ]

    @classmethod
    def create(cls, **given: object) -> Self:
        """An instance from user input; a wrong name or value is an error that says what is right."""
        unknown = [name for name in given if name not in cls.model_fields]
        if unknown:
            known = ", ".join(f"{p.name} ({p.type}, default {p.default})" for p in cls.parameters()) or "none"
            raise UnknownNameError(f"{cls.name} has no parameter {unknown[0]!r}; its parameters: {known}")
        try:
            return cls(**given)
        except pydantic.ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, e['loc']))}={e['input']!r}: {_sentence(e['msg'])}" for e in error.errors()
            )
            raise UserError(f"{cls.name}: {problems}") from None

    def briefly(self) -> Self:
        """The same plugin, but for what `brief` says."""
        return self.model_copy(update=dict(self.brief))

    @property
    def canonical(self) -> str:
        """All parameters, defaults included, as JSON with sorted keys: part of every cache key."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True)

    @property
    def label(self) -> str:
        """`name[param=value,…]` with the parameters that differ from their defaults."""
        changed = {
            name: getattr(self, name)
            for name, info in type(self).model_fields.items()
            if getattr(self, name) != info.default
        }
        inside = ",".join(f"{k}={_plain(v)}" for k, v in changed.items())
        return f"{self.name}[{inside}]" if inside else self.name

    @classmethod
    def identity(cls) -> str:
        """Name and version; for a plugin file also the digest of its text, since its author is still at work."""
        digest = getattr(sys.modules.get(cls.__module__), "__plugin_digest__", "")
        return f"{cls.name}@{cls.version}{'+' * bool(digest)}{digest[:12]}"

    def why_not(self, graph: Graph) -> str | None:  # noqa: ARG002
        """A reason why this plugin cannot work on `graph`, or None. A refusal is a result, not a failure."""
        return None


def _type_name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def _sentence(message: str) -> str:
    return message[:1].lower() + message[1:]
