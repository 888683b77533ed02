import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from strategies import graphs

from ppgsl_bench.attacks import registry
from ppgsl_bench.attacks.gae import (
    GAE,
    GAESVC,
    GAECosine,
    GAEHadamard,
    GAEInnerProduct,
    GAEMasked,
    MaskedGAE,
)
from ppgsl_bench.graph import Graph
from ppgsl_bench.link_loss import link_loss
from ppgsl_bench.message_passing import normalised_adjacency
from ppgsl_bench.metrics import auc_standard_error, roc_auc
from ppgsl_bench.pairs import num_pairs, pairs_at, ranks_of
from ppgsl_bench.split import make_split

ATTACKS = [GAECosine, GAESVC, GAEInnerProduct, GAEHadamard, GAEMasked]


def communities(groups: int = 10, size: int = 20, features: bool = True, seed: int = 0) -> Graph:
    """Dense groups, few links between them, features that half tell the group."""
    rng = np.random.default_rng(seed)
    n = groups * size
    group = np.arange(n) // size
    pairs = pairs_at(np.arange(num_pairs(n)), n)
    same = group[pairs[:, 0]] == group[pairs[:, 1]]
    links = pairs[rng.random(len(pairs)) < np.where(same, 0.4, 0.005)]
    x = np.eye(groups)[group] + rng.standard_normal((n, groups)) if features else None
    return Graph.from_pairs(n, links, x=None if x is None else x.astype(np.float32))


def attacked(attack, graph: Graph, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores of hidden links and uniform negatives."""
    split = make_split(graph, seed)
    pairs = np.concatenate([split.sensitive, split.negatives["uniform"]])
    labels = np.arange(len(pairs)) < len(split.sensitive)
    return labels, attack.score(split.visible.without_labels(), pairs, np.random.default_rng(seed))


def test_attacks_are_registered_and_share_one_encoder():
    names = ("gae-cos", "gae-svc", "gae-ip", "gae-had")
    assert {registry.get(name)(epochs=3).encoder.canonical for name in names} == {GAE(epochs=3).canonical}
    assert registry.get("gae-masked")().encoder == MaskedGAE()
    assert {name for name in registry.names("paper") if name.startswith("gae")} == {"gae-cos", "gae-svc"}


@pytest.mark.parametrize("features", [0, 8])
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_better_than_chance_on_a_random_graph(random_graph, attack, features):
    """Hidden links of an Erdős–Rényi graph are exchangeable with non-links. 3 standard errors: 0.3 % false alarms."""
    labels, scores = attacked(attack(), random_graph(400, 2400, features=features))
    assert abs(roc_auc(labels, scores) - 0.5) < 3 * auc_standard_error(labels, scores)


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("attack", [GAECosine, GAEInnerProduct, GAEHadamard, GAEMasked])
def test_finds_links_inside_communities_however_nodes_are_numbered(attack, features):
    """Two numberings give two draws of one attack: their AUCs differ by less than 3 standard errors of a difference."""
    graph = communities(features=features)
    new_id = np.random.default_rng(5).permutation(graph.num_nodes)
    x = None if graph.x is None else graph.x[np.argsort(new_id)]
    relabelled = Graph.from_pairs(graph.num_nodes, new_id[graph.edges], x=x)
    first, second = (attacked(attack(), version) for version in (graph, relabelled))
    assert roc_auc(*first) > 0.8
    spread = np.hypot(auc_standard_error(*first), auc_standard_error(*second))
    assert abs(roc_auc(*first) - roc_auc(*second)) < 3 * spread


@pytest.mark.parametrize("attack", ATTACKS)
def test_depends_on_its_rng_alone(random_graph, attack):
    graph = random_graph(60, 200, features=5)
    pairs = pairs_at(np.arange(num_pairs(60)), 60)
    first, again, other = (attack(epochs=20).score(graph, pairs, np.random.default_rng(s)) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("encoder", [GAE, MaskedGAE])
def test_sparse_and_dense_features_give_the_same_vectors(encoder):
    graph = communities(groups=4)
    x = np.where(graph.x > 0.5, graph.x, 0)
    dense, sparse = (
        Graph(num_nodes=graph.num_nodes, edges=graph.edges, x=features) for features in (x, sp.csr_array(x))
    )
    ours, theirs = (encoder(epochs=30).embed(g, np.random.default_rng(0)) for g in (dense, sparse))
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("encoder", [GAE, MaskedGAE])
def test_training_lowers_the_loss(encoder):
    graph = communities()
    pairs = pairs_at(np.arange(num_pairs(graph.num_nodes)), graph.num_nodes)
    non_links = pairs[~graph.has_edges(pairs)]
    before, after = (
        link_loss(
            torch.from_numpy(encoder(epochs=epochs).embed(graph, np.random.default_rng(0))), graph.edges, non_links
        )
        for epochs in (0, 200)
    )
    assert after < before - 0.2


def test_weights_count_and_unit_weights_are_none(random_graph):
    graph = random_graph(60, 200, features=5)
    ones = np.ones(graph.num_edges, dtype=np.float32)
    others = np.linspace(0.1, 3, graph.num_edges, dtype=np.float32)
    plain, unit, weighted = (
        GAE(epochs=10).embed(g, np.random.default_rng(1))
        for g in (graph, graph.with_edges(graph.edges, weights=ones), graph.with_edges(graph.edges, weights=others))
    )
    np.testing.assert_array_equal(plain, unit)
    assert (plain != weighted).any()


@given(graphs(min_edges=1))
def test_masked_links_are_not_among_the_messages(graph):
    masked, seen = MaskedGAE()._view(graph, normalised_adjacency(graph), np.random.default_rng(0))
    count = max(1, round(0.7 * graph.num_edges))
    assert len(np.unique(ranks_of(masked, graph.num_nodes))) == len(masked) == count
    assert graph.has_edges(masked).all()
    pattern = sp.csr_array((seen.values, seen.indices, seen.indptr), shape=seen.shape).toarray() > 0
    assert not pattern[masked[:, 0], masked[:, 1]].any()
    assert pattern.sum() == graph.num_nodes + 2 * (graph.num_edges - count)


@pytest.mark.parametrize("attack", ATTACKS)
@hypothesis_settings(max_examples=15)
@given(graph=graphs())
def test_scores_are_finite_on_any_graph(attack, graph):
    """One link, none, all; isolated nodes; no features."""
    pairs = pairs_at(np.arange(num_pairs(graph.num_nodes)), graph.num_nodes)
    scores = attack(epochs=5).score(graph, pairs, np.random.default_rng(0))
    assert scores.shape == (len(pairs),)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()


def test_all_zero_features_are_no_harm(random_graph):
    graph = random_graph(30, 60)
    blank = Graph(num_nodes=30, edges=graph.edges, x=np.zeros((30, 4), dtype=np.float32))
    assert np.isfinite(GAE(epochs=20).embed(blank, np.random.default_rng(0))).all()
