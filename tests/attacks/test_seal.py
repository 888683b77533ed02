import inspect

import numpy as np
import pytest
import torch
from torch import nn

from ppgsl_bench import datasets
from ppgsl_bench.attacks import seal as seal_module
from ppgsl_bench.attacks.neighbours import CommonNeighbours
from ppgsl_bench.attacks.seal import Seal, _Examples
from ppgsl_bench.dgcnn import DGCNN, _tanh, sorted_nodes, torch_sorted_nodes
from ppgsl_bench.graph import Graph
from ppgsl_bench.metrics import attack_metrics
from ppgsl_bench.pairs import num_pairs, pairs_at
from ppgsl_bench.split import make_split
from ppgsl_bench.subgraphs import enclosing_subgraphs

SMALL = {"epochs": 2, "max_train_pairs": 200, "max_nodes_per_hop": 20}


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def hub_and_spokes():
    """Links only run between hubs and others, so that linked pairs have few common neighbours."""
    source = rng(3)
    hubs, others = 12, 180
    u, v = np.meshgrid(np.arange(hubs), hubs + np.arange(others), indexing="ij")
    linked = source.random(u.shape) < 0.35
    return Graph.from_pairs(hubs + others, np.stack([u[linked], v[linked]], axis=1))


def plain_dgcnn(model, subgraphs, part):
    """One logit by dense matrices and torch's own layers, from the description in the SEAL paper."""
    low, high = subgraphs.offsets[part : part + 2]
    size = high - low
    looped = torch.eye(size)
    for i in range(size):
        looped[i, subgraphs.indices[subgraphs.indptr[low + i] : subgraphs.indptr[low + i + 1]] - low] = 1
    h = nn.functional.one_hot(torch.from_numpy(subgraphs.labels[low:high]), len(model.convolutions[0])).float()
    outputs = []
    for weight in model.convolutions:
        h = torch.tanh(torch.diag(1 / looped.sum(dim=1)) @ looped @ h @ weight)
        outputs.append(h)
    vectors = torch.cat(outputs, dim=1)
    vectors = vectors[vectors[:, -1].sort(descending=True, stable=True).indices][: model.pooled]
    vectors = torch.cat([vectors, torch.zeros(model.pooled - len(vectors), 97)])
    first = nn.Conv1d(1, 16, 97, 97)
    first.weight.data, first.bias.data = model.node_weight.data.T[:, None, :], model.node_bias.data
    second = nn.Conv1d(16, 32, 5)
    second.weight.data, second.bias.data = model.window_weight.data, model.window_bias.data
    h = second(nn.MaxPool1d(2)(first(vectors.view(1, 1, -1)).relu())).relu()
    h = (h.view(1, -1) @ model.dense_weight + model.dense_bias).relu()
    return float(h @ model.out_weight + model.out_bias)


@pytest.mark.parametrize("pooled", [10, 17])
def test_the_network_is_dgcnn(random_graph, pooled):
    graph = random_graph(40, 45)
    pairs = pairs_at(rng().permutation(num_pairs(40))[:30], 40)
    subgraphs = enclosing_subgraphs(graph, pairs, hops=2, max_nodes_per_hop=8, seed=1)
    assert subgraphs.sizes.min() < 10 < subgraphs.sizes.max()
    model = DGCNN(int(subgraphs.labels.max()) + 1, pooled, torch.Generator().manual_seed(0)).eval()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter, generator=torch.Generator().manual_seed(len(name)))
    with torch.no_grad():
        found = model(subgraphs)
        expected = [plain_dgcnn(model, subgraphs, p) for p in range(len(pairs))]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_gradients_reach_every_weight(random_graph):
    graph = random_graph(40, 90)
    subgraphs = enclosing_subgraphs(graph, graph.edges, hops=2, max_nodes_per_hop=8, seed=1)
    model = DGCNN(int(subgraphs.labels.max()) + 1, 12, torch.Generator().manual_seed(0))
    model(subgraphs).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


def test_labels_not_met_in_training_count_as_the_largest():
    path = Graph.from_pairs(8, [(i, i + 1) for i in range(7)])
    subgraphs = enclosing_subgraphs(path, np.array([[0, 3]]), hops=3, max_nodes_per_hop=8, seed=0)
    assert subgraphs.labels.max() > 2
    logits = DGCNN(3, 10, torch.Generator().manual_seed(0)).eval()(subgraphs)
    assert torch.isfinite(logits).all()


