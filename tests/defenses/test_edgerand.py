"""Statistical tests have fixed seeds; a correct defense fails each with probability 0.001."""

import math

import numpy as np
import pytest
from dp_audit import audited_epsilon
from hypothesis import given
from scipy import stats
from strategies import graphs
from two_samples import same_frequencies_p, same_histogram_p

from ppgsl_bench.defenses.edgerand import EdgeRand
from ppgsl_bench.defenses.output_size import MAX_LINKS
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import contains, num_pairs

FALSE_ALARM = 1e-3
NOBODY = np.empty((0, 2), dtype=np.int64)
CANARY = (3, 17)  # unlinked in the graph that the audit uses


def dense_edgerand(graph, epsilon, rng):
    """The released mechanism on the whole triangle: with probability 2/(1+e^ε) replace the bit by a fair coin."""
    bits = np.zeros(num_pairs(graph.num_nodes), dtype=bool)
    bits[graph.ranks] = True
    resampled = rng.random(len(bits)) < 2 / (1 + math.exp(epsilon))
    return np.flatnonzero(np.where(resampled, rng.random(len(bits)) < 0.5, bits))


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 4.0, 6.0])
def test_flip_rate_is_one_over_one_plus_e_to_the_epsilon(random_graph, rng, epsilon):
    graph = random_graph(400, 4_000)
    published = EdgeRand(epsilon=epsilon).publish(graph, NOBODY, rng)
    q = 1 / (1 + math.exp(epsilon))
    kept = int(contains(graph.ranks, published.ranks).sum())
    deleted, added = graph.num_edges - kept, published.num_edges - kept
    assert stats.binomtest(deleted, graph.num_edges, q).pvalue > FALSE_ALARM
    assert stats.binomtest(added, graph.num_non_edges, q).pvalue > FALSE_ALARM


def test_the_flip_test_notices_the_resampling_probability_used_for_flips(random_graph, rng):
    graph = random_graph(400, 4_000)
    wrong = EdgeRand(epsilon=math.log(math.exp(4) / 2 - 0.5))  # q = 2/(1+e^4)
    published = wrong.publish(graph, NOBODY, rng)
    added = int((~contains(graph.ranks, published.ranks)).sum())
    assert stats.binomtest(added, graph.num_non_edges, 1 / (1 + math.exp(4))).pvalue < FALSE_ALARM


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_same_law_as_the_dense_mechanism(random_graph, rng, epsilon):
    graph = random_graph(16, 40)
    pairs, draws = num_pairs(16), 4_000
    sparse = np.zeros((draws, pairs), dtype=np.int64)
    dense = np.zeros((draws, pairs), dtype=np.int64)
    defense = EdgeRand(epsilon=epsilon)
    for draw in range(draws):
        sparse[draw, defense.publish(graph, NOBODY, rng).ranks] = 1
        dense[draw, dense_edgerand(graph, epsilon, rng)] = 1
    # Each pair alone, then all links and all other pairs together.
    assert same_frequencies_p(sparse, dense) > FALSE_ALARM
    is_link = contains(graph.ranks, np.arange(pairs))
    for part in (is_link, ~is_link):
        counts = [bits[:, part].sum(axis=1).tolist() for bits in (sparse, dense)]
        assert same_histogram_p(*counts) > FALSE_ALARM
        assert stats.ks_2samp(*counts).pvalue > FALSE_ALARM


def test_audit_of_the_publication(random_graph, rng):
    """The canary's bit alone is worth all of ε, so that the bound is near it, and a claim of ε/2 would be caught."""
    graph = random_graph(30, 60)
    defense = EdgeRand(epsilon=2.0)
    bound = audited_epsilon(lambda g: defense.publish(g, NOBODY, rng), graph, CANARY, 3_000)
    assert 1.7 < bound <= defense.epsilon


@given(graphs())
def test_a_huge_epsilon_is_the_identity(graph):
    published = EdgeRand(epsilon=1e6).publish(graph, NOBODY, np.random.default_rng(0))
    assert published.digest == graph.digest


def test_declares_its_guarantee_and_drops_weights(random_graph, rng):
    assert EdgeRand(epsilon=3).guarantee.epsilon == 3
    graph = Graph.from_pairs(30, random_graph(30, 60).edges, weights=np.arange(1, 61))
    assert EdgeRand(epsilon=8).publish(graph, NOBODY, rng).weights is None


def test_refuses_an_output_that_cannot_fit(random_graph):
    graph = random_graph(500_000, 100)
    assert EdgeRand(epsilon=10).why_not(graph) is None
    reason = EdgeRand(epsilon=2).why_not(graph)
    q = 1 / (1 + math.exp(2))
    assert f"about {q * graph.num_non_edges + (1 - q) * 100:,.0f} links" in reason
    assert f"the limit is {MAX_LINKS:,} links" in reason
