import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppgsl_bench.datasets import Sources
from ppgsl_bench.datasets import registry as datasets
from ppgsl_bench.defenses.ppgsl import PPGSL
from ppgsl_bench.reproduce.losses import fall, settled_after
from ppgsl_bench.reproduce.scalability import SHORT_MU, SHORT_STEPS, SHORT_UPDATES, costs_of, exponent
from ppgsl_bench.seeds import generator
from ppgsl_bench.split import make_split

positive = st.floats(1e-4, 1e2)


@given(once=positive, step=positive, update=positive, after=positive)
def test_a_short_trace_gives_back_the_costs_it_was_made_of(once, step, update, after):
    retrained = np.arange(SHORT_STEPS) % SHORT_MU == 0
    seconds = once + np.cumsum(step + retrained * SHORT_UPDATES * update)
    found = costs_of({"seconds": seconds}, float(seconds[-1]) + after)
    assert (found.step, found.update) == (pytest.approx(step, rel=1e-3), pytest.approx(update, rel=1e-3, abs=1e-6))
    assert found.once == pytest.approx(once + after, rel=1e-3, abs=1e-6)
    assert found.training(50) == pytest.approx(once + after + 500 * step + 1000 * update, rel=1e-3)
    assert found.training(1) == pytest.approx(once + after + 500 * step + 50_000 * update, rel=1e-3)


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
