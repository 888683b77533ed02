import networkx as nx
import numpy as np
from hypothesis import given
from strategies import graphs

from ppgsl_bench.attacks.degree import DegreeProduct
from ppgsl_bench.pairs import num_pairs, pairs_at


@given(graphs())
def test_score_is_networkxs_preferential_attachment(graph):
    pairs = pairs_at(np.arange(num_pairs(graph.num_nodes)), graph.num_nodes)
    twin = nx.empty_graph(graph.num_nodes)
    twin.add_edges_from(graph.edges.tolist())
    expected = [value for _, _, value in nx.preferential_attachment(twin, pairs.tolist())]
    np.testing.assert_array_equal(DegreeProduct().score(graph, pairs[:, ::-1], np.random.default_rng(0)), expected)
