"""Every check is seen to fail, on a plugin that breaks that rule and no other; and sound plugins pass."""

import json
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from contribute.broken_plugins import (
    ATTACK,
    BROKEN_ATTACKS,
    BROKEN_DEFENSES,
    BROKEN_EMBEDDING_ATTACKS,
    DEFENSE,
    EMBEDDING_ATTACK,
    Broken,
)
from forgetting import forgetting_plugin_files
from typer.testing import CliRunner

from ppgsl_bench import attacks, defenses
from ppgsl_bench.cli import app
from ppgsl_bench.contribute import checking, graph_checks
from ppgsl_bench.contribute.checking import check_apart, check_here, check_plugin
from ppgsl_bench.contribute.subject import find_subjects
from ppgsl_bench.contribute.verdicts import checks_for
from ppgsl_bench.errors import UserError

# One of the broken plugins divides by zero on purpose, and must be left to its check.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::ResourceWarning")

CASES = [
    *((DEFENSE, "defense", broken) for broken in BROKEN_DEFENSES),
    *((ATTACK, "attack", broken) for broken in BROKEN_ATTACKS),
    *((EMBEDDING_ATTACK, "attack", broken) for broken in BROKEN_EMBEDDING_ATTACKS),
]
FAST_DEFENSES = ("none", "random", "edgerand", "dice", "lapgraph", "rw-lp")
FAST_ATTACKS = ("cn", "aa", "ra", "katz", "degree", "feature-cos")


@pytest.fixture
def subject_in(tmp_path, monkeypatch):
    """Write a plugin into a file of its own and find it; the registries forget it afterwards."""
    monkeypatch.chdir(tmp_path)

    def find(text, name):
        path = tmp_path / "plugin.py"
        path.write_text(text.replace("NAME", name))
        (subject,) = find_subjects(str(path))
        return subject

    with forgetting_plugin_files():
        yield find


@pytest.mark.parametrize(("sound", "name"), [(DEFENSE, "sound-d"), (ATTACK, "sound-a"), (EMBEDDING_ATTACK, "sound-e")])
def test_a_sound_plugin_passes_every_check(subject_in, sound, name):
    report = check_here(subject_in(sound, name))
    assert report.conforms, str(report)


@pytest.mark.parametrize(
    ("sound", "kind", "broken"), CASES, ids=[f"{kind}-{broken.check}" for _, kind, broken in CASES]
)
def test_exactly_the_check_of_the_broken_rule_fails(subject_in, sound, kind, broken):
    report = check_here(subject_in(broken.text(sound, kind), f"broken-{broken.check}"))
    assert [verdict.check for verdict in report.failures] == [broken.check], str(report)
    (verdict,) = report.failures
    assert verdict.message
    assert verdict.hint


@pytest.mark.parametrize("kind", ["defense", "attack"])
def test_every_check_has_a_plugin_that_it_alone_catches(kind):
    names = [check.name for check in checks_for(kind)]
    assert len(names) >= 25
    assert sorted(names) == sorted(broken.check for _, of_kind, broken in CASES if of_kind == kind)
    assert all(check.rule and check.hint for check in checks_for(kind))


@pytest.mark.parametrize("name", [*FAST_DEFENSES, *FAST_ATTACKS])
def test_built_in_plugins_conform(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    registry = defenses.registry if name in FAST_DEFENSES else attacks.registry
    report = check_plugin(registry.get(name))
    assert report.conforms, str(report)


def test_memory_that_the_forking_process_writes_to_is_not_the_plugins(monkeypatch):
    monkeypatch.setattr(graph_checks, "MOST_BYTES", 50_000_000)
    ours = np.ones(200_000_000, dtype=np.uint8)
    writing = threading.Timer(0.5, ours.fill, [2])
    writing.start()
    _, finished = graph_checks._peak_apart(lambda: time.sleep(2), 10)
    writing.join()
    assert finished
    peak, finished = graph_checks._peak_apart(lambda: [np.ones(200_000_000, dtype=np.uint8), time.sleep(2)], 10)
    assert not finished
    assert peak > graph_checks.MOST_BYTES


def test_a_plugin_that_hangs_or_crashes_is_a_verdict(subject_in, tmp_path, monkeypatch):
    monkeypatch.setattr(checking, "CHECK_SECONDS", 8)
    deadly = Broken(
        "",
        first="if graph.num_edges == 1:\n    os._exit(3)\nif graph.num_edges == 0:\n    time.sleep(600)",
        imports="import os\nimport time",
    )
    subject_in(deadly.text(DEFENSE, "defense"), "deadly")
    heard = []
    report = check_apart(str(tmp_path / "plugin.py"), "Sound", heard.append)
    failures = {verdict.check: verdict.message for verdict in report.failures}
    assert set(failures) == {"works-on-a-single-link", "works-without-links"}
    assert "code 3" in failures["works-on-a-single-link"]
    assert "not returned after 8 s" in failures["works-without-links"]
    assert {verdict.check for verdict in heard} == {verdict.check for verdict in report.verdicts}
    assert [v.check for v in report.verdicts] == [c.name for c in checks_for("defense")]
    not_run = [v.check for v in report.verdicts if v.message.startswith("not run")]
    assert not_run, "after two deaths the rest of the group is left alone"


def test_the_command_reports_and_exits(subject_in, tmp_path):
    (broken,) = (b for b in BROKEN_ATTACKS if b.check == "states-its-knowledge")
    subject_in(broken.text(ATTACK, "attack"), "speechless")
    result = CliRunner().invoke(app, ["check", "plugin.py", "--json"])
    assert result.exit_code == 1, result.output
    (document,) = json.loads(result.stdout)
    assert document["plugin"] == "speechless"
    assert document["kind"] == "attack"
    assert not document["conforms"]
    assert [c["check"] for c in document["checks"] if c["outcome"] == "fail"] == ["states-its-knowledge"]
    assert all(c["hint"] for c in document["checks"] if c["outcome"] == "fail")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("egderand", "did you mean 'edgerand'"),
        ("missing.py", "no such file"),
        ("no_such_module:Thing", "cannot import"),
        ("json:Nothing", "has no 'Nothing'"),
        ("json:JSONDecoder", "not a plugin class"),
        (f"folder{os.sep}", "no such file"),
    ],
)
def test_what_cannot_be_found_is_said(target, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message):
        find_subjects(target)


def test_a_file_of_the_repository_is_the_plugin_of_that_name():
    (subject,) = find_subjects(str(Path(defenses.__file__).parent / "random.py"))
    assert subject.cls is defenses.registry.get("random")
    assert subject.is_built_in


def test_a_class_can_be_named_by_its_import_path():
    (subject,) = find_subjects("ppgsl_bench.defenses.random:RandomRewiring")
    assert subject.cls.name == "random"