def test_the_attack_learns_what_common_neighbours_cannot_see(hub_and_spokes):
    split = make_split(hub_and_spokes, 0)
    queries = split.queries()
    scores = Seal(epochs=8, max_nodes_per_hop=30).score(split.visible, queries.pairs, rng())
    assert attack_metrics(scores, queries.group)["auc"] > 0.8
    common = CommonNeighbours().score(split.visible, queries.pairs, rng())
    assert attack_metrics(common, queries.group)["auc"] < 0.5


def test_on_links_without_pattern_it_is_no_better_than_chance(random_graph):
    # Erdős–Rényi, bound of 4 standard errors: a false alarm in 6e-5 of cases, a fixed seed.
    split = make_split(random_graph(400, 2000, seed=8), 0)
    queries = split.queries()
    seal = Seal(epochs=2, max_train_pairs=1000, max_nodes_per_hop=20)
    found = attack_metrics(seal.score(split.visible, queries.pairs, rng()), queries.group)
    assert abs(found["auc"] - 0.5) < 4 * found["auc_se"]


def test_same_seed_same_scores_and_the_order_of_ends_is_immaterial(hub_and_spokes):
    pairs = hub_and_spokes.edges[::5]
    torch.manual_seed(1)
    first = Seal(**SMALL).score(hub_and_spokes, pairs, rng(7))
    torch.manual_seed(2)
    state = torch.get_rng_state()
    second = Seal(**SMALL).score(hub_and_spokes, pairs[:, ::-1], rng(7))
    np.testing.assert_array_equal(first, second)
    assert torch.equal(torch.get_rng_state(), state), "torch's global generator was used"
    assert first.dtype == np.float64
    assert np.any(first != Seal(**SMALL).score(hub_and_spokes, pairs, rng(8)))


def test_training_pairs_come_from_the_published_graph_alone(hub_and_spokes):
    pairs, linked = Seal(max_train_pairs=120)._training_pairs(hub_and_spokes, rng())
    assert len(pairs) == len(linked) == 120
    np.testing.assert_array_equal(hub_and_spokes.has_edges(pairs), linked.numpy() == 1)
    assert linked.sum() == 60
    # Order tells nothing: the first half holds links and non-links alike (hypergeometric, sd 2.75; 5 sd).
    assert abs(float(linked[:60].sum()) - 30) < 14
    assert len(np.unique(pairs, axis=0)) == 120
    assert list(inspect.signature(Seal.score).parameters) == ["self", "published", "pairs", "rng"]


def examples_of(graph, pairs, limit=25):
    def extract(some):
        return enclosing_subgraphs(graph, some, hops=2, max_nodes_per_hop=limit, seed=4)

    return _Examples.of(pairs, torch.zeros(len(pairs)), extract)


def test_pooling_keeps_the_60th_percentile_of_training_subgraphs(hub_and_spokes):
    examples = examples_of(hub_and_spokes, hub_and_spokes.edges[:300])
    training = np.arange(40, 300)
    subgraphs = examples.extract(examples.pairs[training])
    labels, pooled = examples.dimensions(training)
    assert np.mean(subgraphs.sizes <= pooled) >= 0.6 > np.mean(subgraphs.sizes <= pooled - 1)
    assert labels == subgraphs.labels.max() + 1
    pair_alone = Graph.from_pairs(60, [(i, i + 30) for i in range(30)])
    assert examples_of(pair_alone, pair_alone.edges).dimensions(np.arange(30)) == (2, 10)


def test_scores_are_the_same_whether_subgraphs_are_kept_or_extracted_again(hub_and_spokes, monkeypatch):
    pairs = hub_and_spokes.edges[::5]
    kept = Seal(**SMALL).score(hub_and_spokes, pairs, rng(7))
    assert examples_of(hub_and_spokes, hub_and_spokes.edges).kept is not None
    monkeypatch.setattr(seal_module, "_KEPT_BYTES", 10_000)
    assert examples_of(hub_and_spokes, hub_and_spokes.edges).kept is None
    np.testing.assert_array_equal(kept, Seal(**SMALL).score(hub_and_spokes, pairs, rng(7)))


def test_isolated_ends_and_no_pairs(hub_and_spokes):
    padded = Graph.from_pairs(hub_and_spokes.num_nodes + 2, hub_and_spokes.edges)
    isolated = np.array([[padded.num_nodes - 2, padded.num_nodes - 1], [0, padded.num_nodes - 1]])
    assert np.isfinite(Seal(**SMALL).score(padded, isolated, rng())).all()
    assert Seal(**SMALL).score(padded, isolated[:0], rng()).shape == (0,)


