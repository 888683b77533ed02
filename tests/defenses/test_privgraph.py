"""Statistical tests have fixed seeds; a correct defense fails each with probability 0.001."""

import math
from collections import Counter

import numpy as np
import pytest
from dp_audit import audited_epsilon
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from strategies import graphs
from two_samples import same_histogram_p

from ppgsl_bench.defenses import privgraph
from ppgsl_bench.defenses.budget import PrivacyBudget
from ppgsl_bench.defenses.privgraph import PrivGraph, random_groups
from ppgsl_bench.graph import Graph

FALSE_ALARM = 1e-3
NOBODY = np.empty((0, 2), dtype=np.int64)
CANARY = (3, 17)  # unlinked in the graph that the audit uses


def planted_communities(rng, communities=6, size=40, inside=0.25, outside=0.01):
    """A graph with communities that even a noisy mechanism finds."""
    n = communities * size
    block = np.arange(n) // size
    i, j = np.triu_indices(n, 1)
    linked = rng.random(len(i)) < np.where(block[i] == block[j], inside, outside)
    return Graph.from_pairs(n, np.stack([i[linked], j[linked]], axis=1))


@pytest.fixture
def extracted(monkeypatch):
    """Keeps what the last publication extracted: communities, community pairs and their noisy link counts."""
    kept = {}
    original = privgraph._noisy_link_counts

    def recording(graph, communities, epsilon, rng):
        kept["communities"] = communities
        kept["between"], kept["counts"] = original(graph, communities, epsilon, rng)
        return kept["between"], kept["counts"]

    monkeypatch.setattr(privgraph, "_noisy_link_counts", recording)
    return kept


def links_between_are_where_they_were_counted(published, extracted):
    """Whether each two communities have at most as many links as their noisy count says, and most of them have some."""
    ends = np.sort(extracted["communities"][published.edges], axis=1)
    found = Counter(map(tuple, ends[ends[:, 0] != ends[:, 1]].tolist()))
    between = np.sort(extracted["between"], axis=1)
    wanted = dict(zip(map(tuple, between.tolist()), extracted["counts"].tolist(), strict=True))
    return all(wanted.get(pair, 0) >= count for pair, count in found.items()) and set(found) == set(wanted)


def test_links_between_communities_are_in_the_right_ones(rng, extracted):
    graph = planted_communities(rng)
    published = PrivGraph(epsilon=6, group_size=5).publish(graph, NOBODY, rng)
    assert extracted["communities"].max() >= 3
    assert links_between_are_where_they_were_counted(published, extracted)


def test_the_released_code_starts_them_all_in_the_last_community(rng, extracted):
    graph = planted_communities(rng)
    published = PrivGraph(epsilon=6, group_size=5, as_released=True).publish(graph, NOBODY, rng)
    assert not links_between_are_where_they_were_counted(published, extracted)
    ends = extracted["communities"][published.edges]
    across = ends[ends[:, 0] != ends[:, 1]]
    assert len(across)
    assert (across == extracted["communities"].max()).any(axis=1).all()


def test_as_released_changes_nothing_but_the_links_between(rng, extracted):
    """Post-processing: both versions extract the same and draw the same links within communities."""
    graph = planted_communities(rng)
    fixed, released = (
        PrivGraph(epsilon=6, group_size=5, as_released=flag).publish(graph, NOBODY, np.random.default_rng(1))
        for flag in (False, True)
    )
    block = extracted["communities"]
    within = [g.edges[block[g.edges[:, 0]] == block[g.edges[:, 1]]] for g in (fixed, released)]
    assert np.array_equal(*within)
    assert released.num_edges < fixed.num_edges


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.5])
def test_spends_exactly_epsilon_in_three_equal_parts(random_graph, rng, monkeypatch, epsilon):
    budgets = []

    class Recorded(PrivacyBudget):
        def __init__(self, total):
            super().__init__(total)
            budgets.append(self)

    monkeypatch.setattr(privgraph, "PrivacyBudget", Recorded)
    PrivGraph(epsilon=epsilon).publish(random_graph(100, 300), NOBODY, rng)
    (budget,) = budgets
    assert budget.remaining == 0
    assert list(budget.ledger) == ["communities", "adjustment", "statistics"]
    assert list(budget.ledger.values()) == pytest.approx([epsilon / 3] * 3)


def test_noise_is_scaled_to_sensitivity_over_budget(random_graph, rng, monkeypatch):
    """Per third ε of the budget: counts 1/ε, doubled or two-ended ones 2/ε, and exp(ε/4 · score) for every choice."""
    scales = {"cells": [], "vector": [], "exponent": []}

    def recording(name, function, argument):
        def wrapped(*arguments):
            scales[name].append(arguments[argument])
            return function(*arguments)

        return wrapped

    monkeypatch.setattr(privgraph, "noisy_cells", recording("cells", privgraph.noisy_cells, 3))
    monkeypatch.setattr(privgraph, "noisy_vector", recording("vector", privgraph.noisy_vector, 1))
    monkeypatch.setattr(privgraph, "_adjust", recording("exponent", privgraph._adjust, 4))
    PrivGraph(epsilon=6).publish(random_graph(100, 300), NOBODY, rng)
    assert scales["cells"] == pytest.approx([1 / 2] * 2)
    assert scales["vector"] == pytest.approx([2 / 2] * len(scales["vector"]))
    assert len(scales["vector"]) >= 2
    assert scales["exponent"] == pytest.approx([2 / 4])


