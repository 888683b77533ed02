"""A provisional place among others, with as few cells as possible."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ppgsl_bench.cli import app
from ppgsl_bench.contribute import comparison
from ppgsl_bench.errors import UserError


@pytest.fixture
def small(monkeypatch, tmp_path):
    """One tiny graph, two seeds, two cheap references."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(comparison, "GRAPHS", ("karate",))
    monkeypatch.setattr(comparison, "SEEDS", (0, 1))
    monkeypatch.setattr(comparison, "ATTACKS", ("cn", "feature-cos"))
    monkeypatch.setattr(comparison, "RIVALS", ("cn", "feature-cos"))
    monkeypatch.setattr(comparison, "UTILITY", "structure")
    monkeypatch.setattr(comparison, "DEFENSES", ("none", "random[rate=0.1]"))
    monkeypatch.setattr(comparison, "TARGETS", ("none", "random"))


@pytest.mark.usefixtures("small")
def test_a_defense_gets_a_place_and_is_not_computed_twice(tmp_path):
    result = CliRunner().invoke(app, ["compare", "dice", "--quick"])
    assert result.exit_code == 0, result.output
    assert "defense dice: place " in result.stdout
    assert " of 2" in result.stdout
    again = CliRunner().invoke(app, ["compare", "dice", "--quick"])
    assert "cells are done already" in again.stderr
    assert again.stdout == result.stdout


@pytest.mark.usefixtures("small")
def test_an_attack_gets_a_place_and_what_does_not_apply_is_a_guess():
    result = CliRunner().invoke(app, ["compare", "ra", "--quick"])
    assert result.exit_code == 0, result.output
    assert "attack ra: place " in result.stdout
    assert " of 3" in result.stdout
    (features,) = (line for line in result.stdout.splitlines() if "feature-cos" in line)
    assert re.findall(r"\d\.\d{3}", features) == ["0.500"] * 3
    assert features.split()[0].startswith("3")


def test_what_a_defense_is_spared_is_measured():
    page = (Path(__file__).parents[2] / "docs" / "quick-comparison.md").read_text()
    assert set(comparison.ATTACKS) < set(comparison.RIVALS)
    kept, left_out = (line for line in page.splitlines() if "strongest of `" in line or "leaves out `" in line)
    assert tuple(re.findall("`([a-z-]+)`", kept)) == comparison.ATTACKS
    assert set(re.findall("`([a-z-]+)`", left_out)) == set(comparison.RIVALS) - set(comparison.ATTACKS)


def test_without_quick_the_way_to_the_board_is_shown():
    with pytest.raises(UserError, match="--with-shipped"):
        CliRunner().invoke(app, ["compare", "random"], catch_exceptions=False)
