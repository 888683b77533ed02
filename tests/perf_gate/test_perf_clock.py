"""The stopwatch leaves out what others ran, and nothing else."""

import pytest

from ppgsl_bench.perf import clock
from ppgsl_bench.perf.clock import Stopwatch


class Machine:
    """A processor that this thread shares: work and waiting pass at given moments, readings take no time."""

    def __init__(self, monkeypatch):
        self.wall = self.waited = 0.0
        self.interrupted = []
        monkeypatch.setattr(clock, "_kept_waiting", self.read_waited)
        monkeypatch.setattr(clock.time, "perf_counter", lambda: self.wall)

    def read_waited(self):
        """Others may run right before a reading."""
        if self.interrupted:
            self.wait(self.interrupted.pop(0))
        return self.waited

    def wait(self, seconds):
        self.wall += seconds
        self.waited += seconds

    def work(self):
        self.wall += 2.0
        self.wait(5.0)
        self.wall += 1.0


@pytest.fixture
def machine(monkeypatch):
    return Machine(monkeypatch)


def test_waiting_for_a_processor_does_not_count(machine):
    assert Stopwatch()(machine.work) == pytest.approx(3)
    assert Stopwatch()(machine.work, calls=4) == pytest.approx(3)


@pytest.mark.parametrize("when", range(8))
def test_an_interruption_between_two_readings_does_not_count(machine, when):
    machine.interrupted = [0.0] * when + [7.0]
    assert Stopwatch()(machine.work) == pytest.approx(3)


def test_sleeping_counts(machine):
    def sleep():
        machine.wall += 4.0

    assert Stopwatch()(sleep) == pytest.approx(4)
