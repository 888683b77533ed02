"""What users type to name a plugin: `NAME`, `NAME[param=value,…]`, `NAME[sweep]`."""

import re
from dataclasses import dataclass, field

from ppgsl_bench.errors import UserError

SWEEP = "sweep"

_NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.:/+-]*")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Expression:
    """A parsed `NAME[…]`; values are still text, the plugin's own types read them."""

    name: str
    given: dict[str, str] = field(default_factory=dict)
    sweep: bool = False


def split_list(text: str) -> list[str]:
    """Split at commas outside brackets: `a,b[x=1,y=2]` gives `a` and `b[x=1,y=2]`."""
    items, depth, current = [], 0, ""
    for character in text:
        depth += (character == "[") - (character == "]")
        if depth < 0:
            raise UserError(f"{text!r}: a ']' without its '['")
        if character == "," and depth == 0:
            items.append(current)
            current = ""
        else:
            current += character
    if depth:
        raise UserError(f"{text!r}: a '[' without its ']'")
    items.append(current)
    stripped = [item.strip() for item in items]
    if not all(stripped):
        raise UserError(f"{text!r}: an empty name between commas")
    return stripped


def parse(text: str) -> Expression:
    """Read one expression."""
    name, bracket, inside = text.partition("[")
    if not _NAME.fullmatch(name):
        raise UserError(f"{text!r}: expected NAME or NAME[param=value,…], with a name of letters, digits, '-' and '_'")
    if not bracket:
        return Expression(name)
    if not inside.endswith("]") or "[" in inside or "]" in inside[:-1]:
        raise UserError(f"{text!r}: expected NAME[param=value,…] with one closing ']' at the end")
    given: dict[str, str] = {}
    sweep = False
    for part in filter(None, (p.strip() for p in inside[:-1].split(","))):
        parameter, equals, value = (p.strip() for p in part.partition("="))
        if part == SWEEP:
            sweep = True
        elif not equals or not value or not _PARAMETER.fullmatch(parameter):
            raise UserError(f"{text!r}: {part!r} is not of the form param=value (or the word {SWEEP!r})")
        elif parameter in given:
            raise UserError(f"{text!r}: the parameter {parameter!r} is given twice")
        else:
            given[parameter] = value
    return Expression(name, given, sweep)
