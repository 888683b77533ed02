"""The embedded default: a generated social network on which every kind of attack has something to find.

Communities and heavy-tailed degrees come from a degree-corrected block model (Karrer and Newman, 2011), triangles from
closing random wedges (friends of friends become friends; Holme and Kim, 2002). Each node uses some words of a
vocabulary, partly its community's, which gives sparse features; labels follow the communities, with some noise.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ppgsl_bench.datasets import Dataset, Field, Sources, register
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs, pairs_at, ranks_of
from ppgsl_bench.seeds import generator

COMMUNITIES = 12
# Labels are coarser than communities: two communities share one.
COMMUNITIES_PER_LABEL = 2
MEAN_DEGREE = 10.0
# Share of the links that closes a wedge.
CLOSED_SHARE = 0.5
# Share of the other links whose second end may lie in any community.
MIXING = 0.15
# Exponent of the degree distribution, as in many social networks, and the largest propensity (mean about 1).
DEGREE_EXPONENT = 3.0
LARGEST_PROPENSITY = 12.0
WORDS = 200
WORDS_PER_NODE = 12
# Share of a node's words that its community favours, and how many words that is.
TOPICAL_SHARE = 0.5
TOPICAL_WORDS = 20
# Share of the nodes whose label is drawn at random.
LABEL_NOISE = 0.1


@register("synthetic", version=1)
class Synthetic(Dataset):
    """Generated social network: communities, hubs, triangles; 200 sparse features, 6 labels."""

    n: int = Field(1000, ge=100, help="number of nodes")
    seed: int = Field(0, ge=0, help="which of the random networks")

    origin = "generated"

    def fingerprint(self, sources: Sources) -> str:  # noqa: ARG002
        """Nothing but the parameters matters."""
        return "generated"

    def load(self, sources: Sources) -> Graph:  # noqa: ARG002
        """Draw communities, links, features and labels, each from a stream of its own."""

        def rng(part: str) -> np.random.Generator:
            return generator("dataset", "synthetic", part, self.n, self.seed)

        community = _communities(self.n, rng("communities"))
        return Graph.from_pairs(
            self.n,
            _links(community, rng("links")),
            x=_features(community, rng("features")),
            y=_labels(community, rng("labels")),
            name=self.label,
        )


def _communities(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A community for each node; their sizes differ by up to a factor of three."""
    sizes = np.linspace(1.0, 3.0, COMMUNITIES)
    return rng.choice(COMMUNITIES, size=n, p=sizes / sizes.sum())


def _links(community: NDArray[np.int64], rng: np.random.Generator) -> Pairs:
    n = len(community)
    wanted = round(n * MEAN_DEGREE / 2)
    propensity = np.minimum((1.0 - rng.random(n)) ** (-1.0 / (DEGREE_EXPONENT - 1.0)), LARGEST_PROPENSITY)
    ranks = np.empty(0, dtype=np.int64)
    # Repeated pairs merge, so each round draws what is missing still.
    while len(ranks) < round((1 - CLOSED_SHARE) * wanted):
        pairs = _block_model_pairs(community, propensity, round((1 - CLOSED_SHARE) * wanted) - len(ranks), rng)
        ranks = _joined(ranks, pairs, n)
    while len(ranks) < wanted:
        ranks = _joined(ranks, _wedge_ends(pairs_at(ranks, n), n, (wanted - len(ranks) + 1) // 2, rng), n)
    return pairs_at(ranks, n)


def _joined(ranks: NDArray[np.int64], pairs: Pairs, n: int) -> NDArray[np.int64]:
    return np.union1d(ranks, ranks_of(pairs[pairs[:, 0] != pairs[:, 1]], n))


def _block_model_pairs(
    community: NDArray[np.int64], propensity: NDArray[np.float64], count: int, rng: np.random.Generator
) -> Pairs:
    """Both ends in proportion to propensity; the second in the first one's community, unless the link mixes."""
    by_community = np.argsort(community, kind="stable")
    cumulative = np.cumsum(propensity[by_community])
    bounds = np.searchsorted(community[by_community], np.arange(COMMUNITIES + 1))
    edges = np.concatenate([[0.0], cumulative])[bounds]

    def drawn(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.int64]:
        position = np.searchsorted(cumulative, low + (high - low) * rng.random(count), side="right")
        return by_community[np.minimum(position, len(by_community) - 1)]

    first = drawn(np.zeros(count), np.full(count, cumulative[-1]))
    mixes = rng.random(count) < MIXING
    low = np.where(mixes, 0.0, edges[community[first]])
    high = np.where(mixes, cumulative[-1], edges[community[first] + 1])
    return np.stack([first, drawn(low, high)], axis=1)


def _wedge_ends(edges: Pairs, n: int, count: int, rng: np.random.Generator) -> Pairs:
    """Two neighbours of a node, which is drawn in proportion to its degree (they may be the same or linked)."""
    both = np.concatenate([edges, edges[:, ::-1]])
    both = both[np.argsort(both[:, 0], kind="stable")]
    start = np.searchsorted(both[:, 0], np.arange(n + 1))
    centre, one = both[rng.integers(len(both), size=count)].T
    other = both[rng.integers(start[centre], start[centre + 1]), 1]
    return np.stack([one, other], axis=1)


def _features(community: NDArray[np.int64], rng: np.random.Generator) -> sp.csr_array:
    """0/1 words: some from the community's favourites, the others from a Zipf distribution common to all."""
    n = len(community)
    favourites = np.stack([rng.permutation(WORDS)[:TOPICAL_WORDS] for _ in range(COMMUNITIES)])
    topical = favourites[community[:, None], rng.integers(TOPICAL_WORDS, size=(n, WORDS_PER_NODE))]
    zipf = 1.0 / np.arange(1, WORDS + 1)
    general = rng.choice(WORDS, size=(n, WORDS_PER_NODE), p=zipf / zipf.sum())
    words = np.where(rng.random((n, WORDS_PER_NODE)) < TOPICAL_SHARE, topical, general)
    x = sp.csr_array(
        (np.ones(words.size, np.float32), (np.repeat(np.arange(n), WORDS_PER_NODE), words.ravel())), shape=(n, WORDS)
    )
    x.sum_duplicates()
    x.data[:] = 1.0
    return x


def _labels(community: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    noisy = rng.random(len(community)) < LABEL_NOISE
    at_random = rng.integers(COMMUNITIES // COMMUNITIES_PER_LABEL, size=len(community))
    return np.where(noisy, at_random, community // COMMUNITIES_PER_LABEL)
