"""Node classification with a two-layer GCN (Kipf and Welling, ICLR 2017), 30 % of the nodes labelled.

There is no validation set, so the number of epochs is fixed. The floor is the same network on the same features with no
links at all, which is a multilayer perceptron: what it reaches is no merit of the published links.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from torch.nn.functional import cross_entropy

from ppgsl_bench.device import torch_generator
from ppgsl_bench.errors import UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.message_passing import GCN, input_features, normalised_adjacency
from ppgsl_bench.split import Split
from ppgsl_bench.utilities import Field, Utility, register

Labels = NDArray[np.int64]


@register("node-classification", version=1, tags=("paper",))
class NodeClassification(Utility):
    """How well a GCN on the published graph tells node classes (micro and macro F1)."""

    hidden: int = Field(16, ge=1, help="width of the hidden layer")
    dropout: float = Field(0.5, ge=0, lt=1, help="share of each layer's input dropped while training")
    epochs: int = Field(200, ge=1, help="training steps; the last one's predictions are used")
    learning_rate: float = Field(0.01, gt=0, help="step size of Adam")
    weight_decay: float = Field(5e-4, ge=0, help="L2 penalty on the first layer")

    brief: ClassVar[Mapping[str, object]] = {"epochs": 2}

    def why_not(self, graph: Graph) -> str | None:
        """Needs labels of at least two classes."""
        if graph.y is None or len(np.unique(graph.y[graph.y >= 0])) < 2:
            return "the graph has no node labels of two or more classes"
        return None

    def evaluate(self, published: Graph, split: Split, rng: np.random.Generator) -> Mapping[str, float]:
        """F1 over the labelled test nodes; the floors are those of an MLP, without features of the majority class."""
        if published.y is None:
            raise ValueError("node-classification was run on a graph without labels; why_not says so beforehand")
        train, test = (nodes[published.y[nodes] >= 0] for nodes in (split.train_nodes, split.test_nodes))
        if not len(train) or not len(test):
            raise UserError(f"node-classification: {len(train)} training and {len(test)} test nodes have a label")
        truth = published.y[test]
        predicted = self._predictions(published, published.y, train, rng)[test]
        if published.x is None:
            floor = np.full(len(test), np.bincount(published.y[train]).argmax())
        else:
            unlinked = published.with_edges(published.edges[:0])
            floor = self._predictions(unlinked, published.y, train, rng)[test]
        return {
            "micro_f1": micro_f1(truth, predicted),
            "macro_f1": macro_f1(truth, predicted),
            "floor_micro_f1": micro_f1(truth, floor),
            "floor_macro_f1": macro_f1(truth, floor),
        }

    def _predictions(self, graph: Graph, labels: Labels, train: Labels, rng: np.random.Generator) -> Labels:
        """The most likely class of each node, shape [N]."""
        features = input_features(graph)
        adjacency = normalised_adjacency(graph)
        generator = torch_generator(rng)
        widths = [self.hidden, int(labels.max()) + 1]
        model = GCN(features.shape[1], widths, generator, dropout=self.dropout)
        first, others = [model.weights[0], model.biases[0]], [*model.weights[1:], *model.biases[1:]]
        groups: list[dict[str, Any]] = [{"params": first, "weight_decay": self.weight_decay}, {"params": others}]
        optimizer = torch.optim.Adam(groups, lr=self.learning_rate)
        nodes = torch.from_numpy(train).to(generator.device)
        target = torch.from_numpy(labels[train]).to(generator.device)
        model.train()
        for _ in range(self.epochs):
            optimizer.zero_grad()
            loss = cross_entropy(model(adjacency, features)[nodes], target)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        model.eval()
        with torch.no_grad():
            classes: Labels = model(adjacency, features).argmax(dim=1).cpu().numpy()
        return classes


def micro_f1(truth: Labels, predicted: Labels) -> float:
    """Micro-averaged F1, which for one label a node is the accuracy."""
    return float(np.mean(truth == predicted))


def macro_f1(truth: Labels, predicted: Labels) -> float:
    """Mean of the F1 scores of the classes that occur among the true labels."""
    return float(f1_score(truth, predicted, labels=np.unique(truth), average="macro", zero_division=0.0))
