import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

from ppgsl_bench.graph import Graph
from ppgsl_bench.learned_adjacency import (
    CandidateLinks,
    LearnedAdjacency,
    gather_products,
    sampled_products,
    scatter_sums,
    weighted_sums,
)
from ppgsl_bench.message_passing import mean_adjacency, normalised_adjacency

AGGREGATIONS = ("gcn", "mean")


def weights_for(count: int, seed: int = 0, zeros: float = 0.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    weights = 0.1 + 0.9 * torch.rand(count, generator=generator, dtype=torch.float64)
    return weights * (torch.rand(count, generator=generator) >= zeros)


@given(graph=graphs(min_edges=1), aggregation=st.sampled_from(AGGREGATIONS))
def test_product_is_that_of_the_weighted_graph(graph, aggregation):
    weights = weights_for(graph.num_edges).float()
    weighted = graph.with_edges(graph.edges, weights=weights.numpy())
    constant = (normalised_adjacency if aggregation == "gcn" else mean_adjacency)(weighted)
    learned = LearnedAdjacency(CandidateLinks(graph.edges, graph.num_nodes), weights, aggregation)
    eye = torch.eye(graph.num_nodes)
    torch.testing.assert_close(learned @ eye, constant @ eye)
    torch.testing.assert_close(learned.multiply_transposed(eye), (constant @ eye).T)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("zeros", [0.0, 0.5])
def test_gradient_by_finite_differences(random_graph, rng, aggregation, zeros):
    graph = random_graph(15, 40)
    candidates = CandidateLinks(graph.edges, 15)
    weights = weights_for(40, zeros=zeros).requires_grad_()
    h = torch.from_numpy(rng.standard_normal((15, 4))).requires_grad_()

    def two_layers(w: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        adjacency = LearnedAdjacency(candidates, w, aggregation)
        return adjacency @ torch.tanh(adjacency @ h)

    assert torch.autograd.gradcheck(two_layers, (weights, h), eps=1e-6, atol=1e-6)


@pytest.mark.parametrize("missing", ["degrees", "loops"])
def test_finite_differences_notice_a_missing_term(random_graph, rng, monkeypatch, missing):
    graph = random_graph(15, 40)
    candidates = CandidateLinks(graph.edges, 15)
    h = torch.from_numpy(rng.standard_normal((15, 4)))

    def product(w: torch.Tensor) -> torch.Tensor:
        adjacency = LearnedAdjacency(candidates, w, "gcn")
        if missing == "degrees":
            adjacency.degrees = adjacency.degrees * 1e9
        else:
            adjacency.loops = torch.zeros_like(adjacency.loops)
        return adjacency @ h

    weights = weights_for(40).requires_grad_()
    assert not torch.autograd.gradcheck(product, weights, eps=1e-6, atol=1e-6, raise_exception=False)


@given(graph=graphs(min_edges=1))
def test_gradient_agrees_with_a_dense_autograd_version(graph):
    n = graph.num_nodes
    weights = weights_for(graph.num_edges, zeros=0.3).requires_grad_()
    u, v = torch.from_numpy(graph.edges.T.copy())
    dense = torch.zeros(n, n, dtype=torch.float64).index_put((u, v), weights)
    looped = dense + dense.T + torch.eye(n, dtype=torch.float64)
    scale = looped.sum(1).rsqrt()
    slopes = torch.rand(n, n, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected = torch.autograd.grad((scale[:, None] * looped * scale * slopes).sum(), weights)[0]
    learned = LearnedAdjacency(CandidateLinks(graph.edges, n), weights, "gcn")
    own = torch.autograd.grad(((learned @ torch.eye(n, dtype=torch.float64)) * slopes).sum(), weights)[0]
    torch.testing.assert_close(own, expected)


def test_gathered_products_agree_with_the_kernel(random_graph, rng, monkeypatch):
    graph = random_graph(30, 80)
    monkeypatch.setattr("ppgsl_bench.learned_adjacency._CHUNK", 7)
    grad, h = (torch.from_numpy(rng.standard_normal((30, 5))) for _ in range(2))
    ends = torch.from_numpy(graph.edges.T.astype(np.int32).copy())
    gathered = tuple(torch.empty(size, dtype=torch.float64) for size in (80, 80, 30))
    gather_products(grad, h, ends, *gathered)
    for one, other in zip(sampled_products(grad, h, ends), gathered, strict=True):
        torch.testing.assert_close(one, other)


def test_scattered_sums_agree_with_the_kernel(random_graph, rng):
    graph = random_graph(30, 80)
    weights, there, back = (torch.from_numpy(rng.standard_normal(80)) for _ in range(3))
    ends = torch.from_numpy(graph.edges.T.astype(np.int32).copy())
    scattered = tuple(torch.zeros(30, dtype=torch.float64) for _ in range(2))
    scatter_sums(weights, there, back, ends, *scattered)
    for one, other in zip(weighted_sums(weights, there, back, ends, 30), scattered, strict=True):
        torch.testing.assert_close(one, other)


@given(graph=graphs())
def test_pattern_is_sorted_and_complete(graph):
    candidates = CandidateLinks(graph.edges, graph.num_nodes)
    expected = graph.adjacency.toarray() + np.eye(graph.num_nodes)
    for i in range(graph.num_nodes):
        row = slice(candidates.indptr[i], candidates.indptr[i + 1])
        assert candidates.indices[row].tolist() == np.flatnonzero(expected[i]).tolist()
        for j, slot in zip(candidates.indices[row].tolist(), candidates.slot[row].tolist(), strict=True):
            assert slot == graph.num_edges if i == j else sorted((i, j)) == graph.edges[slot].tolist()


def test_several_threads_give_the_same_gradient(random_graph, rng, monkeypatch):
    graph = random_graph(200, 900)
    candidates = CandidateLinks(graph.edges, 200)
    h = torch.from_numpy(rng.standard_normal((200, 6), dtype=np.float32))
    weights = weights_for(900).float()

    def gradient() -> torch.Tensor:
        w = weights.clone().requires_grad_()
        (LearnedAdjacency(candidates, w, "gcn") @ h).square().sum().backward()
        return w.grad

    single = gradient()
    for module in ("message_passing", "learned_adjacency"):
        monkeypatch.setattr(f"ppgsl_bench.{module}.usable_threads", lambda work: 3)
    assert torch.equal(single, gradient())


def test_isolated_nodes_are_left_alone():
    graph = Graph.from_pairs(4, np.array([[0, 1]]))
    weights = torch.zeros(1, requires_grad=True)
    out = LearnedAdjacency(CandidateLinks(graph.edges, 4), weights, "mean") @ torch.ones(4, 2)
    assert not out.any()
    out.sum().backward()
    assert weights.grad.isfinite().all()
