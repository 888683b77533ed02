"""Does the gate work, with the true clock? Unchanged code many times, then regressions put into each benchmark.

    python tests/perf/prove_gate.py [--runs 20] [--only kernel/ …]

One measurement is the base; the same code is measured `--runs` times more, and every alarm is counted. Then each
benchmark is made to take 1.5 times as long (it keeps the processor busy for half as long again), and to hold
as much memory again as its own peak, and every one that goes unnoticed is counted.
"""

import argparse
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from ppgsl_bench.perf.baseline import Baseline, Measurement
from ppgsl_bench.perf.benchmarks import Benchmark, benchmarks
from ppgsl_bench.perf.clock import REFERENCE_VERSION
from ppgsl_bench.perf.measuring import measure, on_one_thread
from ppgsl_bench.perf.verdict import FAILING, compare


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", action="append", default=[], help="only benchmarks whose name begins so")
    options = parser.parse_args()
    chosen = [b for b in benchmarks() if not options.only or b.name.startswith(tuple(options.only))]
    on_one_thread(lambda: prove(chosen, options.runs))


def prove(chosen: list[Benchmark], runs: int) -> None:
    base = file_of({b.name: measure(b, quick=True) for b in chosen})
    alarms: Counter[str] = Counter()
    for run in range(runs):
        head = file_of({b.name: measure(b, quick=True) for b in chosen})
        found = alarming(base, head)
        alarms.update(found)
        print(f"run {run + 1} of {runs}: {len(found)} alarms in {len(chosen)} benchmarks {found or ''}", flush=True)
    print(f"unchanged code, {runs} runs of {len(chosen)} benchmarks: {alarms.total()} alarms", flush=True)
    missed = [b.name for b in chosen if f"{b.name} time" not in injected(base, b, slowed(b))]
    print(f"1.5 times the time: {len(chosen) - len(missed)} of {len(chosen)} caught; missed: {missed}", flush=True)
    missed = []
    for b in chosen:
        peak = base.measurements[b.name].counters["peak_bytes"]
        if f"{b.name} peak_bytes" not in injected(base, b, hoarding(b, peak)):
            missed.append(b.name)
    print(f"twice the memory: {len(chosen) - len(missed)} of {len(chosen)} caught; missed: {missed}", flush=True)


def file_of(measurements: dict[str, Measurement]) -> Baseline:
    return Baseline({}, REFERENCE_VERSION, quick=True, measurements=measurements)


def alarming(base: Baseline, head: Baseline) -> list[str]:
    return [f"{v.benchmark} {v.quantity}" for v in compare(base, head) if v.outcome in FAILING]


def injected(base: Baseline, benchmark: Benchmark, worse: Benchmark) -> list[str]:
    head = file_of({**base.measurements, benchmark.name: measure(worse, quick=True)})
    return alarming(base, head)


def slowed(benchmark: Benchmark) -> Benchmark:
    def prepare(split, stack: ExitStack):
        work = benchmark.prepare(split, stack)

        def slow_work():
            start = time.thread_time()
            result = work()
            end = start + 1.5 * (time.thread_time() - start)
            while time.thread_time() < end:
                pass
            return result

        return slow_work

    return replace(benchmark, prepare=prepare)


def hoarding(benchmark: Benchmark, size: int) -> Benchmark:
    def prepare(split, stack: ExitStack):
        work = benchmark.prepare(split, stack)

        def hoarding_work():
            held = np.ones(size, dtype=np.uint8)
            result = work()
            del held
            return result

        return hoarding_work

    return replace(benchmark, prepare=prepare)


if __name__ == "__main__":
    main()
