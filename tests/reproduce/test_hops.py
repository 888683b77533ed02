import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

from ppgsl_bench.pairs import num_pairs, pairs_at
from ppgsl_bench.reproduce.hops import hops_between


@given(graphs(), st.data())
def test_hops_are_those_of_networkx(graph, data):
    total = num_pairs(graph.num_nodes)
    ranks = data.draw(st.lists(st.integers(0, total - 1), max_size=30)) if total else []
    pairs = pairs_at(np.array(ranks, dtype=np.int64), graph.num_nodes)
    flipped = data.draw(st.booleans())
    reference = nx.Graph()
    reference.add_nodes_from(range(graph.num_nodes))
    reference.add_edges_from(graph.edges.tolist())
    lengths = dict(nx.all_pairs_shortest_path_length(reference))
    asked = pairs[:, ::-1] if flipped else pairs
    assert hops_between(graph, asked).tolist() == [lengths[u].get(v, -1) for u, v in pairs.tolist()]
