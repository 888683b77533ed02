"""What must hold of every heuristic attack: no signal where there is none, and no eye for how nodes are numbered."""

import numpy as np
import pytest

from ppgsl_bench.attacks import registry
from ppgsl_bench.graph import Graph
from ppgsl_bench.metrics import attack_metrics, auc_standard_error, roc_auc
from ppgsl_bench.split import make_split

DETERMINISTIC = ["aa", "cn", "degree", "edge-presence", "feature-cos", "katz", "ppr", "ra"]


def score(name, graph, pairs):
    return registry.get(name)().score(graph, pairs, np.random.default_rng(0))


@pytest.fixture(scope="module")
def clustered():
    """A graph with structure and features: 12 communities of 15 nodes, features of few distinct rows (many ties)."""
    rng = np.random.default_rng(11)
    n = 180
    u, v = np.triu_indices(n, 1)
    linked = rng.random(len(u)) < np.where(u % 12 == v % 12, 0.6, 0.01)
    x = np.eye(12, dtype=np.float32)[np.arange(n) % 12]
    x[rng.random(n) < 0.2] = 0
    return Graph.from_pairs(n, np.stack([u, v], axis=1)[linked], x=x)


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_relabelling_nodes_and_swapping_ends_change_nothing(name, clustered):
    split = make_split(clustered, 0)
    queries = split.queries()
    order = np.random.default_rng(1).permutation(clustered.num_nodes)
    x = np.empty_like(clustered.x)
    x[order] = clustered.x
    renamed = Graph.from_pairs(clustered.num_nodes, order[split.visible.edges], x=x)
    before = score(name, split.visible, queries.pairs)
    after = score(name, renamed, order[queries.pairs][:, ::-1])
    # Bit for bit: a last digit that follows the numbering would break ties by node id.
    np.testing.assert_array_equal(before, after)
    assert attack_metrics(before, queries.group) == attack_metrics(after, queries.group)


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_scores_are_finite_one_a_pair_and_blind_to_the_rng(name, clustered):
    split = make_split(clustered, 0)
    pairs = split.queries().pairs
    found = score(name, split.visible, pairs)
    assert found.dtype == np.float64
    assert found.shape == (len(pairs),)
    assert np.isfinite(found).all()
    other = registry.get(name)().score(split.visible, pairs, np.random.default_rng(99))
    np.testing.assert_array_equal(found, other)


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_on_an_erdos_renyi_graph_no_attack_beats_chance(name, random_graph):
    # Bound of 4 standard errors: a false alarm in 6e-5 of cases, a fixed seed.
    split = make_split(random_graph(500, 2500, seed=2, features=16), 0)
    queries = split.queries()
    scores = score(name, split.visible, queries.pairs)
    chosen = queries.group <= 1
    labels = queries.group[chosen] == 0
    assert abs(roc_auc(labels, scores[chosen]) - 0.5) < 4 * auc_standard_error(labels, scores[chosen])


@pytest.mark.parametrize("name", sorted(set(DETERMINISTIC) - {"degree", "edge-presence"}))
def test_where_there_is_structure_it_is_found(name, clustered):
    split = make_split(clustered, 0)
    queries = split.queries()
    found = attack_metrics(score(name, split.visible, queries.pairs), queries.group)
    assert found["auc"] > 0.7


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_permuted_labels_give_one_half(name, clustered):
    # 50 permutations, two-sided at 3 standard errors: 0.27 % each, so more than 3 has a chance below 1e-5.
    split = make_split(clustered, 0)
    scores = score(name, split.visible, split.queries().pairs)
    rng = np.random.default_rng(4)
    outside = 0
    for _ in range(50):
        labels = rng.permutation(np.arange(len(scores)) < len(scores) // 4)
        outside += abs(roc_auc(labels, scores) - 0.5) > 3 * auc_standard_error(labels, scores)
    assert outside <= 3
