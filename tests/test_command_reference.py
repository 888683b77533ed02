"""The command reference says what the command line says."""

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "docs" / "scripts" / "command_reference.py"


def load():
    spec = importlib.util.spec_from_file_location("command_reference", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_is_current():
    page = load()
    assert page.TARGET.read_text(encoding="utf-8") == page.reference(), (
        "docs/commands.md is out of date: python docs/scripts/command_reference.py"
    )


def test_it_holds_every_command_and_option():
    text = load().reference()
    for expected in (
        "## ppgsl-bench run\n",
        "## ppgsl-bench check\n",
        "`--dry-run`",
        "`--json`",
        "`TARGET`",
        "`results`",
    ):
        assert expected in text
