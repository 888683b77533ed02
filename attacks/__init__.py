"""Attacks: what a reader of the published graph infers about hidden links. One file an attack or family."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs
from ppgsl_bench.plugin import Field, Plugin
from ppgsl_bench.registry import Registry

__all__ = ["Attack", "EmbeddingAttack", "Encoder", "Field", "Scores", "register", "registry"]

Scores = NDArray[np.float64]
Embedding = NDArray[np.float32]


class Attack(Plugin):
    """Scores unlabelled node pairs. The signature is the threat model: there is nothing else to look at."""

    knowledge: ClassVar[str] = "published graph"
    """What the attacker knows; anything beyond the published graph is shown on the board."""

    @abstractmethod
    def score(self, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:
        """One finite number a pair; higher means more likely a link, and the order of the two ends does not matter.

        Args:
            published: links, weights and features as published; no labels.
            pairs: shape [P, 2], shuffled; hidden links and unlinked pairs alike.
            rng: the only source of randomness.
        """


class Encoder(Plugin):
    """Turns a published graph into one vector a node."""

    @abstractmethod
    def embed(self, published: Graph, rng: np.random.Generator) -> Embedding:
        """Node vectors, float32 of shape [N, d]."""


class EmbeddingAttack(Attack):
    """An encoder plus a scorer; attacks whose encoders are equal share one embedding.

    A subclass also inherits the encoder's parameter class, so that `gae-cos[epochs=100]` reads naturally.
    """

    encoder_class: ClassVar[type[Encoder]]

    @property
    def encoder(self) -> Encoder:
        """The encoder with this attack's parameters."""
        return self.encoder_class(**{name: getattr(self, name) for name in self.encoder_class.model_fields})

    @abstractmethod
    def score_embedding(self, embedding: Embedding, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:
        """Score the pairs from node vectors; see `Attack.score`."""

    def score(self, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:
        """Embed, then score, on independent streams (the harness draws the embedding's from elsewhere)."""
        embed_rng, score_rng = rng.spawn(2)
        embedding = self.encoder.embed(published, embed_rng)
        return self.score_embedding(embedding, published, pairs, score_rng)


registry: Registry[Attack] = Registry("attack", __name__)
register = registry.register
