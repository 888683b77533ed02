"""Whatever a plugin does wrong becomes a row that says so, and the run goes on."""

import os
import time
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("attack", "status", "reason"),
    [
        ("bad-raises", "failed", "the reactor is leaking"),
        ("bad-exits", "failed", "exited with code 7"),
        ("bad-nan", "failed", "NaN or infinite, the first at (3,)"),
        ("bad-count", "failed", "expected one score a pair"),
        ("bad-writes-input", "failed", "read-only"),
    ],
)
def test_an_attack_that_fails_becomes_a_row_and_others_go_on(run_cells, row_of, attack, status, reason):
    rows = run_cells(attacks=(attack, "cn"))
    bad = row_of(rows, attack)
    assert bad.status == status
    assert reason in bad.reason
    assert bad.metrics == {}
    assert row_of(rows, "cn").status == "ok"


def test_the_log_of_a_failure_has_the_traceback(run_cells, row_of):
    row = row_of(run_cells(attacks=("bad-raises",)), "bad-raises")
    assert "Traceback" in row.log
    assert "misbehaving.py" in row.log


def test_what_a_plugin_prints_does_not_reach_the_terminal(run_cells, row_of, capfd):
    rows = run_cells(attacks=("bad-prints",))
    assert row_of(rows, "bad-prints").status == "ok"
    captured = capfd.readouterr()
    assert "noise" not in captured.out + captured.err


def test_a_hanging_plugin_is_ended_with_everything_it_started(run_cells, row_of, tmp_path):
    pidfile = tmp_path / "pid"
    rows = run_cells(attacks=(f"bad-hangs[pidfile={pidfile}]", "cn"), seconds=4.0)
    row = row_of(rows, "bad-hangs")
    assert row.status == "timeout"
    assert "time limit of 4 s" in row.reason
    assert row_of(rows, "cn").status == "ok"
    grandchild = int(pidfile.read_text())
    for _ in range(50):
        if not _alive(grandchild):
            return
        time.sleep(0.1)
    pytest.fail("the process that the plugin started is still there")


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z" and os.path.exists(f"/proc/{pid}")


def test_a_plugin_that_allocates_without_end_meets_the_memory_limit(run_cells, row_of):
    rows = run_cells(attacks=("bad-allocates", "cn"), memory=1500 * 2**20)
    row = row_of(rows, "bad-allocates")
    assert row.status == "out-of-memory"
    assert "1,500 MiB" in row.reason
    assert row_of(rows, "cn").status == "ok"


@pytest.mark.parametrize(
    ("defense", "reason"),
    [
        ("bad-loops", "self-loops: row"),
        ("bad-nodes", "returned 35 nodes; the input has 34"),
        ("bad-type", "expected a Graph"),
    ],
)
def test_a_defense_that_publishes_nonsense_fails_and_blocks_its_evaluations(run_cells, row_of, defense, reason):
    rows = run_cells(defenses=(defense, "none"))
    assert reason in row_of(rows, defense=defense).reason
    blocked = row_of(rows, "cn", defense)
    assert blocked.status == "blocked"
    assert reason in blocked.reason
    assert row_of(rows, "cn").status == "ok"


def test_a_refusal_is_a_result_not_a_failure(run_cells, row_of):
    rows = run_cells(defenses=("refuses",))
    for row in (row_of(rows, defense="refuses"), row_of(rows, "cn", "refuses")):
        assert (row.status, row.reason) == ("inapplicable", "it is too small for me")


def test_a_defense_that_does_not_declare_it_is_not_shown_the_sensitive_pairs(run_cells, row_of):
    rows = run_cells(defenses=("sees-sensitive",))
    assert row_of(rows, defense="sees-sensitive").metrics["sensitive_published"] == 0
