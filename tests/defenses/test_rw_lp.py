"""Statistical tests have fixed seeds; a correct defense fails each with probability 0.001 unless it says otherwise."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.sparse.csgraph import shortest_path
from strategies import graphs
from two_samples import same_frequencies_p, same_histogram_p

from ppgsl_bench.defenses.rw_lp import RandomWalkLinkPrivacy
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import contains, num_pairs, ranks_of

FALSE_ALARM = 1e-3
NOBODY = np.empty((0, 2), dtype=np.int64)


def publish(graph, rng, **parameters):
    return RandomWalkLinkPrivacy(**parameters).publish(graph, NOBODY, rng)


def slow_rw_lp(graph, t, M, rng, repair=False):
    """The published pseudo-code, line by line; the new links as a set."""
    neighbours = [graph.adjacency[[u]].indices.tolist() for u in range(graph.num_nodes)]
    new = set()
    for u in range(graph.num_nodes):
        count = 1
        for v in neighbours[u]:
            loop = 1
            while True:
                z = v
                for _ in range(t - 1):
                    z = neighbours[z][rng.integers(len(neighbours[z]))]
                loop += 1
                if (z != u and frozenset((u, z)) not in new) or loop > M:
                    break
            if loop <= M:
                degree = len(neighbours[u])
                if count == 1:
                    probability = 0.5 if repair and degree == 1 else 1.0
                else:
                    probability = (0.5 * degree - 1) / (degree - 1)
                if rng.random() < probability:
                    new.add(frozenset((u, z)))
            count += 1
    return new


SETTINGS = [(1, 10, False), (2, 10, False), (3, 3, True), (4, 2, False), (6, 10, True)]


@pytest.mark.parametrize(("t", "M", "repair"), SETTINGS)
def test_same_law_as_the_pseudo_code(rng, t, M, repair):
    graph = Graph.from_pairs(9, [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (2, 3), (4, 5), (5, 6), (4, 6), (6, 7)])
    draws = 2_000
    fast, slow = np.zeros((2, draws, num_pairs(9)), dtype=np.int64)
    for draw in range(draws):
        fast[draw, publish(graph, rng, t=t, M=M, degree_one_repair=repair).ranks] = 1
        links = np.array([sorted(link) for link in slow_rw_lp(graph, t, M, rng, repair)], dtype=np.int64).reshape(-1, 2)
        slow[draw, ranks_of(links, 9)] = 1
    assert same_frequencies_p(fast, slow) > FALSE_ALARM
    assert same_histogram_p(fast.sum(axis=1).tolist(), slow.sum(axis=1).tolist()) > FALSE_ALARM


def test_one_step_keeps_about_three_quarters_of_the_links_and_adds_none(random_graph, rng):
    """At t = 1 a link (u, v) stays with probability 1 - (1 - p_u)(1 - p_v), independently of the others."""
    graph = random_graph(2_000, 20_000)
    published = publish(graph, rng, t=1)
    assert contains(graph.ranks, published.ranks).all()
    indptr, indices = graph.adjacency.indptr, graph.adjacency.indices
    first_neighbour = indices[np.minimum(indptr[:-1], len(indices) - 1)]
    is_first = first_neighbour[graph.edges] == graph.edges[:, ::-1]
    degrees = graph.degrees[graph.edges]
    p = np.where(is_first, 1.0, (0.5 * degrees - 1) / np.maximum(degrees - 1, 1))
    stays = 1 - (1 - p[:, 0]) * (1 - p[:, 1])
    z = (published.num_edges - stays.sum()) / np.sqrt((stays * (1 - stays)).sum())
    assert 2 * stats.norm.sf(abs(z)) > FALSE_ALARM
    assert 0.72 < published.num_edges / graph.num_edges < 0.79


@given(graphs(), st.integers(1, 6), st.integers(0, 2**32))
def test_new_links_are_within_t_hops(graph, t, seed):
    published = publish(graph, np.random.default_rng(seed), t=t)
    distance = shortest_path(graph.adjacency, unweighted=True)
    assert (distance[published.edges[:, 0], published.edges[:, 1]] <= t).all()
    assert (published.degrees[graph.degrees == 0] == 0).all()


@given(graphs(), st.integers(1, 6))
def test_with_one_try_nothing_is_published(graph, t):
    """Off by one in the pseudo-code: of M tries, M - 1 count."""
    assert publish(graph, np.random.default_rng(0), t=t, M=1).num_edges == 0


def test_with_two_tries_something_is(random_graph, rng):
    assert publish(random_graph(100, 400), rng, t=2, M=2).num_edges > 200


def test_the_number_of_links_is_kept_on_average(random_graph, rng):
    """With failures rare and no node of degree 1, |E'| is within 3 σ of m; each node adds d/2 links in expectation."""
    graph = random_graph(1_000, 20_000)
    counts = [publish(graph, rng, t=5).num_edges for _ in range(10)]
    variance = graph.num_edges / 2  # 2m coins of variance at most 1/4
    assert abs(np.mean(counts) - graph.num_edges) < 3 * np.sqrt(variance / len(counts)) + 0.001 * graph.num_edges


def test_the_degree_one_repair_takes_away_half_a_link_for_each_such_node(random_graph, rng):
    core = random_graph(300, 6_000)
    pendant = np.stack([rng.integers(300, size=400), np.arange(300, 700)], axis=1)
    graph = Graph.from_pairs(700, np.concatenate([core.edges, pendant]))
    surplus = [
        publish(graph, rng, t=3).num_edges - publish(graph, rng, t=3, degree_one_repair=True).num_edges
        for _ in range(30)
    ]
    sigma = np.sqrt((graph.num_edges + 100) / 30)
    assert abs(np.mean(surplus) - 200) < 3 * sigma


@pytest.mark.parametrize("t", [2, 5, 10])
def test_degrees_are_kept_on_average(rng, t):
    hubs = nx.barabasi_albert_graph(1_000, 6, seed=1)
    graph = Graph.from_pairs(1_000, np.array(hubs.edges()))
    assert np.corrcoef(graph.degrees, publish(graph, rng, t=t).degrees)[0, 1] > 0.9


@pytest.mark.dataset
def test_parity_effect_on_cora(datasets_dir, rng):
    """An even number of steps after v tends to come back to v: t = 3 publishes more true links than t = 2."""
    from ppgsl_bench.datasets import Sources, registry

    graph = registry.get("cora").create().load(Sources(data_dirs=(datasets_dir,), offline=True))
    share = {t: contains(graph.ranks, publish(graph, rng, t=t).ranks).mean() for t in (2, 3, 4, 5)}
    assert share[3] > 2 * share[2]
    assert share[5] > 1.5 * share[4]
    assert len({t["t"] % 2 for t in RandomWalkLinkPrivacy.sweep}) == 1


def test_weights_are_kept_or_drawn(random_graph, rng):
    graph = Graph.from_pairs(30, random_graph(30, 60).edges, weights=np.arange(1, 61))
    published = publish(graph, rng, t=3)
    old = contains(graph.ranks, published.ranks)
    assert 0 < old.sum() < len(old)
    assert (published.weights[old] == graph.weights[np.searchsorted(graph.ranks, published.ranks[old])]).all()
    assert np.isin(published.weights, graph.weights).all()
