"""One long run, watched: does the supervisor's memory or its number of open files grow?

    python tests/perf/load_soak.py              # an hour
    python tests/perf/load_soak.py --minutes 5

Cells of an attack that does nothing run in processes of their own, one after the other, for as long as it takes. What
the supervisor keeps of each cell (its place in the plan, and what later cells would need of its row) grows with their
number, and is part of what is measured.
"""

import argparse
import json
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

from ppgsl_bench.datasets import Sources
from ppgsl_bench.execute import Settings, execute
from ppgsl_bench.plan import choose, plan
from ppgsl_bench.processes import Limits
from ppgsl_bench.registry import load_plugin_file
from ppgsl_bench.store import Results

NOOP = Path(__file__).parents[1] / "plugins" / "noop.py"
# More than an hour can take, at 20 ms a cell.
CELLS = 180_000
SAMPLE_SECONDS = 2.0


class Watch:
    """An observer that samples memory and open files, and ends the run when its time is over."""

    def __init__(self, seconds):
        self.samples = []
        self._process = psutil.Process()
        self._end = time.monotonic() + seconds
        self._next = 0.0
        self._cells = 0

    def planned(self, remaining, done):
        pass

    def started(self, cell):
        pass

    def finished(self, cell, row):
        assert row.status == "ok", row.reason
        self._cells += 1
        now = time.monotonic()
        if now >= self._next:
            self._next = now + SAMPLE_SECONDS
            files = len(os.listdir(f"/proc/{os.getpid()}/fd"))
            self.samples.append((now, self._cells, self._process.memory_info().rss, files))
        if now >= self._end:
            raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    options = parser.parse_args()
    load_plugin_file(NOOP)
    count = min(CELLS, int(options.minutes * 60 * 50))
    attacks = [f"noop[index={i}]" for i in range(count)]
    chosen = choose(datasets=["karate"], defenses=["none"], attacks=attacks, utilities=[], seeds=[0])
    cells = plan(chosen, Sources(offline=True))
    watch = Watch(options.minutes * 60)
    settings = Settings(jobs=1, limits=Limits(60, 2**32), plugin_files=(NOOP,))
    with (
        tempfile.TemporaryDirectory() as folder,
        Results(Path(folder)).writing() as results,
        suppress(KeyboardInterrupt),
    ):
        execute(cells, results, settings, watch)
    # The first fifth is left out: libraries are loaded and buffers are filled once.
    samples = np.array(watch.samples[len(watch.samples) // 5 :])
    seconds, done, memory, files = samples.T
    document = {
        "minutes": options.minutes,
        "cells": int(done[-1]),
        "samples": len(samples),
        "memory_mib": [round(float(memory[0]) / 2**20, 2), round(float(memory[-1]) / 2**20, 2)],
        "bytes_a_cell": float(np.polyfit(done, memory, 1)[0]),
        "mib_an_hour": float(np.polyfit(seconds - seconds[0], memory, 1)[0] * 3600 / 2**20),
        "open_files": [int(files.min()), int(files.max())],
        "open_files_an_hour": float(np.polyfit(seconds - seconds[0], files, 1)[0] * 3600),
    }
    print(json.dumps(document, indent=2))
    if options.json:
        options.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
