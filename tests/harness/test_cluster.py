"""The same cells on a cluster, in shards and here: the same rows, also when workers die."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import distributed
import psutil
import pytest
from typer.testing import CliRunner

from ppgsl_bench import cluster as cluster_module
from ppgsl_bench.cli import app
from ppgsl_bench.cluster import ClusterCells, connect, room_on
from ppgsl_bench.datasets import Sources
from ppgsl_bench.errors import UserError
from ppgsl_bench.execute import Settings, execute
from ppgsl_bench.export import long_table
from ppgsl_bench.plan import choose, plan
from ppgsl_bench.processes import Limits
from ppgsl_bench.registry import load_plugin_file
from ppgsl_bench.store import Results

MISBEHAVING = Path(__file__).parents[1] / "plugins" / "misbehaving.py"
MEASURED = ["wall_seconds", "peak_host_bytes", "baseline_host_bytes", "finished", "revision", "processor"]
AXES = {"defenses": ("none", "random"), "attacks": ("degree", "random-vectors")}

PLUGINS = '''"""An attack that costs nothing but has an embedding, and one on the worker."""

import os
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import psutil

from ppgsl_bench.attacks import Attack, EmbeddingAttack, Encoder, Field, register


class RandomVectors(Encoder):
    """Noise."""

    name: ClassVar[str] = "random-vectors"
    version: ClassVar[int] = 1

    def embed(self, published, rng):
        return rng.random((published.num_nodes, 3)).astype(np.float32)


@register("random-vectors", version=1)
class RandomVectorProduct(EmbeddingAttack):
    """Inner product of noise."""

    encoder_class = RandomVectors

    def score_embedding(self, embedding, published, pairs, rng):
        return (embedding[pairs[:, 0]] * embedding[pairs[:, 1]]).sum(axis=1)


@register("kills-worker", version=1)
class KillsWorker(Attack):
    """Kills the worker whenever it is called, some times."""

    record: str = Field("", help="file that gets a line a call")
    times: int = Field(1, help="how often it kills")

    def score(self, published, pairs, rng):
        with open(self.record, "a") as file:
            file.write(f"{__file__}\\n")
        if len(Path(self.record).read_text().splitlines()) <= self.times:
            worker = psutil.Process(os.getppid()).parent()
            assert "spawn_main" in " ".join(worker.cmdline()), "that is no dask worker"
            worker.kill()
            time.sleep(60)
        return np.zeros(len(pairs))
'''


@pytest.fixture(scope="module", autouse=True)
def plugin(tmp_path_factory):
    path = tmp_path_factory.mktemp("plugins") / "cheap_and_deadly.py"
    path.write_text(PLUGINS)
    load_plugin_file(path)
    return path


@pytest.fixture(scope="module")
def three_workers():
    """A cluster of three processes, with a scheduler at an address of this machine."""
    with distributed.LocalCluster(
        n_workers=3,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
    ) as cluster:
        yield cluster


@pytest.fixture
def one_thread():
    """A cluster of one thread of this process: soon started."""
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
    ) as cluster:
        yield cluster


def run_on(scheduler, folder, *, cache_dir=None, plugins=(), seconds=120.0, observer=None, **axes):
    chosen = {"datasets": ("karate",), "utilities": (), "seeds": (0,), **axes}
    settings = Settings(
        jobs=2,
        limits=Limits(seconds),
        scheduler=scheduler,
        cache_dir=cache_dir,
        plugin_files=tuple(plugins),
    )
    with Results(folder).writing() as results:
        execute(plan(choose(**chosen), Sources(offline=True)), results, settings, observer)
        return results.rows()


def exported(rows):
    """All that an export says except times, memory and machine."""
    table = long_table(rows).drop(columns=MEASURED)
    return sorted(table.astype(str).itertuples(index=False, name=None))


def row_of(rows, attack):
    (row,) = (r for r in rows if r.kind == "attack" and r.evaluator == attack)
    return row


@pytest.fixture(scope="module")
def quiet(tmp_path_factory, plugin):
    """Rows of a run on this machine alone."""
    return run_on(None, tmp_path_factory.mktemp("quiet") / "results", plugins=[plugin], **AXES)


class KillsOneWorker:
    """An observer that kills a worker as soon as it sees one at work."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.killed = None

    def planned(self, remaining, done):
        threading.Thread(target=self._lie_in_wait, daemon=True).start()

    def started(self, cell):
        pass

    def finished(self, cell, row):
        pass

    def _lie_in_wait(self):
        while self.killed is None:
            for state in list(self.cluster.scheduler.workers.values()):
                if state.processing:
                    self.killed = self.cluster.workers[state.name].pid
                    os.kill(self.killed, signal.SIGKILL)
                    return
            time.sleep(0.01)


