"""Regressions put into plugins, measured for real: more work, more memory, a weaker attack.

Counters need no clock. For times, the clock is replaced by one that ticks with the work done, so that the tests say
the same on every machine; tests/perf/prove_gate.py does it with the true clock.
"""

from dataclasses import replace

import numpy as np
import pytest

from ppgsl_bench import attacks
from ppgsl_bench.attacks.neighbours import AdamicAdar
from ppgsl_bench.perf import measuring, quality
from ppgsl_bench.perf.baseline import Baseline
from ppgsl_bench.perf.benchmarks import Benchmark, _scoring, benchmarks
from ppgsl_bench.perf.clock import Reference
from ppgsl_bench.perf.counters import _counted_kernels, _Tally
from ppgsl_bench.perf.verdict import FAILING, compare

PASSES = 4
REGISTRY = attacks.registry


class Repeating(AdamicAdar):
    """Adamic–Adar, computed several times."""

    passes: int = PASSES

    def score(self, published, pairs, rng):
        for _ in range(self.passes):
            scores = super().score(published, pairs, rng)
        return scores


class Hoarding(Repeating):
    """Holds a block of memory meanwhile."""

    hoard: int = 0

    def score(self, published, pairs, rng):
        held = np.ones(self.hoard, dtype=np.uint8)
        return super().score(published, pairs, rng) + 0 * held[:0].sum()


class WorkClock:
    """Seconds are kernel work done; the reference kernel takes one. All else may be slow for a while."""

    slow_clocks = 0

    def __init__(self, *, processor_only=False):
        self.rng = np.random.default_rng(0)
        self.disturbance = 3 if WorkClock.slow_clocks > 0 else 1
        WorkClock.slow_clocks -= 1

    def __call__(self, work, calls=1):
        tally = _Tally()
        with _counted_kernels(tally):
            work()
        done = 1e4 if isinstance(work, Reference) else self.disturbance * tally.touched
        return done * np.exp(self.rng.normal(0, 0.03))


@pytest.fixture
def measured(monkeypatch):
    monkeypatch.setattr(measuring, "Stopwatch", WorkClock)

    def measure(plugin, slow_clocks=0):
        monkeypatch.setattr(WorkClock, "slow_clocks", slow_clocks)
        benchmark = Benchmark("attack/x", _scoring(plugin), data=("synthetic", 100))
        return Baseline({}, 1, quick=True, measurements=measuring.measure_all([benchmark], quick=True))

    return measure


def failed(verdicts):
    return {(v.kind, v.quantity) for v in verdicts if v.outcome in FAILING}


def test_unchanged_code_raises_no_alarm(measured):
    assert not failed(compare(measured(Repeating()), measured(Repeating())))


def test_the_work_done_one_and_a_half_times_is_caught(measured):
    slower = Repeating(passes=3 * PASSES // 2)
    assert failed(compare(measured(Repeating()), measured(slower))) >= {("ratios", "time"), ("counters", "touched")}


def test_a_machine_that_is_slow_for_one_pass_neither_raises_nor_hides_an_alarm(measured):
    slower = Repeating(passes=3 * PASSES // 2)
    assert not failed(compare(measured(Repeating()), measured(Repeating(), slow_clocks=1)))
    assert ("ratios", "time") in failed(compare(measured(Repeating(), slow_clocks=1), measured(slower)))
    # What is slow in every pass is slow.
    assert ("ratios", "time") in failed(compare(measured(Repeating()), measured(Repeating(), slow_clocks=2)))


@pytest.mark.parametrize("works_for", [0, 1])
def test_a_benchmark_that_breaks_in_any_pass_is_reported_and_hides_no_other(monkeypatch, works_for):
    monkeypatch.setattr(measuring, "Stopwatch", WorkClock)
    prepared = []

    def prepare(split, stack):
        prepared.append(split)
        if len(prepared) > works_for:
            raise ValueError("broken")
        return lambda: None

    reports = []
    chosen = [
        Benchmark("attack/broken", prepare, data=("synthetic", 100)),
        Benchmark("attack/x", _scoring(Repeating()), data=("synthetic", 100)),
    ]
    found = measuring.measure_all(chosen, quick=True, report=lambda *report: reports.append(report))
    assert set(found) == {"attack/x"}
    assert [str(what) for name, what in reports if isinstance(what, Exception)] == ["broken"]


def test_twice_the_memory_is_caught(measured):
    # Much beside what the interpreter happens to allocate meanwhile, once 31 kB.
    base = measured(Hoarding(hoard=10_000_000))
    peak = base.measurements["attack/x"].counters["peak_bytes"]
    head = measured(Hoarding(hoard=10_000_000 + peak))
    assert head.measurements["attack/x"].counters["peak_bytes"] == pytest.approx(2 * peak, rel=0.02)
    assert failed(compare(base, head)) == {("counters", "peak_bytes")}


class FewAttacks:
    """A registry of two attacks that need no training."""

    def __init__(self, **replaced):
        self.replaced = replaced

    def __iter__(self):
        return iter(["aa", "ra"])

    def get(self, name):
        return self.replaced.get(name) or REGISTRY.get(name)


class HalfBlind(AdamicAdar):
    """Looks at every second pair only."""

    def score(self, published, pairs, rng):
        return super().score(published, pairs, rng) * (np.arange(len(pairs)) % 2)


def test_a_weakened_attack_is_caught(monkeypatch):
    def values(streams, **replaced):
        monkeypatch.setattr(quality.attacks, "registry", FewAttacks(**replaced))
        found = [
            {
                name: value
                for defense in ("none", "random", "rw-lp")
                for name, value in quality.of_defense(defense, s).items()
            }
            for s in streams
        ]
        return {name: tuple(run[name] for run in found) for name in found[0]}

    golden = values(range(3))
    head = Baseline({}, 1, quality=values([7]))
    assert not failed(compare(head, head, golden=golden))
    weakened = replace(head, quality=values([7], aa=HalfBlind))
    found = {v.benchmark for v in compare(weakened, weakened, golden=golden) if v.outcome in FAILING}
    assert "none × aa" in found
    assert not any(name.endswith(("ra", "links kept", "links added")) for name in found)


def test_every_plugin_and_every_name_of_the_manifest_is_measured(pytestconfig):
    names = [benchmark.name for benchmark in benchmarks()]
    assert len(names) == len(set(names))
    assert {f"attack/{name}" for name in attacks.registry} <= set(names)
    manifest = (pytestconfig.rootpath / "tests" / "perf" / "manifest.txt").read_text().split()
    assert set(manifest) <= set(names)


def test_growth_of_linear_work_is_one():
    nodes = np.array([1000, 2000, 4000, 8000])
    assert measuring.exponent(nodes.tolist(), (3 * nodes).tolist()) == pytest.approx(1)
    assert measuring.exponent(nodes.tolist(), (nodes**2).tolist()) == pytest.approx(2)
