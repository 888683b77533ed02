"""The surrogate attacker of PPGSL: a graph encoder and a prediction head that tell links from unlinked pairs.

(Wu, Yang, Han, Wang and Wu, "Learning-based Privacy-Preserving Graph Publishing Against Sensitive Link Inference
Attacks", IEEE TIFS 2025, section "Surrogate Attack Module".)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from ppgsl_bench.device import torch_generator
from ppgsl_bench.graph import Graph
from ppgsl_bench.learned_adjacency import Aggregation, CandidateLinks, LearnedAdjacency
from ppgsl_bench.link_loss import draw_non_links, inner_products
from ppgsl_bench.message_passing import GCN, Features, GraphSAGE, Matrix, RememberedProducts, glorot, unit_rows
from ppgsl_bench.pairs import Pairs

EncoderName = Literal["gcn", "sage"]
HeadName = Literal["cos", "ip", "mlp"]

# Hidden and output width of the encoder, from the paper.
WIDTHS = (128, 64)
# Losses are compared as means over this many updates: a single one has the noise of its sampled non-links.
WINDOW = 10


class Surrogate(nn.Module):
    """An encoder and a head; the sigmoid of a logit is the probability of a link.

    Args:
        encoder: `gcn` or `sage`.
        head: `cos`, `ip` or `mlp`.
        num_features: width of the input.
        generator: source of the initial weights.
        widths: hidden and output width of the encoder.
    """

    def __init__(
        self,
        encoder: EncoderName,
        head: HeadName,
        num_features: int,
        generator: torch.Generator,
        widths: Sequence[int] = WIDTHS,
    ) -> None:
        super().__init__()
        self.encoder = (GCN if encoder == "gcn" else GraphSAGE)(num_features, widths, generator)
        self.head = head
        if head == "mlp":
            width = widths[-1]
            self.ends = glorot(width, 2 * width, generator)
            self.bias = nn.Parameter(torch.zeros(width, device=generator.device))
            self.out = glorot(width, 1, generator)

    def vectors(self, adjacency: Matrix, features: Features) -> Tensor:
        """Node vectors as the head takes them, shape [N, d]; of unit length for `cos`."""
        z: Tensor = self.encoder(adjacency, features)
        return unit_rows(z) if self.head == "cos" else z

    def logits(self, vectors: Tensor, pairs: Pairs) -> Tensor:
        """One logit a pair: cos(z_u, z_v), z_u · z_v, or an MLP of [z_u ; z_v], mean over both orders of the ends."""
        if self.head != "mlp":
            return inner_products(vectors, pairs)
        # The first layer of the MLP is linear in each end: it is applied to nodes, not to pairs.
        first, second = (vectors @ self.ends).chunk(2, dim=1)
        u, v = torch.from_numpy(np.ascontiguousarray(pairs.T)).to(vectors.device)
        there, back = first[u] + second[v] + self.bias, first[v] + second[u] + self.bias
        return ((torch.relu(there) + torch.relu(back)) @ self.out)[:, 0] / 2


@dataclass(frozen=True)
class TrainingLinks:
    """What a surrogate learns from: the links of a weighted graph, with their weights as targets.

    Attributes:
        graph: the pairs of positive weight, as an unweighted graph; non-links are drawn outside it.
        targets: their weights, shape [E].
        adjacency: message passing along them.
    """

    graph: Graph
    targets: Tensor
    adjacency: LearnedAdjacency

    @classmethod
    def of(cls, candidates: CandidateLinks, weights: Tensor, aggregation: Aggregation) -> "TrainingLinks":
        """The links that candidates of the given weights make."""
        weights = weights.detach()
        present = weights > 0
        graph = Graph(num_nodes=candidates.num_nodes, edges=candidates.pairs[present.cpu().numpy()])
        return cls(graph, weights[present], LearnedAdjacency(candidates, weights, aggregation))

    def loss(self, surrogate: Surrogate, features: Features, non_links: Pairs) -> Tensor:
        """L_attack = mean over links of CE(δ(z_u, z_v), w_uv) + mean over non-links of CE(δ(z_u, z_v), 0).

        With the logit s, CE(σ(s), w) = log(1 + e^s) - w s. An empty set adds nothing.
        """
        z = surrogate.vectors(self.adjacency, features)
        loss = z.new_zeros(())
        if self.graph.num_edges:
            logits = surrogate.logits(z, self.graph.edges)
            loss = loss + (softplus(logits) - self.targets * logits).mean()
        if len(non_links):
            loss = loss + softplus(surrogate.logits(z, non_links)).mean()
        return loss


class SurrogateAttacker:
    """A surrogate through its initialisations and trainings.

    Attributes:
        loss: the last training loss.
        updates: training steps so far.

    Args:
        encoder, head: see `Surrogate`.
        features: the graph's features.
        rng: source of initial weights and of non-links.
        rate: Adam's step size.
        tolerance: training stops when the mean loss of `WINDOW` updates is not below that of the `WINDOW` before by
            more than this share of it; 0 never stops early.
    """

    def __init__(
        self,
        encoder: EncoderName,
        head: HeadName,
        features: Features,
        rng: np.random.Generator,
        *,
        rate: float,
        tolerance: float,
    ) -> None:
        self.aggregation: Aggregation = "gcn" if encoder == "gcn" else "mean"
        self.loss = float("nan")
        self.updates = 0
        self._kind = (encoder, head)
        self._features = features
        self._rng = rng
        self._generator = torch_generator(rng)
        self._rate = rate
        self._tolerance = tolerance
        self.initialise()

    def initialise(self) -> None:
        """Forget all training."""
        self.surrogate = Surrogate(*self._kind, self._features.shape[1], self._generator)
        self._optimizer = torch.optim.Adam(self.surrogate.parameters(), lr=self._rate, fused=True)

    def train(self, links: TrainingLinks, updates: int) -> None:
        """Take up to `updates` steps on L_attack, with fresh non-links in each, then freeze."""
        self.surrogate.requires_grad_(True)
        losses: list[float] = []
        while len(losses) < updates and not self._converged(losses):
            self._optimizer.zero_grad()
            non_links = draw_non_links(links.graph, links.graph.num_edges, self._rng)
            loss = links.loss(self.surrogate, self._features, non_links)
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimizer.step()
            losses.append(loss.item())
        self._optimizer.zero_grad()
        self.surrogate.requires_grad_(False)
        self._frozen_products = RememberedProducts(self._features)
        self.loss = losses[-1]
        self.updates += len(losses)

    def logits(self, adjacency: LearnedAdjacency, pairs: Pairs) -> Tensor:
        """What the trained surrogate makes of the pairs on a graph; differentiable in the graph's weights."""
        return self.surrogate.logits(self.surrogate.vectors(adjacency, self._frozen_products), pairs)

    def _converged(self, losses: list[float]) -> bool:
        if not self._tolerance or len(losses) < 2 * WINDOW or len(losses) % WINDOW:
            return False
        before, now = np.mean(losses[-2 * WINDOW : -WINDOW]), np.mean(losses[-WINDOW:])
        return bool(before - now <= self._tolerance * before)
