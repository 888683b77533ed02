"""The closed-form DeepWalk gradient against autograd, finite differences and one inverse a node."""

import numpy as np
import pytest
import torch

import ppgsl_bench.deepwalk_gradient as module
from ppgsl_bench.deepwalk_gradient import FLOOR, cosines, link_gradient, vector_gradient
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import num_pairs, pairs_at, sample_distinct

WINDOW, NEGATIVE, WIDTH = 6, 5, 7


def connected(num_nodes, extra, rng, *, weights=None):
    """A ring with chords: no node is isolated."""
    ring = [(i, (i + 1) % num_nodes) for i in range(num_nodes)]
    chords = pairs_at(sample_distinct(num_pairs(num_nodes), extra, rng), num_nodes)
    graph = Graph.from_pairs(num_nodes, np.concatenate([ring, chords]), duplicates="merge")
    return graph if weights is None else graph.with_edges(graph.edges, weights=weights(graph.num_edges))


def two_components(rng):
    first, second = connected(14, 9, rng), connected(11, 5, rng)
    return Graph.from_pairs(25, np.concatenate([first.edges, second.edges + 14]))


def long_ring(rng):
    """Farther apart than the window reaches, so that parts of Z lie at the floor."""
    return connected(40, 2, rng)


def hardly_joined(rng):
    """Components that a link of tiny weight joins: across it, entries are positive and yet below the floor."""
    graph = two_components(rng)
    weights = np.append(np.ones(graph.num_edges), 1e-6).astype(np.float32)
    return graph.with_edges(graph.edges, np.array([[3, 20]]), weights=weights)


GRAPHS = {
    "small world": lambda rng: connected(24, 30, rng),
    "weighted": lambda rng: connected(24, 30, rng, weights=lambda m: rng.uniform(0.001, 2, m).astype(np.float32)),
    "two components": two_components,
    "beyond the window": long_ring,
    "hardly joined": hardly_joined,
}


@pytest.fixture(params=GRAPHS)
def problem(request, rng):
    graph = GRAPHS[request.param](rng)
    n = graph.num_nodes
    supervised = pairs_at(sample_distinct(num_pairs(n), 10, rng), n)
    signs = np.repeat([-1.0, 1.0], 5)
    vectors, output = rng.standard_normal((2, n, WIDTH))
    return graph, supervised, signs, vectors, output


def every_pair(num_nodes):
    return pairs_at(np.arange(num_pairs(num_nodes)), num_nodes)


def objective(vectors, pairs, signs):
    """O = Σ sign · cos, in torch."""
    unit = vectors / vectors.norm(dim=1, keepdim=True)
    return (torch.as_tensor(signs) * (unit[pairs[:, 0]] * unit[pairs[:, 1]]).sum(dim=1)).sum()


def factorised(adjacency, degrees):
    """Z with dense powers, D apart from A."""
    step = adjacency / degrees[:, None]
    power, total = torch.eye(len(step), dtype=torch.float64), torch.zeros_like(step)
    for _ in range(WINDOW):
        power = step @ power
        total = total + power
    inside = total * (degrees.sum() / (WINDOW * NEGATIVE)) / degrees[None, :]
    return torch.log(torch.where(inside > FLOOR, inside, torch.full_like(inside, FLOOR)))


def gradient_of_all_pairs(problem, **options):
    graph, supervised, signs, vectors, output = problem
    nodes, by_vector = vector_gradient(vectors, supervised, signs)
    adjacency = graph.adjacency.astype(np.float64)
    pairs = every_pair(graph.num_nodes)
    return link_gradient(
        adjacency, output, nodes, by_vector, pairs, window=WINDOW, negative=NEGATIVE, **{"dtype": np.float64, **options}
    )


def autograd_of_all_pairs(problem):
    """Chain rule with one inverse for each node, as in the released code, and dense autograd through Z."""
    graph, supervised, signs, vectors, output = problem
    x = torch.tensor(vectors, requires_grad=True)
    objective(x, supervised, signs).backward()
    y = torch.tensor(output)
    by_z = torch.stack([row @ torch.linalg.inv(sum(torch.outer(v, v) for v in y)) @ y.T for row in x.grad])
    adjacency = torch.tensor(graph.adjacency.toarray().astype(np.float64), requires_grad=True)
    (by_z * factorised(adjacency, adjacency.detach().sum(dim=1))).sum().backward()
    symmetric = (adjacency.grad + adjacency.grad.T).numpy() / 2
    u, v = every_pair(graph.num_nodes).T
    return symmetric[u, v]


