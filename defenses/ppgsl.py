"""PPGSL: learn which links to publish against a surrogate attacker.

Wu, Yang, Han, Wang and Wu, "Learning-based Privacy-Preserving Graph Publishing Against Sensitive Link Inference
Attacks", IEEE TIFS 2025. What the paper leaves open, and what was chosen, is in docs/ppgsl.md.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import ClassVar, Literal

import numpy as np
import psutil
import torch
from torch.nn.functional import softplus

from ppgsl_bench.defenses import Defense, Field, Publication, register
from ppgsl_bench.defenses.surrogate import EncoderName, HeadName, SurrogateAttacker, TrainingLinks
from ppgsl_bench.device import current_device
from ppgsl_bench.errors import UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.learned_adjacency import Aggregation, CandidateLinks, LearnedAdjacency
from ppgsl_bench.message_passing import input_features
from ppgsl_bench.pairs import Pairs, num_pairs, pairs_at, ranks_of, ranks_outside, sample_pairs_outside

OnStep = Callable[[int, Callable[[np.random.Generator], Graph]], None]
"""Called after each learner step with its number, from 1, and a function that draws the graph to publish as of then."""

# Peak memory by measurement (tests/perf/speed_ppgsl.py): bytes for each candidate link and for each node.
_BYTES_PER_CANDIDATE = 200
_BYTES_PER_NODE = 8_000


@register("ppgsl", version=1, tags=("paper",))
class PPGSL(Defense):
    """Learn link weights that mislead a surrogate attacker about the sensitive links."""

    alpha: float = Field(0.03, ge=0, help="price of distortion; smaller is more private, larger more useful")
    k: float = Field(1, ge=0, help="unlinked pairs that may become links, as a multiple of the links; 0 only deletes")
    mu: int = Field(50, ge=1, help="learner steps between two retrainings of the surrogate (protocol=sitp)")
    structure: Literal["sparse", "full"] = Field(
        "sparse", help="sparse: links and k·|E| sampled non-links are learned; full: all pairs, for small graphs"
    )
    learner_steps: int = Field(500, ge=0, help="N2: steps on the link weights")
    learner_rate: float = Field(0.5, gt=0, help="η2: Adam's step size for the link weights")
    schedule: Literal["cosine", "constant"] = Field(
        "cosine", help="cosine: η2 falls to 0 over the training; constant: as in the paper"
    )
    surrogate_updates: int = Field(100, ge=1, help="N1: training steps of the surrogate at each retraining")
    surrogate_rate: float = Field(0.01, gt=0, help="η1: Adam's step size for the surrogate")
    tolerance: float = Field(0.0, ge=0, help="end a retraining when ten updates gain less than this share of the loss")
    encoder: EncoderName = Field("gcn", help="the surrogate's encoder: GCN or GraphSAGE, widths 128 and 64")
    head: HeadName = Field("cos", help="the surrogate's head: cosine, inner product or MLP")
    protocol: Literal["sitp", "adv"] = Field(
        "sitp", help="sitp: retrain a fresh surrogate every mu steps; adv: train one surrogate along with the graph"
    )
    adv_updates: int = Field(8, ge=1, help="surrogate updates before each learner step (protocol=adv)")

    uses_sensitive = True
    brief: ClassVar[Mapping[str, object]] = {"learner_steps": 2, "surrogate_updates": 2}
    sweep = tuple({"alpha": alpha} for alpha in (1.0, 0.3, 0.1, 0.05, 0.03, 0.01, 0.0))

    def why_not(self, graph: Graph) -> str | None:
        """A graph needs links, and its candidate links must fit into memory."""
        if graph.num_edges == 0:
            return "ppgsl learns the weights of links; this graph has none"
        count = num_pairs(graph.num_nodes) if self.structure == "full" else round((1 + self.k) * graph.num_edges)
        need, there_is = count * _BYTES_PER_CANDIDATE + graph.num_nodes * _BYTES_PER_NODE, _memory()
        if need > there_is:
            advice = "use structure=sparse" if self.structure == "full" else "use a smaller k"
            return (
                f"ppgsl would learn the weights of {count:,} pairs, which takes about {need / 1e9:.1f} GB "
                f"of {there_is / 1e9:.1f} GB; {advice}"
            )
        return None

    def publish(self, graph: Graph, sensitive: Pairs, rng: np.random.Generator) -> Publication:
        """Learn the weights of the candidate links, then draw the graph to publish."""
        return self.learn(graph, sensitive, rng)

    def learn(
        self, graph: Graph, sensitive: Pairs, rng: np.random.Generator, on_step: OnStep | None = None
    ) -> Publication:
        """As `publish`, calling `on_step` along the way, which changes nothing here.

        The trace has one value a learner step: the two losses before the step, the surrogate's last loss and its
        updates so far, the expected number of links kept and added after the step, and the seconds since the start, on
        the clock on the wall and on the processor.
        """
        self._refuse(graph, sensitive)
        started, started_work = time.perf_counter(), time.process_time()
        candidate_rng, attacker_rng, publish_rng = rng.spawn(3)
        attacker = SurrogateAttacker(
            self.encoder,
            self.head,
            input_features(graph),
            attacker_rng,
            rate=self.surrogate_rate,
            tolerance=self.tolerance,
        )
        k = None if self.structure == "full" else self.k
        pairs = candidate_pairs(graph, sensitive, k, candidate_rng)
        learner = GraphLearner(graph, sensitive, pairs, alpha=self.alpha)
        trace: dict[str, list[float]] = defaultdict(list)
        for step in range(self.learner_steps):
            if self.protocol == "adv":
                attacker.train(learner.links(attacker.aggregation), self.adv_updates)
            elif step % self.mu == 0:
                attacker.initialise()
                attacker.train(learner.links(attacker.aggregation), self.surrogate_updates)
            trace["surrogate_loss"].append(attacker.loss)
            trace["surrogate_updates"].append(attacker.updates)
            for name, value in learner.step(attacker, self._rate(step)).items():
                trace[name].append(value)
            trace["seconds"].append(time.perf_counter() - started)
            trace["processor_seconds"].append(time.process_time() - started_work)
            if on_step is not None:
                on_step(step + 1, learner.draw)
        return Publication(learner.draw(publish_rng), {name: np.array(values) for name, values in trace.items()})

    def _rate(self, step: int) -> float:
        """Step size of learner step 0, 1, …: η2, or η2 (1 + cos(π step / N2)) / 2."""
        if self.schedule == "constant":
            return self.learner_rate
        return self.learner_rate * (1 + math.cos(math.pi * step / self.learner_steps)) / 2

    def _refuse(self, graph: Graph, sensitive: Pairs) -> None:
        reason = self.why_not(graph)
        if reason is None and len(sensitive) == 0:
            reason = "ppgsl protects sensitive links and none were named; name some, or publish with another defense"
        if reason is None and graph.has_edges(sensitive).any():
            reason = "sensitive links are still in the graph; remove them before ppgsl learns what else to change"
        if reason is not None:
            raise UserError(reason)


class GraphLearner:
    """Learns the weights of candidate links by projected gradient descent.

    The paper learns a matrix θ and publishes A' = min(max((θ + θᵀ)/2, 0), 1). Here a pair has one parameter, which is
    the same by symmetry, and θ itself is kept in [0, 1]: after each step it is projected, so that the gradient never
    depends on what clamp's derivative is taken to be at the bounds, where θ starts.

    Args:
        graph: the visible graph; weights above 1 are scaled to at most 1.
        sensitive: the pairs to hide, shape [S, 2].
        pairs: the candidate links, sorted; all others stay unlinked.
        alpha: price of distortion.
    """

    def __init__(self, graph: Graph, sensitive: Pairs, pairs: Pairs, *, alpha: float) -> None:
        device = current_device()
        self.graph = graph
        self.sensitive = sensitive
        self.candidates = CandidateLinks(pairs, graph.num_nodes)
        self.alpha = alpha
        self.scale = 1.0 if graph.weights is None else max(1.0, float(graph.weights.max()))
        original = np.zeros(len(pairs), dtype=np.float32)
        place = np.searchsorted(ranks_of(pairs, graph.num_nodes), graph.ranks)
        original[place] = 1.0 if graph.weights is None else graph.weights / self.scale
        self.original = torch.from_numpy(original).to(device)
        self._linked = (self.original > 0).float()
        self.weights = self.original.clone().requires_grad_()
        self._optimizer = torch.optim.Adam([self.weights], fused=True)

    def links(self, aggregation: Aggregation) -> TrainingLinks:
        """The current graph, for a surrogate to learn from."""
        return TrainingLinks.of(self.candidates, self.weights, aggregation)

    def step(self, attacker: SurrogateAttacker, rate: float) -> dict[str, float]:
        """One step of Adam, then the projection; the losses before it and the expected numbers of links after it.

        L = L_priv + (α / |E_s|) L_util with L_priv the mean over sensitive pairs of CE(δ(z_u, z_v), 0), and
        L_util = ‖A - A'‖²_F, in which each pair stands twice.
        """
        adjacency = LearnedAdjacency(self.candidates, self.weights, attacker.aggregation)
        privacy = softplus(attacker.logits(adjacency, self.sensitive)).mean()
        utility = 2 * (self.weights - self.original).square().sum()
        self._optimizer.param_groups[0]["lr"] = rate
        self._optimizer.zero_grad()
        (privacy + self.alpha / len(self.sensitive) * utility).backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        with torch.no_grad():
            self.weights.clamp_(0, 1)
            kept = (self.weights * self._linked).sum().item()
            added = self.weights.sum().item() - kept
        return {
            "privacy_loss": privacy.item(),
            "utility_loss": utility.item(),
            "links_kept": kept,
            "links_added": added,
        }

    def draw(self, rng: np.random.Generator) -> Graph:
        """The graph to publish: each candidate a link with its weight as probability; weighted input stays weighted."""
        weights = self.weights.detach().cpu().numpy()
        pairs = self.candidates.pairs
        if self.graph.weights is None:
            return self.graph.with_edges(pairs[rng.random(len(pairs)) < weights])
        present = weights > 0
        return self.graph.with_edges(pairs[present], weights=(weights[present] * self.scale).astype(np.float32))


def candidate_pairs(graph: Graph, sensitive: Pairs, k: float | None, rng: np.random.Generator) -> Pairs:
    """The pairs whose weights are learned, sorted: all links and k·|E| non-links (`None`: all), no sensitive pair."""
    n = graph.num_nodes
    hidden = np.sort(ranks_of(sensitive, n))
    if k is None:
        return pairs_at(ranks_outside(hidden, np.arange(num_pairs(n) - len(hidden))), n)
    taken = np.union1d(graph.ranks, hidden)
    extra = sample_pairs_outside(taken, n, min(round(k * graph.num_edges), num_pairs(n) - len(taken)), rng)
    return pairs_at(np.sort(np.concatenate([graph.ranks, ranks_of(extra, n)])), n)


def _memory() -> int:
    """Bytes of memory of the current device."""
    device = current_device()
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return int(psutil.virtual_memory().total)
