"""PPNE: exact numbers of flips, nothing isolated, no sensitive pair added, an objective that rises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs

import ppgsl_bench.defenses.ppne as module
from ppgsl_bench.deepwalk_gradient import cosines
from ppgsl_bench.defenses import registry
from ppgsl_bench.defenses.ppne import PPNE
from ppgsl_bench.graph import Graph
from ppgsl_bench.metrics import roc_auc
from ppgsl_bench.pairs import contains, num_pairs, pairs_at, ranks_of, sample_distinct, sample_pairs_outside
from ppgsl_bench.split import make_split
from ppgsl_bench.walks import random_walks, shuffled_starts, skip_gram

# Enough for soundness; `TRAINED` is enough for vectors that know something.
SMALL = {"dimensions": 16, "window": 4, "walks": 6, "walk_length": 20, "flips_per_step": 0.02, "retrain_every": 5}

TRAINED = {"walks": 20, "walk_length": 40}


def communities(groups=6, size=20, degree=8, seed=0):
    rng = np.random.default_rng(seed)
    n = groups * size
    inside = [
        pairs_at(sample_distinct(num_pairs(size), size * degree // 2, rng), size) + size * g for g in range(groups)
    ]
    across = pairs_at(sample_distinct(num_pairs(n), n // 2, rng), n)
    return Graph.from_pairs(n, np.concatenate([*inside, across]), duplicates="merge", name="communities")


@pytest.fixture(scope="module")
def split():
    return make_split(communities(), 0)


def publish(graph, sensitive, seed=0, **parameters):
    return PPNE(**{**SMALL, **parameters}).publish(graph, sensitive, np.random.default_rng(seed))


def flipped(before, after):
    return np.setxor1d(before.ranks, after.ranks)


def similarity_auc(graph, positive, negative, seed):
    """Of an attacker who trains DeepWalk on the published graph and looks at cosines."""
    rng = np.random.default_rng(seed)
    walks = random_walks(graph, shuffled_starts(graph.num_nodes, 10, rng), 40, rng)
    vectors = skip_gram(walks, graph.num_nodes, dimensions=16, window=4, seed=seed).input
    scores = cosines(vectors, np.concatenate([positive, negative]))
    return roc_auc(np.repeat([True, False], [len(positive), len(negative)]), scores)


@pytest.mark.parametrize("utility", ["abs", "delta"])
@pytest.mark.parametrize("flips", [0.0, 0.005, 0.1, 0.37])
def test_number_of_flips_is_exact(split, flips, utility):
    graph = split.visible
    published = publish(graph, split.sensitive, flips=flips, utility=utility).graph
    assert len(flipped(graph, published)) == int(flips * graph.num_edges)


@pytest.mark.parametrize("probability", [0.0, 0.5, 1.0])
def test_share_of_additions(split, probability):
    """Binomial(60, 1/2) leaves 15 … 45 with a probability below 1e-4."""
    graph = split.visible
    published = publish(graph, split.sensitive, flips=60 / graph.num_edges + 1e-9, add_probability=probability).graph
    added = len(np.setdiff1d(published.ranks, graph.ranks))
    low, high = {0.0: (0, 0), 0.5: (15, 45), 1.0: (60, 60)}[probability]
    assert low <= added <= high


@settings(max_examples=30)
@given(
    graph=graphs(min_nodes=4), weighted=st.booleans(), seed=st.integers(0, 2**32 - 1), flips=st.sampled_from([0.3, 2])
)
def test_any_graph_comes_out_sound(graph, weighted, seed, flips):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 2, graph.num_edges).astype(np.float32) if weighted else None
    graph = Graph.from_pairs(graph.num_nodes, graph.edges, weights=weights)
    sensitive = sample_pairs_outside(graph.ranks, graph.num_nodes, min(2, graph.num_non_edges), rng)
    settings_ = {"dimensions": 4, "walks": 2, "walk_length": 5, "window": 3, "flips": flips, "flips_per_step": 0.2}
    published = publish(graph, sensitive, seed, **settings_).graph
    assert len(flipped(graph, published)) <= int(flips * graph.num_edges)
    assert not published.has_edges(sensitive).any()
    assert np.array_equal(published.degrees == 0, graph.degrees == 0)
    if weighted:
        assert published.num_edges == 0 or np.isin(published.weights, graph.weights).all()
        stayed = contains(graph.ranks, published.ranks)
        assert np.array_equal(published.weights[stayed], graph.weights[contains(published.ranks, graph.ranks)])
    else:
        assert published.weights is None


def test_deletions_alone_isolate_nobody(split):
    """As many deletions asked for as there are links: it ends when each link left is some node's last one."""
    graph = split.visible
    published = publish(
        graph, split.sensitive, flips=1, add_probability=0.0, flips_per_step=0.2, candidates=0.001
    ).graph
    assert np.array_equal(published.degrees == 0, graph.degrees == 0)
    removed = np.setdiff1d(graph.ranks, published.ranks)
    assert len(removed) > graph.num_edges / 3


def test_sensitive_pairs_are_never_added(rng):
    """All unlinked pairs but six are sensitive, and only additions are wanted."""
    graph = communities(groups=2, size=10, degree=4)
    sensitive = sample_pairs_outside(graph.ranks, 20, graph.num_non_edges - 6, rng)
    published = publish(graph, sensitive, flips=0.5, add_probability=1.0).graph
    assert not published.has_edges(sensitive).any()
    assert 0 < np.setdiff1d(published.ranks, graph.ranks).size <= 6


