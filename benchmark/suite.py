"""Suites: which cells a run consists of, as small declarative files."""

import difflib
import tomllib
from importlib import resources
from pathlib import Path

import pydantic
from pydantic import BaseModel, ConfigDict

from ppgsl_bench.errors import UnknownNameError, UserError


class Suite(BaseModel):
    """A named choice of datasets, defenses, attacks, utilities, seeds and limits.

    Lists hold expressions as typed on the command line: names, `NAME[param=value]`, `all`, a tag such as `paper`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    summary: str
    datasets: list[str]
    defenses: list[str]
    attacks: list[str]
    utilities: list[str]
    seeds: int | list[int] = 1
    timeout: str = "10m"
    memory: str | None = None


def suite_names() -> list[str]:
    """The suites that come with the package."""
    return sorted(p.name.removesuffix(".toml") for p in _folder().iterdir() if p.name.endswith(".toml"))


def load_suite(name_or_path: str) -> Suite:
    """A built-in suite by name, or one of the user's own by path."""
    if name_or_path in suite_names():
        text = (_folder() / f"{name_or_path}.toml").read_text(encoding="utf-8")
    elif name_or_path.endswith(".toml"):
        text = _text_of(name_or_path)
    else:
        close = difflib.get_close_matches(name_or_path, suite_names(), n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(suite_names())}"
        raise UnknownNameError(f"there is no suite {name_or_path!r}; {hint} (or a path that ends in .toml)")
    try:
        return Suite(**tomllib.loads(text))
    except pydantic.ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise UserError(f"suite {name_or_path}: {problems}; keys: {', '.join(Suite.model_fields)}") from None
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise UserError(f"suite {name_or_path}: not valid TOML: {error}") from error


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"--suite {path}: no such file") from None
    except OSError as error:
        raise UserError(f"--suite {path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # not UTF-8, or a path that is none
        raise UserError(f"--suite {path!r}: not a text file ({error})") from error


def _folder() -> resources.abc.Traversable:
    return resources.files("ppgsl_bench.suites")
