import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import graphs

from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import num_pairs, pairs_at
from ppgsl_bench.subgraphs import double_radius_label, enclosing_subgraphs, end_to_end

UNLIMITED = 10**6


def all_pairs(graph):
    return pairs_at(np.arange(num_pairs(graph.num_nodes)), graph.num_nodes)


def parts(subgraphs):
    """Each part as (nodes, labels, set of links between nodes of the whole graph)."""
    size = len(subgraphs.nodes)
    pattern = sp.csr_array((np.ones(len(subgraphs.indices)), subgraphs.indices, subgraphs.indptr), shape=(size, size))
    assert (pattern != pattern.T).nnz == 0
    assert pattern.max() <= 1
    for low, high in zip(subgraphs.offsets[:-1], subgraphs.offsets[1:], strict=True):
        nodes = subgraphs.nodes[low:high]
        assert pattern[low:high].nnz == pattern[low:high, low:high].nnz, "a link leaves its part"
        rows, columns = pattern[low:high, low:high].nonzero()
        links = {frozenset(link) for link in zip(nodes[rows].tolist(), nodes[columns].tolist(), strict=True)}
        yield nodes, subgraphs.labels[low:high], links


def oracle(graph, u, v, hops):
    """Node -> label and set of links, by networkx from the definitions."""
    whole = nx.empty_graph(graph.num_nodes)
    whole.add_edges_from(graph.edges.tolist())
    near = set(nx.single_source_shortest_path_length(whole, u, cutoff=hops))
    near |= set(nx.single_source_shortest_path_length(whole, v, cutoff=hops))
    enclosed = nx.Graph(whole.subgraph(near))
    enclosed.remove_edges_from([(u, v)])
    to_u = nx.single_source_shortest_path_length(enclosed.subgraph(near - {v}), u)
    to_v = nx.single_source_shortest_path_length(enclosed.subgraph(near - {u}), v)
    labels = {}
    for node in near - {u, v}:
        x, y = to_u.get(node, np.inf), to_v.get(node, np.inf)
        d = x + y
        labels[node] = 0 if np.isinf(d) else 1 + min(x, y) + (d // 2) * (d // 2 + d % 2 - 1)
    return labels | {u: 1, v: 1}, {frozenset(link) for link in enclosed.edges}


@given(graphs(), st.integers(1, 3), st.booleans())
def test_subgraphs_and_labels_are_networkxs(graph, hops, flip):
    pairs = all_pairs(graph)
    asked = pairs[:, ::-1] if flip else pairs
    found = enclosing_subgraphs(graph, asked, hops=hops, max_nodes_per_hop=UNLIMITED, seed=0)
    assert len(found.sizes) == len(pairs)
    for (u, v), (nodes, labels, links) in zip(pairs.tolist(), parts(found), strict=True):
        expected_labels, expected_links = oracle(graph, u, v, hops)
        assert nodes[:2].tolist() == [u, v]
        assert len(nodes) == len(expected_labels)
        assert dict(zip(nodes.tolist(), labels.tolist(), strict=True)) == expected_labels
        assert links == expected_links


@pytest.mark.parametrize(
    ("distances", "label"),
    [((1, 1), 2), ((1, 2), 3), ((1, 3), 4), ((2, 2), 5), ((1, 4), 6), ((2, 3), 7)],
)
def test_the_published_table_of_labels(distances, label):
    assert double_radius_label(*distances) == double_radius_label(*distances[::-1]) == label


def test_labels_number_the_pairs_of_distances_without_gap():
    distances = [(x, d - x) for d in range(2, 40) for x in range(1, d // 2 + 1)]
    assert [double_radius_label(*pair) for pair in distances] == list(range(2, len(distances) + 2))


def test_distances_avoid_the_other_end():
    # 0 - 1 - 2 with the pair (0, 1): node 2 hangs on 1 alone, so that no way from 0 reaches it.
    path = Graph.from_pairs(3, [(0, 1), (1, 2)])
    found = enclosing_subgraphs(path, np.array([[0, 1]]), hops=2, max_nodes_per_hop=UNLIMITED, seed=0)
    assert found.labels[found.nodes == 2].tolist() == [0]


@given(graphs(min_nodes=3), st.integers(0, 10**6), st.integers(1, 4))
def test_the_pairs_own_link_changes_nothing(graph, choice, limit):
    pair = pairs_at(np.array([choice % num_pairs(graph.num_nodes)]), graph.num_nodes)
    without = graph.without_edges(pair) if graph.has_edges(pair)[0] else graph
    added = without.with_edges(without.edges, pair)
    first, second = (enclosing_subgraphs(g, pair, hops=2, max_nodes_per_hop=limit, seed=5) for g in (without, added))
    for name in ("nodes", "offsets", "labels", "indptr", "indices"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    (_, _, links) = next(parts(second))
    assert frozenset(pair[0].tolist()) not in links


@given(graphs(min_nodes=6, min_edges=6), st.integers(1, 3), st.integers(0, 100))
def test_a_limit_keeps_a_choice_of_each_hop(graph, limit, seed):
    pairs = all_pairs(graph)
    found = enclosing_subgraphs(graph, pairs, hops=2, max_nodes_per_hop=limit, seed=seed)
    for (u, v), (nodes, _, links) in zip(pairs.tolist(), parts(found), strict=True):
        near = set(graph.adjacency[[u, v]].indices.tolist()) - {u, v}
        assert len(near & set(nodes.tolist())) == min(limit, len(near))
        assert len(nodes) <= 2 + 2 * limit
        assert len(set(nodes.tolist())) == len(nodes)
        inside = graph.edges[np.isin(graph.edges, nodes).all(axis=1)].tolist()
        assert links == {frozenset(link) for link in inside} - {frozenset((u, v))}


def test_a_pair_has_the_same_subgraph_in_any_company(random_graph, rng):
    graph = random_graph(60, 400)
    pairs = pairs_at(rng.permutation(num_pairs(60))[:200], 60)
    settings = {"hops": 2, "max_nodes_per_hop": 7, "seed": 3}
    together = list(parts(enclosing_subgraphs(graph, pairs, **settings)))
    for i in range(0, 200, 9):
        (alone,) = parts(enclosing_subgraphs(graph, pairs[i : i + 1, ::-1], **settings))
        np.testing.assert_array_equal(alone[0], together[i][0])
        np.testing.assert_array_equal(alone[1], together[i][1])
        assert alone[2] == together[i][2]


def test_the_choice_is_uniform():
    # A star of 20 leaves seen from the hub and a leaf: 5 of 19 kept. Chi-square at the 0.1 % level, fixed seeds.
    star = Graph.from_pairs(21, [(0, v) for v in range(1, 21)])
    kept = np.zeros(21)
    for seed in range(4000):
        found = enclosing_subgraphs(star, np.array([[0, 1]]), hops=1, max_nodes_per_hop=5, seed=seed)
        kept[found.nodes[2:]] += 1
    expected = 4000 * 5 / 19
    # Draws without replacement: the variance of a count is below the multinomial's by the factor (19 - 5) / (19 - 1).
    statistic = ((kept[2:] - expected) ** 2 / expected).sum() * 18 / 14
    low, high = scipy.stats.chi2.ppf([0.0005, 0.9995], 18)
    assert low < statistic < high


def test_pairs_and_seeds_choose_independently():
    # Pairs of a complete graph of 40 nodes choose 5 of 38 others: two choices are the same with a chance of some 3e-6.
    complete = Graph.from_pairs(40, pairs_at(np.arange(num_pairs(40)), 40))
    choices = []
    for seed in range(20):
        found = enclosing_subgraphs(complete, np.array([[0, 1], [2, 3]]), hops=1, max_nodes_per_hop=5, seed=seed)
        choices += [frozenset(nodes[2:].tolist()) for nodes, _, _ in parts(found)]
    assert len(set(choices)) == 40


def test_no_pairs():
    graph = Graph.from_pairs(3, [(0, 1)])
    found = enclosing_subgraphs(graph, np.empty((0, 2), dtype=np.int64), hops=2, max_nodes_per_hop=9, seed=0)
    assert found.offsets.tolist() == [0]
    assert found.indptr.tolist() == [0]
    assert len(found.nodes) == len(found.labels) == len(found.indices) == 0


@given(graphs(), st.data())
def test_parts_taken_from_what_was_put_together_are_those_extracted(graph, data):
    pairs = all_pairs(graph)
    assume(len(pairs))

    def extract(some):
        return enclosing_subgraphs(graph, some, hops=2, max_nodes_per_hop=3, seed=5)

    cut = data.draw(st.integers(0, len(pairs)))
    whole = end_to_end([extract(pairs[:cut]), extract(pairs[cut:])])
    chosen = np.array(data.draw(st.lists(st.integers(0, len(pairs) - 1), min_size=1, max_size=9)))
    for found, expected in ((whole, extract(pairs)), (whole.take(chosen), extract(pairs[chosen]))):
        for name, array in vars(expected).items():
            np.testing.assert_array_equal(getattr(found, name), array, err_msg=name)
            assert getattr(found, name).dtype == array.dtype
    assert whole.num_bytes == sum(array.nbytes for array in vars(extract(pairs)).values())