def test_larger_share_continues_the_smaller_one(split):
    """Same stream, one trajectory: the flips of 7 %, cut within a step, are among those of 15 %."""
    graph = split.visible
    results = [publish(graph, split.sensitive, flips=share) for share in (0.07, 0.15)]
    small, large = (flipped(graph, result.graph) for result in results)
    assert len(small) < len(large)
    assert contains(large, small).all()
    shared = len(results[0].trace["objective"])
    assert np.array_equal(results[0].trace["objective"], results[1].trace["objective"][:shared])


def test_objective_rises_and_the_attack_falls(split):
    graph = split.visible
    result = publish(graph, split.sensitive, flips=0.4, **TRAINED)
    objective = result.trace["objective"]
    assert len(objective) == len(result.trace["flips"]) >= 4
    assert np.polyfit(result.trace["flips"], objective, 1)[0] > 0
    assert objective[-1] > objective[0] + 0.1
    # The attacker's own vectors, and negatives that the defense has not seen.
    before, after = (
        np.mean([similarity_auc(g, split.sensitive, split.negatives["uniform"], seed) for seed in range(3)])
        for g in (graph, result.graph)
    )
    assert before > 0.75
    assert after < before - 0.15


def test_the_wrong_sign_is_noticed(split, monkeypatch):
    """The guard of the test above: with the sign of the gradient turned round, the attack is helped, not hindered."""
    graph = split.visible
    right = publish(graph, split.sensitive, flips=0.3, **TRAINED).trace["objective"]
    gradient = module.link_gradient
    monkeypatch.setattr(module, "link_gradient", lambda *args, **options: -gradient(*args, **options))
    wrong = publish(graph, split.sensitive, flips=0.3, **TRAINED).trace["objective"]
    assert wrong[-1] < wrong[0] < right[-1]


def test_depends_on_graph_sensitive_links_and_stream_alone(split):
    """Neither features nor labels nor the split's negatives and test links have a say; sensitive links and seed do."""
    graph = split.visible
    first = publish(graph, split.sensitive, flips=0.1).graph
    np.random.seed(12345)  # noqa: NPY002
    dressed = Graph.from_pairs(
        graph.num_nodes,
        graph.edges,
        x=np.random.default_rng(1).standard_normal((graph.num_nodes, 3)).astype(np.float32),
        y=np.arange(graph.num_nodes),
        name="other name",
    )
    assert np.array_equal(publish(dressed, split.sensitive, flips=0.1).graph.ranks, first.ranks)
    assert not np.array_equal(publish(graph, split.sensitive, seed=1, flips=0.1).graph.ranks, first.ranks)
    assert not np.array_equal(publish(graph, split.test_links, flips=0.1).graph.ranks, first.ranks)


def test_other_pairs_are_unlinked_and_not_sensitive(split, rng):
    search = module._Search(PPNE(), split.visible, split.sensitive, rng)
    assert len(search.others) == len(split.sensitive)
    assert not split.visible.has_edges(search.others).any()
    sensitive = np.sort(ranks_of(split.sensitive, split.visible.num_nodes))
    assert not contains(sensitive, ranks_of(search.others, split.visible.num_nodes)).any()


def test_nothing_to_protect_changes_nothing(split):
    graph = split.visible
    assert publish(graph, np.empty((0, 2), np.int64)).graph.digest == graph.digest
    with_loner = Graph.from_pairs(graph.num_nodes + 1, graph.edges)
    assert publish(with_loner, np.array([[0, graph.num_nodes]])).graph.digest == with_loner.digest


def test_one_sensitive_link_two_components_and_isolated_nodes():
    first = communities(groups=2, size=12, degree=4, seed=1)
    pairs = np.concatenate([first.edges, first.edges + 30])
    graph = Graph.from_pairs(60, pairs).without_edges(first.edges[:1])
    assert (graph.degrees == 0).sum() >= 12
    result = publish(graph, first.edges[:1], flips=0.2)
    assert len(flipped(graph, result.graph)) == int(0.2 * graph.num_edges)
    assert np.array_equal(result.graph.degrees == 0, graph.degrees == 0)


def test_few_supervised_pairs_a_step_still_work(split):
    whole, sampled = (
        publish(split.visible, split.sensitive, flips=0.2, supervised_pairs=pairs, **TRAINED) for pairs in (2_000, 10)
    )
    assert not np.array_equal(whole.graph.ranks, sampled.graph.ranks)
    assert sampled.trace["objective"][-1] > sampled.trace["objective"][0]


def test_large_graphs_take_the_sketched_spectrum(split, monkeypatch):
    monkeypatch.setattr(module, "EXACT_SPECTRUM_NODES", 10)
    monkeypatch.setattr(module, "exact_spectrum", None)
    result = publish(split.visible, split.sensitive, flips=0.1, utility="delta")
    assert len(flipped(split.visible, result.graph)) == int(0.1 * split.visible.num_edges)


def test_utility_has_a_say_and_none_at_exponent_zero(split):
    def ranks(**parameters):
        return publish(split.visible, split.sensitive, flips=0.1, **parameters).graph.ranks

    assert np.array_equal(ranks(tradeoff=0, utility="abs"), ranks(tradeoff=0, utility="delta"))
    assert not np.array_equal(ranks(tradeoff=0), ranks(tradeoff=1, utility="delta"))


def test_too_large_a_graph_is_refused_with_an_estimate(random_graph):
    graph = random_graph(3000, 9000)
    assert all(PPNE(**parameters).why_not(graph) is None for parameters in PPNE.sweep)
    reason = PPNE(flips_per_step=0, retrain_every=1, walks=10_000).why_not(graph)
    assert "hours" in reason
    assert "3,000 nodes" in reason


def test_registered_with_a_rising_sweep():
    assert registry.get("ppne") is PPNE
    shares = [setting["flips"] for setting in PPNE.sweep]
    assert shares == sorted(set(shares))
