"""Faults of a dask cluster: a worker or the scheduler is killed while cells run on it."""

import importlib.util
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from world import judge

SUITE = ["run", "--dataset", "karate", "--defense", "none,random", "--attack", "cn,aa,ra", "--utility", "structure"]
COMMAND = Path(sys.executable).parent / "ppgsl-bench"
_DASK = [sys.executable, "-m", "dask"]
_PATIENCE_SECONDS = 600


def kill_a_worker(trial):
    """One of two workers dies while cells run: these run again on the other one, in the same command."""
    if not _has_dask(trial, "SIGKILL of a dask worker"):
        return
    tally = trial.account.tallies["SIGKILL of a dask worker"]
    tally.how = "one of two workers, each a process of its own, after the first rows"
    world = trial.world(SUITE)
    with _cluster(world.folder, workers=2) as (address, _, workers):
        run = _started(world, address)
        before = _wait_for_rows(world, run, 3)
        os.kill(workers[0].pid, signal.SIGKILL)
        assert run.wait(_PATIENCE_SECONDS) == 0, (world.folder / "cluster-output").read_text()
    _judge(tally, trial, world, before)


def kill_the_scheduler(trial):
    """The scheduler dies: the command says so and keeps its rows; with a new scheduler it goes on."""
    if not _has_dask(trial, "SIGKILL of a dask scheduler"):
        return
    tally = trial.account.tallies["SIGKILL of a dask scheduler"]
    tally.how = "after the first rows; the same command then goes on on this machine"
    world = trial.world(SUITE)
    with _cluster(world.folder, workers=1) as (address, scheduler, _):
        run = _started(world, address)
        before = _wait_for_rows(world, run, 3)
        os.kill(scheduler.pid, signal.SIGKILL)
        code = run.wait(_PATIENCE_SECONDS)
    output = (world.folder / "cluster-output").read_text()
    assert code == 2, output
    _judge(tally, trial, world, before)


def _judge(tally, trial, world, before):
    quiet = trial.world(SUITE)
    assert quiet.run().code == 0
    tally.tracebacks += "Traceback" in (world.folder / "cluster-output").read_text()
    judge(tally, world, quiet.exported(), before, [world.run()])


def _has_dask(trial, what):
    if importlib.util.find_spec("distributed") is not None:
        return True
    trial.account.left_out.append(f"{what}: dask.distributed is not installed")
    return False


@contextmanager
def _cluster(folder, workers):
    file = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    scheduler = subprocess.Popen(
        [*_DASK, "scheduler", "--port", "0", "--no-dashboard", "--no-jupyter", "--scheduler-file", file], **quiet
    )
    started = [scheduler]
    try:
        address = json.loads(_awaited(lambda: file.exists() and file.read_text()))["address"]
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", folder]
        started += [subprocess.Popen([*_DASK, "worker", address, *options], **quiet) for _ in range(workers)]
        yield address, scheduler, started[1:]
    finally:
        for process in started:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()


def _started(world, address):
    output = (world.folder / "cluster-output").open("w")
    arguments = [*world.arguments, "--scheduler", address, "--results", world.results]
    return subprocess.Popen([COMMAND, *arguments], stdout=output, stderr=output, cwd=world.folder)


def _wait_for_rows(world, run, count):
    """Keys of the rows when there are so many; a run that ended before it came to that has failed."""

    def keys():
        assert run.poll() is None, (world.folder / "cluster-output").read_text()
        with suppress(sqlite3.OperationalError):
            connection = sqlite3.connect(f"file:{world.results / 'rows.sqlite'}?mode=ro", uri=True)
            found = [key for (key,) in connection.execute("SELECT key FROM rows")]
            connection.close()
            return found if len(found) >= count else None

    return _awaited(keys)


def _awaited(something):
    for _ in range(_PATIENCE_SECONDS * 10):
        found = something()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("it did not come")
