"""From node vectors to scores of node pairs: similarities, and classifiers trained on the published links.

PPGSL's attacks score a pair by the cosine of its two vectors ("sim") or by a LinearSVC on their concatenation ("ML"). A
linear function of a concatenation is w·z_u + w'·z_v + b, additive in the two ends: it can learn how popular a
node is, but not whether two nodes fit together. The Hadamard product (Grover and Leskovec, "node2vec", KDD 2016) can.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from ppgsl_bench.attacks import Embedding, EmbeddingAttack, Field, Scores
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs, sample_distinct, sample_pairs_outside
from ppgsl_bench.similarity import row_cosines

PairFeatures = Callable[[Embedding, Pairs], NDArray[np.float64]]

# Features are computed for this many pairs at a time: 128 MB for concatenated vectors of width 128.
_PAIRS_AT_ONCE = 1 << 16
# Newton steps of liblinear: an order of magnitude more than the embeddings at hand take.
_MAX_ITERATIONS = 1000


class VectorAttack(EmbeddingAttack):
    """Scores pairs by node vectors.

    An encoder that sees links alone (`sees_features = False`) knows nothing of an isolated node. A pair with such an
    end gets the median score of the other pairs, which neither accuses nor clears it.
    """

    sees_features: ClassVar[bool] = True

    def score_embedding(self, embedding: Embedding, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:
        """The scorer's scores, with the median where the vectors know nothing."""
        scores = self.score_vectors(embedding, published, pairs, rng)
        return scores if self.sees_features else median_at_isolated(scores, published, pairs)

    @abstractmethod
    def score_vectors(self, embedding: Embedding, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:
        """One score a pair."""


class CosineAttack(VectorAttack):
    """Scores a pair by the cosine of its two vectors."""

    def score_vectors(
        self,
        embedding: Embedding,
        published: Graph,  # noqa: ARG002
        pairs: Pairs,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Scores:
        """cos(z_u, z_v), and 0 if either vector is zero."""
        return row_cosines(embedding, pairs)


class InnerProductAttack(VectorAttack):
    """Scores a pair by the inner product of its two vectors."""

    def score_vectors(
        self,
        embedding: Embedding,
        published: Graph,  # noqa: ARG002
        pairs: Pairs,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Scores:
        """z_u · z_v."""
        return inner_product(embedding, pairs)


class SupportVectorAttack(VectorAttack):
    """Scores a pair by a linear SVM on features made of its two vectors, trained on published links."""

    max_links: int = Field(50_000, ge=1, help="train on this many published links at the most")

    def score_vectors(self, embedding: Embedding, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:
        """F of the pair's features, mean over both orders of the ends."""
        features = self.pair_features()
        return support_vector_scores(features, embedding, published, pairs, rng, max_links=self.max_links)

    @abstractmethod
    def pair_features(self) -> PairFeatures:
        """What makes features of two vectors."""


class ConcatenationAttack(SupportVectorAttack):
    """A linear SVM on the concatenation of the two vectors."""

    def pair_features(self) -> PairFeatures:
        """[z_u ; z_v]."""
        return concatenated


class HadamardAttack(SupportVectorAttack):
    """A linear SVM on the products of the two vectors' entries."""

    def pair_features(self) -> PairFeatures:
        """z_u ∘ z_v."""
        return hadamard


def inner_product(embedding: Embedding, pairs: Pairs) -> Scores:
    """z_u · z_v."""
    products: Scores = np.einsum("pd,pd->p", embedding[pairs[:, 0]], embedding[pairs[:, 1]], dtype=np.float64)
    return products


def concatenated(embedding: Embedding, pairs: Pairs) -> NDArray[np.float64]:
    """[z_u ; z_v], shape [P, 2d]."""
    return embedding[pairs].reshape(len(pairs), -1).astype(np.float64)


def hadamard(embedding: Embedding, pairs: Pairs) -> NDArray[np.float64]:
    """z_u ∘ z_v, shape [P, d]."""
    return embedding[pairs[:, 0]].astype(np.float64) * embedding[pairs[:, 1]]


def support_vector_scores(
    features: PairFeatures,
    embedding: Embedding,
    published: Graph,
    pairs: Pairs,
    rng: np.random.Generator,
    *,
    max_links: int,
) -> Scores:
    """What a linear SVM trained to tell published links from unlinked pairs decides, mean over both orders of the ends.

    Zero for all pairs if the published graph has no links, or nothing but links: there is nothing to learn from.

    Args:
        features: `concatenated` or `hadamard`.
        embedding: node vectors, shape [N, d].
        published: the only source of links and of unlinked pairs. A hidden link may be among the latter; an attacker
            cannot know.
        pairs: what to score, shape [P, 2].
        rng: chooses the training pairs and the order of their ends.
        max_links: train on this many links at the most, and on as many unlinked pairs.
    """
    count = min(published.num_edges, published.num_non_edges, max_links)
    if count == 0:
        return np.zeros(len(pairs))
    links = published.edges[sample_distinct(published.num_edges, count, rng)]
    others = sample_pairs_outside(published.ranks, published.num_nodes, count, rng)
    # Written as (smaller id, larger id) the order of the ends would tell the classifier about node ids.
    training = rng.permuted(np.concatenate([links, others]), axis=1)
    # The primal problem has one solution and no random numbers in it; without a seed it would draw one from NumPy's
    # global generator all the same.
    model = make_pipeline(StandardScaler(), LinearSVC(dual=False, max_iter=_MAX_ITERATIONS, random_state=0))
    model.fit(features(embedding, training), np.repeat([1, 0], count))
    scores = np.empty(len(pairs))
    for start in range(0, len(pairs), _PAIRS_AT_ONCE):
        some = pairs[start : start + _PAIRS_AT_ONCE]
        one_way, other_way = (model.decision_function(features(embedding, ends)) for ends in (some, some[:, ::-1]))
        scores[start : start + len(some)] = (one_way + other_way) / 2
    return scores


def median_at_isolated(scores: Scores, published: Graph, pairs: Pairs) -> Scores:
    """Give pairs with an isolated end the median score of the other pairs (0 if there are no others).

    An encoder that sees links alone knows nothing of such a node; the median neither accuses nor clears it.
    """
    unknown = (published.degrees[pairs] == 0).any(axis=1)
    if not unknown.any():
        return scores
    middle = float(np.median(scores[~unknown])) if not unknown.all() else 0.0
    return np.where(unknown, middle, scores)
