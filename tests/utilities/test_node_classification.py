from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.metrics import f1_score

from ppgsl_bench.errors import UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.split import make_split
from ppgsl_bench.utilities import registry
from ppgsl_bench.utilities.node_classification import NodeClassification, macro_f1, micro_f1


@pytest.fixture(scope="module")
def clustered() -> Graph:
    """Four classes, links mostly within a class, features that hardly tell it."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4
    u, v = np.triu_indices(200, 1)
    linked = rng.random(len(u)) < np.where(y[u] == y[v], 0.15, 0.01)
    x = 0.5 * np.eye(4)[y] + rng.standard_normal((200, 4))
    return Graph.from_pairs(200, np.stack([u, v], axis=1)[linked], x=x.astype(np.float32), y=y)


def evaluate(published, split, seed=0, **parameters):
    return NodeClassification(**parameters).evaluate(published, split, np.random.default_rng(seed))


def test_registered():
    assert registry.get("node-classification") is NodeClassification


def test_links_help_where_they_tell_the_class(clustered):
    split = make_split(clustered, 0)
    found = evaluate(split.visible, split)
    assert set(found) == {"micro_f1", "macro_f1", "floor_micro_f1", "floor_macro_f1"}
    assert found["micro_f1"] > 0.7
    assert found["macro_f1"] > 0.7
    assert found["floor_micro_f1"] < found["micro_f1"] - 0.2


def test_labels_that_nothing_tells_are_not_told(random_graph):
    """Four classes at random: within 4 standard errors of 1/4, a false-alarm rate of 6e-5."""
    graph = random_graph(600, 2000, features=6, classes=4)
    split = make_split(graph, 0)
    spread = np.sqrt(0.25 * 0.75 / len(split.test_nodes))
    found = evaluate(split.visible, split)
    assert abs(found["micro_f1"] - 0.25) < 4 * spread
    assert abs(found["floor_micro_f1"] - 0.25) < 4 * spread


def test_test_labels_are_not_used_for_training(clustered):
    """Other labels at the test nodes change the score but not one prediction."""
    split = make_split(clustered, 0)
    y = np.array(clustered.y)
    y[split.test_nodes] = (y[split.test_nodes] + 1) % 4
    task = NodeClassification(epochs=30)
    first, second = (
        task._predictions(split.visible, labels, split.train_nodes, np.random.default_rng(0))
        for labels in (clustered.y, y)
    )
    np.testing.assert_array_equal(first, second)


def test_floor_is_the_network_without_links(clustered):
    split = make_split(clustered, 0)
    nothing = split.visible.with_edges(split.visible.edges[:0])
    found = evaluate(nothing, split, dropout=0.0, weight_decay=0.0, epochs=400)
    # Same data, other initial weights: both are the same perceptron up to training noise.
    assert found["micro_f1"] == pytest.approx(found["floor_micro_f1"], abs=0.1)
    assert evaluate(split.visible, split)["floor_micro_f1"] == pytest.approx(found["floor_micro_f1"], abs=0.1)


def test_without_features_the_floor_is_the_majority_class(clustered):
    y = np.where(np.arange(200) < 30, 1, 2)
    graph = Graph(num_nodes=200, edges=clustered.edges, y=y)
    split = make_split(graph, 0)
    found = evaluate(split.visible, split, epochs=5)
    share = np.mean(y[split.test_nodes] == 2)
    assert found["floor_micro_f1"] == pytest.approx(share)
    assert found["floor_macro_f1"] == pytest.approx(2 * share / (1 + share) / 2)


def test_unknown_labels_are_neither_learnt_nor_counted(clustered):
    split = make_split(clustered, 0)
    hidden = np.concatenate([split.train_nodes[::2], split.test_nodes[::2]])
    y = np.array(clustered.y)
    y[hidden] = -1
    partly = replace(split.visible, y=y)
    fewer = replace(split, train_nodes=split.train_nodes[1::2], test_nodes=split.test_nodes[1::2])
    assert evaluate(partly, split, epochs=10) == evaluate(split.visible, fewer, epochs=10)
    none_to_learn = replace(split, train_nodes=split.train_nodes[::2])
    with pytest.raises(UserError, match="0 training"):
        evaluate(partly, none_to_learn)


def test_refuses_graphs_without_labels(clustered):
    task = NodeClassification()
    assert task.why_not(clustered) is None
    assert "no node labels" in task.why_not(clustered.without_labels())
    assert "no node labels" in task.why_not(replace(clustered, y=np.full(200, -1)))
    with pytest.raises(ValueError, match="why_not"):
        evaluate(clustered.without_labels(), make_split(clustered, 0))


def test_sparse_and_dense_features_give_the_same_numbers(clustered):
    x = np.where(clustered.x > 0.5, clustered.x, 0)
    dense, sparse = (Graph(num_nodes=200, edges=clustered.edges, x=f, y=clustered.y) for f in (x, sp.csr_array(x)))
    split = make_split(dense, 0)
    # Dropout draws a number an entry of the features, which are not equally many: compare without.
    first = evaluate(split.visible, split, epochs=20, dropout=0.0)
    second = evaluate(sparse.with_edges(split.visible.edges), split, epochs=20, dropout=0.0)
    assert first == pytest.approx(second, abs=0.01)


def test_depends_on_its_rng_alone(clustered):
    split = make_split(clustered, 0)
    torch.manual_seed(1)
    first = evaluate(split.visible, split, 1, epochs=20)
    torch.manual_seed(2)
    assert first == evaluate(split.visible, split, 1, epochs=20)
    assert first != evaluate(split.visible, split, 2, epochs=20)


@pytest.mark.parametrize("links", ["none", "one", "weighted"])
def test_all_numbers_are_finite_whatever_is_published(clustered, links):
    split = make_split(clustered, 0)
    edges = split.visible.edges
    weights = np.linspace(0.1, 1, len(edges), dtype=np.float32)
    published = {
        "none": split.visible.with_edges(edges[:0]),
        "one": split.visible.with_edges(edges[:1]),
        "weighted": split.visible.with_edges(edges, weights=weights),
    }[links]
    assert np.isfinite(list(evaluate(published, split, epochs=3).values())).all()


def test_f1_by_definition():
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(5, size=(2, 300))
    assert micro_f1(truth, predicted) == pytest.approx(f1_score(truth, predicted, average="micro"))
    assert macro_f1(truth, predicted) == pytest.approx(f1_score(truth, predicted, average="macro"))
    # A class that is predicted but never true counts as an error, not as a class of its own.
    assert macro_f1(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 2])) == pytest.approx((1 + 2 / 3) / 2)
