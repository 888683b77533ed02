"""The commands as a user types them."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ppgsl_bench.cli import app

COMMAND = [str(Path(sys.executable).parent / "ppgsl-bench")]
SMALL = ["run", "--dataset", "karate", "--defense", "none,random", "--attack", "cn,ra", "--utility", "structure"]

PLUGIN = '''"""A defense of twenty lines, outside the repository."""

from ppgsl_bench.defenses import Defense, Field, register


@register("thin-out", version=1)
class ThinOut(Defense):
    """Publish a random part of the links."""

    keep: float = Field(0.5, ge=0, le=1, help="share of links that stay")

    sweep = [{"keep": k} for k in (0.9, 0.6, 0.3)]

    def publish(self, graph, sensitive, rng):
        chosen = rng.random(graph.num_edges) < self.keep
        return graph.with_edges(graph.edges[chosen])
'''


def ppgsl_bench(*arguments, cwd, code=0, environment=None):
    result = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, **(environment or {})},
        timeout=300,
        check=False,
    )
    assert result.returncode == code, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result


def exported(folder, results="results"):
    """All that an export says except times, memory and machine."""
    path = folder / "export.csv"
    ppgsl_bench("export", path, "--results", results, cwd=folder)
    # The revision is that of the checkout, in which somebody may commit while the tests run.
    aside = {"wall_seconds", "peak_host_bytes", "baseline_host_bytes", "finished", "revision"}
    with path.open() as file:
        return sorted(tuple((k, v) for k, v in row.items() if k not in aside) for row in csv.DictReader(file))


def test_a_run_ends_with_a_table_and_says_where_the_rows_are(tmp_path):
    result = ppgsl_bench(*SMALL, "--seeds", "2", cwd=tmp_path)
    assert "cn auc" in result.stdout
    assert "random" in result.stdout
    assert "rows: results/rows.sqlite" in result.stdout
    assert "to run" in result.stderr
    again = ppgsl_bench(*SMALL, "--seeds", "2", cwd=tmp_path)
    assert "18 cells are done already" in again.stderr
    assert again.stdout == result.stdout
    listed = json.loads(ppgsl_bench(*SMALL, "--dry-run", "--json", cwd=tmp_path).stdout)
    assert {cell["state"] for cell in listed} == {"done"}
    assert len(listed) == 9


def test_publishing_alone(tmp_path):
    plan = ["run", "--dataset", "karate", "--defense", "none", "--attack", "none", "--utility", "none", "--dry-run"]
    listed = json.loads(ppgsl_bench(*plan, "--json", cwd=tmp_path).stdout)
    assert [cell["kind"] for cell in listed] == ["split", "publish"]


def test_the_long_export_has_the_promised_columns(tmp_path):
    ppgsl_bench(*SMALL, cwd=tmp_path)
    lines = exported(tmp_path)
    header = (tmp_path / "export.csv").read_text().splitlines()[0]
    assert header.startswith(
        "dataset,seed,defense,defense_params,kind,evaluator,evaluator_params,metric,value,"
        "status,wall_seconds,peak_host_bytes,peak_gpu_bytes"
    )
    kinds = {(dict(line)["kind"], dict(line)["metric"]) for line in lines}
    assert {("publish", "links_kept"), ("publish", "links_added"), ("publish", "links_removed")} <= kinds
    assert {("attack", "auc"), ("attack", "auc_hard"), ("attack", "auc_degree")} <= kinds
    assert {kind for kind, _ in kinds} == {"publish", "attack", "utility"}
    for suffix in ("jsonl", "parquet"):
        ppgsl_bench("export", f"rows.{suffix}", cwd=tmp_path)
        assert (tmp_path / f"rows.{suffix}").stat().st_size > 1000


def test_a_plugin_file_outside_the_repository_takes_part(tmp_path):
    (tmp_path / "thin_out.py").write_text(PLUGIN)
    arguments = ["run", "--plugin", "thin_out.py", "--defense", "thin-out[sweep],none", "--attack", "cn"]
    result = ppgsl_bench(*arguments, "--dataset", "karate", "--utility", "structure", cwd=tmp_path)
    assert "thin-out[keep=0.3]" in result.stdout
    described = ppgsl_bench("list", "defenses", "thin-out", "--plugin", "thin_out.py", cwd=tmp_path).stdout
    assert "share of links that stay" in described


def test_files_of_the_user_do_not_take_the_place_of_modules(tmp_path):
    for name in ("random", "struct", "attacks", "ppgsl_bench"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('imported from the wrong place')")
    ppgsl_bench(*SMALL, cwd=tmp_path)


def test_failed_cells_give_exit_code_one_and_can_be_retried(tmp_path):
    flag = tmp_path / "mended"
    (tmp_path / "flaky.py").write_text(
        "import os\nimport numpy as np\n"
        "from ppgsl_bench.attacks import Attack, register\n\n"
        '@register("flaky", version=1)\n'
        "class Flaky(Attack):\n"
        '    """Works once the flag is there."""\n\n'
        "    def score(self, published, pairs, rng):\n"
        f"        if not os.path.exists({str(flag)!r}):\n"
        "            raise RuntimeError('no flag')\n"
        "        return np.zeros(len(pairs))\n"
    )
    plugin = ["--plugin", "flaky.py"]
    arguments = [
        "run",
        *plugin,
        "--defense",
        "none",
        "--attack",
        "flaky,cn",
        "--dataset",
        "karate",
        "--utility",
        "structure",
    ]
    failed = ppgsl_bench(*arguments, cwd=tmp_path, code=1)
    assert "1 cells failed" in failed.stdout
    assert "RuntimeError: no flag" in failed.stdout
    assert "ppgsl-bench retry" in failed.stderr
    key = failed.stderr.partition("ppgsl-bench show ")[2].split()[0]
    shown = json.loads(ppgsl_bench("show", key, "--json", cwd=tmp_path).stdout)
    assert shown["status"] == "failed"
    assert "RuntimeError: no flag" in shown["log"]
    ppgsl_bench(*arguments, cwd=tmp_path, code=1)
    flag.touch()
    mended = ppgsl_bench("retry", *plugin, cwd=tmp_path)
    assert "flaky auc" in mended.stdout
    assert "no failed cells" in ppgsl_bench("retry", *plugin, cwd=tmp_path).stdout


def test_merging_two_machines_gives_the_rows_of_one(tmp_path):
    ppgsl_bench(*SMALL, "--seeds", "2", "--results", "whole", cwd=tmp_path)
    for seed in "01":
        ppgsl_bench(*SMALL, "--seeds", f"{seed},", "--results", f"part{seed}", cwd=tmp_path)
    report = ppgsl_bench("merge", "part0", "part1", "part0", "--results", "merged", "--json", cwd=tmp_path)
    assert [r["added"] for r in json.loads(report.stdout)] == [9, 9, 0]
    assert exported(tmp_path, "merged") == exported(tmp_path, "whole")
    again = ppgsl_bench(*SMALL, "--seeds", "2", "--results", "merged", cwd=tmp_path)
    assert "18 cells are done already" in again.stderr


def interrupted_run(folder, arguments, seconds, kill):
    process = subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    time.sleep(seconds)
    process.send_signal(kill)
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors


def assert_killing_loses_nothing(folder, kills, arguments):
    """Kill at moments spread over the time that the machine takes for a whole run, however fast or busy it is."""
    begun = time.monotonic()
    ppgsl_bench(*arguments, "--results", "quiet", cwd=folder)
    seconds = time.monotonic() - begun
    draw = random.Random(0)
    killed = 0
    for number in range(kills):
        # What is done stays done, so the n-th run is shorter than the first: each is killed in its own first part.
        moment = draw.uniform(0, seconds / 2) if number else seconds / 2
        code, _ = interrupted_run(folder, [*arguments, "--results", "killed"], moment, signal.SIGKILL)
        killed += code == -signal.SIGKILL
    ppgsl_bench(*arguments, "--results", "killed", cwd=folder)
    assert killed >= kills // 3
    assert exported(folder, "killed") == exported(folder, "quiet")


def test_kill_9_loses_nothing(tmp_path):
    assert_killing_loses_nothing(tmp_path, 3, [*SMALL, "--seeds", "8"])


@pytest.mark.slow
def test_kill_9_twenty_times_loses_nothing(tmp_path):
    assert_killing_loses_nothing(tmp_path, 20, [*SMALL, "--seeds", "60"])


def test_ctrl_c_keeps_finished_cells_and_exits_with_130(tmp_path):
    arguments = [*SMALL, "--seeds", "200"]
    for seconds in (8, 16, 32, 64):
        code, errors = interrupted_run(tmp_path, arguments, seconds, signal.SIGINT)
        assert code == 130
        assert "Traceback" not in errors
        if (tmp_path / "results" / "rows.sqlite").exists():
            break
    assert "finished cells are kept" in errors
    states = json.loads(ppgsl_bench(*arguments, "--dry-run", "--json", cwd=tmp_path).stdout)
    assert "done" in {cell["state"] for cell in states}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--defense", "edgerandd"], "did you mean 'edgerand'"),
        (["run", "--defense", "edgerand[eps=1]"], "has no parameter 'eps'"),
        (["run", "--suite", "quik"], "did you mean 'quick'"),
        (["run", "--seeds", "0"], "--seeds '0'"),
        (["run", "--timeout", "soon"], "'soon' is not a duration"),
        (["run", "--memory", "much"], "'much' is not a size"),
        (["run", "--dataset", "no/such.csv"], "no/such.csv"),
        (["run", "--device", "tpu"], "expected cpu, cuda, cuda:N or auto"),
        (["run", "--plugin", "absent.py"], "no such file"),
        (["run", "--data-dir", "absent"], "no such folder"),
        (["run", "--dataset", "cora", "--offline"], "Cora/raw"),
        (["list", "cakes"], "choose from defenses, attacks"),
        (["show", "abc"], "there are no results in results"),
        (["export", "x.csv"], "there are no results in results"),
        (["merge", "nowhere"], "there are no results in nowhere"),
        (["datasets", "burn"], "the only action is `fetch`"),
    ],
)
def test_bad_usage_is_one_clear_line_and_exit_code_two(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PPGSL_BENCH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "argv", ["ppgsl-bench", *arguments])
    from ppgsl_bench.cli import main

    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.startswith("error: ")


@pytest.mark.parametrize("kind", ["defenses", "attacks", "utilities", "datasets", "suites"])
def test_list_answers_in_json_and_in_words(kind):
    runner = CliRunner()
    listed = json.loads(runner.invoke(app, ["list", kind, "--json"]).stdout)
    assert all(entry["name"] and entry["what it is"] for entry in listed)
    described = runner.invoke(app, ["list", kind, listed[0]["name"]])
    assert described.exit_code == 0
    assert json.loads(runner.invoke(app, ["list", kind, listed[0]["name"], "--json"]).stdout)


def test_help_teaches():
    shown = CliRunner().invoke(app, ["run", "--help"], env={"COLUMNS": "200"}).stdout
    for word in ("--defense", "--dry-run", "resumes", "Examples"):
        assert word in shown