def test_cosine_gradient_is_that_of_autograd(problem):
    _, supervised, signs, vectors, _ = problem
    x = torch.tensor(vectors, requires_grad=True)
    value = objective(x, supervised, signs)
    value.backward()
    nodes, rows = vector_gradient(vectors, supervised, signs)
    expected = np.zeros_like(vectors)
    expected[nodes] = rows
    assert np.allclose(expected, x.grad.numpy(), atol=1e-14)
    assert np.isclose(signs @ cosines(vectors, supervised), value.item())


def test_link_gradient_is_that_of_autograd(problem):
    expected = autograd_of_all_pairs(problem)
    assert np.abs(expected).max() > 1e-3
    assert np.allclose(gradient_of_all_pairs(problem), expected, rtol=1e-10, atol=1e-12)


def test_single_precision_is_close(problem):
    expected = autograd_of_all_pairs(problem)
    single = gradient_of_all_pairs(problem, dtype=np.float32)
    assert np.abs(single - expected).max() < 1e-5 * np.abs(expected).max()


def test_chunks_of_rows_add_up(problem, monkeypatch):
    whole = gradient_of_all_pairs(problem)
    monkeypatch.setattr(module, "_MOST_ROWS", 3)
    monkeypatch.setattr(module, "_FEWEST_ROWS", 1)
    assert np.allclose(gradient_of_all_pairs(problem), whole, rtol=1e-12, atol=1e-14)


def test_link_gradient_is_the_slope_of_the_objective(problem):
    """Central differences of O(X(Z(A))) with X = Z Y (YᵀY)⁻¹, D fixed, in both entries of a pair at once."""
    graph, supervised, signs, _, output = problem
    base = torch.tensor(graph.adjacency.toarray().astype(np.float64))
    degrees = base.sum(dim=1)
    y = torch.tensor(output)
    solve = y @ torch.linalg.inv(y.T @ y)

    def value(adjacency):
        return objective(factorised(adjacency, degrees) @ solve, supervised, signs).item()

    vectors = (factorised(base, degrees) @ solve).numpy()
    nodes, by_vector = vector_gradient(vectors, supervised, signs)
    present = graph.has_edges(every_pair(graph.num_nodes))
    gradient = link_gradient(
        graph.adjacency.astype(np.float64),
        output,
        nodes,
        by_vector,
        every_pair(graph.num_nodes),
        window=WINDOW,
        negative=NEGATIVE,
        dtype=np.float64,
    )
    step = 1e-7
    checked = 0
    for index in np.flatnonzero(present)[::3]:
        u, v = every_pair(graph.num_nodes)[index]
        bump = torch.zeros_like(base)
        bump[u, v] = bump[v, u] = step
        slope = (value(base + bump) - value(base - bump)) / (2 * step)
        # Both A_uv and A_vu move, so the slope is twice their average derivative.
        assert np.isclose(2 * gradient[index], slope, rtol=1e-4, atol=1e-6)
        checked += 1
    assert checked >= 5


def test_more_dimensions_than_nodes(rng):
    graph = connected(9, 4, rng)
    vectors, output = rng.standard_normal((2, 9, 20))
    nodes, by_vector = vector_gradient(vectors, graph.edges[:2], np.array([-1.0, 1.0]))
    gradient = link_gradient(
        graph.adjacency, output, nodes, by_vector, every_pair(9), window=WINDOW, negative=NEGATIVE, dtype=np.float64
    )
    # The smallest solution: Y has full row rank, so its pseudo-inverse is Yᵀ(YYᵀ)⁻¹.
    by_z = np.zeros((9, 9))
    by_z[nodes] = by_vector @ np.linalg.pinv(output)
    adjacency = torch.tensor(graph.adjacency.toarray().astype(np.float64), requires_grad=True)
    (torch.tensor(by_z) * factorised(adjacency, adjacency.detach().sum(dim=1))).sum().backward()
    symmetric = (adjacency.grad + adjacency.grad.T).numpy() / 2
    u, v = every_pair(9).T
    assert np.allclose(gradient, symmetric[u, v], rtol=1e-6, atol=1e-8)


def test_a_zero_vector_has_no_similarity():
    vectors = np.array([[1.0, 0], [0, 0], [2, 0]])
    assert cosines(vectors, np.array([[0, 1], [0, 2]])).tolist() == [0, 1]


def test_nothing_supervised_has_no_gradient(rng):
    graph = connected(9, 4, rng)
    nodes, by_vector = vector_gradient(rng.standard_normal((9, 3)), np.empty((0, 2), np.int64), np.empty(0))
    gradient = link_gradient(
        graph.adjacency, rng.standard_normal((9, 3)), nodes, by_vector, graph.edges, window=WINDOW, negative=NEGATIVE
    )
    assert not gradient.any()
