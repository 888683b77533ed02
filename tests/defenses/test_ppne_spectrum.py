"""The spectral loss against dense generalised eigenvalues, a full sort, and small real flips."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from scipy.stats import spearmanr
from strategies import graphs

from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import num_pairs, pairs_at, sample_distinct, sample_pairs_outside
from ppgsl_bench.spectrum import exact_spectrum, power_sum, sketched_spectrum

WINDOW = 10


def without_isolated(graph):
    nodes = np.flatnonzero(graph.degrees)
    position = np.full(graph.num_nodes, -1)
    position[nodes] = np.arange(len(nodes))
    return Graph(num_nodes=len(nodes), edges=position[graph.edges])


def community_graph(seed=0, groups=4, size=40):
    rng = np.random.default_rng(seed)
    n = groups * size
    pairs = pairs_at(sample_distinct(num_pairs(n), n * 25, rng), n)
    same = pairs[:, 0] // size == pairs[:, 1] // size
    return without_isolated(Graph.from_pairs(n, pairs[same | (rng.random(len(pairs)) < 0.05)]))


def dense_pairs(adjacency):
    dense = adjacency.toarray().astype(np.float64)
    return scipy.linalg.eigh(dense, np.diag(dense.sum(axis=1)))


def plain_loss(values, rank):
    """Powers one by one, a full sort, and the sum of the smallest."""
    squares = sum(values**r for r in range(1, WINDOW + 1)) ** 2
    return np.sqrt(np.sort(squares)[: max(len(values) - rank, 0)].sum())


def some_flips(graph, rng, count=30):
    additions = sample_pairs_outside(graph.ranks, graph.num_nodes, min(count, graph.num_non_edges), rng)
    pairs = np.concatenate([additions, graph.edges[:count]])
    return pairs, np.where(graph.has_edges(pairs), -1.0, 1.0)


def test_power_sum_is_the_geometric_series():
    values = np.array([-1.0, -0.3, 0.0, 0.5, 0.999999999, 1.0, 1.01])
    assert np.allclose(power_sum(values, WINDOW), sum(values**r for r in range(1, WINDOW + 1)), rtol=1e-14)


@given(graph=graphs(min_nodes=3, min_edges=1))
def test_all_generalised_eigenpairs_of_any_graph(graph):
    graph = without_isolated(graph)
    spectrum = exact_spectrum(graph.adjacency, 2, WINDOW)
    adjacency = graph.adjacency.toarray().astype(np.float64)
    degrees = np.diag(adjacency.sum(axis=1))
    u = spectrum.vectors
    assert np.allclose(adjacency @ u, degrees @ u * spectrum.values, atol=1e-10)
    assert np.allclose(u.T @ degrees @ u, np.eye(graph.num_nodes), atol=1e-10)
    assert np.allclose(np.sort(spectrum.values), dense_pairs(graph.adjacency)[0], atol=1e-10)
    assert np.isclose(spectrum.loss, plain_loss(spectrum.values, 2), atol=1e-10)


@pytest.mark.parametrize("rank", [0, 1, 16, 159, 160, 500])
def test_partition_gives_what_a_full_sort_gives(rank, rng):
    graph = community_graph()
    spectrum = exact_spectrum(graph.adjacency, rank, WINDOW)
    pairs, change = some_flips(graph, rng)
    u, values = spectrum.vectors, spectrum.values
    expected = [
        plain_loss(values + c * (2 * u[i] * u[j] - values * (u[i] ** 2 + u[j] ** 2)), rank)
        for (i, j), c in zip(pairs, change, strict=True)
    ]
    assert np.allclose(spectrum.losses_after(pairs, change), expected, rtol=1e-12, atol=1e-12)


def test_first_order_change_is_the_slope_of_the_eigenvalues(rng):
    """A flip by a small weight ε moves each (simple) eigenvalue by ε Δλ up to O(ε²)."""
    graph = community_graph()
    spectrum = exact_spectrum(graph.adjacency, 16, WINDOW)
    order = np.argsort(spectrum.values)
    assert np.diff(spectrum.values[order]).min() > 1e-6
    pairs, change = some_flips(graph, rng, count=3)
    for pair, sign in zip(pairs, change, strict=True):
        slopes = []
        for step in (1e-6, -1e-6):
            dense = graph.adjacency.toarray().astype(np.float64)
            dense[pair[0], pair[1]] = dense[pair[1], pair[0]] = dense[pair[0], pair[1]] + sign * step
            slopes.append(scipy.linalg.eigh(dense, np.diag(dense.sum(axis=1)), eigvals_only=True))
        slope = (slopes[0] - slopes[1]) / 2e-6
        moved = spectrum.after(pair[None], np.array([sign])).values - spectrum.values
        assert np.allclose(moved[order], slope, rtol=1e-3, atol=1e-6)


def test_estimated_losses_follow_those_after_real_flips(rng):
    """First order is no more than that for a whole flip, but it orders flips well where communities stand out."""
    graph = community_graph()
    rank = 3
    spectrum = exact_spectrum(graph.adjacency, rank, WINDOW)
    pairs, change = some_flips(graph, rng, count=15)
    estimated = spectrum.losses_after(pairs, change)
    actual = []
    for pair, sign in zip(pairs, change, strict=True):
        flipped = graph.with_edges(graph.edges, pair[None]) if sign > 0 else graph.without_edges(pair[None])
        actual.append(plain_loss(dense_pairs(flipped.adjacency)[0], rank))
    assert np.corrcoef(estimated, actual)[0, 1] > 0.95


def test_components_do_not_mix(rng):
    """A flip within one component leaves its eigenvalue 1, and all eigenvalues of the others, alone."""
    one = community_graph(groups=2)
    n = one.num_nodes
    both = Graph.from_pairs(2 * n, np.concatenate([one.edges, one.edges + n]))
    spectrum = exact_spectrum(both.adjacency, 8, WINDOW)
    moved = spectrum.after(both.edges[:1], np.array([-1.0])).values - spectrum.values
    outside = ~spectrum.vectors[:n].any(axis=0)
    assert outside.sum() == n
    assert not moved[outside].any()
    assert np.allclose(moved[np.isclose(spectrum.values, 1)], 0, atol=1e-12)
    assert np.abs(moved).max() > 1e-3


def test_sketch_agrees_with_the_exact_spectrum(rng):
    """With very many probes, the sketch is the exact loss but for linearising the small eigenvalues."""
    graph = community_graph()
    exact = exact_spectrum(graph.adjacency, 16, WINDOW)
    sketch = sketched_spectrum(graph.adjacency, 16, WINDOW, rng, probes=20_000)
    assert len(sketch.values) == 32
    assert np.allclose(np.sort(sketch.values), np.sort(exact.values)[-32:], atol=1e-2)
    assert np.isclose(sketch.loss, exact.loss, rtol=0.01)
    pairs, change = some_flips(graph, rng, count=200)
    expected = exact.losses_after(pairs, change) - exact.loss
    found = sketch.losses_after(pairs, change) - sketch.loss
    for kind in (1, -1):
        assert np.corrcoef(expected[change == kind], found[change == kind])[0, 1] > 0.98
    after_exact, after_sketch = (s.after(pairs[:5], change[:5]).loss - s.loss for s in (exact, sketch))
    assert np.isclose(after_exact, after_sketch, rtol=0.2)


def test_default_sketch_ranks_flips_as_the_exact_spectrum_does(rng):
    graph = community_graph()
    exact = exact_spectrum(graph.adjacency, 16, WINDOW)
    sketch = sketched_spectrum(graph.adjacency, 16, WINDOW, rng)
    pairs, change = some_flips(graph, rng, count=300)
    expected, found = (s.losses_after(pairs, change) - s.loss for s in (exact, sketch))
    for kind in (1, -1):
        assert spearmanr(expected[change == kind], found[change == kind]).statistic > 0.8


def test_sketch_of_more_components_than_its_rank(rng):
    pairs = np.arange(80).reshape(-1, 2)
    graph = Graph.from_pairs(83, np.concatenate([pairs, [[80, 81], [81, 82]]]))
    spectrum = sketched_spectrum(graph.adjacency, 4, WINDOW, rng, probes=2000)
    exact = exact_spectrum(graph.adjacency, 4, WINDOW)
    assert np.allclose(spectrum.values, 1)
    assert np.isclose(spectrum.loss, exact.loss, rtol=0.05)


def test_sketch_is_reproducible():
    graph = community_graph(groups=2)
    first, second = (sketched_spectrum(graph.adjacency, 8, WINDOW, np.random.default_rng(7)) for _ in range(2))
    pairs, change = some_flips(graph, np.random.default_rng(0))
    assert np.array_equal(first.losses_after(pairs, change), second.losses_after(pairs, change))
