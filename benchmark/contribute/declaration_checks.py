"""What a plugin says of itself: name, version, documentation, parameters."""

import ast
import inspect
import json
import pickle
import re
import sys
from typing import Any, Literal, get_args, get_origin

import pydantic
from annotated_types import Ge, Gt, Le, Lt

from ppgsl_bench.contribute.subject import Subject
from ppgsl_bench.contribute.verdicts import check, fail, not_applicable
from ppgsl_bench.errors import UserError
from ppgsl_bench.expressions import parse

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# `ppgsl-bench list` shows the summary beside the name, in the 120 columns of a wide terminal.
LONGEST_SUMMARY = 90
_TYPES = (int, float, bool, str)


@check(hint='Put @register("your-name", version=1) above the class, with a name in lower case, digits and hyphens.')
def has_a_name(subject: Subject[Any]) -> str:
    """The plugin is registered under a name that can be typed."""
    name: str = subject.cls.name
    if not name:
        fail("the class has no name: it is not registered")
    if not _NAME.fullmatch(name):
        fail(f"the name {name!r} is not made of lower-case letters, digits and hyphens")
    return name


@check(hint="Write the name and all options of @register(…) as literals.", needs=("has-a-name",))
def is_listed_without_an_import(subject: Subject[Any]) -> None:
    """Name and options of the decorator are literals, which the listing reads as syntax."""
    tree = ast.parse(subject.module_source)
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == subject.cls.__name__]
    decorators = [d for c in classes for d in c.decorator_list if isinstance(d, ast.Call)]
    calls = [d for d in decorators if isinstance(d.func, ast.Name) and d.func.id == "register"]
    if not calls:
        not_applicable("the class has no @register decorator of its own; an entry point names it")
    for value in [*calls[0].args, *(keyword.value for keyword in calls[0].keywords)]:
        try:
            ast.literal_eval(value)
        except ValueError:
            fail(f"@register(…) is given {ast.unparse(value)}, which is no literal")


@check(hint="Give @register a version, 1 to begin with; raise it whenever results change.", needs=("has-a-name",))
def has_a_version(subject: Subject[Any]) -> str:
    """The version, which is part of every cache key, is a whole number from 1."""
    version = subject.cls.version
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        fail(f"the version is {version!r}")
    return f"version {version}"


@check(hint=f"Begin the class docstring with one sentence of at most {LONGEST_SUMMARY} characters, full stop included.")
def has_a_summary(subject: Subject[Any]) -> None:
    """The docstring's first line says what the plugin does: it is what `ppgsl-bench list` shows."""
    summary = subject.cls.summary()
    if not summary:
        fail("the class has no docstring")
    if len(summary) > LONGEST_SUMMARY:
        fail(f"the docstring's first line has {len(summary)} characters")
    if not summary.endswith("."):
        fail(f"the docstring's first line does not end with a full stop: {summary!r}")


@check(hint="Begin the file with a docstring: the idea in a sentence, and the paper that it comes from.")
def names_its_origin(subject: Subject[Any]) -> None:
    """The module has a docstring, which cites where the method comes from."""
    if not (sys.modules[subject.cls.__module__].__doc__ or "").strip():
        fail("the module has no docstring")


@check(hint="Give the method a docstring with the formula that it computes.")
def documents_its_method(subject: Subject[Any]) -> None:
    """The method that does the work says what it computes."""
    if not (getattr(subject.cls, subject.method).__doc__ or "").strip():
        fail(f"{subject.method} has no docstring")


@check(hint="Take exactly the arguments of the base class; whatever else a user may choose is a Field of the class.")
def takes_the_agreed_arguments(subject: Subject[Any]) -> None:
    """The method takes the arguments that the harness passes, and no others."""
    base = next(c for c in subject.cls.__mro__ if c.__name__ == subject.kind.capitalize())
    wanted = list(inspect.signature(getattr(base, subject.method)).parameters)
    found = list(inspect.signature(getattr(subject.cls, subject.method)).parameters)
    if found != wanted:
        fail(f"{subject.method} takes ({', '.join(found)}); expected ({', '.join(wanted)})")


