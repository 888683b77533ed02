"""Processes of cells: how they begin and end."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from ppgsl_bench.processes import _resident_bytes

# A supervisor with a cell that would sleep for ten minutes; it prints the cell's process id.
SUPERVISOR = """
import time
from ppgsl_bench.processes import CellProcesses, Limits
with CellProcesses(time.sleep, Limits()) as processes:
    processes.start("cell", 600)
    (running,) = processes._running.values()
    print(running.process.pid, flush=True)
    processes.wait()
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_cell_does_not_outlive_its_supervisor(how):
    with subprocess.Popen([sys.executable, "-c", SUPERVISOR], stdout=subprocess.PIPE, text=True) as supervisor:
        cell = psutil.Process(int(supervisor.stdout.readline()))
        # Once the cell leads a group of its own, it has gone through its preparations.
        while os.getpgid(cell.pid) != cell.pid:
            time.sleep(0.01)
        time.sleep(0.2)
        supervisor.send_signal(how)
    cell.wait(timeout=60)


# A process whose grandchild, started from a thread that is not the first, holds 64 MiB; it says when that is there.
FAMILY = """
import subprocess, sys, threading, time
GRANDCHILD = "held = bytearray(b'x' * 2**26); print('ready', flush=True); input()"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {GRANDCHILD!r}])"
def start():
    subprocess.run([sys.executable, "-c", CHILD])
threading.Thread(target=start).start()
"""


def test_memory_of_a_cell_is_that_of_all_its_descendants():
    with subprocess.Popen(
        [sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as leader:
        assert leader.stdout.readline() == "ready\n"
        family = [psutil.Process(leader.pid), *psutil.Process(leader.pid).children(recursive=True)]
        expected = sum(process.memory_info().rss for process in family)
        found = _resident_bytes(leader.pid)
        leader.stdin.write("\n")
        leader.stdin.flush()
    assert len(family) == 3
    assert found == pytest.approx(expected, rel=0.05)
    assert found > 2**26
    assert _resident_bytes(leader.pid) == 0


def test_a_cell_may_end_while_its_memory_is_read(monkeypatch):
    def ended(folder, pattern):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))

    monkeypatch.setattr(Path, "glob", ended)
    assert _resident_bytes(os.getpid()) == 0


# What the fork server does, and then a cell; it prints the packages that the cell still had to load parts of.
CELL_AFTER_PRELOADING = """
import sys
from importlib import import_module
import_module("ppgsl_bench.{module}")
import_module("ppgsl_bench.preloaded")
loaded = set(sys.modules)
from ppgsl_bench.warm_up import TinyCase
from ppgsl_bench.graph import Graph
case = TinyCase(Graph.from_pairs(3, [(0, 1)]))
plugin = import_module("ppgsl_bench.{module}").{plugin}
{call}
print(*{{name.partition(".")[0] for name in set(sys.modules) - loaded}})
"""


@pytest.mark.parametrize(
    ("module", "plugin", "call"),
    [
        ("attacks.neighbours", "ResourceAllocation", "plugin().score(case.graph, case.pairs, case.rng)"),
        ("utilities.link_prediction", "LinkPrediction", "plugin(epochs=1).evaluate(case.graph, case.split, case.rng)"),
        ("metrics", "hits_at_k", "plugin([0, 1], [0.0, 1.0])"),
    ],
)
def test_the_server_has_loaded_what_libraries_load_on_first_use(module, plugin, call):
    program = CELL_AFTER_PRELOADING.format(module=module, plugin=plugin, call=call)
    # The first process compiles what nobody has compiled yet, for which numba loads more than to call it.
    for _ in range(2):
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"numba", "sympy", "pandas", "sklearn"} & set(result.stdout.split())
