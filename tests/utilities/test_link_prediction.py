import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from strategies import graphs

from ppgsl_bench.graph import Graph
from ppgsl_bench.metrics import roc_auc
from ppgsl_bench.pairs import num_pairs, pairs_at
from ppgsl_bench.split import make_split
from ppgsl_bench.utilities import registry
from ppgsl_bench.utilities.link_prediction import LinkPrediction


@pytest.fixture(scope="module")
def clustered() -> Graph:
    """Ten communities of 20 nodes, features that half tell them."""
    rng = np.random.default_rng(0)
    u, v = np.triu_indices(200, 1)
    linked = rng.random(len(u)) < np.where(u // 20 == v // 20, 0.4, 0.005)
    x = np.eye(10)[np.arange(200) // 20] + rng.standard_normal((200, 10))
    return Graph.from_pairs(200, np.stack([u, v], axis=1)[linked], x=x.astype(np.float32))


def evaluate(published, split, seed=0, **parameters):
    return LinkPrediction(**parameters).evaluate(published, split, np.random.default_rng(seed))


def test_registered():
    assert registry.get("link-prediction") is LinkPrediction


def test_finds_links_where_there_is_structure(clustered):
    split = make_split(clustered, 0)
    found = evaluate(split.visible, split)
    assert set(found) == {"auc", "ap", "floor_auc"}
    assert found["auc"] > max(0.75, found["floor_auc"])
    assert found["ap"] > 0.75
    assert 0.5 < found["floor_auc"] < 0.8


def test_no_better_than_chance_on_a_random_graph(random_graph):
    """3 standard errors of an AUC under the null, sqrt((2n + 1) / (12 n²)): a false-alarm rate of 0.3 %."""
    split = make_split(random_graph(400, 2400, features=8), 0)
    n = len(split.test_links)
    for auc in (evaluate(split.visible, split)[name] for name in ("auc", "floor_auc")):
        assert abs(auc - 0.5) < 3 * np.sqrt((2 * n + 1) / (12 * n**2))


def test_floor_looks_at_features_alone(clustered):
    split = make_split(clustered, 0)
    nothing = split.visible.with_edges(split.visible.edges[:0])
    full, empty = (evaluate(g, split, epochs=5) for g in (split.visible, nothing))
    assert full["floor_auc"] == empty["floor_auc"]
    pairs = np.concatenate([split.test_links, split.test_non_links])
    unit = clustered.x / np.linalg.norm(clustered.x, axis=1, keepdims=True)
    expected = roc_auc(
        np.arange(len(pairs)) < len(split.test_links), (unit[pairs[:, 0]] * unit[pairs[:, 1]]).sum(axis=1)
    )
    assert full["floor_auc"] == pytest.approx(expected, abs=1e-4)


def test_without_features_the_floor_is_one_half(clustered):
    graph = Graph(num_nodes=200, edges=clustered.edges)
    split = make_split(graph, 0)
    found = evaluate(split.visible, split)
    assert found["floor_auc"] == 0.5
    assert found["auc"] > 0.75


def test_sparse_and_dense_features_give_the_same_numbers(clustered):
    x = np.where(clustered.x > 0.5, clustered.x, 0)
    dense, sparse = (Graph(num_nodes=200, edges=clustered.edges, x=f) for f in (x, sp.csr_array(x)))
    split = make_split(dense, 0)
    first = evaluate(split.visible, split, epochs=20)
    second = evaluate(sparse.with_edges(split.visible.edges), split, epochs=20)
    assert first == pytest.approx(second, abs=2e-3)


def test_depends_on_its_rng_alone(clustered):
    split = make_split(clustered, 0)
    first, again, other = (evaluate(split.visible, split, seed, epochs=20) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@hypothesis_settings(max_examples=15)
@given(graphs(min_nodes=4, min_edges=3))
def test_all_numbers_are_finite_whatever_is_published(graph):
    graph = Graph.from_pairs(graph.num_nodes + 8, graph.edges)
    split = make_split(graph, 0)
    every = pairs_at(np.arange(num_pairs(graph.num_nodes)), graph.num_nodes)
    weighted = graph.with_edges(graph.edges, weights=np.linspace(0.1, 1, graph.num_edges, dtype=np.float32))
    for published in (graph.with_edges(every[:0]), graph.with_edges(every), graph.with_edges(every[:1]), weighted):
        assert np.isfinite(list(evaluate(published, split, epochs=3).values())).all()
