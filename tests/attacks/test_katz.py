import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

from ppgsl_bench.attacks.katz import Katz, walk_counts
from ppgsl_bench.errors import UserError
from ppgsl_bench.pairs import num_pairs, pairs_at


def dense_powers(graph, longest):
    adjacency = (graph.adjacency.toarray() > 0).astype(float)
    return [np.linalg.matrix_power(adjacency, length) for length in range(1, longest + 1)]


@given(graphs(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_walk_counts_are_powers_of_the_adjacency(graph, longest, random):
    pairs = pairs_at(np.arange(num_pairs(graph.num_nodes)), graph.num_nodes).tolist()
    random.shuffle(pairs)
    pairs = np.array([p if random.random() < 0.5 else p[::-1] for p in pairs])
    expected = [power[pairs[:, 0], pairs[:, 1]] for power in dense_powers(graph, longest)]
    np.testing.assert_array_equal(walk_counts(graph, pairs, longest), np.stack(expected, axis=1))


def test_score_is_the_discounted_sum(random_graph, rng):
    graph = random_graph(60, 240)
    graph = graph.with_edges(graph.edges, weights=rng.random(240).astype(np.float32) + 0.1)
    pairs = rng.integers(60, size=(300, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    total = sum(0.1**length * power for length, power in enumerate(dense_powers(graph, 3), start=1))
    found = Katz(beta=0.1, max_length=3).score(graph, pairs, rng)
    np.testing.assert_allclose(found, total[pairs[:, 0], pairs[:, 1]], rtol=1e-12)


def test_the_full_index_is_near_when_beta_is_small(random_graph, rng):
    graph = random_graph(60, 200)
    pairs = pairs_at(np.arange(num_pairs(60)), 60)
    beta = 0.01
    full = np.linalg.inv(np.eye(60) - beta * graph.adjacency.toarray()) - np.eye(60)
    found = Katz(beta=beta).score(graph, pairs, rng)
    largest = np.abs(np.linalg.eigvalsh(graph.adjacency.toarray())).max()
    # What is left out is a geometric series that starts at the fifth power.
    assert np.abs(found - full[pairs[:, 0], pairs[:, 1]]).max() <= (beta * largest) ** 5 / (1 - beta * largest)


def test_walks_longer_than_four_are_refused():
    with pytest.raises(UserError, match="max_length=5"):
        Katz.create(max_length=5)
