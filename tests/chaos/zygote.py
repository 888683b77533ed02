"""Runs commands of ppgsl-bench in forks of itself: what takes seconds to import is imported once.

It reads requests from stdin, a JSON object a line, and answers with the process's id and then with how it ended. All is
as in a command of its own, but for the cells: they are forked from their supervisor rather than from a fork server,
which would have to import everything again.
"""

import gc
import io
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from types import SimpleNamespace

from points import Points, let_the_clock_jump
from rich.console import Console

from ppgsl_bench import execute, processes
from ppgsl_bench.cli import main
from ppgsl_bench.datasets import Sources
from ppgsl_bench.export import long_table
from ppgsl_bench.plan import choose, plan
from ppgsl_bench.progress import RunProgress
from ppgsl_bench.store import Results
from ppgsl_bench.tables import result_tables

sys.path.append(str(Path(__file__).parents[1]))
from in_process import InProcess


def warm_up():
    """Run some cells here, so that no fork has to import modules or to load compiled kernels."""
    names = {"datasets": ["karate"], "defenses": ["none", "random", "edgerand"], "attacks": ["cn", "aa", "ra"]}
    execute.CellProcesses, cell_processes = InProcess, execute.CellProcesses
    with tempfile.TemporaryDirectory() as folder, Results(Path(folder)).writing() as results:
        cells = plan(choose(**names, utilities=["structure"], seeds=[0]), Sources(offline=True))
        execute.execute(cells, results, execute.Settings())
        table = result_tables(results.rows())
        long_table(results.rows()).to_csv(io.StringIO())
    execute.CellProcesses = cell_processes
    RunProgress(Console(stderr=True), 1)
    return table


def serve():
    # As in the fork server: the collector would walk, and copy, all that the libraries hold.
    warm_up()
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            command(request)
        say({"pid": child})
        say({"code": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])})


def say(answer):
    print(json.dumps(answer), flush=True)


def command(request):
    os.chdir(request["cwd"])
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    processes.multiprocessing = SimpleNamespace(
        **{**vars(multiprocessing), "get_context": lambda _: multiprocessing.get_context("fork")}
    )
    processes.forkserver = SimpleNamespace(ensure_running=lambda: None)
    if request["clock_seed"] is not None:
        let_the_clock_jump(request["clock_seed"])
    Points(request["fault"], request["trace"], request["acknowledged"]).install()
    sys.argv = ["ppgsl-bench", *request["arguments"]]
    try:
        main()
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 1
    except BaseException:  # noqa: BLE001 - a traceback is what the suite looks for
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    serve()
