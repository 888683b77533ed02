"""One long run, watched: does the supervisor's memory or its number of open files grow?

    python tests/perf/load_soak.py              # an hour
    python tests/perf/load_soak.py --minutes 5

Cells of an attack that does nothing run in processes of their own, one after the other, for as long as it takes. All
of them are planned before the first one starts, so that the plan's memory, which grows with their number, is there from
the beginning; what is measured is what a finished cell leaves behind.
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
# Far more than a cell takes: on a machine with more to do, one that waits for its turn must not end the run.
TIME_LIMIT_SECONDS = 3600
SAMPLE_SECONDS = 2.0
# The report is written anew this often, so that a run that is cut short leaves one of what it saw.
REPORT_SECONDS = 60.0
# A line is fitted through no fewer.
FEWEST_SAMPLES = 10


class Watch:
    """An observer that samples memory and open files, and ends the run when its time is over."""

    def __init__(self, seconds, report, before):
        self.report = report
        self.before = before
        self.samples = []
        self._seconds = seconds
        self._next = 0.0
        self._cells = 0

    def planned(self, remaining, done):
        self._planned = len(remaining)
        self.start = time.monotonic()
        self._next_report = self.start + REPORT_SECONDS

    def started(self, cell):
        pass

    def finished(self, cell, row):
        assert row.status == "ok", row.reason
        self._cells += 1
        now = time.monotonic()
        if now >= self._next:
            self._next = now + SAMPLE_SECONDS
            files = len(os.listdir(f"/proc/{os.getpid()}/fd"))
            self.samples.append((now, self._cells, resident(), files))
        if self.report and now >= self._next_report and len(self.samples) >= FEWEST_SAMPLES:
            self._next_report = now + REPORT_SECONDS
            self.report.write_text(json.dumps(self.figures(), indent=2) + "\n")
        if now >= self.start + self._seconds:
            raise KeyboardInterrupt

    def figures(self):
        """What the samples say; a line is fitted for growth."""
        # The first fifth is left out: libraries are loaded and buffers are filled once.
        samples = np.array(self.samples[len(self.samples) // 5 :])
        seconds, done, memory, files = samples.T
        return {
            "minutes": round((self.samples[-1][0] - self.start) / 60, 1),
            "cells": int(done[-1]),
            "cells_planned": self._planned,
            "samples": len(self.samples),
            "samples_left_out": len(self.samples) - len(samples),
            **{name: mebibytes(size) for name, size in self.before.items()},
            "memory_mib": [mebibytes(memory[0]), mebibytes(memory[-1])],
            "memory_mib_most": mebibytes(memory.max()),
            "bytes_a_cell": float(np.polyfit(done, memory, 1)[0]),
            "mib_an_hour": float(np.polyfit(seconds - seconds[0], memory, 1)[0] * 3600 / 2**20),
            "open_files": [int(files.min()), int(files.max())],
            "open_files_an_hour": float(np.polyfit(seconds - seconds[0], files, 1)[0] * 3600),
        }


def resident():
    """This process's memory, in bytes."""
    return psutil.Process().memory_info().rss


def mebibytes(size):
    """To two digits behind the point."""
    return round(float(size) / 2**20, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--json", type=Path, help="write the figures to this file as well, every minute")
    options = parser.parse_args()
    load_plugin_file(NOOP)
    before = {"memory_mib_imports": resident()}
    count = min(CELLS, int(options.minutes * 60 * 50))
    attacks = [f"noop[index={i}]" for i in range(count)]
    chosen = choose(datasets=["karate"], defenses=["none"], attacks=attacks, utilities=[], seeds=[0])
    before["memory_mib_chosen"] = resident()
    cells = plan(chosen, Sources(offline=True))
    before["memory_mib_planned"] = resident()
    watch = Watch(options.minutes * 60, options.json, before)
    settings = Settings(jobs=1, limits=Limits(TIME_LIMIT_SECONDS, 2**32), plugin_files=(NOOP,))
    with (
        tempfile.TemporaryDirectory() as folder,
        Results(Path(folder)).writing() as results,
        suppress(KeyboardInterrupt),
    ):
        execute(cells, results, settings, watch)
    document = watch.figures()
    print(json.dumps(document, indent=2))
    if options.json:
        options.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
