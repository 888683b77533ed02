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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from ppgsl_bench.attacks import Attack, Field, Scores, register
from ppgsl_bench.device import current_device, torch_generator
from ppgsl_bench.dgcnn import DGCNN, FEWEST_POOLED
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs, sample_distinct, sample_pairs_outside
from ppgsl_bench.subgraphs import Subgraphs, enclosing_subgraphs, end_to_end

# The choices of the SEAL paper.
_POOLED_SHARE = 0.6
_VALIDATION_SHARE = 0.1

# Subgraphs that are in memory at once while scoring.
_PAIRS_AT_ONCE = 200
# Memory for subgraphs that are kept from epoch to epoch; 10,000 of them take some 150 MB on PolBlogs, 20 on Cora.
_KEPT_BYTES = 2**28
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

    brief: ClassVar[Mapping[str, object]] = {"epochs": 1}

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
        examples = _Examples.of(
            *self._training_pairs(published, rng), lambda some: self._subgraphs(published, some, subgraph_seed)
        )
        model = self._fitted(examples, generator)
        logits = self._logits(model, (examples.extract(some) for some in _batches(pairs, _PAIRS_AT_ONCE)))
        return logits.cpu().numpy().astype(np.float64)

    def _training_pairs(self, published: Graph, rng: np.random.Generator) -> tuple[Pairs, Tensor]:
        count = min(self.max_train_pairs // 2, published.num_edges, published.num_non_edges)
        links = published.edges[sample_distinct(published.num_edges, count, rng)]
        others = sample_pairs_outside(published.ranks, published.num_nodes, count, rng)
        order = rng.permutation(2 * count)
        linked = torch.from_numpy((order < count).astype(np.float32)).to(current_device())
        return np.concatenate([links, others])[order], linked

    def _fitted(self, examples: "_Examples", generator: torch.Generator) -> DGCNN:
        """The network after the epoch of least validation loss."""
        everything = np.arange(len(examples.pairs))
        validation, training = np.split(everything, [math.ceil(_VALIDATION_SHARE * len(everything))])
        model = DGCNN(*examples.dimensions(training), generator).to(current_device())
        optimizer = torch.optim.Adam(model.parameters(), lr=self.learning_rate, fused=True)
        least, best = math.inf, copy.deepcopy(model.state_dict())
        for _ in range(self.epochs):
            order = torch.randperm(len(training), generator=generator, device=generator.device).cpu().numpy()
            model.train()
            for chosen in _batches(training[order], self.batch_size):
                optimizer.zero_grad()
                logits = model(examples.subgraphs(chosen))
                loss = binary_cross_entropy_with_logits(logits, examples.linked[chosen])
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            logits = self._logits(model, map(examples.subgraphs, _batches(validation, _PAIRS_AT_ONCE)))
            validation_loss = float(binary_cross_entropy_with_logits(logits, examples.linked[validation]))
            if validation_loss < least:
                least, best = validation_loss, copy.deepcopy(model.state_dict())
        model.load_state_dict(best)
        return model

    @torch.no_grad()
    def _logits(self, model: DGCNN, groups: Iterable[Subgraphs]) -> Tensor:
        model.eval()
        logits = [model(group) for group in groups]
        return torch.cat(logits) if logits else torch.empty(0)

    def _subgraphs(self, published: Graph, pairs: Pairs, seed: int) -> Subgraphs:
        return enclosing_subgraphs(
            published, pairs, hops=self.hops, max_nodes_per_hop=self.max_nodes_per_hop, seed=seed
        )


@dataclass(frozen=True)
class _Examples:
    """Pairs to learn from. Their subgraphs are kept from epoch to epoch if there is room.

    Attributes:
        pairs: shape [P, 2].
        linked: 1 where the pair is a published link, shape [P].
        extract: the subgraphs of some pairs.
        sizes, largest_labels: number of nodes, and largest label, of each pair's subgraph.
        kept: the subgraphs of all pairs, or None if they take too much memory.
    """

    pairs: Pairs
    linked: Tensor
    extract: Callable[[Pairs], Subgraphs]
    sizes: NDArray[np.int64]
    largest_labels: NDArray[np.int64]
    kept: Subgraphs | None

    @classmethod
    def of(cls, pairs: Pairs, linked: Tensor, extract: Callable[[Pairs], Subgraphs]) -> "_Examples":
        """Look at each subgraph once."""
        groups, sizes, largest_labels = [], [], []
        room = _KEPT_BYTES
        for some in _batches(pairs, _PAIRS_AT_ONCE):
            group = extract(some)
            sizes.append(group.sizes)
            largest_labels.append(np.maximum.reduceat(group.labels, group.offsets[:-1]))
            room -= group.num_bytes
            if room >= 0:
                groups.append(group)
        kept = end_to_end(groups) if room >= 0 else None
        return cls(pairs, linked, extract, np.concatenate(sizes), np.concatenate(largest_labels), kept)

    def subgraphs(self, chosen: NDArray[np.int64]) -> Subgraphs:
        """Those of the chosen pairs."""
        return self.extract(self.pairs[chosen]) if self.kept is None else self.kept.take(chosen)

    def dimensions(self, training: NDArray[np.int64]) -> tuple[int, int]:
        """Number of labels, and of nodes that pooling keeps, from the training subgraphs alone."""
        # At least 60 % of the subgraphs fit.
        fitting = int(np.quantile(self.sizes[training], _POOLED_SHARE, method="inverted_cdf"))
        return int(self.largest_labels[training].max()) + 1, max(FEWEST_POOLED, fitting)


def _batches(items: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    return (items[start : start + size] for start in range(0, len(items), size))
