"""Measuring benchmarks, one after the other, in this process and on one thread."""

import gc
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from ppgsl_bench.measure import measured
from ppgsl_bench.perf.baseline import Measurement
from ppgsl_bench.perf.benchmarks import Benchmark, fixed_split
from ppgsl_bench.perf.clock import Stopwatch, Work, interleaved_ratios
from ppgsl_bench.perf.counters import counted

# With five rounds a Mann–Whitney test is sure enough (see verdict.py) only if all of head's are above all of base's,
# which one disturbed round prevents: with ten times as many processes as cores, 8 of 39 slowdowns went unnoticed.
ROUNDS, SLOW_ROUNDS = 11, 9
# Erdős–Rényi graphs by which growth is measured.
GROWTH_NODES = (1000, 2000, 4000, 8000)
GROWTH_REPEATS = 3


# What disturbs a machine for seconds only ever slows it down. Of two passes over all benchmarks, in which the two
# timings of one are far apart, the faster is the nearer to the truth.
PASSES = 2


def measure_all(
    chosen: Iterable[Benchmark],
    *,
    quick: bool = False,
    report: Callable[[str, Measurement | Exception], None] = lambda _name, _found: None,
) -> dict[str, Measurement]:
    """Measure each; one that fails is reported and left out, so that it does not hide what the others say."""
    found: dict[str, Measurement] = {}
    left = list(chosen)
    for number in range(PASSES):
        for benchmark in tuple(left):
            name = benchmark.name
            try:
                now = timed_again(benchmark, found[name]) if number else measure(benchmark, quick=quick)
            except Exception as error:  # noqa: BLE001 - whatever a plugin may raise
                report(name, error)
                left.remove(benchmark)
                found.pop(name, None)
            else:
                found[name] = now
                report(name, now)
    return found


def timed_again(benchmark: Benchmark, before: Measurement) -> Measurement:
    """The same measurement, with the times of this moment if they are the faster ones."""
    with ExitStack() as stack:
        work = benchmark.work(stack)
        work()
        ratios, seconds = _timed(benchmark, work)
    if np.median(ratios) >= np.median(before.ratios):
        return before
    return replace(before, ratios=tuple(ratios), seconds=seconds)


def measure(benchmark: Benchmark, *, quick: bool = False) -> Measurement:
    """Count, time once and, unless it must be quick, let it grow."""
    with ExitStack() as stack:
        work = benchmark.work(stack)
        work()
        own, count = counted(work)
        ratios, seconds = _timed(benchmark, work)
    counters = {**count.named(), **(own or {})}
    exponents: dict[str, float] = {}
    if benchmark.grows and not quick:
        exponents, counters["resident_bytes"] = growth(benchmark, GROWTH_NODES)
    return Measurement(tuple(ratios), seconds, counters, exponents)


def _timed(benchmark: Benchmark, work: Work) -> tuple[list[float], float]:
    gc.collect()
    stopwatch = Stopwatch(processor_only=benchmark.processor_only)
    return interleaved_ratios(work, stopwatch, ROUNDS, SLOW_ROUNDS)


def growth(benchmark: Benchmark, sizes: Sequence[int]) -> tuple[dict[str, float], int]:
    """Exponents of time and counters in the number of nodes, and the resident bytes that the largest graph takes."""
    with ExitStack() as stack:
        works = [benchmark.work(stack, fixed_split("er", n)) for n in sizes]
        for work in works:
            work()
        counts = [counted(work)[1].named() for work in works]
        stopwatch = Stopwatch(processor_only=benchmark.processor_only)
        # Sizes in turn, and the least of several times: a disturbance meets all sizes alike or is left out.
        times = np.array([[stopwatch(work) for work in works] for _ in range(GROWTH_REPEATS)]).min(axis=0)
        resident = measured(works[-1])[1].peak_host_bytes
    series: dict[str, Sequence[float]] = {name: [count[name] for count in counts] for name in counts[0]}
    series["time"] = times.tolist()
    return {name: exponent(sizes, values) for name, values in series.items() if min(values) > 0}, resident


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Slope of the least-squares line through the logarithms: values grow like size to this power."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def on_one_thread(work: Callable[[], None]) -> None:
    """Run with every library on one thread, and with the collector looking at new objects only."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()
    try:
        with threadpool_limits(1):
            work()
    finally:
        gc.unfreeze()
        torch.set_num_threads(threads)
