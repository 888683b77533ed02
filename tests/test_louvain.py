import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

from ppgsl_bench.graph import Graph
from ppgsl_bench.louvain import louvain, modularity


def as_networkx(graph: Graph) -> nx.Graph:
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
    result = nx.Graph()
    result.add_nodes_from(range(graph.num_nodes))
    result.add_weighted_edges_from((u, v, w) for (u, v), w in zip(graph.edges.tolist(), weights.tolist(), strict=True))
    return result


def as_sets(communities: np.ndarray) -> list[set[int]]:
    return [set(np.flatnonzero(communities == c).tolist()) for c in np.unique(communities)]


@given(graphs(min_edges=1), st.integers(0, 2**16), st.booleans())
def test_modularity_equals_networkx(graph, seed, weighted):
    rng = np.random.default_rng(seed)
    if weighted:
        graph = graph.with_edges(graph.edges, weights=rng.uniform(0.1, 3, graph.num_edges).astype(np.float32))
    communities = rng.integers(3, size=graph.num_nodes)
    expected = nx.community.modularity(as_networkx(graph), as_sets(communities))
    assert modularity(graph, communities) == pytest.approx(expected, abs=1e-6)


@given(graphs())
def test_communities_are_a_numbering_without_gaps_and_follow_components(graph):
    communities = louvain(graph.adjacency, np.random.default_rng(0))
    assert communities.shape == (graph.num_nodes,)
    np.testing.assert_array_equal(np.unique(communities), np.arange(communities.max() + 1))
    components = list(nx.connected_components(as_networkx(graph)))
    for members in as_sets(communities):
        assert any(members <= component for component in components)
    assert modularity(graph, communities) >= 0


@pytest.mark.parametrize("weighted", [False, True])
def test_as_good_as_networkx(random_graph, weighted):
    """Mean modularity over five runs on graphs without clear communities, where greedy moves matter most."""
    graph = random_graph(300, 900, seed=3)
    if weighted:
        weights = np.random.default_rng(0).uniform(0.1, 3, graph.num_edges).astype(np.float32)
        graph = graph.with_edges(graph.edges, weights=weights)
    reference = as_networkx(graph)
    theirs = [nx.community.modularity(reference, nx.community.louvain_communities(reference, seed=s)) for s in range(5)]
    ours = [modularity(graph, louvain(graph.adjacency, np.random.default_rng(s))) for s in range(5)]
    assert np.mean(ours) > np.mean(theirs) - 0.01


@pytest.mark.parametrize("resolution", [0.5, 1.0, 2.0])
def test_links_of_nodes_to_themselves_and_resolution_count_as_in_networkx(random_graph, resolution):
    """Same mean objective over five runs, with some nodes that have heavy links to themselves."""
    graph = random_graph(200, 600, seed=4)
    own = np.random.default_rng(1).integers(0, 8, graph.num_nodes)
    reference = as_networkx(graph)
    reference.add_weighted_edges_from((node, node, weight) for node, weight in enumerate(own.tolist()) if weight)
    adjacency = sp.csr_array(graph.adjacency + sp.diags_array(2.0 * own))

    def quality(communities):
        return nx.community.modularity(reference, communities, resolution=resolution)

    seeds = range(5)
    theirs = [quality(nx.community.louvain_communities(reference, resolution=resolution, seed=seed)) for seed in seeds]
    ours = [quality(as_sets(louvain(adjacency, np.random.default_rng(seed), resolution))) for seed in seeds]
    assert np.mean(ours) > np.mean(theirs) - 0.01


def test_finds_planted_communities_and_depends_on_its_rng_alone():
    rng = np.random.default_rng(1)
    u, v = np.triu_indices(200, 1)
    linked = rng.random(len(u)) < np.where(u // 20 == v // 20, 0.5, 0.005)
    graph = Graph.from_pairs(200, np.stack([u, v], axis=1)[linked])
    found = louvain(graph.adjacency, np.random.default_rng(2))
    assert sorted(map(min, as_sets(found))) == list(range(0, 200, 20))
    assert all(max(members) - min(members) == 19 for members in as_sets(found))
    np.testing.assert_array_equal(found, louvain(graph.adjacency, np.random.default_rng(2)))


def test_no_links_no_communities():
    graph = Graph.from_pairs(4, np.empty((0, 2), dtype=np.int64))
    assert louvain(graph.adjacency, np.random.default_rng(0)).tolist() == [0, 1, 2, 3]
    assert modularity(graph, np.zeros(4, dtype=np.int64)) == 0
