"""node2vec (Grover and Leskovec, "node2vec: Scalable Feature Learning for Networks", KDD 2016) with three scorers.

Settings are the defaults of the authors' code; with p = q = 1, which PPGSL leaves unsaid, the walks are DeepWalk's. The
walks see links and weights only, so a pair with an isolated end gets the median score of the other pairs.
"""

from typing import ClassVar

import numpy as np

from ppgsl_bench.attacks import Embedding, Encoder, Field, register
from ppgsl_bench.attacks.scorers import ConcatenationAttack, CosineAttack, HadamardAttack
from ppgsl_bench.graph import Graph
from ppgsl_bench.plugin import Plugin
from ppgsl_bench.walks import random_walks, shuffled_starts, skip_gram


class Node2VecParameters(Plugin):
    """What the encoder and the attacks on it have in common."""

    dimensions: int = Field(128, ge=1, help="width of the node vectors")
    walk_length: int = Field(80, ge=2, help="nodes in a walk")
    walks_per_node: int = Field(10, ge=1, help="walks from each node")
    window: int = Field(10, ge=1, help="most steps between two nodes that count as context of one another")
    epochs: int = Field(1, ge=1, help="passes over the walks")
    p: float = Field(1.0, gt=0, help="return parameter: larger values go back less often")
    q: float = Field(1.0, gt=0, help="in-out parameter: larger values stay closer to the node before")


class Node2Vec(Node2VecParameters, Encoder):
    """Skip-gram vectors of random walks."""

    name: ClassVar[str] = "node2vec"
    version: ClassVar[int] = 2

    def embed(self, published: Graph, rng: np.random.Generator) -> Embedding:
        """Walk, then train; isolated nodes are at zero."""
        starts = shuffled_starts(published.num_nodes, self.walks_per_node, rng)
        walks = random_walks(published, starts, self.walk_length, rng, p=self.p, q=self.q)
        return skip_gram(
            walks,
            published.num_nodes,
            dimensions=self.dimensions,
            window=self.window,
            epochs=self.epochs,
            seed=int(rng.integers(2**32)),
        ).input


@register("n2v-cos", version=2, tags=("paper",))
class Node2VecCosine(Node2VecParameters, CosineAttack):
    """Cosine of node2vec vectors."""

    encoder_class = Node2Vec
    sees_features = False


@register("n2v-svc", version=2, tags=("paper",))
class Node2VecSVC(Node2VecParameters, ConcatenationAttack):
    """Linear SVM on concatenated node2vec vectors; learns node popularity only."""

    encoder_class = Node2Vec
    sees_features = False


@register("n2v-had", version=2)
class Node2VecHadamard(Node2VecParameters, HadamardAttack):
    """Linear SVM on products of node2vec vectors."""

    encoder_class = Node2Vec
    sees_features = False
