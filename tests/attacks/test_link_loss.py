import numpy as np
import pytest
import torch
from hypothesis import given
from scipy.stats import chisquare
from strategies import graphs
from torch.nn.functional import binary_cross_entropy_with_logits

from ppgsl_bench.graph import Graph
from ppgsl_bench.link_loss import draw_non_links, inner_products, link_loss
from ppgsl_bench.pairs import num_pairs, pairs_at, ranks_of


@given(graphs())
def test_draws_are_pairs_without_a_link(graph):
    drawn = draw_non_links(graph, 50, np.random.default_rng(0))
    assert len(drawn) == (50 if graph.num_non_edges else 0)
    assert (drawn[:, 0] < drawn[:, 1]).all()
    assert not graph.has_edges(drawn).any()


@pytest.mark.parametrize("links", [6, 30])
def test_draws_are_uniform(random_graph, links):
    """Sparse and dense graphs; χ² test with a false-alarm rate of 0.1 %."""
    graph = random_graph(12, links)
    drawn = ranks_of(draw_non_links(graph, 20_000, np.random.default_rng(1)), 12)
    counts = np.bincount(drawn, minlength=num_pairs(12))
    counts = np.delete(counts, graph.ranks)
    assert chisquare(counts).pvalue > 1e-3


def test_loss_and_gradient_equal_cross_entropy_of_all_pairs():
    graph = Graph.from_pairs(6, np.array([(0, 1), (1, 2), (3, 5)]))
    every = pairs_at(np.arange(num_pairs(6)), 6)
    linked = graph.has_edges(every)
    vectors = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    loss = link_loss(vectors, graph.edges, every[~linked])
    logits = (vectors @ vectors.T)[every[:, 0], every[:, 1]]
    target = torch.from_numpy(linked).to(torch.float64)
    parts = [binary_cross_entropy_with_logits(logits[target == t], target[target == t]) for t in (0, 1)]
    torch.testing.assert_close(loss, parts[0] + parts[1])
    ours, theirs = (torch.autograd.grad(value, vectors, retain_graph=True)[0] for value in (loss, sum(parts)))
    torch.testing.assert_close(ours, theirs)


def test_an_empty_set_adds_nothing():
    vectors = torch.ones(3, 2)
    none = np.empty((0, 2), dtype=np.int64)
    pair = np.array([[0, 2]])
    assert link_loss(vectors, none, none) == 0
    assert link_loss(vectors, none, pair) > link_loss(vectors, pair, none) > 0
    assert inner_products(vectors, pair).tolist() == [2.0]
