"""Statistical tests have fixed seeds; a correct defense fails each with probability 0.001."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from strategies import graphs

from ppgsl_bench.defenses.edits import edit_count
from ppgsl_bench.defenses.random import RandomRewiring
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import contains

FALSE_ALARM = 1e-3
NOBODY = np.empty((0, 2), dtype=np.int64)


@given(graphs(), st.floats(0, 1), st.integers(0, 2**32))
def test_number_of_links_and_edits(graph, rate, seed):
    published = RandomRewiring(rate=rate).publish(graph, NOBODY, np.random.default_rng(seed))
    edits = min(edit_count(rate, graph.num_edges), graph.num_non_edges)
    kept = contains(graph.ranks, published.ranks).sum()
    assert published.num_edges == graph.num_edges
    assert kept == graph.num_edges - edits


@given(graphs())
def test_rate_zero_is_the_identity(graph):
    published = RandomRewiring(rate=0).publish(graph, NOBODY, np.random.default_rng(0))
    assert published.digest == graph.digest


def test_edit_count_reads_the_decimal_number():
    assert int(0.29 * 100) == 28  # what binary floats would do
    assert edit_count(0.29, 100) == 29
    assert edit_count(0.7, 10) == 7
    assert edit_count(1e-05, 100_000) == 1
    assert edit_count(0.999, 1) == 0


def test_removed_and_added_links_are_uniform(random_graph, rng):
    graph = random_graph(30, 60)
    draws = 4_000
    removed = np.zeros(graph.num_edges)
    added = np.zeros(435)
    for _ in range(draws):
        published = RandomRewiring(rate=0.2).publish(graph, NOBODY, rng)
        removed += ~contains(published.ranks, graph.ranks)
        added[published.ranks[~contains(graph.ranks, published.ranks)]] += 1
    assert uniform_subset_p(removed, draws, 12) > FALSE_ALARM
    assert uniform_subset_p(np.delete(added, graph.ranks), draws, 12) > FALSE_ALARM


def uniform_subset_p(hits, draws, size):
    """Chi-square test of how often each item is in a uniform `size`-subset, with the covariance of such subsets."""
    items = len(hits)
    share = size / items
    variance = draws * share * (1 - share) * items / (items - 1)
    return stats.chi2.sf(((hits - draws * share) ** 2 / variance).sum(), items - 1)


def test_the_uniformity_test_notices_a_biased_choice(rng):
    hits = np.zeros(60)
    for _ in range(4_000):
        hits[rng.choice(60, 12, replace=False, p=np.repeat([0.9, 1.1], 30) / 60)] += 1
    assert uniform_subset_p(hits, 4_000, 12) < FALSE_ALARM


def test_weights_are_kept_or_drawn(random_graph, rng):
    plain = random_graph(30, 60)
    graph = Graph.from_pairs(30, plain.edges, weights=np.arange(1, 61))
    published = RandomRewiring(rate=0.5).publish(graph, NOBODY, rng)
    old = contains(graph.ranks, published.ranks)
    position = np.searchsorted(graph.ranks, published.ranks[old])
    assert (published.weights[old] == graph.weights[position]).all()
    assert np.isin(published.weights[~old], graph.weights).all()


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_rates_outside_the_unit_interval_are_refused(rate):
    with pytest.raises(ValueError, match="rate"):
        RandomRewiring(rate=rate)