def test_graphs_too_small_or_too_dense_are_refused(random_graph):
    assert "19 published links" in Seal().why_not(random_graph(30, 19))
    assert Seal().why_not(random_graph(30, 20)) is None
    assert Seal().why_not(random_graph(30, 415)) is None
    assert "19 unlinked pairs" in Seal().why_not(random_graph(30, 416))


def test_a_dense_graph_has_fewer_counterexamples(random_graph):
    dense = random_graph(30, 415)
    assert np.isfinite(Seal(epochs=1).score(dense, dense.edges[:9], np.random.default_rng(0))).all()


@pytest.mark.slow
@pytest.mark.dataset
@pytest.mark.parametrize(("dataset", "least"), [("polblogs", 0.92), ("cora", 0.80)])
def test_published_figures_are_reached_on_undefended_graphs(datasets_dir, dataset, least):
    graph = datasets.registry.get(dataset)().load(datasets.Sources(data_dirs=(datasets_dir,), offline=True))
    split = make_split(graph, 0)
    queries = split.queries()
    found = attack_metrics(Seal().score(split.visible.without_labels(), queries.pairs, rng()), queries.group)["auc"]
    assert found >= least
    if dataset == "cora":
        common = CommonNeighbours().score(split.visible, queries.pairs, rng())
        assert found >= attack_metrics(common, queries.group)["auc"] + 0.1


@pytest.mark.parametrize("pooled", [10, 23])
def test_compiled_pass_over_subgraphs_equals_that_of_torch(random_graph, pooled):
    graph = random_graph(60, 70, seed=2)
    pairs = pairs_at(rng(1).permutation(num_pairs(60))[:40], 60)
    subgraphs = enclosing_subgraphs(graph, pairs, hops=2, max_nodes_per_hop=12, seed=1)
    assert subgraphs.sizes.min() < pooled <= subgraphs.sizes.max()
    assert subgraphs.labels.max() >= 5
    model = DGCNN(5, pooled, torch.Generator().manual_seed(3))
    # The first of the pooled numbers is the very key, to see where two nodes' keys are a matter of rounding.
    model.node_weight.data[:, 0] = 0
    model.node_weight.data[-1, 0] = 1
    weights = [model.node_weight, *model.convolutions]
    found = sorted_nodes(subgraphs, pooled, weights[0], weights[1:])
    expected = torch_sorted_nodes(subgraphs, pooled, weights[0], weights[1:])
    np.testing.assert_allclose(found[:, :, 0].detach(), expected[:, :, 0].detach(), atol=2e-6)
    gaps = expected[:, :-1].sub(expected[:, 1:]).detach()
    clear = ((gaps[:, :, 0] > 1e-5) | (gaps.abs() < 1e-6).all(dim=2)).all(dim=1)
    assert clear.sum() > 10
    np.testing.assert_allclose(found[clear].detach(), expected[clear].detach(), atol=2e-6)
    towards = torch.randn(found.shape, generator=torch.Generator().manual_seed(4)) * clear[:, None, None]
    gradients = [torch.autograd.grad(of, weights, towards) for of in (found, expected)]
    for fast, plain in zip(*gradients, strict=True):
        np.testing.assert_allclose(fast, plain, atol=1e-5 * float(plain.abs().max()))


def test_nodes_of_one_key_are_pooled_in_the_order_of_the_subgraph():
    # The leaves of a star cannot be told apart, and weights of zero give all nodes the same key.
    star = Graph.from_pairs(80, [(0, i) for i in range(1, 80)])
    subgraphs = enclosing_subgraphs(star, star.edges[:3], hops=2, max_nodes_per_hop=100, seed=0)
    model = DGCNN(4, 12, torch.Generator().manual_seed(0))
    nn.init.zeros_(model.convolutions[3])
    weights = [model.node_weight, *model.convolutions]
    found = sorted_nodes(subgraphs, 12, weights[0], weights[1:])
    np.testing.assert_allclose(
        found.detach(), torch_sorted_nodes(subgraphs, 12, weights[0], weights[1:]).detach(), atol=1e-6
    )
    # The pair's ends stand first in every subgraph; centre and leaf differ from one another and from all others.
    assert (found[:, 0] != found[:, 2]).any()
    torch.testing.assert_close(found[:, 2:], found[:, 2:3].expand(-1, 10, -1))


def test_rational_tanh_is_tanh():
    x = np.concatenate([np.linspace(-12, 12, 20_001), [0.0]]).astype(np.float32)
    found = np.array([_tanh(value) for value in x])
    assert np.abs(found - np.tanh(x.astype(np.float64))).max() < 5e-7
    assert found[-1] == 0
