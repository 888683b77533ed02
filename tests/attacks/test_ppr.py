import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

from ppgsl_bench.attacks.ppr import PersonalisedPageRank
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import num_pairs, pairs_at


def exact(graph, restart):
    """π = restart (I - (1 - restart) P)^-1, row u for walks from u; isolated nodes never leave."""
    adjacency = (graph.adjacency.toarray() > 0).astype(float)
    steps = adjacency / np.maximum(adjacency.sum(axis=1, keepdims=True), 1)
    return restart * np.linalg.inv(np.eye(graph.num_nodes) - (1 - restart) * steps)


def pushed_in_rounds(graph, source, restart, tolerance):
    """π_source by sets and dictionaries, in the order in which masses are added up by definition."""
    neighbours = [graph.adjacency[[x]].indices.tolist() for x in range(graph.num_nodes)]
    settled, held = np.zeros(graph.num_nodes), np.zeros(graph.num_nodes)
    held[source] = 1.0
    due = [source] if neighbours[source] else []
    while due:
        shares = {x: (1.0 - restart) * held[x] / len(neighbours[x]) for x in due}
        for x in due:
            settled[x] += restart * held[x]
            held[x] = 0.0
        due_next = {}
        for x, share in shares.items():
            for y in neighbours[x]:
                held[y] += share
                if held[y] >= tolerance * len(neighbours[y]):
                    due_next[y] = None
        due = list(due_next)
    return settled


@given(graphs(), st.sampled_from([1e-4, 0.02, 0.1]))
def test_scores_are_those_of_a_plain_push_to_the_last_bit(graph, tolerance):
    # A coarse tolerance leaves nodes that were given mass and never pushed it on.
    pairs = pairs_at(np.arange(num_pairs(graph.num_nodes)), graph.num_nodes)
    plain = np.array([pushed_in_rounds(graph, x, 0.15, tolerance) for x in range(graph.num_nodes)])
    found = PersonalisedPageRank(tolerance=tolerance).score(graph, pairs, np.random.default_rng(0))
    expected = plain[pairs[:, 0], pairs[:, 1]] + plain[pairs[:, 1], pairs[:, 0]]
    np.testing.assert_array_equal(found, np.round(expected, 12))


@given(graphs())
def test_a_fine_tolerance_gives_the_exact_ranks(graph):
    pairs = pairs_at(np.arange(num_pairs(graph.num_nodes)), graph.num_nodes)
    ranks = exact(graph, 0.15)
    found = PersonalisedPageRank(tolerance=1e-9).score(graph, pairs, np.random.default_rng(0))
    expected = ranks[pairs[:, 0], pairs[:, 1]] + ranks[pairs[:, 1], pairs[:, 0]]
    np.testing.assert_allclose(found, expected, atol=3e-8)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-4])
def test_the_error_is_bounded_by_tolerance_times_degree(random_graph, rng, tolerance):
    graph = random_graph(120, 500, seed=3)
    pairs = pairs_at(np.arange(num_pairs(120)), 120)
    ranks = exact(graph, 0.2)
    found = PersonalisedPageRank(restart=0.2, tolerance=tolerance).score(graph, pairs, rng)
    missing = ranks[pairs[:, 0], pairs[:, 1]] + ranks[pairs[:, 1], pairs[:, 0]] - found
    assert missing.min() > -1e-9
    assert np.all(missing <= tolerance * graph.degrees[pairs].sum(axis=1) + 1e-9)
    assert missing.max() > 0


def test_isolated_nodes_and_other_components_score_zero(rng):
    graph = Graph.from_pairs(5, [(0, 1), (2, 3)])
    assert PersonalisedPageRank().score(graph, np.array([[0, 4], [0, 2], [4, 1]]), rng).tolist() == [0.0, 0.0, 0.0]
    assert PersonalisedPageRank().score(graph, np.empty((0, 2), dtype=np.int64), rng).shape == (0,)


def test_repeated_sources_do_not_disturb_one_another(random_graph, rng):
    graph = random_graph(50, 150)
    pairs = pairs_at(rng.permutation(num_pairs(50))[:400], 50)
    together = PersonalisedPageRank().score(graph, pairs, rng)
    apart = [PersonalisedPageRank().score(graph, pair[None], rng)[0] for pair in pairs[:40]]
    np.testing.assert_array_equal(together[:40], apart)
