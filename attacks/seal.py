"""SEAL: a graph network that reads the subgraph around a pair.

Zhang and Chen, "Link Prediction Based on Graph Neural Networks", NeurIPS 2018; the network is DGCNN (Zhang, Cui,
Neumann and Chen, "An End-to-End Deep Learning Architecture for Graph Classification", AAAI 2018). Node attributes are
not used, as in PPGSL's experiments: the only input is each node's double-radius label.

Training pairs are published links and as many pairs that are not published; the attacker knows no better. The pair's
own link is taken out of every subgraph, in training and in scoring.

The authors train for 50 epochs at a learning rate of 1e-4. Ten epochs at 1e-3, the default, come within 0.006 of the
validation loss of 30 to 50 such epochs on Cora, PolBlogs and DeezerEurope, in a fraction of the time.
"""

import copy
import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from ppgsl_bench.attacks import Attack, Field, Scores, register
from ppgsl_bench.device import current_device, torch_generator
from ppgsl_bench.dgcnn import DGCNN, FEWEST_POOLED
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs, sample_distinct, sample_pairs_outside
from ppgsl_bench.subgraphs import Subgraphs, enclosing_subgraphs

# The choices of the SEAL paper.
_POOLED_SHARE = 0.6
_VALIDATION_SHARE = 0.1

# Subgraphs that are in memory at once while scoring.
_PAIRS_AT_ONCE = 200
# With fewer links, or unlinked pairs, nothing is left to validate on.
_FEWEST_EXAMPLES = 20


@register("seal", version=2, tags=("paper",))
class Seal(Attack):
    """Graph network on the two-hop subgraph around the pair, without attributes (SEAL)."""

    hops: int = Field(2, ge=1, le=3, help="radius of the subgraph")
    max_nodes_per_hop: int = Field(100, ge=1, help="new nodes kept at each hop, a random choice beyond")
    max_train_pairs: int = Field(10_000, ge=40, help="training pairs at most, links and non-links together")
    epochs: int = Field(10, ge=1, help="passes over the training pairs; the one of least validation loss counts")
    batch_size: int = Field(50, ge=1, help="training pairs a step")
    learning_rate: float = Field(1e-3, gt=0, help="step size of Adam")

    def why_not(self, graph: Graph) -> str | None:
        """Needs links to learn from, and unlinked pairs to tell them from."""
        for found, what in ((graph.num_edges, "published links"), (graph.num_non_edges, "unlinked pairs")):
            if found < _FEWEST_EXAMPLES:
                return f"{found} {what}; at least {_FEWEST_EXAMPLES} are needed to learn from"
        return None

    def score(self, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:
        """Log-odds of a link given the subgraph around the pair."""
        generator = torch_generator(rng)
        subgraph_seed = int(rng.integers(2**63))
        train_pairs, linked = self._training_pairs(published, rng)
        validated = math.ceil(_VALIDATION_SHARE * len(train_pairs))
        model = self._fitted(
            published,
            (train_pairs[validated:], linked[validated:]),
            (train_pairs[:validated], linked[:validated]),
            subgraph_seed,
            generator,
        )
        return self._logits(model, published, pairs, subgraph_seed).cpu().numpy().astype(np.float64)

    def _training_pairs(self, published: Graph, rng: np.random.Generator) -> tuple[Pairs, Tensor]:
        count = min(self.max_train_pairs // 2, published.num_edges, published.num_non_edges)
        links = published.edges[sample_distinct(published.num_edges, count, rng)]
        others = sample_pairs_outside(published.ranks, published.num_nodes, count, rng)
        order = rng.permutation(2 * count)
        linked = torch.from_numpy((order < count).astype(np.float32)).to(current_device())
        return np.concatenate([links, others])[order], linked

    def _fitted(
        self,
        published: Graph,
        training: tuple[Pairs, Tensor],
        validation: tuple[Pairs, Tensor],
        subgraph_seed: int,
        generator: torch.Generator,
    ) -> DGCNN:
        """The network after the epoch of least validation loss."""
        pairs, linked = training
        num_labels, pooled = self._dimensions(published, pairs, subgraph_seed)
        model = DGCNN(num_labels, pooled, generator).to(current_device())
        optimizer = torch.optim.Adam(model.parameters(), lr=self.learning_rate, fused=True)
        least, best = math.inf, copy.deepcopy(model.state_dict())
        for _ in range(self.epochs):
            order = torch.randperm(len(pairs), generator=generator, device=generator.device)
            model.train()
            for chosen in torch.split(order, self.batch_size):
                optimizer.zero_grad()
                logits = model(self._subgraphs(published, pairs[chosen.cpu().numpy()], subgraph_seed))
                loss = binary_cross_entropy_with_logits(logits, linked[chosen])
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            logits = self._logits(model, published, validation[0], subgraph_seed)
            validation_loss = float(binary_cross_entropy_with_logits(logits, validation[1]))
            if validation_loss < least:
                least, best = validation_loss, copy.deepcopy(model.state_dict())
        model.load_state_dict(best)
        return model

    def _dimensions(self, published: Graph, pairs: Pairs, subgraph_seed: int) -> tuple[int, int]:
        """Number of labels, and of nodes that pooling keeps, from the training subgraphs alone."""
        sizes, largest = [], 1
        for part in self._in_batches(published, pairs, subgraph_seed):
            sizes.append(part.sizes)
            largest = max(largest, int(part.labels.max()))
        # At least 60 % of the subgraphs fit.
        fitting = int(np.quantile(np.concatenate(sizes), _POOLED_SHARE, method="inverted_cdf"))
        return largest + 1, max(FEWEST_POOLED, fitting)

    @torch.no_grad()
    def _logits(self, model: DGCNN, published: Graph, pairs: Pairs, subgraph_seed: int) -> Tensor:
        model.eval()
        parts = [model(part) for part in self._in_batches(published, pairs, subgraph_seed)]
        return torch.cat(parts) if parts else torch.empty(0)

    def _in_batches(self, published: Graph, pairs: Pairs, subgraph_seed: int) -> Iterator[Subgraphs]:
        for start in range(0, len(pairs), _PAIRS_AT_ONCE):
            yield self._subgraphs(published, pairs[start : start + _PAIRS_AT_ONCE], subgraph_seed)

    def _subgraphs(self, published: Graph, pairs: Pairs, seed: int) -> Subgraphs:
        return enclosing_subgraphs(
            published, pairs, hops=self.hops, max_nodes_per_hop=self.max_nodes_per_hop, seed=seed
        )
