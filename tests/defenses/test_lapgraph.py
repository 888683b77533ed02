"""Statistical tests have fixed seeds; a correct defense fails each with probability 0.001 unless it says otherwise."""

import math

import numpy as np
import pytest
from dp_audit import audited_epsilon, epsilon_lower_bound
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from strategies import graphs
from two_samples import same_frequencies_p, same_histogram_p

from ppgsl_bench.defenses import lapgraph
from ppgsl_bench.defenses.lapgraph import LapGraph, noisy_count
from ppgsl_bench.defenses.output_size import MAX_LINKS
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import contains, num_pairs

FALSE_ALARM = 1e-3
NOBODY = np.empty((0, 2), dtype=np.int64)
CANARY = (3, 17)  # unlinked in the graph that the audit uses


def truncated_noise_count(count, epsilon, rng):
    """The released code's count: the *noise* is truncated towards zero."""
    return count + int(rng.laplace(0, 1 / epsilon))


def dense_lapgraph(graph, count, entry_epsilon, rng):
    """The mechanism on the whole triangle, for a given count."""
    scores = rng.laplace(0, 1 / entry_epsilon, num_pairs(graph.num_nodes))
    scores[graph.ranks] += 1
    return np.sort(np.argsort(scores)[len(scores) - count :])


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0, 6.0])
def test_same_law_as_the_dense_mechanism(random_graph, rng, monkeypatch, epsilon):
    graph = random_graph(16, 30)
    pairs, draws = num_pairs(16), 2_500
    for count in (30, 100):
        monkeypatch.setattr(lapgraph, "noisy_count", lambda *_, count=count: count)
        sparse, dense = np.zeros((2, draws, pairs), dtype=np.int64)
        for draw in range(draws):
            sparse[draw, LapGraph(epsilon=epsilon).publish(graph, NOBODY, rng).ranks] = 1
            dense[draw, dense_lapgraph(graph, count, 0.99 * epsilon, rng)] = 1
        assert (sparse.sum(axis=1) == count).all()
        kept = [bits[:, graph.ranks].sum(axis=1).tolist() for bits in (sparse, dense)]
        assert same_histogram_p(*kept) > FALSE_ALARM
        assert stats.ks_2samp(*kept).pvalue > FALSE_ALARM
        assert same_frequencies_p(sparse, dense) > FALSE_ALARM


@given(graphs(), st.floats(0.05, 20), st.integers(0, 2**32))
def test_publishes_exactly_the_noisy_count(graph, epsilon, seed):
    published = LapGraph(epsilon=epsilon).publish(graph, NOBODY, np.random.default_rng(seed))
    count = noisy_count(graph.num_edges, 0.01 * epsilon, np.random.default_rng(seed))
    assert published.num_edges == min(max(count, 0), num_pairs(graph.num_nodes))


@given(graphs())
def test_a_huge_epsilon_is_the_identity(graph):
    published = LapGraph(epsilon=1e6).publish(graph, NOBODY, np.random.default_rng(0))
    assert published.digest == graph.digest


@pytest.mark.parametrize("epsilon", [4, 5, 6, 7, 8, 10])
def test_kept_share_follows_its_closed_form(random_graph, rng, monkeypatch, epsilon):
    """With T = m and e = ε₂ the limit is m e^e / (m e^e + K), or 1 - ½√(K/m) e^(-e/2) above e = ln(K/m); within 3 σ."""
    graph = random_graph(2708, 5278)
    monkeypatch.setattr(lapgraph, "noisy_count", lambda count, *_: count)
    shares = []
    for _ in range(20):
        published = LapGraph(epsilon=epsilon).publish(graph, NOBODY, rng)
        shares.append(contains(graph.ranks, published.ranks).mean())
    e, odds = 0.99 * epsilon, graph.num_non_edges / graph.num_edges
    limit = 1 / (1 + odds * math.exp(-e)) if e <= math.log(odds) else 1 - 0.5 * math.sqrt(odds) * math.exp(-e / 2)
    sigma = math.sqrt(limit * (1 - limit) / graph.num_edges / len(shares))
    assert abs(np.mean(shares) - limit) < 3 * sigma


def test_the_count_is_unbiased(random_graph, rng):
    counts = [noisy_count(500, 0.1, rng) for _ in range(20_000)]
    a = math.exp(-0.1)
    sigma = math.sqrt(2 * a) / (1 - a) / math.sqrt(len(counts))
    assert abs(np.mean(counts) - 500) < stats.norm.isf(FALSE_ALARM / 2) * sigma


@pytest.mark.parametrize("epsilon", [1.0, 5.0, 10.0])
def test_audit_of_the_count(rng, epsilon):
    """100,000 counts of neighbouring graphs: our noise passes, the released truncation is caught."""
    count_epsilon, runs = 0.01 * epsilon, 100_000
    bounds = {}
    for name, mechanism in (("ours", noisy_count), ("released", truncated_noise_count)):
        draws = [[mechanism(m, count_epsilon, rng) for _ in range(runs)] for m in (60, 61)]
        # The events {T = 60} and {T = 61} suffice: P(T = m | m) is where truncation doubles the mass.
        observed = [[t if t in (60, 61) else "other" for t in series] for series in draws]
        bounds[name] = epsilon_lower_bound(*observed)
    assert bounds["ours"] <= count_epsilon
    assert count_epsilon + 0.4 < bounds["released"] <= count_epsilon + math.log(2)


def test_audit_of_the_publication(random_graph, rng):
    graph = random_graph(30, 60)
    defense = LapGraph(epsilon=1.0, count_share=0.5)
    assert audited_epsilon(lambda g: defense.publish(g, NOBODY, rng), graph, CANARY, 4_000) <= defense.epsilon


def test_declares_its_guarantee_and_drops_weights(random_graph, rng):
    assert LapGraph(epsilon=3).guarantee.epsilon == 3
    graph = Graph.from_pairs(30, random_graph(30, 60).edges, weights=np.arange(1, 61))
    assert LapGraph(epsilon=8).publish(graph, NOBODY, rng).weights is None


def test_refuses_a_count_that_may_not_fit(random_graph):
    graph = random_graph(500_000, 100)
    assert LapGraph(epsilon=0.1).why_not(graph) is None
    assert f"the limit is {MAX_LINKS:,} links" in LapGraph(epsilon=1e-6).why_not(graph)
    assert LapGraph(epsilon=1e-6).why_not(random_graph(500, 100)) is None
