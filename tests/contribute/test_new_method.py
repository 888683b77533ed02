"""From an empty folder to a method that passes its checks."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from forgetting import forgetting_plugin_files
from typer.testing import CliRunner

from ppgsl_bench.cli import app
from ppgsl_bench.contribute.checking import check_here
from ppgsl_bench.contribute.scaffold import checkout_around, scaffold
from ppgsl_bench.contribute.subject import find_subjects
from ppgsl_bench.errors import UserError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path):
    """Something that looks like the repository."""
    (tmp_path / "repo" / "defenses").mkdir(parents=True)
    (tmp_path / "repo" / "pyproject.toml").write_text('[project]\nname = "ppgsl-bench"\n')
    return tmp_path / "repo"


@pytest.fixture
def forgetful():
    """The registries forget what the test registers."""
    with forgetting_plugin_files():
        yield


@pytest.mark.parametrize(("kind", "folder"), [("defense", "defenses"), ("attack", "attacks")])
@pytest.mark.usefixtures("forgetful")
def test_the_file_is_short_and_passes_its_checks_as_it_is(kind, folder, checkout, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    made = scaffold(kind, "wild-idea", checkout / "defenses", package=False)
    made.write()
    files = [str(path.relative_to(checkout)) for path in made.files]
    assert files == [f"{folder}/wild_idea.py", f"tests/{folder}/test_wild_idea.py", "docs/methods/wild-idea.md"]
    text = (checkout / files[0]).read_text()
    assert len(text.splitlines()) <= 40
    (subject,) = find_subjects(str(checkout / files[0]))
    report = check_here(subject)
    assert report.conforms, str(report)
    test = ast.parse((checkout / files[1]).read_text())
    imported = [node.module for node in ast.walk(test) if isinstance(node, ast.ImportFrom)]
    assert f"ppgsl_bench.{folder}.wild_idea" in imported


@pytest.mark.parametrize("kind", ["defense", "attack"])
def test_a_package_names_its_entry_point_and_its_tests_pass(kind, tmp_path):
    made = scaffold(kind, "wild-idea", tmp_path, package=True)
    made.write()
    place = tmp_path / "ppgsl-bench-wild-idea"
    project = tomllib.loads((place / "pyproject.toml").read_text())
    points = project["project"]["entry-points"]
    assert points == {f"ppgsl_bench.{kind}s": {"wild-idea": "ppgsl_bench_wild_idea:WildIdea"}}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "pythonpath=.", "tests"]
    result = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 passed" in result.stdout


def test_generated_code_has_the_style_of_the_repository(checkout, tmp_path):
    pytest.importorskip("ruff", reason="ruff is in the lint environment only")
    for kind in ("defense", "attack"):
        scaffold(kind, f"wild-{kind}", checkout, package=False).write()
    for folder in ("defenses", "attacks"):
        (checkout / folder / "__init__.py").touch()
    (checkout / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    for action in (["check", "--ignore=D104"], ["format", "--check"]):
        command = [str(Path(sys.executable).parent / "ruff"), *action, "--no-cache", str(checkout)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout


def test_the_command_says_what_it_wrote_and_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["new", "defense", "wild-idea"])
    assert result.exit_code == 0, result.output
    assert "wrote ppgsl-bench-wild-idea/ppgsl_bench_wild_idea.py" in result.stdout
    assert "ppgsl-bench check ppgsl-bench-wild-idea/ppgsl_bench_wild_idea.py" in result.stdout
    with pytest.raises(UserError, match="exists already"):
        CliRunner().invoke(app, ["new", "defense", "wild-idea"], catch_exceptions=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["defence", "x"], "new defense NAME"),
        (["defense", "Wild Idea"], "lower-case words joined by hyphens"),
        (["defense", "edgerand"], "already"),
        (["attack", "cn"], "already"),
    ],
)
def test_bad_names_are_refused(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message):
        CliRunner().invoke(app, ["new", *arguments], catch_exceptions=False)
    assert not list(tmp_path.iterdir())


def test_a_checkout_is_recognised_from_inside(checkout, tmp_path):
    assert checkout_around(checkout / "defenses") == checkout
    assert checkout_around(tmp_path) is None
    assert checkout_around(ROOT / "docs") == ROOT
