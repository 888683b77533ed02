import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2
from strategies import graphs

from ppgsl_bench.errors import UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.walks import PADDING, random_walks, shuffled_starts, skip_gram

# False-alarm rate of each chi-square test below; seeds are fixed, so a pass stays a pass.
ALPHA = 1e-3


def transition_p_value(graph: Graph, walks: np.ndarray, p: float, q: float) -> float:
    """P-value of the χ² test of all steps of the walks against dense transition probabilities.

    Given the states (node before, node here), the steps out of a state are multinomial.
    """
    dense = graph.adjacency.toarray().astype(float)
    n = graph.num_nodes
    counts = np.zeros((n + 1, n, n))
    before = np.concatenate([np.full((len(walks), 1), n), walks[:, :-2]], axis=1)
    np.add.at(counts, (before.ravel(), walks[:, :-1].ravel(), walks[:, 1:].ravel()), 1)
    statistic, freedom = 0.0, 0
    for t in range(n + 1):
        for v in range(n):
            total = counts[t, v].sum()
            if not total:
                continue
            bias = np.ones(n)
            if t < n:
                bias = np.where(dense[t] > 0, 1.0, 1 / q)
                bias[t] = 1 / p
            expected = dense[v] * bias
            expected *= total / expected.sum()
            assert not counts[t, v][expected == 0].any()
            cells = expected > 0
            statistic += ((counts[t, v] - expected)[cells] ** 2 / expected[cells]).sum()
            freedom += cells.sum() - 1
    return float(chi2.sf(statistic, freedom))


@pytest.fixture(scope="module")
def small() -> Graph:
    """Hubs, triangles and pendant nodes."""
    links = [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7)]
    return Graph.from_pairs(8, np.array(links))


@pytest.fixture(scope="module")
def small_weighted(small: Graph) -> Graph:
    return small.with_edges(small.edges, weights=np.linspace(0.2, 4.0, small.num_edges, dtype=np.float32))


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 2.0), (4.0, 0.5), (1.0, 0.25)])
@pytest.mark.parametrize("weighted", [False, True])
def test_steps_follow_the_transition_probabilities(small, small_weighted, p, q, weighted):
    graph = small_weighted if weighted else small
    rng = np.random.default_rng(7)
    walks = random_walks(graph, shuffled_starts(8, 400, rng), 40, rng, p=p, q=q)
    assert transition_p_value(graph, walks, p, q) > ALPHA


def test_chi_square_notices_a_wrong_bias(small, small_weighted):
    rng = np.random.default_rng(7)
    starts = shuffled_starts(8, 400, rng)
    assert transition_p_value(small, random_walks(small, starts, 40, rng, p=1.0, q=1.1), 1.0, 1.0) < ALPHA
    assert transition_p_value(small_weighted, random_walks(small, starts, 40, rng), 1.0, 1.0) < ALPHA


@given(graphs(), st.sampled_from([(1.0, 1.0), (0.5, 2.0)]), st.integers(1, 6))
def test_walks_only_follow_links(graph, bias, length):
    rng = np.random.default_rng(0)
    starts = shuffled_starts(graph.num_nodes, 2, rng)
    walks = random_walks(graph, starts, length, rng, p=bias[0], q=bias[1])
    assert walks.dtype == np.int32
    assert walks.shape == (len(starts), length)
    np.testing.assert_array_equal(walks[:, 0], starts)
    isolated = graph.degrees[starts] == 0
    assert (walks[isolated, 1:] == PADDING).all()
    steps = np.stack([walks[~isolated, :-1].ravel(), walks[~isolated, 1:].ravel()], axis=1).astype(np.int64)
    assert graph.has_edges(steps).all()


def test_walks_depend_on_their_rng_alone(small):
    starts = shuffled_starts(8, 5, np.random.default_rng(0))
    first = random_walks(small, starts, 30, np.random.default_rng(1))
    np.random.default_rng(5).random(3)
    np.testing.assert_array_equal(first, random_walks(small, starts, 30, np.random.default_rng(1)))
    assert (first != random_walks(small, starts, 30, np.random.default_rng(2))).any()


def test_walks_from_one_start_differ(small):
    walks = random_walks(small, np.zeros(50, dtype=np.int64), 20, np.random.default_rng(1))
    assert len(np.unique(walks, axis=0)) == 50


@pytest.mark.parametrize("wrong", [{"length": 0}, {"p": 0.0}, {"q": -1.0}, {"p": float("nan")}])
def test_wrong_settings_are_refused(small, wrong):
    with pytest.raises(UserError, match="walks need"):
        random_walks(small, np.arange(8), **{"length": 5, "rng": np.random.default_rng(0), **wrong})


def test_starts_are_every_node_in_each_round():
    starts = shuffled_starts(20, 3, np.random.default_rng(0)).reshape(3, 20)
    np.testing.assert_array_equal(np.sort(starts, axis=1), np.tile(np.arange(20), (3, 1)))
    assert (starts[0] != starts[1]).any()
    assert shuffled_starts(20, 0, np.random.default_rng(0)).shape == (0,)


def test_skip_gram_vectors_are_aligned_with_node_ids():
    """Two cliques, an isolated node between their ids: neighbours end up alike, the isolated node at zero."""
    left, right = [0, 2, 4, 6, 8], [1, 3, 5, 7, 10]
    links = [(u, v) for side in (left, right) for u in side for v in side if u < v]
    graph = Graph.from_pairs(11, np.array(links))
    rng = np.random.default_rng(0)
    walks = random_walks(graph, shuffled_starts(11, 100, rng), 20, rng)
    vectors = skip_gram(walks, 11, dimensions=16, window=3, epochs=2, frequent_share=0, seed=3)
    for part in vectors:
        assert part.dtype == np.float32
        assert part.shape == (11, 16)
        assert not part[9].any()
        assert np.isfinite(part).all()
    unit = vectors.input / np.maximum(np.linalg.norm(vectors.input, axis=1, keepdims=True), 1e-12)
    cosine = unit @ unit.T
    assert cosine[np.ix_(left, left)].min() > cosine[np.ix_(left, right)].max()
    # What skip-gram fits: x·y is larger for a context pair than for a pair that never meets.
    fit = vectors.input @ vectors.output.T
    assert fit[0, 2] > fit[0, 1]


@pytest.mark.parametrize("length", [1, 5])
def test_skip_gram_without_a_single_step_is_zero(length):
    empty = Graph.from_pairs(4, np.empty((0, 2), dtype=np.int64))
    vectors = skip_gram(random_walks(empty, np.arange(4), length, np.random.default_rng(0)), 4, dimensions=8, seed=0)
    assert not vectors.input.any()
    assert not vectors.output.any()


_PRINT_DIGEST = """
import hashlib, numpy as np
from ppgsl_bench.graph import Graph
from ppgsl_bench.walks import random_walks, shuffled_starts, skip_gram
rng = np.random.default_rng(4)
graph = Graph.from_pairs(40, np.array([(u, (u * 7 + 3) % 40) for u in range(40)]), duplicates="merge", loops="drop")
walks = random_walks(graph, shuffled_starts(40, 10, rng), 40, rng, p=0.5)
vectors = skip_gram(walks, 40, dimensions=32, seed=2)
print(hashlib.sha256(walks.tobytes() + vectors.input.tobytes() + vectors.output.tobytes()).hexdigest())
"""


def test_bits_do_not_depend_on_the_process_or_its_hash_seed():
    digests = {
        subprocess.run(
            [sys.executable, "-c", _PRINT_DIGEST],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(digests) == 1
