from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from strategies import graphs

from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import num_pairs, pairs_at
from ppgsl_bench.split import make_split
from ppgsl_bench.utilities import registry, structure
from ppgsl_bench.utilities.structure import Structure, clustering, degree_ks, largest_eigenvalues

UNCHANGED = {
    "degree_ks": 0.0,
    "mean_degree_ratio": 1.0,
    "clustering_difference": 0.0,
    "path_length_difference": 0.0,
    "reachable_share_difference": 0.0,
    "modularity_difference": 0.0,
    "spectral_distance": 0.0,
    "edge_jaccard": 1.0,
    "kept_share": 1.0,
    "added_share": 0.0,
}


def as_networkx(graph: Graph) -> nx.Graph:
    result = nx.Graph()
    result.add_nodes_from(range(graph.num_nodes))
    result.add_edges_from(graph.edges.tolist())
    return result


def evaluate(published, split, seed=0, **parameters):
    return Structure(**parameters).evaluate(published, split, np.random.default_rng(seed))


def test_registered():
    assert registry.get("structure") is Structure


@given(graphs())
def test_clustering_equals_networkx(graph):
    assert clustering(graph) == pytest.approx(nx.transitivity(as_networkx(graph)), abs=1e-12)


def test_degree_distance_by_hand():
    star = Graph.from_pairs(4, np.array([(0, 1), (0, 2), (0, 3)]))
    path = Graph.from_pairs(4, np.array([(0, 1), (1, 2), (2, 3)]))
    assert degree_ks(star, path) == pytest.approx(0.25)
    assert degree_ks(star, star.with_edges(star.edges[:0])) == pytest.approx(1.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dense_up_to", [0, 500])
def test_eigenvalues_equal_those_of_the_dense_matrix(random_graph, monkeypatch, weighted, dense_up_to):
    monkeypatch.setattr(structure, "_SMALL", dense_up_to)
    graph = random_graph(200, 300, seed=1)
    assert (graph.degrees == 0).any()
    if weighted:
        graph = graph.with_edges(graph.edges, weights=np.linspace(0.5, 2, graph.num_edges, dtype=np.float32))
    expected = np.linalg.eigvalsh(graph.adjacency.toarray().astype(float))[::-1][:6]
    found = largest_eigenvalues(graph, 6, np.random.default_rng(0).standard_normal(200))
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_visible_graph_itself_is_at_distance_zero(random_graph):
    split = make_split(random_graph(700, 2000), 0)
    assert evaluate(split.visible, split) == UNCHANGED


def test_links_kept_and_added_by_hand():
    split = make_split(Graph.from_pairs(6, np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)])), 0)
    visible = split.visible
    spare = pairs_at(np.arange(num_pairs(6)), 6)
    spare = spare[~visible.has_edges(spare)]
    published = visible.with_edges(visible.edges[1:], spare[:2])
    found = evaluate(published, split)
    assert found["kept_share"] == 0.75
    assert found["added_share"] == 0.5
    assert found["edge_jaccard"] == 0.5
    assert found["mean_degree_ratio"] == 1.25


@given(graphs(min_nodes=4, min_edges=3))
def test_all_numbers_are_finite_whatever_is_published(graph):
    if graph.num_non_edges < 12:
        graph = Graph.from_pairs(graph.num_nodes + 8, graph.edges)
    split = make_split(graph, 0)
    n = graph.num_nodes
    nothing = graph.with_edges(graph.edges[:0])
    everything = graph.with_edges(pairs_at(np.arange(num_pairs(n)), n))
    for published in (nothing, everything, split.visible):
        found = evaluate(published, split)
        assert set(found) == set(UNCHANGED)
        assert np.isfinite(list(found.values())).all()
        assert all(value >= 0 for value in found.values())
    empty = evaluate(nothing, split)
    assert empty["edge_jaccard"] == empty["kept_share"] == empty["mean_degree_ratio"] == 0
    assert empty["spectral_distance"] == pytest.approx(1)


def test_depends_on_its_rng_alone(random_graph):
    split = make_split(random_graph(700, 2000), 0)
    published = split.visible.with_edges(split.visible.edges[::2])
    first = evaluate(published, split, 1, path_sources=5)
    assert first == evaluate(published, split, 1, path_sources=5)
    assert first != evaluate(published, split, 2, path_sources=5)


def test_relabelling_nodes_changes_no_exact_distance(random_graph):
    """Communities and sampled sources aside, which depend on draws."""
    split = make_split(random_graph(120, 400), 0)
    published = split.visible.with_edges(split.visible.edges[::2])
    new_id = np.random.default_rng(3).permutation(120)
    renamed = [Graph.from_pairs(120, new_id[g.edges]) for g in (split.visible, published)]
    before = evaluate(published, split, path_sources=120)
    after = evaluate(renamed[1], replace(split, visible=renamed[0]), path_sources=120)
    for name in set(UNCHANGED) - {"modularity_difference"}:
        assert before[name] == pytest.approx(after[name]), name
