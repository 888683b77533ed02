import numpy as np
import pytest
import scipy.sparse as sp

from ppgsl_bench.attacks import ensemble
from ppgsl_bench.attacks.ensemble import Ensemble, pair_evidence
from ppgsl_bench.attacks.neighbours import CommonNeighbours
from ppgsl_bench.graph import Graph
from ppgsl_bench.metrics import attack_metrics
from ppgsl_bench.pairs import pairs_at
from ppgsl_bench.split import make_split


@pytest.fixture(scope="module")
def communities():
    """Dense blocks of 20 nodes in a sparse graph, with one noisy feature a block."""
    rng = np.random.default_rng(5)
    n, size = 200, 20
    u, v = pairs_at(np.arange(n * (n - 1) // 2), n).T
    linked = rng.random(len(u)) < np.where(u // size == v // size, 0.35, 0.01)
    x = np.eye(n // size, dtype=np.float32)[np.arange(n) // size] + rng.random((n, n // size), dtype=np.float32)
    return Graph.from_pairs(n, np.stack([u, v], axis=1)[linked], x=x)


def test_it_is_at_least_as_good_as_its_parts(communities):
    split = make_split(communities, 0)
    queries = split.queries()
    combined = attack_metrics(Ensemble().score(split.visible, queries.pairs, np.random.default_rng(0)), queries.group)
    common = attack_metrics(
        CommonNeighbours().score(split.visible, queries.pairs, np.random.default_rng(0)), queries.group
    )
    assert combined["auc"] > common["auc"] > 0.7


def test_same_seed_same_scores_and_order_of_ends_and_pairs_is_immaterial(communities):
    split = make_split(communities, 0)
    pairs = split.queries().pairs
    first = Ensemble().score(split.visible, pairs, np.random.default_rng(1))
    shuffle = np.random.default_rng(2).permutation(len(pairs))
    again = Ensemble().score(split.visible, pairs[shuffle, ::-1], np.random.default_rng(1))
    np.testing.assert_array_equal(first[shuffle], again)
    assert np.any(first != Ensemble().score(split.visible, pairs, np.random.default_rng(3)))


def test_training_pairs_come_from_the_published_graph_with_positives_masked(communities, monkeypatch):
    asked = []

    def spy(graph, pairs):
        asked.append((graph, pairs))
        return pair_evidence(graph, pairs)

    monkeypatch.setattr(ensemble, "pair_evidence", spy)
    queries = communities.edges[:5]
    Ensemble(folds=2).score(communities, queries, np.random.default_rng(0))
    (*folds, last) = asked
    assert len(folds) == 2
    assert last[0] is communities
    for seen, pairs in folds:
        positives, negatives = np.array_split(pairs, 2)
        assert communities.has_edges(positives).all()
        assert not communities.has_edges(negatives).any()
        assert not seen.has_edges(positives).any()
        assert seen.num_edges == communities.num_edges - len(positives)


def test_evidence_is_symmetric_and_uses_features_where_there_are_any(communities, random_graph):
    pairs = communities.edges[::7]
    np.testing.assert_array_equal(pair_evidence(communities, pairs), pair_evidence(communities, pairs[:, ::-1]))
    bare = random_graph(30, 60)
    assert pair_evidence(communities, pairs).shape[1] == pair_evidence(bare, bare.edges).shape[1] + 1
    sparse = Graph(num_nodes=200, edges=communities.edges, x=sp.csr_array(communities.x))
    np.testing.assert_allclose(pair_evidence(communities, pairs), pair_evidence(sparse, pairs))


def test_graphs_too_small_or_too_dense_are_refused(random_graph):
    assert "19 published links" in Ensemble().why_not(random_graph(30, 19))
    assert Ensemble().why_not(random_graph(30, 20)) is None
    assert Ensemble().why_not(random_graph(30, 415)) is None
    assert "19 unlinked pairs" in Ensemble().why_not(random_graph(30, 416))


def test_a_dense_graph_has_fewer_counterexamples(random_graph):
    dense = random_graph(30, 415)
    assert np.isfinite(Ensemble().score(dense, dense.edges[:9], np.random.default_rng(0))).all()


def test_on_links_without_pattern_it_is_no_better_than_chance(random_graph):
    # Erdős–Rényi: |AUC - 0.5| beyond 4 standard errors is a false alarm in 6e-5 of cases.
    split = make_split(random_graph(400, 2000, seed=8), 0)
    queries = split.queries()
    found = attack_metrics(Ensemble().score(split.visible, queries.pairs, np.random.default_rng(0)), queries.group)
    assert abs(found["auc"] - 0.5) < 4 * found["auc_se"]


def test_training_pairs_are_capped(communities, monkeypatch):
    monkeypatch.setattr(ensemble, "_MAX_TRAINING_PAIRS", 100)
    evidence, linked = Ensemble(folds=5)._training_set(communities, np.random.default_rng(0))
    assert len(evidence) == len(linked) == 100
    assert linked.sum() == 50
