"""Link prediction with unsupervised GraphSAGE (Hamilton, Ying and Leskovec, NeurIPS 2017).

Two layers of mean aggregation, trained on all published links at once with one unlinked pair a link. Test links are a
random sample of the original links just as the sensitive ones are, so a defense that is blind to which links are
sensitive loses as much here as its attackers do.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from ppgsl_bench.device import torch_generator
from ppgsl_bench.graph import Graph
from ppgsl_bench.link_training import train_on_links
from ppgsl_bench.message_passing import GraphSAGE, input_features, mean_adjacency
from ppgsl_bench.metrics import average_precision, roc_auc
from ppgsl_bench.similarity import row_cosines
from ppgsl_bench.split import Split
from ppgsl_bench.utilities import Field, Utility, register


@register("link-prediction", version=1, tags=("paper",))
class LinkPrediction(Utility):
    """How well GraphSAGE trained on the published graph finds held-out links (AUC, AP)."""

    width: int = Field(64, ge=1, help="width of both layers")
    epochs: int = Field(200, ge=0, help="training steps; the last one's vectors are used")
    learning_rate: float = Field(0.01, gt=0, help="step size of Adam")

    brief: ClassVar[Mapping[str, object]] = {"epochs": 2}

    def evaluate(self, published: Graph, split: Split, rng: np.random.Generator) -> Mapping[str, float]:
        """`auc` and `ap` of cos(z_u, z_v); `floor_auc` is what the cosine of the raw features reaches (0.5 without)."""
        pairs = np.concatenate([split.test_links, split.test_non_links])
        linked = np.arange(len(pairs)) < len(split.test_links)
        scores = row_cosines(self._vectors(published, rng), pairs)
        floor = np.zeros(len(pairs)) if published.x is None else row_cosines(published.x, pairs)
        return {
            "auc": roc_auc(linked, scores),
            "ap": average_precision(linked, scores),
            "floor_auc": roc_auc(linked, floor),
        }

    def _vectors(self, published: Graph, rng: np.random.Generator) -> NDArray[np.float32]:
        features = input_features(published)
        adjacency = mean_adjacency(published)
        model = GraphSAGE(features.shape[1], [self.width, self.width], torch_generator(rng))
        train_on_links(
            model,
            features,
            published,
            rng,
            view=lambda: (published.edges, adjacency),
            epochs=self.epochs,
            learning_rate=self.learning_rate,
        )
        with torch.no_grad():
            vectors: NDArray[np.float32] = model(adjacency, features).cpu().numpy()
        return vectors
