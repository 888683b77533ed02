import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

from ppgsl_bench import datasets
from ppgsl_bench.attacks import registry
from ppgsl_bench.graph import Graph
from ppgsl_bench.metrics import attack_metrics, mean_interval
from ppgsl_bench.neighbourhoods import common_neighbour_scores
from ppgsl_bench.pairs import num_pairs, pairs_at
from ppgsl_bench.split import make_split


def all_pairs(graph):
    return pairs_at(np.arange(num_pairs(graph.num_nodes)), graph.num_nodes)


def networkx_graph(graph):
    result = nx.empty_graph(graph.num_nodes)
    result.add_edges_from(graph.edges.tolist())
    return result


def score(name, graph, pairs):
    return registry.get(name)().score(graph, pairs, np.random.default_rng(0))


def oracle(name, graph, pairs):
    twin = networkx_graph(graph)
    if name == "cn":
        return [len(list(nx.common_neighbors(twin, *pair))) for pair in pairs.tolist()]
    index = {"aa": nx.adamic_adar_index, "ra": nx.resource_allocation_index}[name]
    return [value for _, _, value in index(twin, pairs.tolist())]


@pytest.mark.parametrize("name", ["cn", "aa", "ra"])
@given(graph=graphs(), flip=st.booleans())
def test_scores_are_networkxs(name, graph, flip):
    pairs = all_pairs(graph)
    found = score(name, graph, pairs[:, ::-1] if flip else pairs)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, oracle(name, graph, pairs), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["cn", "aa", "ra"])
def test_scores_are_networkxs_among_hubs(name, rng):
    hubs, n = 3, 400
    ends = np.concatenate([np.stack([np.full(n, h), np.arange(n)], axis=1)[rng.random(n) < 0.8] for h in range(hubs)])
    noise = rng.integers(n, size=(600, 2))
    graph = Graph.from_pairs(n, np.concatenate([ends, noise]), loops="drop", duplicates="merge")
    pairs = np.concatenate([rng.integers(n, size=(500, 2)), np.stack([np.zeros(300), np.arange(1, 301)], axis=1)])
    pairs = pairs[pairs[:, 0] != pairs[:, 1]].astype(np.int64)
    np.testing.assert_allclose(score(name, graph, pairs), oracle(name, graph, pairs), rtol=1e-12)


@pytest.mark.parametrize("name", ["cn", "aa", "ra"])
@given(graph=graphs(min_nodes=3), choice=st.integers(0, 10**6))
def test_the_pairs_own_link_plays_no_part(name, graph, choice):
    pair = pairs_at(np.array([choice % num_pairs(graph.num_nodes)]), graph.num_nodes)
    without = graph.without_edges(pair) if graph.has_edges(pair)[0] else graph
    added = without.with_edges(without.edges, pair)
    if name == "cn":
        assert score(name, without, pair) == score(name, added, pair)
    # The common neighbours' own degrees do not change either: neither end is among them.
    np.testing.assert_array_equal(score(name, without, pair), score(name, added, pair))


def test_weights_play_no_part(random_graph, rng):
    graph = random_graph(30, 120)
    weighted = graph.with_edges(graph.edges, weights=rng.random(120).astype(np.float32) + 0.01)
    for name in ("cn", "aa", "ra"):
        np.testing.assert_array_equal(score(name, graph, all_pairs(graph)), score(name, weighted, all_pairs(graph)))


def test_degree_one_has_no_weight():
    star = Graph.from_pairs(4, [(0, 1), (0, 2), (0, 3)])
    assert score("aa", star, np.array([[1, 2], [0, 1]])).tolist() == [pytest.approx(1 / math.log(3)), 0.0]
    path = Graph.from_pairs(3, [(0, 1), (1, 2)])
    assert score("aa", path, np.array([[0, 2]])).tolist() == [pytest.approx(1 / math.log(2))]
    assert score("ra", Graph.from_pairs(2, [(0, 1)]), np.array([[0, 1]])).tolist() == [0.0]


def test_like_neighbourhoods_tie_whatever_the_order_of_the_neighbours():
    # Weights whose float sum depends on the order: (0.1 + 0.2) + 0.3 > 0.1 + (0.2 + 0.3).
    graph = Graph.from_pairs(
        10, [(u, z) for u in (0, 1) for z in (4, 5, 6)] + [(u, z) for u in (2, 3) for z in (7, 8, 9)]
    )
    weight = np.array([0, 0, 0, 0, 0.1, 0.2, 0.3, 0.3, 0.2, 0.1])
    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1
    first, second = common_neighbour_scores(graph, np.array([[0, 1], [2, 3]]), weight)
    assert first == second == pytest.approx(0.6)


def test_no_pairs_and_no_links():
    empty = Graph.from_pairs(3, np.empty((0, 2), dtype=np.int64))
    for name in ("cn", "aa", "ra"):
        assert score(name, empty, np.empty((0, 2), dtype=np.int64)).shape == (0,)
        assert score(name, empty, np.array([[0, 2]])).tolist() == [0.0]


@pytest.mark.dataset
@pytest.mark.parametrize(("dataset", "name", "low", "high"), [
    ("polblogs", "cn", 0.90, 0.96),
    ("polblogs", "aa", 0.90, 0.96),
    ("polblogs", "ra", 0.90, 0.96),
    # A common neighbour is all that CN can see, and half of the hidden links have none.
    ("cora", "cn", 0.68, 0.73),
    ("citeseer", "cn", 0.63, 0.68),
])  # fmt: skip
def test_published_figures_are_reached_on_undefended_graphs(datasets_dir, dataset, name, low, high):
    graph = datasets.registry.get(dataset)().load(datasets.Sources(data_dirs=(datasets_dir,), offline=True))
    aucs = []
    for seed in range(5):
        split = make_split(graph, seed)
        queries = split.queries()
        aucs.append(attack_metrics(score(name, split.visible, queries.pairs), queries.group)["auc"])
    assert low <= mean_interval(aucs).mean <= high
