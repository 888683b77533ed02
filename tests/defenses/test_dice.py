"""Statistical tests have fixed seeds; a correct defense fails each with probability 0.001."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from strategies import graphs

from ppgsl_bench.defenses.dice import Dice
from ppgsl_bench.defenses.edits import edit_count
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import contains, num_pairs, sample_pairs_outside

FALSE_ALARM = 1e-3
VARIANTS = ("paper", "class", "ppne")


@st.composite
def cases(draw, labelled=True):
    """A graph, some of its unlinked pairs as sensitive ones, labels with unknowns among them, and a seed."""
    graph = draw(graphs())
    seed = draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    count = draw(st.integers(0, min(3, graph.num_non_edges)))
    sensitive = sample_pairs_outside(graph.ranks, graph.num_nodes, count, rng)
    if labelled:
        labels = rng.integers(-1, 3, size=graph.num_nodes)
        graph = Graph.from_pairs(graph.num_nodes, graph.edges, y=labels)
    return graph, sensitive, rng


def edits(graph, published):
    """Deleted links and added pairs."""
    return (
        graph.edges[~contains(published.ranks, graph.ranks)],
        published.edges[~contains(graph.ranks, published.ranks)],
    )


@given(cases(), st.floats(0, 1))
def test_paper_deletes_at_sensitive_nodes_and_adds_elsewhere(case, rate):
    graph, sensitive, rng = case
    publication = Dice(rate=rate).publish(graph, sensitive, rng)
    deleted, added = edits(graph, publication.graph)
    touched = np.isin(np.arange(graph.num_nodes), sensitive)
    assert touched[deleted].any(axis=1).all()
    assert not touched[added].any()
    near = touched[graph.edges].any(axis=1).sum()
    far_pairs = num_pairs(int((~touched).sum())) - (graph.num_edges - near)
    budget = edit_count(rate, graph.num_edges)
    assert len(deleted) == min((budget + 1) // 2, near)
    assert len(added) == min(budget // 2, far_pairs)
    assert publication.trace["deleted_links"].tolist() == [len(deleted)]
    assert publication.trace["added_links"].tolist() == [len(added)]


@given(cases(), st.floats(0, 1))
def test_class_deletes_within_and_adds_across(case, rate):
    graph, sensitive, rng = case
    deleted, added = edits(graph, Dice(rate=rate, variant="class").publish(graph, sensitive, rng).graph)
    labels = graph.y
    assert (labels[deleted[:, 0]] == labels[deleted[:, 1]]).all()
    assert (labels[added[:, 0]] != labels[added[:, 1]]).all()
    assert (labels[deleted] >= 0).all()
    assert (labels[added] >= 0).all()
    assert len(deleted) + len(added) <= edit_count(rate, graph.num_edges)


@given(cases(), st.floats(0, 1))
def test_ppne_isolates_nobody_and_adds_no_sensitive_pair(case, rate):
    graph, sensitive, rng = case
    published = Dice(rate=rate, variant="ppne").publish(graph, sensitive, rng).graph
    deleted, added = edits(graph, published)
    touched = np.isin(np.arange(graph.num_nodes), sensitive)
    assert touched[deleted].any(axis=1).all()
    assert not published.has_edges(sensitive).any()
    assert (published.degrees[graph.degrees > 0] > 0).all()
    assert len(deleted) + len(added) <= edit_count(rate, graph.num_edges)


@pytest.mark.parametrize("variant", VARIANTS)
@given(case=cases())
def test_rate_zero_is_the_identity(variant, case):
    graph, sensitive, rng = case
    assert Dice(rate=0, variant=variant).publish(graph, sensitive, rng).graph.digest == graph.digest


def test_class_edits_are_uniform_and_split_by_a_fair_coin(random_graph, rng):
    """Deleted links uniform over all links within classes, added pairs over all unlinked pairs across classes."""
    graph = random_graph(24, 70, classes=3)
    draws, budget = 4_000, 14
    deletions = np.zeros(draws, dtype=int)
    removed, added = np.zeros(graph.num_edges), np.zeros(num_pairs(24))
    for draw in range(draws):
        published = Dice(rate=0.2, variant="class").publish(graph, np.empty((0, 2), int), rng).graph
        gone = ~contains(published.ranks, graph.ranks)
        new = published.ranks[~contains(graph.ranks, published.ranks)]
        removed += gone
        added[new] += 1
        deletions[draw] = gone.sum()
        assert gone.sum() + len(new) == budget
    assert stats.binomtest(int(deletions.sum()), draws * budget, 0.5).pvalue > FALSE_ALARM
    labels = graph.y
    within = labels[graph.edges[:, 0]] == labels[graph.edges[:, 1]]
    i, j = np.triu_indices(24, 1)
    across = (labels[i] != labels[j]) & ~contains(graph.ranks, np.arange(num_pairs(24)))
    for hits, eligible in ((removed, within), (added, across)):
        assert hits[~eligible].sum() == 0
        # Subsets of random size: the chi-square statistic is stochastically below that of independent draws.
        assert stats.chisquare(hits[eligible]).pvalue > FALSE_ALARM
        biased = hits[eligible] * np.linspace(0.8, 1.2, eligible.sum())
        assert stats.chisquare(biased).pvalue < FALSE_ALARM


def test_paper_deletions_and_additions_are_uniform(random_graph, rng):
    graph = random_graph(24, 70)
    sensitive = sample_pairs_outside(graph.ranks, 24, 3, rng)
    touched = np.isin(np.arange(24), sensitive)
    removed, added = np.zeros(graph.num_edges), np.zeros(num_pairs(24))
    for _ in range(4_000):
        published = Dice(rate=0.2).publish(graph, sensitive, rng).graph
        removed += ~contains(published.ranks, graph.ranks)
        added[published.ranks[~contains(graph.ranks, published.ranks)]] += 1
    i, j = np.triu_indices(24, 1)
    far = ~touched[i] & ~touched[j] & ~contains(graph.ranks, np.arange(num_pairs(24)))
    for hits, eligible in ((removed, touched[graph.edges].any(axis=1)), (added, far)):
        items, size = eligible.sum(), hits.sum() / 4_000
        variance = 4_000 * size / items * (1 - size / items) * items / (items - 1)
        statistic = ((hits[eligible] - 4_000 * size / items) ** 2 / variance).sum()
        assert stats.chi2.sf(statistic, items - 1) > FALSE_ALARM


def test_class_refuses_a_graph_without_labels(random_graph):
    assert "no labels" in Dice(variant="class").why_not(random_graph(10, 20))
    assert Dice(variant="class").why_not(random_graph(10, 20, classes=2)) is None
    assert Dice().why_not(random_graph(10, 20)) is None


def test_kept_links_keep_their_weights(random_graph, rng):
    graph = Graph.from_pairs(30, random_graph(30, 60).edges, weights=np.arange(1, 61))
    sensitive = sample_pairs_outside(graph.ranks, 30, 3, rng)
    published = Dice(rate=0.5).publish(graph, sensitive, rng).graph
    old = contains(graph.ranks, published.ranks)
    assert (published.weights[old] == graph.weights[np.searchsorted(graph.ranks, published.ranks[old])]).all()
    assert np.isin(published.weights, graph.weights).all()
