"""Does the gate work, with the true clock and the true attacks? Regressions put into every benchmark, then none at all.

    python tests/perf/prove_gate.py --json docs/data/gate.json [--runs 20] [--only kernel/ …]
    python docs/scripts/performance.py                                # writes the figures into docs/performance.md

One measurement is the base. Each benchmark is made to take 1.5 times as long (it keeps the processor busy for half
as long again), and to hold as much memory again as its own peak; each attack is made to look at every second pair only;
each regression that goes unnoticed is noted. Then the same code is measured `--runs` times more, its attacks with
random numbers that the golden values have not seen, and every alarm is noted. The file is written anew after each part,
so that a proof that is cut short says how far it came.
"""

import argparse
import json
import os
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from ppgsl_bench import defenses
from ppgsl_bench.metrics import attack_metrics
from ppgsl_bench.perf import quality
from ppgsl_bench.perf.baseline import SEPARATOR, Baseline, Measurement
from ppgsl_bench.perf.benchmarks import Benchmark, benchmarks
from ppgsl_bench.perf.clock import REFERENCE_VERSION
from ppgsl_bench.perf.commands import MEASURED_STREAMS
from ppgsl_bench.perf.measuring import measure_all, on_one_thread
from ppgsl_bench.perf.verdict import FAILING, compare
from ppgsl_bench.provenance import provenance

GOLDEN = Path(__file__).parent / "golden.json"
# Random streams from here on are not among the golden values'.
FIRST_STREAM = 1000
# Benchmarks are called so after the attack that they measure.
ATTACK = "attack/"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", action="append", default=[], help="only benchmarks whose name begins so")
    parser.add_argument("--json", type=Path, required=True, help="where to write what was found")
    options = parser.parse_args()
    chosen = [b for b in benchmarks() if not options.only or b.name.startswith(tuple(options.only))]
    on_one_thread(lambda: prove(chosen, options.runs, options.json))


def prove(chosen: list[Benchmark], runs: int, path: Path) -> None:
    found: dict[str, object] = {
        "machine": provenance(device="cpu", threads=1, jobs=1),
        "benchmarks": len(chosen),
        "planned_runs": runs,
        "injected": {},
        "runs": [],
    }

    def note(**parts: object) -> None:
        found.update(parts)
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(json.dumps(parts), flush=True)

    base = file_of(measure_all(chosen, quick=True))
    golden = Baseline.read(GOLDEN).quality
    injected = {}
    injected["1.5 times the time"] = missed_in(base, chosen, "time", slowed)
    note(injected=injected)
    injected["twice the memory"] = missed_in(
        base, chosen, "peak_bytes", lambda b: hoarding(b, base.measurements[b.name].counters["peak_bytes"])
    )
    note(injected=injected)
    attacks = [b.name.removeprefix(ATTACK) for b in chosen if b.name.startswith(ATTACK)]
    if attacks:
        injected["an attack on every second pair"] = missed_weaknesses(attacks, golden)
        note(injected=injected)
    measured: list[dict[str, object]] = []
    for run in range(runs):
        start = time.process_time()
        head = file_of(measure_all(chosen, quick=True))
        alarms = alarming(base, head)
        if attacks:
            alarms += weak_spots(qualities(run + 1)[0], golden)
        spent = round(time.process_time() - start, 1)
        measured.append({"alarms": alarms, "processor_seconds": spent, "load": round(os.getloadavg()[0], 1)})
        note(runs=measured)


def missed_in(base: Baseline, chosen: list[Benchmark], quantity: str, worsened) -> dict[str, object]:
    missed = []
    for benchmark in chosen:
        head = file_of({**base.measurements, **measure_all([worsened(benchmark)], quick=True)})
        if f"{benchmark.name} {quantity}" not in alarming(base, head):
            missed.append(benchmark.name)
    return {"tried": len(chosen), "missed": missed}


def missed_weaknesses(attacks: list[str], golden: quality.Quality) -> dict[str, object]:
    sound, weakened = qualities(0)
    missed = []
    for name in attacks:
        cells = {cell: values for cell, values in weakened.items() if cell.partition(SEPARATOR)[2] == name}
        if not [spot for spot in weak_spots({**sound, **cells}, golden) if spot.partition(SEPARATOR)[2] == name]:
            missed.append(f"{ATTACK}{name}")
    return {"tried": len(attacks), "missed": missed}


def qualities(run: int) -> tuple[quality.Quality, quality.Quality]:
    """What `perf measure` finds with other random numbers, and what it would find of attacks that are half blind."""
    first = FIRST_STREAM + MEASURED_STREAMS * run
    pairs = [qualities_of_stream(stream) for stream in range(first, first + MEASURED_STREAMS)]
    sound, weakened = (
        {cell: tuple(part[cell] for part in parts) for cell in parts[0]} for parts in zip(*pairs, strict=True)
    )
    return sound, weakened


def qualities_of_stream(stream: int) -> tuple[dict[str, float], dict[str, float]]:
    sound: dict[str, float] = {}
    weakened: dict[str, float] = {}
    for defense in defenses.registry.names():
        blind: list[float] = []

        def looked_at(scores, group, blind=blind):
            half = np.asarray(scores, dtype=np.float64).copy()
            half[::2] = np.median(half)
            blind.append(attack_metrics(half, group)["auc"])
            return attack_metrics(scores, group)

        quality.attack_metrics = looked_at
        try:
            values = quality.of_defense(defense, stream)
        finally:
            quality.attack_metrics = attack_metrics
        sound |= values
        links = (quality.LINKS_KEPT, quality.LINKS_ADDED)
        attacked = [cell for cell in values if cell.partition(SEPARATOR)[2] not in links]
        weakened |= dict(zip(attacked, blind, strict=True))
    return sound, weakened


def weak_spots(values: quality.Quality, golden: quality.Quality) -> list[str]:
    nothing = file_of({})
    verdicts = compare(nothing, replace(nothing, quick=False, quality=values), golden=golden)
    return [v.benchmark for v in verdicts if v.outcome in FAILING]


def file_of(measurements: dict[str, Measurement]) -> Baseline:
    return Baseline({}, REFERENCE_VERSION, quick=True, measurements=measurements)


def alarming(base: Baseline, head: Baseline) -> list[str]:
    return [f"{v.benchmark} {v.quantity}" for v in compare(base, head) if v.outcome in FAILING]


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
