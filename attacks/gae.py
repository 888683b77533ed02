"""Graph autoencoder (Kipf and Welling, "Variational Graph Auto-Encoders", 2016), four scorers, and a masked variant.

A two-layer GCN whose node vectors are trained so that inner products tell published links from unlinked pairs, drawn
afresh each epoch. Every published link counts as one positive, whatever its weight; weights count in message passing.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import torch

from ppgsl_bench.attacks import Embedding, Encoder, Field, register
from ppgsl_bench.attacks.scorers import ConcatenationAttack, CosineAttack, HadamardAttack, InnerProductAttack
from ppgsl_bench.device import torch_generator
from ppgsl_bench.graph import Graph
from ppgsl_bench.link_training import View, train_on_links
from ppgsl_bench.message_passing import GCN, SparseMatrix, input_features, normalised_adjacency
from ppgsl_bench.pairs import sample_distinct
from ppgsl_bench.plugin import Plugin


class GAEParameters(Plugin):
    """What the encoder and the attacks on it have in common."""

    hidden: int = Field(32, ge=1, help="width of the first layer")
    dimensions: int = Field(16, ge=1, help="width of the node vectors")
    epochs: int = Field(200, ge=0, help="training steps; the last one's vectors are used")
    learning_rate: float = Field(0.01, gt=0, help="step size of Adam")

    brief: ClassVar[Mapping[str, object]] = {"epochs": 2}


class GAE(GAEParameters, Encoder):
    """Node vectors of a graph autoencoder."""

    name: ClassVar[str] = "gae"
    version: ClassVar[int] = 1

    def embed(self, published: Graph, rng: np.random.Generator) -> Embedding:
        """Train on the published links; without any, the vectors are a random projection of the features."""
        features = input_features(published)
        adjacency = normalised_adjacency(published)
        model = GCN(features.shape[1], [self.hidden, self.dimensions], torch_generator(rng))
        train_on_links(
            model,
            features,
            published,
            rng,
            view=lambda: self._view(published, adjacency, rng),
            epochs=self.epochs,
            learning_rate=self.learning_rate,
        )
        with torch.no_grad():
            vectors: Embedding = model(adjacency, features).cpu().numpy()
        return vectors

    def _view(self, published: Graph, adjacency: SparseMatrix, rng: np.random.Generator) -> View:  # noqa: ARG002
        """All links to be reconstructed, messages along all of them."""
        return published.edges, adjacency


class MaskedGAEParameters(GAEParameters):
    """Parameters of the masked variant; the share is that of Li et al., "What's Behind the Mask", KDD 2023."""

    masked_share: float = Field(0.7, gt=0, lt=1, help="share of the links hidden and reconstructed in each epoch")


class MaskedGAE(MaskedGAEParameters, GAE):
    """Node vectors of a graph autoencoder that reconstructs links it was not shown."""

    name: ClassVar[str] = "gae-masked"
    version: ClassVar[int] = 1

    def _view(self, published: Graph, adjacency: SparseMatrix, rng: np.random.Generator) -> View:  # noqa: ARG002
        """A random part of the links to be reconstructed, messages along the rest."""
        count = max(1, round(self.masked_share * published.num_edges))
        masked = sample_distinct(published.num_edges, count, rng)
        shown = np.ones(published.num_edges, dtype=np.bool_)
        shown[masked] = False
        weights = None if published.weights is None else published.weights[shown]
        rest = Graph(num_nodes=published.num_nodes, edges=published.edges[shown], weights=weights)
        return published.edges[masked], normalised_adjacency(rest)


@register("gae-cos", version=1, tags=("paper",))
class GAECosine(GAEParameters, CosineAttack):
    """Cosine of graph-autoencoder vectors."""

    encoder_class = GAE


@register("gae-svc", version=1, tags=("paper",))
class GAESVC(GAEParameters, ConcatenationAttack):
    """Linear SVM on concatenated graph-autoencoder vectors; learns node popularity only."""

    encoder_class = GAE


@register("gae-ip", version=1)
class GAEInnerProduct(GAEParameters, InnerProductAttack):
    """Inner product of graph-autoencoder vectors, the autoencoder's own decoder."""

    encoder_class = GAE


@register("gae-had", version=1)
class GAEHadamard(GAEParameters, HadamardAttack):
    """Linear SVM on products of graph-autoencoder vectors."""

    encoder_class = GAE


@register("gae-masked", version=1)
class GAEMasked(MaskedGAEParameters, CosineAttack):
    """Cosine of autoencoder vectors, trained on links left out of message passing.

    A hidden link is not among the messages when it is scored; here the training links are not either.
    """

    encoder_class = MaskedGAE
