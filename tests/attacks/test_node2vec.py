import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from strategies import graphs

from ppgsl_bench.attacks import registry
from ppgsl_bench.attacks.node2vec import Node2Vec, Node2VecCosine, Node2VecHadamard, Node2VecSVC
from ppgsl_bench.graph import Graph
from ppgsl_bench.metrics import auc_standard_error, roc_auc
from ppgsl_bench.pairs import num_pairs, pairs_at
from ppgsl_bench.split import make_split

ATTACKS = [Node2VecCosine, Node2VecSVC, Node2VecHadamard]
QUICK = {"dimensions": 16, "walk_length": 20, "walks_per_node": 5, "window": 5}


def ring_of_cliques(cliques: int = 20, size: int = 8) -> Graph:
    links = [(c * size + i, c * size + j) for c in range(cliques) for i in range(size) for j in range(i + 1, size)] + [
        (c * size, ((c + 1) % cliques) * size + 1) for c in range(cliques)
    ]
    return Graph.from_pairs(cliques * size, np.array(links))


def attacked(attack, graph: Graph, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores of hidden links and uniform negatives."""
    split = make_split(graph, seed)
    pairs = np.concatenate([split.sensitive, split.negatives["uniform"]])
    labels = np.arange(len(pairs)) < len(split.sensitive)
    return labels, attack.score(split.visible.without_labels(), pairs, np.random.default_rng(seed))


def test_defaults_are_those_of_the_reference_code():
    assert Node2Vec().model_dump() == {
        "dimensions": 128,
        "walk_length": 80,
        "walks_per_node": 10,
        "window": 10,
        "epochs": 1,
        "p": 1.0,
        "q": 1.0,
    }


def test_attacks_are_registered_and_share_one_encoder():
    encoders = {registry.get(name)(p=0.5).encoder.canonical for name in ("n2v-cos", "n2v-svc", "n2v-had")}
    assert encoders == {Node2Vec(p=0.5).canonical}
    assert {name for name in registry.names("paper") if name.startswith("n2v")} == {"n2v-cos", "n2v-svc"}


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_better_than_chance_on_a_random_graph(random_graph, attack):
    """Hidden links of an Erdős–Rényi graph are exchangeable with non-links. 3 standard errors: 0.3 % false alarms."""
    labels, scores = attacked(attack(**QUICK), random_graph(400, 2400))
    assert abs(roc_auc(labels, scores) - 0.5) < 3 * auc_standard_error(labels, scores)


@pytest.mark.parametrize("attack", [Node2VecCosine, Node2VecHadamard])
def test_finds_links_inside_cliques_however_nodes_are_numbered(attack):
    graph = ring_of_cliques()
    new_id = np.random.default_rng(5).permutation(graph.num_nodes)
    relabelled = Graph.from_pairs(graph.num_nodes, new_id[graph.edges])
    for version in (graph, relabelled):
        labels, scores = attacked(attack(**{**QUICK, "walks_per_node": 40}), version)
        assert roc_auc(labels, scores) > 0.9


@pytest.mark.parametrize("attack", ATTACKS)
def test_depends_on_its_rng_alone(random_graph, attack):
    graph = random_graph(60, 200)
    pairs = pairs_at(np.arange(num_pairs(60)), 60)
    first, again, other = (attack(**QUICK).score(graph, pairs, np.random.default_rng(s)) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_weights_steer_the_walks(random_graph):
    graph = random_graph(60, 200)
    weights = np.random.default_rng(0).uniform(0.1, 5, graph.num_edges).astype(np.float32)
    weighted = graph.with_edges(graph.edges, weights=weights)
    plain, steered = (Node2Vec(**QUICK).embed(g, np.random.default_rng(1)) for g in (graph, weighted))
    assert (plain != steered).any()


@pytest.mark.parametrize("attack", ATTACKS)
@hypothesis_settings(max_examples=15)
@given(graph=graphs())
def test_scores_are_finite_on_any_graph_and_constant_at_isolated_nodes(attack, graph):
    pairs = pairs_at(np.arange(num_pairs(graph.num_nodes)), graph.num_nodes)
    scores = attack(**QUICK).score(graph, pairs, np.random.default_rng(0))
    assert scores.shape == (len(pairs),)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    unknown = (graph.degrees[pairs] == 0).any(axis=1)
    if unknown.any():
        expected = np.median(scores[~unknown]) if not unknown.all() else 0.0
        np.testing.assert_array_equal(scores[unknown], expected)
