"""What tens of thousands of tiny cells cost the supervisor, and how that grows with their number.

    python tests/perf/load_harness.py                            # the supervisor's own part, up to 50,000 cells
    python tests/perf/load_harness.py --real 500,1000,2000,4000  # cells of an attack that does nothing, in processes

In the first the cells are real (planned, stored, resumed, exported, ranked) but for their work, which returns canned
metrics in the supervisor's own process. Times are of the processor, user and system, so that waiting for others does
not count. All sizes are measured in turn, each in a process of its own, for several rounds; the least of a part counts,
since what others do on the machine (caches, shared cores) can only add to it. An exponent is the slope of log time over
log cells, 1 if the cost of a cell does not depend on how many there are.
"""

import argparse
import gc
import hashlib
import io
import json
import multiprocessing
import os
import platform
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import psutil

sys.path.append(str(Path(__file__).parents[1]))

from in_process import InProcess
from rich.console import Console

from ppgsl_bench import execute
from ppgsl_bench.datasets import Sources
from ppgsl_bench.export import export
from ppgsl_bench.leaderboard.measurements import Measurements
from ppgsl_bench.leaderboard.ranking import rank
from ppgsl_bench.leaderboard.sources import board_rows
from ppgsl_bench.leaderboard.tables import ranking_text
from ppgsl_bench.plan import choose, plan
from ppgsl_bench.processes import Limits
from ppgsl_bench.progress import RunProgress
from ppgsl_bench.registry import load_plugin_file
from ppgsl_bench.store import Results

NOOP = Path(__file__).parents[1] / "plugins" / "noop.py"

# Far more than a cell takes: on a machine with more to do, one that waits for its turn is not a failure.
TIME_LIMIT_SECONDS = 3600

# 83 settings of 3 defenses, 9 attacks and 2 utility tasks on 5 graphs: 4,985 cells a seed.
DATASETS = [f"synthetic[seed={i}]" for i in range(5)]
DEFENSES = [
    "none",
    *(f"random[rate={i / 100}]" for i in range(1, 42)),
    *(f"edgerand[epsilon={i / 4}]" for i in range(1, 42)),
]
UTILITIES = ["link-prediction", "structure"]
ATTACKS = ["cn", "aa", "ra", *(f"noop[index={i}]" for i in range(6))]
METRICS = [f"auc_{name}" for name in ("degree", "hard", "near", "far", *map(str, range(26)))]

# What leaves everything as it was is timed so often in each round.
REPEATS = 3


def canned(request):
    """What a cell of that kind might report; its numbers depend on its key alone."""
    cell = request["cell"]
    draw = np.random.default_rng(int(cell["key"][:15], 16))
    names = {"attack": ["auc", *METRICS], "utility": ["auc", "floor_auc", "edge_jaccard"], "publish": ["links"]}
    digest = hashlib.sha256(cell["key"].encode()).hexdigest()
    return {
        "status": "ok",
        "metrics": {name: float(draw.uniform(0.5, 1)) for name in names.get(cell["kind"], ["nodes"])},
        "wall_seconds": float(draw.exponential(0.01)),
        "peak_host_bytes": int(draw.integers(2**24)),
        "baseline_host_bytes": 2**28,
        "artifacts": {"graph" if cell["kind"] in {"split", "publish"} else "scores": digest},
        "digests": {"split": {"dataset": digest, "split": digest}, "publish": {"published": digest}}.get(
            cell["kind"], {}
        ),
    }


class Clock:
    """Processor seconds of what it surrounds, by name."""

    def __init__(self):
        self.seconds = {}

    def __call__(self, name, work, times=1):
        """The least of so many times."""
        taken = []
        for _ in range(times):
            gc.collect()
            begun = time.process_time()
            result = work()
            taken.append(time.process_time() - begun)
        self.seconds[name] = min(taken)
        return result


def resident():
    return psutil.Process().memory_info().rss


def supervisor(seeds, folder):
    """Processor seconds of each part for so many seeds; growth of memory while running."""
    clock = Clock()
    execute.CellProcesses = lambda _, limits, capacity, preload: InProcess(canned, limits, capacity)
    names = {"datasets": DATASETS, "defenses": DEFENSES, "attacks": ATTACKS, "utilities": UTILITIES}
    chosen = choose(**names, seeds=range(seeds))
    cells = clock("plan", lambda: plan(chosen, Sources(offline=True)), REPEATS)
    settings = execute.Settings()

    def run():
        # The progress of a terminal, which says at every cell how long it will take.
        console = Console(file=io.StringIO(), force_terminal=True)
        with Results(folder).writing() as results, RunProgress(console, 1) as progress:
            execute.execute(cells, results, settings, progress)

    before = resident()
    clock("run", run)
    growth = resident() - before
    with Results(folder).writing() as again:
        clock("resume scan", lambda: execute.execute(cells, again, settings), REPEATS)
    clock("export to CSV", lambda: export(Results(folder).rows(), folder / "rows.csv"))

    def leaderboard():
        measurements = Measurements(board_rows([folder]))
        return ranking_text(rank(measurements), "table", None)

    clock("leaderboard", leaderboard, REPEATS)
    return {"cells": len(cells), "seconds": clock.seconds, "growth_bytes": growth}


