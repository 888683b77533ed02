import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

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