@check(hint="Choose defaults within the declared types and limits; every parameter needs one.")
def has_valid_defaults(subject: Subject[Any]) -> None:
    """The plugin can be made without naming a parameter."""
    try:
        subject.plugin()
    except pydantic.ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg'].lower()}" for e in error.errors())
        fail(problems)


@check(hint='Write each parameter as name: type = Field(default, help="what it does, and which way is stronger").')
def documents_its_parameters(subject: Subject[Any]) -> str:
    """Every parameter has a help text."""
    bare = [p.name for p in subject.cls.parameters() if not p.help.strip()]
    if bare:
        fail(f"no help text for {', '.join(bare)}")
    return f"{len(subject.cls.parameters())} parameters"


@check(hint="Use int, float, bool, str or Literal[…]: values that can be typed as param=value.")
def types_its_parameters(subject: Subject[Any]) -> None:
    """Every parameter has a type that the command line can read."""
    for name, info in subject.cls.model_fields.items():
        annotation = info.annotation
        if annotation not in _TYPES and get_origin(annotation) is not Literal:
            fail(f"{name} is of type {annotation}")
        if get_origin(annotation) is Literal and not all(isinstance(v, str) for v in get_args(annotation)):
            fail(f"{name} offers {get_args(annotation)}; choices must be strings to be read from the command line")


@check(hint="Give numbers a limit (ge=, gt=, le=, lt=), so that nonsense is refused before hours of computing.")
def bounds_its_parameters(subject: Subject[Any]) -> None:
    """Every number has a limit on at least one side."""
    for name, info in subject.cls.model_fields.items():
        if info.annotation in (int, float) and not any(isinstance(m, (Ge, Gt, Le, Lt)) for m in info.metadata):
            fail(f"{name} may be any number")


@check(
    hint="Avoid defaults with commas, brackets or equals signs in them.",
    needs=("has-a-name", "has-valid-defaults", "types-its-parameters"),
)
def can_be_typed_in(subject: Subject[Any]) -> str:
    """`NAME[param=value,…]` with all parameters spelled out is read back as the same plugin."""
    plugin = subject.plugin()
    inside = ",".join(f"{name}={_typed(getattr(plugin, name))}" for name in subject.cls.model_fields)
    text = f"{plugin.name}[{inside}]" if inside else plugin.name
    try:
        read = subject.cls.create(**parse(text).given)
    except UserError as error:
        fail(str(error))
    if read.canonical != plugin.canonical:
        fail(f"{text} is read as {read.canonical}")
    return text


def _typed(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@check(
    hint='Leave model_config alone: extra="forbid" turns a misspelt parameter into an error.',
    needs=("has-valid-defaults",),
)
def refuses_unknown_parameters(subject: Subject[Any]) -> None:
    """A parameter that does not exist is an error, not ignored."""
    try:
        subject.plugin(no_such_parameter=1)
    except pydantic.ValidationError:
        return
    fail("no_such_parameter=1 was accepted")


@check(
    hint="Do not exclude a parameter from the model's dump: it tells one cached result from another.",
    needs=("has-valid-defaults",),
)
def keys_on_all_parameters(subject: Subject[Any]) -> None:
    """Every parameter is part of the cache key."""
    absent = set(subject.cls.model_fields) - set(json.loads(subject.plugin().canonical))
    if absent:
        fail(f"not in the key: {', '.join(sorted(absent))}")


@check(
    hint="Leave model_config alone: instances are frozen; compute in the method, in local variables.",
    needs=("has-valid-defaults",),
)
def is_frozen(subject: Subject[Any]) -> None:
    """An instance cannot be changed."""
    if not subject.cls.model_config.get("frozen"):
        fail("model_config makes instances mutable")


@check(
    hint="Keep nothing but declared parameters in an instance: no functions, files or locks.",
    needs=("has-valid-defaults",),
)
def is_picklable(subject: Subject[Any]) -> None:
    """An instance can be sent to another process."""
    plugin = subject.plugin()
    copy = pickle.loads(pickle.dumps(plugin))  # noqa: S301 - our own bytes
    if copy != plugin:
        fail("a copy made by pickle is not equal to the original")
