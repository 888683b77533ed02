import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import LinearSVC
from strategies import graphs

from ppgsl_bench.attacks import scorers
from ppgsl_bench.attacks.scorers import (
    concatenated,
    hadamard,
    inner_product,
    median_at_isolated,
    support_vector_scores,
)
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import num_pairs, pairs_at, ranks_of
from ppgsl_bench.similarity import row_cosines


def vectors(num_nodes: int, width: int = 6, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((num_nodes, width)).astype(np.float32)


def all_pairs(num_nodes: int) -> np.ndarray:
    return pairs_at(np.arange(num_pairs(num_nodes)), num_nodes)


def svc(features, graph: Graph, pairs: np.ndarray, *, embedding=None, seed: int = 1, max_links: int = 50_000):
    embedding = vectors(graph.num_nodes) if embedding is None else embedding
    return support_vector_scores(features, embedding, graph, pairs, np.random.default_rng(seed), max_links=max_links)


def test_similarities_equal_a_dense_product():
    z = vectors(30)
    pairs = all_pairs(30)
    dense = z.astype(np.float64) @ z.T.astype(np.float64)
    norms = np.linalg.norm(z.astype(np.float64), axis=1)
    u, v = pairs.T
    np.testing.assert_allclose(inner_product(z, pairs), dense[u, v], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(row_cosines(z, pairs), (dense / np.outer(norms, norms))[u, v], rtol=1e-12, atol=1e-12)


def test_cosine_of_a_zero_vector_is_zero():
    z = vectors(5)
    z[2] = 0
    z[3] = -z[4]
    assert row_cosines(z, np.array([[2, 0], [1, 2], [3, 4]])).tolist() == pytest.approx([0.0, 0.0, -1.0])


@pytest.mark.parametrize("similarity", [row_cosines, inner_product])
def test_similarities_do_not_depend_on_ids_or_on_the_order_of_ends(similarity):
    z = vectors(20)
    pairs = all_pairs(20)
    scores = similarity(z, pairs)
    np.testing.assert_array_equal(scores, similarity(z, pairs[:, ::-1]))
    new_id = np.random.default_rng(3).permutation(20)
    relabelled = np.empty_like(z)
    relabelled[new_id] = z
    np.testing.assert_array_equal(scores, similarity(relabelled, new_id[pairs]))


@pytest.mark.parametrize("features", [concatenated, hadamard])
def test_classifiers_do_not_depend_on_the_order_of_ends(random_graph, features):
    graph = random_graph(40, 120)
    pairs = all_pairs(40)
    np.testing.assert_array_equal(svc(features, graph, pairs), svc(features, graph, pairs[:, ::-1]))


def test_concatenation_is_additive_and_the_product_is_not(random_graph):
    """s(u,v) - s(u,v') - s(u',v) + s(u',v') = 0: a linear function of [z_u ; z_v] has no interaction."""
    graph = random_graph(40, 120)
    square = np.array([[3, 7], [3, 11], [20, 7], [20, 11]])
    signs = np.array([1, -1, -1, 1])
    assert signs @ svc(concatenated, graph, square) == pytest.approx(0, abs=1e-9)
    assert abs(signs @ svc(hadamard, graph, square)) > 1e-3


def test_classifier_learns_from_non_links_of_the_published_graph_only(random_graph, monkeypatch):
    """Positives are published links, negatives are all the others, in equal numbers, ends in random order."""
    graph = random_graph(40, 120)
    seen = {}

    def spying(embedding, pairs):
        seen.setdefault("pairs", pairs)
        return concatenated(embedding, pairs)

    def fit(self, X, y):
        seen["labels"] = y
        return real_fit(self, X, y)

    real_fit = LinearSVC.fit
    monkeypatch.setattr(scorers.LinearSVC, "fit", fit)
    svc(spying, graph, np.array([[0, 1]]), max_links=100)
    training, labels = seen["pairs"], seen["labels"]
    assert len(training) == 200
    np.testing.assert_array_equal(graph.has_edges(training), labels == 1)
    assert len(np.unique(ranks_of(training, 40))) == 200
    swapped = (training[:, 0] > training[:, 1]).mean()
    # Fair coins: 5 standard errors.
    assert abs(swapped - 0.5) < 5 * 0.5 / np.sqrt(200)


def test_pairs_are_scored_alike_in_portions(random_graph, monkeypatch):
    graph = random_graph(40, 120)
    pairs = all_pairs(40)
    at_once = svc(concatenated, graph, pairs)
    monkeypatch.setattr(scorers, "_PAIRS_AT_ONCE", 7)
    np.testing.assert_allclose(svc(concatenated, graph, pairs), at_once, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("features", [concatenated, hadamard])
@pytest.mark.parametrize("links", [0, num_pairs(6)])
def test_nothing_to_learn_from_gives_zeros(random_graph, features, links):
    pairs = all_pairs(6)
    np.testing.assert_array_equal(svc(features, random_graph(6, links), pairs), np.zeros(len(pairs)))


@pytest.mark.filterwarnings("error")
@given(graphs(), st.sampled_from([concatenated, hadamard]))
def test_classifier_is_finite_on_any_graph(graph, features):
    pairs = all_pairs(graph.num_nodes)
    assert np.isfinite(svc(features, graph, pairs)).all()
    blank = np.zeros((graph.num_nodes, 3), dtype=np.float32)
    assert np.isfinite(svc(features, graph, pairs, embedding=blank)).all()


def test_classifier_depends_on_its_rng_alone(random_graph):
    graph = random_graph(40, 120)
    pairs = all_pairs(40)
    np.testing.assert_array_equal(svc(hadamard, graph, pairs, seed=1), svc(hadamard, graph, pairs, seed=1))
    assert (svc(hadamard, graph, pairs, seed=1) != svc(hadamard, graph, pairs, seed=2)).any()


def test_pairs_with_an_isolated_end_get_the_median_of_the_others():
    graph = Graph.from_pairs(5, np.array([(0, 1), (1, 2)]))
    pairs = np.array([[0, 1], [0, 3], [1, 2], [3, 4], [0, 2], [4, 1]])
    scores = np.array([5.0, 100.0, 1.0, -100.0, 2.0, 7.0])
    assert median_at_isolated(scores, graph, pairs).tolist() == [5.0, 2.0, 1.0, 2.0, 2.0, 2.0]
    only_isolated = np.array([[3, 4], [0, 3]])
    assert median_at_isolated(np.array([3.0, 4.0]), graph, only_isolated).tolist() == [0.0, 0.0]


def test_numpys_global_generator_is_left_alone(random_graph):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    svc(hadamard, random_graph(30, 60), all_pairs(30)[:20])
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
