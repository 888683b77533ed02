"""PPGSL in the plainest way: PyG layers on an edge index, dense features, autograd through everything.

The oracle for the fast version, and what its speed is measured against: nothing here is written for speed, and nothing
is shared with the fast version.
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cosine_similarity
from torch_geometric.nn import GCNConv

from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs


class PlainSurrogate(nn.Module):
    """Two GCN layers and a cosine; without features the first layer's input is a learned table of node vectors."""

    def __init__(self, num_nodes: int, num_features: int | None, widths: Sequence[int] = (128, 64)) -> None:
        super().__init__()
        self.first = GCNConv(num_features or 1, widths[0])
        self.second = GCNConv(widths[0], widths[1])
        self.table = None
        if num_features is None:
            self.first.lin = nn.Identity()
            self.table = nn.Parameter(torch.randn(num_nodes, widths[0]) * 0.01)

    def start_from(self, first: Tensor, second: Tensor) -> None:
        """Take the given weights, of shapes [features, 128] and [128, 64]."""
        with torch.no_grad():
            (self.first.lin.weight.T if self.table is None else self.table).copy_(first)
            self.second.lin.weight.copy_(second.T)

    def logits(self, x: Tensor | None, edge_index: Tensor, edge_weight: Tensor, pairs: Tensor) -> Tensor:
        h = torch.relu(self.first(self.table if x is None else x, edge_index, edge_weight))
        z = self.second(h, edge_index, edge_weight)
        return cosine_similarity(z[pairs[0]], z[pairs[1]])


class PlainPPGSL:
    """The state of one training; the caller says when to retrain and draws all samples."""

    def __init__(
        self, graph: Graph, sensitive: Pairs, candidates: Pairs, *, alpha: float, rate: float = 0.5, dtype=torch.float32
    ) -> None:
        self.num_nodes = graph.num_nodes
        self.dtype = dtype
        self.x = plain_features(graph, dtype)
        self.edge_index = torch.from_numpy(np.concatenate([candidates, candidates[:, ::-1]]).T.copy())
        self.sensitive = torch.from_numpy(sensitive.T.copy())
        self.candidates = candidates
        self.original = torch.from_numpy(graph.has_edges(candidates)).to(dtype)
        self.weights = self.original.clone().requires_grad_()
        self.alpha = alpha
        self.optimizer = torch.optim.Adam([self.weights], lr=rate)

    def initialise(self, rate: float = 0.01) -> None:
        self.surrogate = PlainSurrogate(self.num_nodes, None if self.x is None else self.x.shape[1]).to(self.dtype)
        self.surrogate_optimizer = torch.optim.Adam(self.surrogate.parameters(), lr=rate)

    def train(self, non_links: Pairs) -> float:
        """One surrogate update with the given non-links."""
        weights = self.weights.detach()
        present = weights > 0
        both = present.repeat(2)
        links = torch.from_numpy(self.candidates.T.copy())[:, present]
        pairs = torch.cat([links, torch.from_numpy(non_links.T.copy())], dim=1)
        logits = self.surrogate.logits(self.x, self.edge_index[:, both], weights.repeat(2)[both], pairs)
        count = links.shape[1]
        loss = binary_cross_entropy_with_logits(logits[:count], weights[present])
        loss = loss + binary_cross_entropy_with_logits(logits[count:], torch.zeros_like(logits[count:]))
        self.surrogate_optimizer.zero_grad()
        loss.backward()
        self.surrogate_optimizer.step()
        return loss.item()

    def step(self) -> tuple[float, float, Tensor]:
        """One learner step: the two losses and the gradient before it."""
        logits = self.surrogate.logits(self.x, self.edge_index, self.weights.repeat(2), self.sensitive)
        privacy = binary_cross_entropy_with_logits(logits, torch.zeros_like(logits))
        utility = (self.weights.repeat(2) - self.original.repeat(2)).square().sum()
        self.optimizer.zero_grad()
        (privacy + self.alpha / self.sensitive.shape[1] * utility).backward()
        gradient = self.weights.grad.clone()
        self.optimizer.step()
        self.weights.data = self.weights.data.clamp(0, 1)
        return privacy.item(), utility.item(), gradient


def plain_features(graph: Graph, dtype: torch.dtype) -> Tensor | None:
    """Dense features with rows of unit absolute sum, if the graph has any."""
    if graph.x is None:
        return None
    x = torch.from_numpy(graph.x.toarray() if sp.issparse(graph.x) else graph.x.copy())
    return (x / x.abs().sum(dim=1, keepdim=True).clamp(min=1e-12)).to(dtype)
