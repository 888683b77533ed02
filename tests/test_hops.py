import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

from ppgsl_bench.graph import Graph
from ppgsl_bench.hops import hops_between, path_lengths
from ppgsl_bench.pairs import num_pairs, pairs_at


def lengths_by_networkx(graph):
    reference = nx.Graph()
    reference.add_nodes_from(range(graph.num_nodes))
    reference.add_edges_from(graph.edges.tolist())
    return dict(nx.all_pairs_shortest_path_length(reference))


@given(graphs(), st.data())
def test_hops_are_those_of_networkx(graph, data):
    total = num_pairs(graph.num_nodes)
    ranks = data.draw(st.lists(st.integers(0, total - 1), max_size=30)) if total else []
    pairs = pairs_at(np.array(ranks, dtype=np.int64), graph.num_nodes)
    flipped = data.draw(st.booleans())
    lengths = lengths_by_networkx(graph)
    asked = pairs[:, ::-1] if flipped else pairs
    assert hops_between(graph, asked).tolist() == [lengths[u].get(v, -1) for u, v in pairs.tolist()]


@given(graphs())
def test_path_lengths_equal_networkx(graph):
    lengths = lengths_by_networkx(graph)
    hops = [d for u in lengths for v, d in lengths[u].items() if u != v]
    mean, share = path_lengths(graph, np.arange(graph.num_nodes))
    assert mean == pytest.approx(np.mean(hops) if hops else 0.0)
    assert share == pytest.approx(len(hops) / (graph.num_nodes * (graph.num_nodes - 1)))


def test_path_lengths_from_a_sample_count_those_sources_only():
    path = Graph.from_pairs(5, np.array([(0, 1), (1, 2), (2, 3)]))
    assert path_lengths(path, np.array([0])) == (2.0, 0.75)
    assert path_lengths(path, np.array([4])) == (0.0, 0.0)
    assert path_lengths(path, np.array([4, 0, 1])) == (10 / 6, 0.5)
