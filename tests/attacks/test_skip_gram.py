"""Skip-gram against a plain implementation that takes the same random numbers and leaves the gradient to autograd."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.nn.functional import logsigmoid

from ppgsl_bench.skip_gram import FIRST_RATE, LAST_RATE, train

MASK = 2**64 - 1


class Stream:
    """SplitMix64 in Python's integers."""

    def __init__(self, state):
        self.state = int(state)

    def unit(self):
        self.state = z = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return ((z ^ (z >> 31)) >> 11) * 2.0**-53


def ascend(inputs, outputs, contexts, centre, negatives, rate):
    """One step up the gradient of Σ_x log σ(x·y) + Σ_x Σ_n log σ(-x·n)."""
    x = torch.tensor(inputs[contexts], requires_grad=True)
    y = torch.tensor(outputs[centre], requires_grad=True)
    noise = torch.tensor(outputs[negatives], requires_grad=True)
    (logsigmoid(x @ y).sum() + logsigmoid(-(x @ noise.T)).sum()).backward()
    np.add.at(inputs, contexts, rate * x.grad.numpy())
    outputs[centre] += rate * y.grad.numpy()
    np.add.at(outputs, negatives, rate * noise.grad.numpy())


def plain(walks, visits, *, dimensions, window, epochs, negative, frequent_share, seed):
    rng = np.random.default_rng(seed)
    inputs, outputs = np.zeros((2, len(visits), dimensions))
    visited = visits > 0
    inputs[visited] = (2 * rng.random((visited.sum(), dimensions), dtype=np.float32) - 1) / dimensions
    stream = Stream(rng.integers(2**64, dtype=np.uint64))
    noise = np.cumsum(visits**0.75)
    for turn in range(epochs * len(walks)):
        rate = FIRST_RATE + (LAST_RATE - FIRST_RATE) * turn / (epochs * len(walks))
        nodes = []
        for node in walks[turn % len(walks)]:
            ratio = frequent_share * visits.sum() / visits[node] if frequent_share else 1
            kept = np.sqrt(ratio) + ratio
            if kept >= 1 or stream.unit() < kept:
                nodes.append(node)
        for i, centre in enumerate(nodes):
            reach = 1 + int(stream.unit() * window)
            contexts = nodes[max(0, i - reach) : i] + nodes[i + 1 : i + reach + 1]
            if not contexts:
                continue
            drawn = [int(np.searchsorted(noise, stream.unit() * noise[-1], side="right")) for _ in range(negative)]
            negatives = [node for node in drawn if node != centre]
            for c in range(0, len(contexts), 2):
                ascend(inputs, outputs, contexts[c : c + 2], centre, negatives, rate)
    return inputs, outputs


def corpus(num_nodes=9, walks=30, length=12):
    """Walks of two groups of nodes that never meet, the first node being the most frequent; node 4 is never visited."""
    rng = np.random.default_rng(1)
    groups = [np.array([0, 0, 1, 2, 3]), np.array([5, 6, 7, 8])]
    found = np.stack([rng.choice(groups[w % 2], length) for w in range(walks)]).astype(np.int32)
    return found, np.bincount(found.ravel(), minlength=num_nodes)


SETTINGS = {"dimensions": 5, "window": 3, "epochs": 2, "negative": 4, "frequent_share": 0.0, "seed": 7}


@pytest.mark.parametrize(
    "changed",
    [{}, {"negative": 1}, {"negative": 9}, {"window": 1}, {"frequent_share": 0.05}, {"dimensions": 20, "epochs": 1}],
)
def test_vectors_are_those_of_the_plain_implementation(changed):
    walks, visits = corpus()
    settings = SETTINGS | changed
    for found, expected in zip(train(walks, visits, **settings), plain(walks, visits, **settings), strict=True):
        assert found.dtype == np.float32
        assert np.abs(expected).max() > 0.01
        # The sigmoid is within 1e-4, relative to a gradient of up to 1.
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_the_comparison_notices_a_smaller_window():
    walks, visits = corpus()
    found, expected = train(walks, visits, **SETTINGS)[0], plain(walks, visits, **SETTINGS | {"window": 2})[0]
    assert np.abs(found - expected).max() > 1e-2


def test_large_logits_are_no_trouble():
    """With much training on two nodes that always meet, and noise that is always one of them, logits run far."""
    walks = np.tile(np.array([0, 1], np.int32), (20_000, 10))
    inputs, outputs = train(walks, np.array([100_000, 100_000, 0]), **SETTINGS | {"dimensions": 2, "epochs": 5})
    assert np.isfinite(inputs).all()
    assert np.isfinite(outputs).all()


def test_groups_that_never_meet_are_told_apart():
    walks, visits = corpus(walks=600)
    inputs, outputs = train(walks, visits, **SETTINGS | {"dimensions": 16, "epochs": 3})
    fit = inputs @ outputs.T
    left, right = [0, 1, 2, 3], [5, 6, 7, 8]
    assert fit[np.ix_(left, left)].min() > fit[np.ix_(left, right)].max()
    assert fit[np.ix_(right, right)].min() > fit[np.ix_(right, left)].max()
    assert not inputs[4].any()
    assert not outputs[4].any()


def test_bits_depend_on_the_seed_alone():
    walks, visits = corpus()
    first, again, other = (train(walks, visits, **SETTINGS | {"seed": seed})[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_compiled_kernels_are_kept_and_give_the_same_bits_from_the_cache(tmp_path):
    program = """if True:
        import hashlib
        import numpy as np
        from ppgsl_bench.skip_gram import train

        walks = np.random.default_rng(0).integers(0, 50, (300, 20), dtype=np.int32)
        vectors = train(walks, np.bincount(walks.ravel()), dimensions=32, window=4, epochs=1, negative=5,
                        frequent_share=0, seed=1)
        print(hashlib.sha256(b"".join(v.tobytes() for v in vectors)).hexdigest())
    """

    def fresh_process():
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout, sorted(path.name for path in tmp_path.rglob("*.nb?"))

    compiled, loaded = fresh_process(), fresh_process()
    assert compiled[1], "nothing was kept"
    assert compiled == loaded
