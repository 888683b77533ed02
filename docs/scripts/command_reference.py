"""Write docs/commands.md: every command with its arguments and options, as the command line itself describes them.

python docs/scripts/command_reference.py
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from ppgsl_bench.cli import app

TARGET = Path(__file__).parents[1] / "commands.md"

INTRODUCTION = """# Command reference

Made from the command line itself by `python docs/scripts/command_reference.py`; `ppgsl-bench COMMAND --help` says the
same.
"""


def main() -> None:
    """Write the page."""
    TARGET.write_text(reference(), encoding="utf-8")


def reference() -> str:
    """The text of the page."""
    root: Any = typer.main.get_command(app)
    parts = [INTRODUCTION]
    for name, command in root.commands.items():
        if not command.hidden:
            parts += _section(f"ppgsl-bench {name}", command)
    return "\n".join(parts)


def _section(title: str, command: Any) -> Iterator[str]:
    yield f"\n## {title}\n"
    yield f"{(command.help or '').strip()}\n"
    shown = [p for p in command.params if not getattr(p, "hidden", False) and "--help" not in p.opts]
    if shown:
        yield "| argument or option | meaning | default |"
        yield "|---|---|---|"
        for parameter in shown:
            yield f"| {_signature(parameter)} | {_cell(parameter.help or '')} | {_default(parameter)} |"
    for name, inner in getattr(command, "commands", {}).items():
        yield from _section(f"{title} {name}", inner)


def _signature(parameter: Any) -> str:
    if not parameter.opts[0].startswith("-"):
        name = (parameter.metavar or parameter.name).upper()
        name = f"{name}…" if parameter.nargs == -1 else name
        return f"`{name}`" if parameter.required else f"`[{name}]`"
    flags = ", ".join(f"`{flag}`" for flag in [*parameter.opts, *parameter.secondary_opts])
    if parameter.is_flag:
        return flags
    return f"{flags} {parameter.metavar or 'VALUE'}{', may be repeated' * parameter.multiple}"


def _default(parameter: Any) -> str:
    default = parameter.default
    if default is None or default is False or callable(default) or default in ([], ()):
        return ""
    return f"`{default}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    main()
