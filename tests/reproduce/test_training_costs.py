import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppgsl_bench.datasets import Sources
from ppgsl_bench.datasets import registry as datasets
from ppgsl_bench.defenses.ppgsl import PPGSL
from ppgsl_bench.reproduce.losses import fall, settled_after
from ppgsl_bench.reproduce.scalability import SHORT, SHORTEST, clock, exponent
from ppgsl_bench.rows import Row
from ppgsl_bench.seeds import generator
from ppgsl_bench.split import make_split

positive = st.floats(1e-4, 1e2)


@given(short=st.sampled_from([SHORT, SHORTEST]), once=positive, step=positive, update=positive, after=positive)
def test_a_short_trace_gives_back_the_costs_it_was_made_of(short, once, step, update, after):
    retrained = np.arange(short.steps) % short.mu == 0
    seconds = once + np.cumsum(step + retrained * short.updates * update)
    found = short.costs(seconds, float(seconds[-1]) + after)
    assert (found.step, found.update) == (pytest.approx(step, rel=1e-3), pytest.approx(update, rel=1e-3, abs=1e-6))
    assert found.once == pytest.approx(once + after, rel=1e-3, abs=1e-6)
    assert found.training(50) == pytest.approx(once + after + 500 * step + 1000 * update, rel=1e-3)
    assert found.training(1) == pytest.approx(once + after + 500 * step + 50_000 * update, rel=1e-3)


def test_time_is_the_processors_on_one_thread_of_it():
    """Others took half of the time; the graph is drawn for a second after the last step."""
    trace = {"seconds": np.array([2.0, 4.0]), "processor_seconds": np.array([1.0, 2.0])}

    def row(**provenance):
        return Row("key", "publish", "er", "{}", "er", 0, wall_seconds=5.0, provenance=provenance)

    for provenance, ticks, end in (
        ({"device": "cpu", "threads": 1}, [1.0, 2.0], 3.0),
        ({"device": "cpu", "threads": 2}, [2.0, 4.0], 5.0),
        ({"device": "cuda", "threads": 1}, [2.0, 4.0], 5.0),
    ):
        seconds, total = clock(trace, row(**provenance))
        assert (seconds.tolist(), total) == (ticks, end)


@given(st.floats(0.5, 2.5), st.floats(1e-6, 1e3))
def test_exponents_of_power_laws(power, factor):
    nodes = np.array([100.0, 1_000, 10_000, 100_000])
    values = factor * nodes**power
    values[0] *= 50
    found = exponent(nodes, values)
    assert found.mean == pytest.approx(power, abs=1e-6)
    assert found.low <= found.mean <= found.high


def test_exponents_need_two_sizes():
    assert exponent(np.array([100.0, 1_000]), np.array([1.0, 2.0])) is None


def test_a_training_cut_short_is_the_beginning_of_the_longer_one():
    """What `convergence` builds on."""
    split = make_split(datasets.get("karate").create().load(Sources(offline=True)), 0)
    found = [
        PPGSL(learner_steps=steps, mu=3, surrogate_updates=5, schedule="constant")
        .publish(split.visible, split.sensitive, generator("test"))
        .trace
        for steps in (5, 9)
    ]
    for name in ("privacy_loss", "utility_loss", "surrogate_loss", "links_kept", "links_added"):
        assert found[1][name][:5].tolist() == found[0][name].tolist(), name


def test_falls_and_settling():
    falling = np.concatenate([np.linspace(2, 1, 50), np.ones(50)])
    assert fall(falling) == pytest.approx(1 - 1 / falling[:10].mean())
    assert 40 <= settled_after(falling) <= 50
    assert fall(falling[::-1]) < 0
    assert settled_after(np.ones(100)) == 0
