import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

from ppgsl_bench import link_loss, message_passing
from ppgsl_bench.graph import Graph
from ppgsl_bench.message_passing import (
    GCN,
    GraphSAGE,
    OneHot,
    SparseMatrix,
    glorot,
    input_features,
    mean_adjacency,
    normalised_adjacency,
    torch_csr_product,
    unit_rows,
)

torch_geometric_nn = pytest.importorskip("torch_geometric.nn")


def weighted(graph: Graph, seed: int = 0) -> Graph:
    weights = np.random.default_rng(seed).uniform(0.1, 1, graph.num_edges).astype(np.float32)
    return graph.with_edges(graph.edges, weights=weights)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def dense_of(matrix: SparseMatrix) -> torch.Tensor:
    return matrix @ torch.eye(matrix.shape[1])


@given(graph=graphs(), with_weights=st.booleans())
def test_normalised_adjacency_is_the_formula(graph, with_weights):
    graph = weighted(graph) if with_weights else graph
    looped = graph.adjacency.toarray() + np.eye(graph.num_nodes)
    scale = np.diag(looped.sum(axis=1) ** -0.5)
    np.testing.assert_allclose(dense_of(normalised_adjacency(graph)), scale @ looped @ scale, atol=1e-6)


@given(graph=graphs())
def test_mean_adjacency_averages_the_neighbours(graph):
    dense = graph.adjacency.toarray()
    expected = dense / np.maximum(dense.sum(axis=1, keepdims=True), 1)
    np.testing.assert_allclose(dense_of(mean_adjacency(graph)), expected, atol=1e-6)


@pytest.mark.parametrize("symmetric", [True, False])
def test_backward_of_a_product_multiplies_by_the_transpose(rng, random_graph, symmetric):
    graph = random_graph(40, 120)
    matrix = normalised_adjacency(graph) if symmetric else mean_adjacency(graph)
    dense = torch.from_numpy(rng.standard_normal((40, 5))).requires_grad_()
    assert torch.autograd.gradcheck(lambda h: matrix @ h, dense, atol=1e-5)


def test_a_wrong_claim_of_symmetry_is_caught_by_the_gradient_check(rng, random_graph):
    lopsided = mean_adjacency(random_graph(40, 120))
    lopsided.symmetric = True
    dense = torch.from_numpy(rng.standard_normal((40, 5))).requires_grad_()
    assert not torch.autograd.gradcheck(lambda h: lopsided @ h, dense, atol=1e-5, raise_exception=False)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_number_of_threads_changes_nothing(monkeypatch, rng, random_graph, threads):
    graph = random_graph(300, 2000)
    matrix, h = normalised_adjacency(graph), torch.from_numpy(rng.standard_normal((300, 7), dtype=np.float32))
    pairs = rng.integers(300, size=(500, 2))

    def products_and_gradient() -> list[torch.Tensor]:
        z = h.clone().requires_grad_()
        products = link_loss.inner_products(z, pairs)
        products.pow(2).sum().backward()
        return [matrix @ h, products.detach(), z.grad]

    single = products_and_gradient()
    for module in (message_passing, link_loss):
        monkeypatch.setattr(module, "usable_threads", lambda work: threads)
    for one, several in zip(single, products_and_gradient(), strict=True):
        assert torch.equal(one, several)


def test_torch_path_agrees_with_the_kernels(rng, random_graph):
    matrix = mean_adjacency(random_graph(50, 100))
    dense = torch.from_numpy(rng.standard_normal((50, 3), dtype=np.float32))
    native = torch_csr_product(matrix.indptr, matrix.indices, matrix.values, dense, matrix.shape)
    torch.testing.assert_close(matrix @ dense, native)


def test_with_values_transposes_the_new_values(rng):
    matrix = SparseMatrix(sp.random_array((6, 9), density=0.4, format="csr", dtype=np.float32, rng=rng))
    matrix.multiply_transposed(torch.eye(6))
    other = matrix.with_values(torch.arange(1.0, len(matrix.values) + 1))
    torch.testing.assert_close(other.multiply_transposed(torch.eye(6)), dense_of(other).T)


def make_features(kind: str, rng: np.random.Generator, n: int) -> np.ndarray | sp.csr_array | None:
    if kind == "none":
        return None
    x = (rng.random((n, 12)) < 0.3).astype(np.float32) * rng.integers(-2, 5, (n, 12)).astype(np.float32)
    x[0] = 0
    return x if kind == "dense" else sp.csr_array(x)


@pytest.mark.parametrize("kind", ["dense", "sparse", "none"])
@pytest.mark.parametrize(("own", "theirs"), [(GCN, "GCNConv"), (GraphSAGE, "SAGEConv")])
def test_encoders_agree_with_pytorch_geometric(rng, random_graph, kind, own, theirs):
    graph = random_graph(60, 150)
    graph = Graph(num_nodes=60, edges=graph.edges, x=make_features(kind, rng, 60))
    features = input_features(graph)
    encoder = own(features.shape[1], [8, 4], generator())
    x = features @ torch.eye(features.shape[1])
    edge_index = torch.from_numpy(np.concatenate([graph.edges, graph.edges[:, ::-1]]).T.copy())
    h = x
    for i, (weight, bias) in enumerate(zip(encoder.weights, encoder.biases, strict=True)):
        layer = getattr(torch_geometric_nn, theirs)(*weight.shape)
        with torch.no_grad():
            if own is GCN:
                layer.lin.weight.copy_(weight.T)
                layer.bias.copy_(bias)
            else:
                layer.lin_l.weight.copy_(weight.T)
                layer.lin_l.bias.copy_(bias)
                layer.lin_r.weight.copy_(encoder.roots[i].T)
        h = layer(torch.relu(h) if i else h, edge_index)
    adjacency = normalised_adjacency(graph) if own is GCN else mean_adjacency(graph)
    z = encoder(adjacency, features)
    torch.testing.assert_close(z, h, atol=1e-5, rtol=1e-4)
    z.pow(2).sum().backward()
    first = torch.autograd.grad(
        (encoder(adjacency, x.clone().requires_grad_()) ** 2).sum(), encoder.weights[0], allow_unused=False
    )[0]
    torch.testing.assert_close(encoder.weights[0].grad, first, atol=1e-5, rtol=1e-4)