def real(count, folder):
    """Processor seconds of the supervisor, and of it and its cells, for so many cells in processes of their own."""
    attacks = [f"noop[index={i}]" for i in range(count)]
    chosen = choose(datasets=["karate"], defenses=["none"], attacks=attacks, utilities=[], seeds=[0])
    cells = plan(chosen, Sources(offline=True))
    settings = execute.Settings(jobs=1, limits=Limits(TIME_LIMIT_SECONDS, 2**32), plugin_files=(NOOP,))
    with Results(folder).writing() as results:
        execute.execute(cells[:2], results, settings)
        files, memory, own, wall = _open_files(), resident(), time.process_time(), time.perf_counter()
        execute.execute(cells, results, settings)
    seconds = {"supervisor": time.process_time() - own, "wall clock": time.perf_counter() - wall}
    more = {"growth_bytes": resident() - memory, "open_files": _open_files() - files}
    return {"cells": len(cells) - 2, "seconds": seconds, **more}


def _open_files():
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0


def measured(what, size, parent):
    """One measurement in this process, with how busy the machine was."""
    load_plugin_file(NOOP)
    with tempfile.TemporaryDirectory(dir=parent) as folder, redirect_stderr(io.StringIO()):
        return {**what(size, Path(folder)), "load_average": os.getloadavg()[0]}


def in_rounds(what, sizes, rounds, parent):
    """Every size in turn, again and again; yields the size and what was measured."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as alone:
        for _ in range(rounds):
            for size in sizes:
                yield size, alone.submit(measured, what, size, parent).result()


def least(runs):
    """Of the rounds of one size: the least time of each part, and the largest growth."""
    largest = {name: max(run[name] for run in runs) for name in ("growth_bytes", "open_files") if name in runs[0]}
    seconds = {part: min(run["seconds"][part] for run in runs) for part in runs[0]["seconds"]}
    return {"cells": runs[0]["cells"], "seconds": seconds, **largest}


def exponents(runs):
    """Slope of log time over log size, by part."""
    sizes = np.log([run["cells"] for run in runs])
    return {
        part: float(np.polyfit(sizes, np.log([run["seconds"][part] for run in runs]), 1)[0])
        for part in runs[0]["seconds"]
    }


def report(how, rounds):
    """The document that is written: all rounds in few words, by size."""
    every = [run for runs in rounds.values() for run in runs]
    load = [run["load_average"] for run in every]
    runs = [least(runs) for runs in rounds.values()]
    return {
        "how": how,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "cores": os.cpu_count(),
        "rounds": min(len(runs) for runs in rounds.values()),
        "load_average": [round(min(load), 1), round(max(load), 1)],
        "runs": runs,
        "exponents": exponents(runs) if len(runs) > 1 else {},
    }


def say(run):
    count = run["cells"]
    figures = ", ".join(f"{part} {s:.2f} s ({s / count * 1e3:.3f} ms a cell)" for part, s in run["seconds"].items())
    more = f", open files {run['open_files']:+d}" if "open_files" in run else ""
    memory = f"{run['growth_bytes'] / 2**20:+.0f} MiB ({run['growth_bytes'] / count:.0f} B a cell)"
    print(f"{count} cells: {figures}; memory {memory}{more}; load {run['load_average']:.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1,3,10", help="sizes of the supervisor's part, 4,985 cells a seed")
    parser.add_argument("--real", help="numbers of cells in processes of their own, instead")
    parser.add_argument("--rounds", type=int, default=3, help="how often each size is measured")
    parser.add_argument("--folder", help="where results are put for the time being; by default the system's choice")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well, after each measurement")
    options = parser.parse_args()
    what, given = (real, options.real) if options.real else (supervisor, options.seeds)
    rounds = defaultdict(list)
    for size, run in in_rounds(what, [int(text) for text in given.split(",")], options.rounds, options.folder):
        rounds[size].append(run)
        say(run)
        if options.json:
            options.json.write_text(json.dumps(report(what.__name__, rounds), indent=2) + "\n")
    slopes = report(what.__name__, rounds)["exponents"]
    print("exponents:", ", ".join(f"{part} {slope:.2f}" for part, slope in slopes.items()))


if __name__ == "__main__":
    main()
