import importlib.util
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs

from ppgsl_bench.defenses import registry
from ppgsl_bench.defenses import surrogate as surrogate_module
from ppgsl_bench.defenses.ppgsl import PPGSL, GraphLearner, candidate_pairs
from ppgsl_bench.defenses.surrogate import Surrogate, SurrogateAttacker
from ppgsl_bench.errors import UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.message_passing import input_features
from ppgsl_bench.pairs import Pairs, num_pairs, ranks_of
from ppgsl_bench.split import Split, make_split

pytest.importorskip("torch_geometric")
_spec = importlib.util.spec_from_file_location("plain_ppgsl", Path(__file__).with_name("plain_ppgsl.py"))
plain_ppgsl = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(plain_ppgsl)

SHORT = {"learner_steps": 12, "mu": 4, "surrogate_updates": 5}


def planted(seed: int = 0, nodes: int = 120, words: int = 40, weighted: bool = False, features: bool = True) -> Split:
    """A split of a graph of four communities whose features tell the community."""
    rng = np.random.default_rng(seed)
    group = np.arange(nodes) % 4
    chance = np.where(group[:, None] == group, 0.25, 0.01)
    edges = np.argwhere(np.triu(rng.random((nodes, nodes)) < chance, 1))
    topics = rng.random((4, words)) ** 4
    x = sp.csr_array((rng.random((nodes, words)) < topics[group]).astype(np.float32)) if features else None
    weights = rng.uniform(0.2, 3, len(edges)) if weighted else None
    return make_split(Graph.from_pairs(nodes, edges, x=x, weights=weights, name="planted"), 0)


def publish(split: Split, seed: int = 0, **parameters: object) -> Graph:
    return PPGSL(**parameters).publish(split.visible, split.sensitive, np.random.default_rng(seed)).graph


def duel(split: Split, alpha: float, dtype: torch.dtype):
    """The fast and the plain version on the same candidates."""
    rng = np.random.default_rng(5)
    attacker = SurrogateAttacker("gcn", "cos", input_features(split.visible), rng, rate=0.01, tolerance=0)
    pairs = candidate_pairs(split.visible, split.sensitive, 1, rng)
    fast = GraphLearner(split.visible, split.sensitive, pairs, alpha=alpha)
    fast.original = fast.original.to(dtype)
    fast.weights = fast.original.clone().requires_grad_()
    fast._optimizer = torch.optim.Adam([fast.weights], lr=0.5)
    plain = plain_ppgsl.PlainPPGSL(split.visible, split.sensitive, pairs, alpha=alpha, dtype=dtype)
    return attacker, fast, plain


def retrain_both(attacker, fast, plain, monkeypatch, updates: int) -> tuple[float, float]:
    """From the same initial weights on the same non-links; the last losses."""
    attacker.initialise()
    attacker.surrogate.to(fast.weights.dtype)
    plain.initialise()
    plain.surrogate.start_from(*attacker.surrogate.encoder.weights)
    draws: list[Pairs] = []
    original = surrogate_module.draw_non_links
    with monkeypatch.context() as patch:
        patch.setattr(surrogate_module, "draw_non_links", lambda *a: draws.append(original(*a)) or draws[-1])
        attacker.train(fast.links("gcn"), updates)
    losses = [plain.train(non_links) for non_links in draws]
    return attacker.loss, losses[-1]