def test_a_cluster_that_loses_a_worker_gives_the_rows_of_this_machine(three_workers, quiet, plugin, tmp_path):
    killer = KillsOneWorker(three_workers)
    rows = run_on(three_workers.scheduler_address, tmp_path / "results", observer=killer, plugins=[plugin], **AXES)
    assert killer.killed is not None
    assert not psutil.pid_exists(killer.killed)
    assert exported(rows) == exported(quiet)
    assert {r.status for r in rows} == {"ok"}


def test_arrays_in_a_shared_folder_give_the_same_rows_and_come_to_the_results(one_thread, quiet, plugin, tmp_path):
    results, cache = tmp_path / "results", tmp_path / "cache"
    address = one_thread.scheduler_address
    rows = run_on(address, results, cache_dir=cache, plugins=[plugin], **AXES)
    assert exported(rows) == exported(quiet)
    objects = Results(results).objects
    for row in rows:
        for digest in row.artifacts.values():
            assert objects.get(digest)
    published = next(r for r in rows if r.kind == "publish" and r.defense == "random").artifacts["graph"]
    # One file is damaged where the workers see it, and another one where it is kept.
    damaged = cache / "objects" / published[:2] / f"{published}.npz"
    damaged.write_bytes(damaged.read_bytes()[:-7])
    split = next(r for r in rows if r.kind == "split").artifacts["queries"]
    objects.path(split).write_bytes(b"not what it was")
    (cache / "objects" / split[:2] / f"{split}.npz").unlink()
    again = run_on(address, results, cache_dir=cache, defenses=("random",), attacks=("edge-presence",))
    assert {r.status for r in again} == {"ok"}
    assert objects.get(split)
    assert list((tmp_path / "results" / "quarantine").iterdir())


def test_a_cell_that_kills_its_worker_is_tried_elsewhere_but_not_for_ever(three_workers, plugin, tmp_path):
    record = tmp_path / "record"
    attacks = (f"kills-worker[record={record},times=1000]", "degree")
    options = {"defenses": ("none",), "plugins": [plugin]}
    rows = run_on(three_workers.scheduler_address, tmp_path / "results", attacks=attacks, **options)
    assert row_of(rows, "degree").status == "ok"
    poison = row_of(rows, "kills-worker")
    assert (poison.status, poison.reason) == ("killed", "the worker that it ran on was lost, 3 times")
    assert len(record.read_text().splitlines()) == 3
    # Workers have the plugin as a file of their own: they need not see the client's.
    assert str(plugin) not in record.read_text()


def test_limits_hold_on_a_cluster_and_failures_are_rows(one_thread, tmp_path):
    load_plugin_file(MISBEHAVING)
    address, results = one_thread.scheduler_address, tmp_path / "results"
    attacks = ("bad-raises", "bad-exits", "degree")
    options = {"defenses": ("none",), "plugins": [MISBEHAVING]}
    rows = run_on(address, results, attacks=attacks, **options)
    assert row_of(rows, "bad-raises").reason == "ValueError: the reactor is leaking"
    assert "the reactor is leaking" in row_of(rows, "bad-raises").log
    assert row_of(rows, "bad-exits").reason == "the process exited with code 7 and without a result"
    assert row_of(rows, "degree").status == "ok"
    pidfile = tmp_path / "pid"
    rows = run_on(address, results, attacks=(f"bad-hangs[pidfile={pidfile}]",), seconds=4.0, **options)
    assert row_of(rows, "bad-hangs").reason == "exceeded the time limit of 4 s"
    assert is_gone(int(pidfile.read_text()))


