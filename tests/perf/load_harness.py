"""What tens of thousands of tiny cells cost the supervisor, and how that grows with their number.

    python tests/perf/load_harness.py                       # the supervisor's own part, up to 50,000 cells
    python tests/perf/load_harness.py --fill                # the same, rows put in at one go: no run and no export
    python tests/perf/load_harness.py --real 500,1000,2000  # cells of an attack that does nothing, in their processes

In the first the cells are real (planned, stored, resumed, exported, ranked) but for their work, which returns canned
metrics in the supervisor's own process. Times are of the processor, so that a busy machine does not count; an exponent
is the slope of log time over log cells, 1 if the cost of a cell does not depend on how many there are.
"""

import argparse
import gc
import hashlib
import io
import json
import os
import sys
import tempfile
import time
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
from ppgsl_bench.store import Results, _checksum

NOOP = Path(__file__).parents[1] / "plugins" / "noop.py"

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

# What leaves everything as it was is timed so often, and the least counts.
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
        """The least of so many times: what others do on the machine can only add to it."""
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


def supervisor(seeds, folder, *, fill=False):
    """Processor seconds of each part for so many seeds; cells; growth of memory while running."""
    clock = Clock()
    execute.CellProcesses = lambda _, limits, capacity, preload: InProcess(canned, limits, capacity)
    names = {"datasets": DATASETS, "defenses": DEFENSES, "attacks": ATTACKS, "utilities": UTILITIES}
    chosen = choose(**names, seeds=range(seeds))
    cells = clock("plan", lambda: plan(chosen, Sources(offline=True)), REPEATS)
    settings = execute.Settings(limits=Limits(60, 2**32))
    before = resident()
    results = Results(folder).writing()

    def run():
        # The progress of a terminal, which says at every cell how long it will take.
        console = Console(file=io.StringIO(), force_terminal=True)
        with RunProgress(console, 1) as progress:
            execute.execute(cells, results, settings, progress)

    if fill:
        put_in_at_one_go(cells, results, settings)
    else:
        clock("run", run)
    growth = resident() - before
    results.close()
    with Results(folder).writing() as again:
        clock("resume scan", lambda: execute.execute(cells, again, settings), REPEATS)
    if not fill:
        clock("export to CSV", lambda: export(Results(folder).rows(), folder / "rows.csv"))

    def leaderboard():
        measurements = Measurements(board_rows([folder]))
        return ranking_text(rank(measurements), "table", None)

    clock("leaderboard", leaderboard, REPEATS)
    return len(cells), clock.seconds, growth


def put_in_at_one_go(cells, results, settings):
    """Store the rows of all cells in one transaction, for measuring what comes after a run alone."""
    rows = []
    results.put = rows.append
    execute.execute(cells, results, settings)
    del results.put
    documents = ((row.key, row.to_json()) for row in rows)
    results._change(
        "INSERT INTO rows (key, document, checksum) VALUES (?, ?, ?)",
        [(key, document, _checksum(key, document)) for key, document in documents],
    )


def real(count, folder):
    """Processor seconds of the supervisor, and of everything, for so many cells in processes of their own."""
    load_plugin_file(NOOP)
    attacks = [f"noop[index={i}]" for i in range(count)]
    chosen = choose(datasets=["karate"], defenses=["none"], attacks=attacks, utilities=[], seeds=[0])
    cells = plan(chosen, Sources(offline=True))
    settings = execute.Settings(jobs=1, limits=Limits(60, 2**32), plugin_files=(NOOP,))
    with Results(folder).writing() as results:
        execute.execute(cells[:2], results, settings)
        files, memory, own, wall = _open_files(), resident(), time.process_time(), time.perf_counter()
        execute.execute(cells, results, settings)
    seconds = {"supervisor": time.process_time() - own, "wall clock": time.perf_counter() - wall}
    return len(cells) - 2, seconds, resident() - memory, _open_files() - files


def _open_files():
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0


def exponents(sizes, times):
    """Slope of log time over log size, by part."""
    return {
        part: float(np.polyfit(np.log(sizes), np.log([t[part] for t in times]), 1)[0])
        for part in (times[0] if times else ())
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1,3,10", help="sizes of the supervisor's part, 4,985 cells a seed")
    parser.add_argument("--fill", action="store_true", help="put rows in at one go, and measure what comes after a run")
    parser.add_argument("--real", help="numbers of cells in processes of their own, instead")
    parser.add_argument("--folder", help="where results are put for the time being; by default the system's choice")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    options = parser.parse_args()
    sizes, times, document = [], [], {"how": "real" if options.real else "supervisor", "runs": []}
    load_plugin_file(NOOP)
    for text in (options.real or options.seeds).split(","):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder, redirect_stderr(io.StringIO()):
            if options.real:
                count, seconds, growth, *files = real(int(text), Path(folder))
            else:
                count, seconds, growth, *files = supervisor(int(text), Path(folder), fill=options.fill)
        sizes.append(count)
        times.append(seconds)
        figures = ", ".join(f"{part} {s:.2f} s ({s / count * 1e3:.3f} ms a cell)" for part, s in seconds.items())
        more = f", open files {files[0]:+d}" if files else ""
        print(
            f"{count} cells: {figures}; memory {growth / 2**20:+.0f} MiB ({growth / count:.0f} B a cell){more}",
            flush=True,
        )
        document["runs"].append(
            {"cells": count, "seconds": seconds, "growth_bytes": growth, "open_files": (files or [0])[0]}
        )
    if len(sizes) > 1:
        document["exponents"] = exponents(sizes, times)
        print("exponents:", ", ".join(f"{part} {slope:.2f}" for part, slope in document["exponents"].items()))
    if options.json:
        options.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