@pytest.mark.parametrize("features", [True, False])
@pytest.mark.parametrize(("dtype", "gradient_tolerance"), [(torch.float64, 1e-4), (torch.float32, None)])
def test_losses_and_gradients_equal_those_of_the_plain_version(monkeypatch, features, dtype, gradient_tolerance):
    """24 steps, three retrainings, both versions left to themselves after the same start.

    In float32 the gradients drift apart more than the losses do: Adam's first steps have the size of the learning
    rate however small a gradient is, so that rounding decides about weights that do not matter.
    """
    attacker, fast, plain = duel(planted(features=features), alpha=0.03, dtype=dtype)
    for step in range(24):
        if step % 8 == 0:
            loss, expected = retrain_both(attacker, fast, plain, monkeypatch, updates=15)
            assert loss == pytest.approx(expected, abs=1e-4)
        losses = fast.step(attacker, 0.5)
        privacy, utility, gradient = plain.step()
        assert losses["privacy_loss"] == pytest.approx(privacy, abs=1e-4)
        assert losses["utility_loss"] == pytest.approx(utility, rel=1e-3, abs=1e-4)
        if gradient_tolerance is not None:
            assert (fast.weights.grad - gradient).norm() <= gradient_tolerance * gradient.norm()


def test_the_comparison_notices_another_loss(monkeypatch):
    attacker, fast, plain = duel(planted(), alpha=0.03, dtype=torch.float64)
    plain.alpha *= 1.01
    retrain_both(attacker, fast, plain, monkeypatch, updates=15)
    fast.step(attacker, 0.5)
    plain.step()
    fast.step(attacker, 0.5)
    _, _, gradient = plain.step()
    assert (fast.weights.grad - gradient).norm() > 1e-4 * gradient.norm()