def is_gone(pid, seconds=30.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


class Impatient:
    """An observer that does something once a file has appeared."""

    def __init__(self, file, act):
        self.file = file
        self.act = act

    def planned(self, remaining, done):
        threading.Thread(target=self._watch, daemon=True).start()

    def started(self, cell):
        pass

    def finished(self, cell, row):
        pass

    def _watch(self):
        while not (self.file.exists() and self.file.read_text()):
            time.sleep(0.02)
        self.act()


@pytest.mark.parametrize("event", ["interrupt", "scheduler"])
def test_when_the_run_is_cut_short_rows_are_kept_and_no_process_is_left(one_thread, tmp_path, event):
    load_plugin_file(MISBEHAVING)
    pidfile = tmp_path / "pid"
    act, expected = {
        "interrupt": (lambda: os.kill(os.getpid(), signal.SIGINT), pytest.raises(KeyboardInterrupt)),
        "scheduler": (one_thread.close, pytest.raises(UserError, match="lost the connection to the scheduler")),
    }[event]
    with expected:
        run_on(
            one_thread.scheduler_address,
            tmp_path / "results",
            defenses=("none",),
            attacks=(f"bad-hangs[pidfile={pidfile}]",),
            plugins=[MISBEHAVING],
            observer=Impatient(pidfile, act),
        )
    assert is_gone(int(pidfile.read_text()))
    assert {r.kind for r in Results(tmp_path / "results").rows()} == {"split", "publish"}


LOSES_ITS_SCHEDULER = """
import os, signal, sys, time
from ppgsl_bench.cluster import connect

client = connect(sys.argv[1])
os.kill(int(sys.argv[2]), signal.SIGKILL)
while client.status == "running":
    time.sleep(0.01)
time.sleep(1)  # it tries again, and again
client.close()
print("closed")
"""


def test_a_client_whose_scheduler_is_killed_prints_no_traceback(tmp_path):
    file, python = tmp_path / "scheduler.json", sys.executable
    options = ["--port", "0", "--no-dashboard", "--no-jupyter", "--scheduler-file", file]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([python, "-m", "dask", "scheduler", *options], **quiet) as scheduler:
        try:
            while not (file.exists() and file.read_text()):
                assert scheduler.poll() is None
                time.sleep(0.05)
            address = json.loads(file.read_text())["address"]
            command = [python, "-c", LOSES_ITS_SCHEDULER, address, str(scheduler.pid)]
            client = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        finally:
            scheduler.kill()
    assert (client.returncode, client.stdout) == (0, "closed\n"), client.stderr
    assert "Traceback" not in client.stderr


LOGS_ERRORS = """
import asyncio, contextlib, logging
from distributed.comm import CommClosedError
from ppgsl_bench.cluster import UserError, connect

with contextlib.suppress(UserError):
    connect("no scheduler")
for name in ("distributed.client", "distributed.worker", "tornado.application"):
    logger = logging.getLogger(name)
    for error in (CommClosedError("lost"), ConnectionRefusedError("lost"), asyncio.CancelledError("lost")):
        logger.error("lost", exc_info=error)
    for error in (KeyError("unrelated"), OSError("unrelated")):
        try:
            raise error
        except Exception:
            logger.exception("unrelated")
"""


def test_of_what_dask_logs_only_lost_connections_are_left_out():
    # In a process of its own: where logging is set up already, as by pytest, dask adds no handlers.
    log = subprocess.run([sys.executable, "-c", LOGS_ERRORS], capture_output=True, text=True, check=True).stderr
    assert "lost" not in log
    assert log.count("Traceback") == log.count("Error: ") == 6, log


def test_a_worker_of_another_version_is_refused(one_thread, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_module, "__version__", "0.0.1")
    with pytest.raises(UserError, match=r"but this is 0\.0\.1 .*install the same version"):
        run_on(one_thread.scheduler_address, tmp_path / "results", defenses=("none",), attacks=())
    assert {r.kind for r in Results(tmp_path / "results").rows()} == {"split"}


class FakeClient:
    """Remembers what is submitted, and does nothing."""

    def __init__(self):
        self.submitted = []

    def submit(self, function, task, **options):
        self.submitted.append(options)
        return self

    def add_done_callback(self, callback):
        pass

    def close(self):
        pass


@pytest.mark.parametrize(("device", "resources"), [("cpu", None), ("cuda", {"GPU": 1}), ("cuda:1", {"GPU": 1})])
def test_a_cell_on_a_gpu_asks_for_one_and_a_split_stays_here(tmp_path, device, resources):
    inputs = {"artifacts": {}, "plugin_files": (), "device": device}
    client = FakeClient()
    with ClusterCells(client, Limits(), Results(tmp_path).objects) as cells:
        cells.start("a", {"cell": {"kind": "split"}, "inputs": inputs})
        cells.start("b", {"cell": {"kind": "publish"}, "inputs": inputs})
        assert len(cells) == 2
    assert [options["resources"] for options in client.submitted] == [resources]


def test_a_cluster_without_gpus_is_refused_for_cells_that_need_one(one_thread):
    assert room_on(one_thread.scheduler_address, "cpu") == 1
    with pytest.raises(UserError, match="none of the 1 workers offers a GPU"):
        room_on(one_thread.scheduler_address, "cuda")


@pytest.mark.parametrize("scheduler", ["localhost:8786", "local", "local:", "local:0", "local:-1", "local:x"])
def test_what_is_no_scheduler_is_refused(scheduler):
    with pytest.raises(UserError, match=f"--scheduler {scheduler}: expected"):
        connect(scheduler)


def test_a_scheduler_that_does_not_answer_is_an_error_with_its_address(monkeypatch):
    monkeypatch.setattr(cluster_module, "_CONNECT_SECONDS", 0.2)
    with pytest.raises(UserError, match=r"--scheduler tcp://127\.0\.0\.1:1: cannot connect"):
        connect("tcp://127.0.0.1:1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scheduler", "local:2", "--jobs", "2"], "--jobs 2: with --scheduler"),
        (["--scheduler", "local:2", "--device", "auto"], "--device auto: on a cluster"),
        (["--cache-dir", "shared"], "--cache-dir shared: only the workers of a --scheduler"),
        (["--shard", "3/2"], "--shard 3/2: expected i/n"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path, monkeypatch, capsys, arguments, message):
    from ppgsl_bench.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["ppgsl-bench", "run", "--suite", "smoke", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")


def test_three_shards_merged_give_the_rows_of_this_machine(quiet, plugin, tmp_path):
    axes = ["--dataset", "karate", "--seeds", "1", "--offline", "--plugin", plugin]
    axes += ["--defense", ",".join(AXES["defenses"]), "--attack", ",".join(AXES["attacks"]), "--utility", "none"]
    for i in "123":
        invoke("run", *axes, "--shard", f"{i}/3", "--results", tmp_path / i)
    invoke("merge", *(tmp_path / i for i in "123"), "--results", tmp_path / "merged")
    with Results(tmp_path / "merged") as merged:
        assert exported(merged.rows()) == exported(quiet)
    parts = [Results(tmp_path / i).rows() for i in "123"]
    assert all(len(part) < len(quiet) for part in parts)


def invoke(*arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.slow
def test_the_smoke_suite_gives_the_same_rows_here_on_a_local_cluster_and_in_shards(tmp_path):
    suite = ["run", "--suite", "smoke", "--offline", "--timeout", "1h", "--results"]
    invoke(*suite, tmp_path / "here")
    invoke(*suite, tmp_path / "cluster", "--scheduler", "local:3")
    for i in "123":
        invoke(*suite, tmp_path / i, "--shard", f"{i}/3")
    invoke("merge", *(tmp_path / i for i in "123"), "--results", tmp_path / "merged")
    here, cluster, merged = (exported(Results(tmp_path / name).rows()) for name in ("here", "cluster", "merged"))
    assert here == cluster == merged
