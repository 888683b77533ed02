import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from strategies import graphs

from ppgsl_bench.errors import GraphError
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import num_pairs, ranks_of
from ppgsl_bench.split import NEGATIVE_FAMILIES, Split, make_split


@given(graphs(min_nodes=8, max_nodes=24), st.integers(0, 5))
def test_no_pair_has_two_roles(graph, seed):
    tenth = max(1, round(0.1 * graph.num_edges))
    assume(graph.num_edges >= 3)
    assume(graph.num_non_edges >= 4 * tenth)
    split = make_split(graph, seed)
    roles = {
        "visible": split.visible.edges,
        "sensitive": split.sensitive,
        "test": split.test_links,
        "test_non_links": split.test_non_links,
        **split.negatives,
    }
    ranks = {role: ranks_of(pairs, graph.num_nodes) for role, pairs in roles.items()}
    together = np.concatenate(list(ranks.values()))
    assert len(set(together.tolist())) == len(together)
    links = np.concatenate([ranks[r] for r in ("visible", "sensitive", "test")])
    assert sorted(links.tolist()) == graph.ranks.tolist()
    for role in ("test_non_links", *NEGATIVE_FAMILIES):
        assert not graph.has_edges(roles[role]).any()
    assert len(split.sensitive) == tenth == len(split.test_links) == len(split.test_non_links)
    assert all(len(pairs) == tenth for pairs in split.negatives.values())
    nodes = np.concatenate([split.train_nodes, split.test_nodes])
    assert sorted(nodes.tolist()) == list(range(graph.num_nodes))


def test_a_seed_decides_the_split_and_another_gives_another(random_graph):
    graph = random_graph(200, 800)
    assert make_split(graph, 0).digest == make_split(graph, 0).digest
    assert make_split(graph, 0).digest != make_split(graph, 1).digest


def test_arrays_and_back(random_graph):
    split = make_split(random_graph(200, 800), 3)
    again = Split.from_arrays(split.visible, split.arrays(), 3)
    assert again.digest == split.digest


def test_hard_negatives_are_two_hops_apart():
    graph = Graph.from_pairs(300, np.array(nx.barabasi_albert_graph(300, 3, seed=1).edges))
    for seed in range(5):
        split = make_split(graph, seed)
        visible = nx.Graph(split.visible.edges.tolist())
        for u, v in split.negatives["hard"].tolist():
            assert nx.shortest_path_length(visible, u, v) == 2


def test_a_graph_without_pairs_two_hops_apart_still_gets_its_negatives():
    matching = Graph.from_pairs(40, np.arange(40).reshape(20, 2))
    assert len(make_split(matching, 0).negatives["hard"]) == 2


def test_hard_negatives_do_not_favour_pairs_with_many_common_neighbours():
    """Two hubs with 30 common neighbours against 30 leaf pairs with one each: all eligible pairs equally often."""
    from ppgsl_bench.split import hard_negatives

    bipartite = [(hub, 2 + leaf) for hub in (0, 1) for leaf in range(30)]
    graph = Graph.from_pairs(32, np.array(bipartite))
    eligible = 1 + 30 * 29 // 2
    rng = np.random.default_rng(0)
    drawn = [int(ranks_of(hard_negatives(graph, graph.ranks, 1, rng), 32)[0]) for _ in range(6000)]
    hubs = sum(rank == 0 for rank in drawn)
    assert stats.binomtest(hubs, 6000, 1 / eligible).pvalue > 1e-3


def test_degree_negatives_match_the_degrees_of_the_sensitive_pairs():
    graph = Graph.from_pairs(3000, np.array(nx.barabasi_albert_graph(3000, 4, seed=1).edges))
    split = make_split(graph, 0)
    degrees = split.visible.degrees

    def product_auc(negatives):
        positive, negative = (np.log1p(degrees[p]).sum(axis=1) for p in (split.sensitive, negatives))
        return stats.mannwhitneyu(positive, negative).statistic / (len(positive) * len(negative))

    assert product_auc(split.negatives["uniform"]) > 0.6
    assert abs(product_auc(split.negatives["degree"]) - 0.5) < 0.03


def test_queries_are_shuffled_and_complete(random_graph):
    split = make_split(random_graph(200, 1000), 0)
    queries = split.queries()
    assert len(queries.pairs) == 4 * len(split.sensitive)
    assert sorted(map(tuple, queries.pairs[queries.group == 0].tolist())) == list(map(tuple, split.sensitive.tolist()))
    for i, family in enumerate(NEGATIVE_FAMILIES):
        found = sorted(map(tuple, queries.pairs[queries.group == 1 + i].tolist()))
        assert found == sorted(map(tuple, split.negatives[family].tolist()))
    # Position tells nothing about the group: a rank test, false alarm once in 1,000.
    position = np.arange(len(queries.group))
    sensitive = queries.group == 0
    assert stats.mannwhitneyu(position[sensitive], position[~sensitive]).pvalue > 1e-3


def test_a_graph_too_small_or_too_dense_is_refused_with_the_numbers():
    with pytest.raises(GraphError, match="has 2 links; a split needs at least 3"):
        make_split(Graph.from_pairs(4, [[0, 1], [1, 2]]), 0)
    complete = Graph.from_pairs(6, [[u, v] for u in range(6) for v in range(u + 1, 6)])
    assert num_pairs(6) == complete.num_edges
    with pytest.raises(GraphError, match="too dense or too small"):
        make_split(complete, 0)