def test_gradient_of_the_loss_by_finite_differences():
    attacker, fast, _ = duel(planted(nodes=40, words=12), alpha=0.05, dtype=torch.float64)
    attacker.surrogate.double()
    attacker.train(fast.links("gcn"), 10)
    fast.weights.data = 0.2 + 0.6 * torch.rand(
        len(fast.weights), generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    start = fast.weights.detach().clone()

    def loss(weights: torch.Tensor) -> float:
        fast.weights.data = weights.clone()
        losses = fast.step(attacker, 0.5)
        return losses["privacy_loss"] + fast.alpha / len(fast.sensitive) * losses["utility_loss"]

    loss(start)
    gradient = fast.weights.grad.clone()
    for e in range(0, len(start), 7):
        shift = torch.zeros_like(start)
        shift[e] = 1e-5
        slope = (loss(start + shift) - loss(start - shift)) / 2e-5
        assert slope == pytest.approx(gradient[e].item(), rel=1e-4, abs=1e-8)


@pytest.mark.parametrize("encoder", ["gcn", "sage"])
@pytest.mark.parametrize("head", ["cos", "ip", "mlp"])
@pytest.mark.parametrize("protocol", ["sitp", "adv"])
def test_weights_move_with_every_surrogate(encoder, head, protocol):
    split = planted()
    publication = PPGSL(alpha=0.0, encoder=encoder, head=head, protocol=protocol, **SHORT).publish(
        split.visible, split.sensitive, np.random.default_rng(0)
    )
    assert publication.trace["utility_loss"][1] > 1
    assert publication.trace["privacy_loss"][3] < publication.trace["privacy_loss"][0]
    assert not np.array_equal(publication.graph.edges, split.visible.edges)


def test_clamp_is_never_differentiated(monkeypatch):
    """Its derivative at the bounds, where all weights start, is 1 in some versions of torch and 0 in others."""

    def guarded(original):
        def call(x, *args, **kwargs):
            assert not (x.requires_grad and torch.is_grad_enabled()), "clamp inside the differentiated part"
            return original(x, *args, **kwargs)

        return call

    expected = publish(planted(), alpha=0.03, **SHORT)
    for owner in (torch, torch.Tensor):
        for name in ("clamp", "clamp_", "clip", "clip_"):
            monkeypatch.setattr(owner, name, guarded(getattr(owner, name)))
    with pytest.raises(AssertionError, match="differentiated part"):
        torch.ones(1, requires_grad=True).clamp(0, 1)
    assert publish(planted(), alpha=0.03, **SHORT).digest == expected.digest


def test_a_huge_price_of_distortion_returns_the_input():
    split = planted()
    published = publish(split, alpha=1e6, learner_steps=60, mu=20, surrogate_updates=5)
    assert np.array_equal(published.edges, split.visible.edges)


def test_a_lower_price_changes_more():
    split = planted()
    changes = [
        len(
            np.setxor1d(
                publish(split, alpha=alpha, learner_steps=60, mu=20, surrogate_updates=30).ranks, split.visible.ranks
            )
        )
        for alpha in (10, 0.1, 0.001)
    ]
    assert changes == sorted(changes)
    assert changes[-1] > 2 * changes[0] + 10


@settings(max_examples=15)
@given(graph=graphs(min_nodes=4, min_edges=4), data=st.data())
def test_published_graphs_keep_the_contract(graph, data):
    hidden = data.draw(st.sets(st.integers(0, graph.num_edges - 1), min_size=1, max_size=graph.num_edges - 1))
    sensitive = graph.edges[sorted(hidden)]
    visible = graph.without_edges(sensitive)
    for k, structure in ((0, "sparse"), (1, "sparse"), (1, "full")):
        defense = PPGSL(k=k, structure=structure, alpha=0.01, **SHORT)
        published = defense.publish(visible, sensitive, np.random.default_rng(0)).graph
        assert published.num_nodes == graph.num_nodes
        assert not published.has_edges(sensitive).any()
        if k == 0:
            assert visible.has_edges(published.edges).all()


def test_no_sensitive_pair_is_ever_a_candidate(rng, random_graph):
    split = make_split(random_graph(12, 40), 0)
    hidden = ranks_of(split.sensitive, 12)
    for k in (0, 0.5, 1, 100, None):
        pairs = candidate_pairs(split.visible, split.sensitive, k, rng)
        ranks = ranks_of(pairs, 12)
        assert (np.diff(ranks) > 0).all()
        assert not np.intersect1d(ranks, hidden).size
        assert np.isin(split.visible.ranks, ranks).all()
        if k == 0.5:
            assert len(pairs) == round(1.5 * split.visible.num_edges)
        if k in (100, None):
            assert len(pairs) == num_pairs(12) - len(hidden)


def test_weighted_graphs_stay_weighted_and_in_range():
    split = planted(weighted=True)
    top = float(split.visible.weights.max())
    assert top > 1
    published = publish(split, alpha=0.01, **SHORT)
    assert published.weights is not None
    assert published.weights.max() <= top * (1 + 1e-6)
    unchanged = publish(split, alpha=1e6, learner_steps=200, mu=100, surrogate_updates=5)
    links = unchanged.without_edges(unchanged.edges[unchanged.weights < 1e-3])
    assert np.array_equal(links.edges, split.visible.edges)
    np.testing.assert_allclose(links.weights, split.visible.weights, atol=0.02 * top)


def test_graphs_without_features_work():
    split = planted(features=False)
    published = publish(split, alpha=0.01, **SHORT)
    assert not np.array_equal(published.edges, split.visible.edges)


@pytest.mark.parametrize("protocol", ["sitp", "adv"])
def test_same_seed_same_graph(protocol):
    split = planted()
    one, two, other = (publish(split, seed, protocol=protocol, alpha=0.03, **SHORT) for seed in (0, 0, 1))
    assert one.digest == two.digest
    assert one.digest != other.digest


def test_trace_counts_updates_and_the_callback_disturbs_nothing():
    split = planted()
    defense = PPGSL(alpha=0.03, **SHORT)
    seen = []
    with_callback = defense.learn(
        split.visible,
        split.sensitive,
        np.random.default_rng(0),
        on_step=lambda step, draw: seen.append((step, draw(np.random.default_rng(step)).num_edges)),
    )
    plain = defense.publish(split.visible, split.sensitive, np.random.default_rng(0))
    assert with_callback.graph.digest == plain.graph.digest
    assert [step for step, _ in seen] == list(range(1, 13))
    trace = plain.trace
    assert {len(values) for values in trace.values()} == {12}
    assert trace["surrogate_updates"].tolist() == [5] * 4 + [10] * 4 + [15] * 4
    assert trace["utility_loss"][0] == 0
    assert (np.diff(trace["seconds"]) > 0).all()
    expected = trace["links_kept"][-1] + trace["links_added"][-1]
    # A sum of at most 600 Bernoulli variables: 6 standard deviations of at most sqrt(600)/2.
    assert abs(plain.graph.num_edges - expected) < 6 * 600**0.5 / 2


def test_adv_keeps_one_surrogate():
    split = planted()
    trace = (
        PPGSL(protocol="adv", adv_updates=3, **SHORT)
        .publish(split.visible, split.sensitive, np.random.default_rng(0))
        .trace
    )
    assert trace["surrogate_updates"].tolist() == list(range(3, 39, 3))


@pytest.mark.parametrize(("tolerance", "most"), [(0.0, 300), (0.01, 200)])
def test_training_stops_when_the_loss_has_converged(tolerance, most):
    split = planted()
    attacker = SurrogateAttacker(
        "gcn", "cos", input_features(split.visible), np.random.default_rng(0), rate=0.01, tolerance=tolerance
    )
    learner = GraphLearner(split.visible, split.sensitive, split.visible.edges, alpha=1)
    attacker.train(learner.links("gcn"), 300)
    assert attacker.updates == 300 if tolerance == 0 else 20 <= attacker.updates < most


def test_mlp_head_ignores_the_order_of_the_ends(rng):
    surrogate = Surrogate("gcn", "mlp", 4, torch.Generator().manual_seed(0), widths=(5, 3))
    z = torch.from_numpy(rng.standard_normal((6, 3), dtype=np.float32))
    pairs = rng.integers(6, size=(10, 2))
    torch.testing.assert_close(surrogate.logits(z, pairs), surrogate.logits(z, pairs[:, ::-1].copy()))


@pytest.mark.parametrize("parameters", [{"alpha": -0.1}, {"mu": 0}, {"k": -1}, {"learner_rate": 0}])
def test_parameters_out_of_range_are_refused(parameters):
    (name,) = parameters
    with pytest.raises(UserError, match=f"ppgsl: {name}="):
        registry.get("ppgsl").create(**parameters)


def test_graphs_that_cannot_be_protected_are_refused(random_graph):
    graph = random_graph(20, 30)
    rng = np.random.default_rng(0)
    with pytest.raises(UserError, match="none were named"):
        PPGSL().publish(graph, np.empty((0, 2), dtype=np.int64), rng)
    with pytest.raises(UserError, match="still in the graph"):
        PPGSL().publish(graph, graph.edges[:2], rng)
    empty = Graph.from_pairs(20, np.empty((0, 2), dtype=np.int64))
    assert "no" in PPGSL().why_not(empty)
    with pytest.raises(UserError, match="this graph has none"):
        PPGSL().publish(empty, graph.edges[:2], rng)


def test_full_structure_is_refused_before_memory_runs_out(random_graph):
    large = random_graph(400_000, 10)
    reason = PPGSL(structure="full").why_not(large)
    assert "79,999,800,000 pairs" in reason
    assert "structure=sparse" in reason
    assert PPGSL().why_not(large) is None
    assert PPGSL(structure="full").why_not(random_graph(300, 900)) is None


def test_protection_against_fresh_surrogates():
    """What the defense is for: a surrogate trained on the published graph separates sensitive pairs less well."""
    split = planted(nodes=200)
    published = publish(split, alpha=0.01, learner_steps=150, mu=25, surrogate_updates=40)

    def mean_cosine(graph: Graph, pairs: Pairs) -> float:
        attacker = SurrogateAttacker(
            "gcn", "cos", input_features(graph), np.random.default_rng(9), rate=0.01, tolerance=0
        )
        candidates = GraphLearner(graph, pairs, graph.edges, alpha=0)
        attacker.train(candidates.links("gcn"), 60)
        with torch.no_grad():
            return attacker.logits(candidates.links("gcn").adjacency, pairs).mean().item()

    before, after = (mean_cosine(graph, split.sensitive) for graph in (split.visible, published))
    assert after < before - 0.2