def test_aggregated_features_are_not_confused_with_others(rng, random_graph):
    graph = random_graph(30, 60)
    adjacency, encoder = normalised_adjacency(graph), GCN(5, [3], generator())
    one, two = (torch.from_numpy(rng.standard_normal((30, 5), dtype=np.float32)) for _ in range(2))
    encoder(adjacency, one)
    torch.testing.assert_close(encoder(adjacency, two), adjacency @ (two @ encoder.weights[0]))


def test_initial_weights_come_from_the_generator_alone():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = GCN(10, [8, 4], generator(5))
    two = GCN(10, [8, 4], generator(5))
    other = GCN(10, [8, 4], generator(6))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(one.weights, two.weights, strict=True))
    assert not torch.equal(one.weights[0], other.weights[0])
    bound = (6 / (300 + 100)) ** 0.5
    weight = glorot(300, 100, generator())
    assert weight.abs().max() <= bound
    # 30,000 uniform draws: the sample variance is within 5 standard errors of bound²/3 (false alarm below 1e-6).
    assert abs(weight.var().item() - bound**2 / 3) < 5 * bound**2 / 3 * (0.8 / 30000) ** 0.5


@pytest.mark.parametrize("kind", ["dense", "sparse", "none"])
def test_dropout_keeps_the_expectation_and_is_off_when_evaluating(rng, random_graph, kind):
    graph = random_graph(40, 80)
    graph = Graph(num_nodes=40, edges=graph.edges, x=make_features(kind, rng, 40))
    features, adjacency = input_features(graph), normalised_adjacency(graph)
    encoder = GCN(features.shape[1], [3], generator(), dropout=0.5)
    with torch.no_grad():
        draws = torch.stack([encoder(adjacency, features) for _ in range(3000)])
        encoder.eval()
        exact = encoder(adjacency, features)
        assert torch.equal(exact, encoder(adjacency, features))
    error = (draws.mean(0) - exact) / (draws.std(0) / 3000**0.5 + 1e-9)
    # 120 cells, each standard normal: |z| > 5 anywhere has probability below 1e-4.
    assert error.abs().max() < 5
    assert draws.std(0).max() > 0


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_input_rows_have_unit_absolute_sum(rng, kind):
    x = make_features(kind, rng, 25)
    features = input_features(Graph.from_pairs(25, np.empty((0, 2), dtype=np.int64), x=x))
    dense = features @ torch.eye(12)
    raw = torch.from_numpy(x.toarray() if kind == "sparse" else x)
    torch.testing.assert_close(dense.sign(), raw.sign())
    sums = dense.abs().sum(1)
    torch.testing.assert_close(sums, (raw.abs().sum(1) > 0).float())
    assert isinstance(features, SparseMatrix) == (kind == "sparse")


def test_unit_rows_are_those_of_normalize(rng):
    z = torch.from_numpy(rng.standard_normal((9, 4))).requires_grad_()
    torch.testing.assert_close(unit_rows(z), torch.nn.functional.normalize(z))
    assert torch.autograd.gradcheck(unit_rows, z)


def test_zero_rows_stay_zero_and_pass_no_gradient():
    z = torch.zeros(3, 4, requires_grad=True)
    unit = unit_rows(z)
    unit.sum().backward()
    assert not unit.any()
    assert not z.grad.any()


def test_graph_without_features_gets_one_hot_ones(random_graph):
    features = input_features(random_graph(7, 5))
    assert isinstance(features, OneHot)
    weight = torch.rand(7, 2)
    assert features @ weight is weight


@given(graph=graphs(min_nodes=2), data=st.data())
def test_inner_products_and_gradient_agree_with_gathering(graph, data):
    pairs = np.array(
        data.draw(
            st.lists(st.tuples(st.integers(0, graph.num_nodes - 1), st.integers(0, graph.num_nodes - 1)), max_size=20)
        ),
        dtype=np.int64,
    ).reshape(-1, 2)
    z = torch.rand(graph.num_nodes, 3, generator=generator(), dtype=torch.float64).requires_grad_()
    slopes = torch.rand(len(pairs), generator=generator(1), dtype=torch.float64)
    plain = (z[pairs[:, 0]] * z[pairs[:, 1]]).sum(1)
    own = link_loss.inner_products(z, pairs)
    torch.testing.assert_close(own, plain)
    if len(pairs):
        torch.testing.assert_close(
            torch.autograd.grad((own * slopes).sum(), z)[0], torch.autograd.grad((plain * slopes).sum(), z)[0]
        )