def test_groups_are_full_but_for_the_last(rng):
    sizes = np.bincount(random_groups(1_234, 20, rng))
    assert sorted(sizes.tolist()) == [14] + [20] * 61
    assert random_groups(0, 20, rng).size == 0


def slow_adjustment(graph, communities, order, exponent, rng):
    """The exponential mechanism node after node, over all communities that are not empty."""
    communities = communities.copy()
    for node in order:
        candidates = np.unique(communities)
        neighbours = graph.adjacency[[node]].indices
        scores = np.array([(communities[neighbours] == c).sum() for c in candidates])
        weights = np.exp(exponent * scores)
        communities[node] = rng.choice(candidates, p=weights / weights.sum())
    return communities


@pytest.mark.parametrize("exponent", [0.1, 1.0])
def test_adjustment_has_the_law_of_the_plain_mechanism(random_graph, rng, exponent):
    graph = random_graph(7, 9, seed=3)
    start, order = np.array([0, 0, 1, 1, 2, 3, 4]), np.array([6, 2, 0, 5, 1, 3, 4])
    draws = 3_000
    fast, slow = [], []
    for _ in range(draws):
        adjusted = start.copy()
        privgraph._adjust(graph.adjacency.indptr, graph.adjacency.indices, adjusted, order, exponent, rng)
        for outcomes, result in ((fast, adjusted), (slow, slow_adjustment(graph, start, order, exponent, rng))):
            # The number of communities left, the choice of the last node, and whether the first two are together.
            outcomes.append((len(set(result.tolist())), int(result[4]), bool(result[0] == result[1])))
    assert same_histogram_p(fast, slow) > FALSE_ALARM


def test_choice_weighs_communities_by_their_neighbours(rng):
    neighbours = np.array([0, 3, 0, 1, 0, 0])
    live, met, draws = np.array([0, 1, 3, 4, 5]), np.array([3, 1]), 50_000
    drawn = [privgraph._choice(met, neighbours, live, 0.7, rng) for _ in range(draws)]
    weights = np.exp(0.7 * neighbours) * np.isin(np.arange(6), live)
    observed = np.bincount(drawn, minlength=6)
    assert observed[2] == 0
    assert stats.chisquare(observed[live], draws * weights[live] / weights.sum()).pvalue > FALSE_ALARM


def test_choice_survives_large_scores(rng):
    neighbours = np.array([5_000, 4_999, 0])
    assert privgraph._choice(np.array([0, 1]), neighbours, np.arange(3), 1e3, rng) == 0


@given(graphs(), st.sampled_from([0.05, 1.0, 30.0]), st.booleans(), st.integers(0, 2**32))
def test_any_graph_goes_through(graph, epsilon, as_released, seed):
    defense = PrivGraph(epsilon=epsilon, group_size=3, as_released=as_released)
    published = defense.publish(graph, NOBODY, np.random.default_rng(seed))
    assert published.num_nodes == graph.num_nodes


def test_a_large_budget_keeps_the_number_of_links(rng):
    """But for truncation towards zero, which takes up to one from every count, and for repeated pairs."""
    graph = planted_communities(rng)
    published = PrivGraph(epsilon=60, group_size=5).publish(graph, NOBODY, rng)
    assert graph.num_edges - graph.num_nodes < published.num_edges <= graph.num_edges


def test_audit_of_the_publication(random_graph, rng):
    graph = random_graph(30, 60)
    defense = PrivGraph(epsilon=1.0, group_size=5)
    assert audited_epsilon(lambda g: defense.publish(g, NOBODY, rng), graph, CANARY, 1_500) <= defense.epsilon


def test_declares_its_guarantee_and_drops_weights(random_graph, rng):
    assert PrivGraph(epsilon=3).guarantee.epsilon == 3
    graph = Graph.from_pairs(30, random_graph(30, 60).edges, weights=np.arange(1, 61))
    assert PrivGraph(epsilon=8).publish(graph, NOBODY, rng).weights is None


def test_refuses_when_the_group_graph_may_not_fit(random_graph):
    graph = random_graph(500_000, 100)
    assert PrivGraph(epsilon=1).why_not(graph) is None
    assert "links between groups" in PrivGraph(epsilon=0.01, group_size=1).why_not(graph)
    assert math.isclose(PrivGraph().guarantee.epsilon, PrivGraph().epsilon)
