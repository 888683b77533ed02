"""Common neighbours and two weightings of them: the classic local link predictors.

CN counts the common neighbours of two nodes (Newman, "Clustering and preferential attachment in growing networks",
Phys. Rev. E 2001), AA weighs each by 1 / ln(degree) (Adamic and Adar, "Friends and neighbors on the Web", Social
Networks 2003), RA by 1 / degree (Zhou, Lü and Zhang, "Predicting missing links via local information", Eur. Phys. J. B
2009).

All three look at which links are published, not at their weights: a weight below 1 would turn 1 / ln(degree) negative.
The link (u, v) itself plays no part in the score of (u, v), as neither end is a neighbour of itself.
"""

import numpy as np

from ppgsl_bench.attacks import Attack, Scores, register
from ppgsl_bench.graph import Graph
from ppgsl_bench.neighbourhoods import common_neighbour_scores, inverse_log_degrees, resource_allocation
from ppgsl_bench.pairs import Pairs


@register("cn", version=1, tags=("paper",))
class CommonNeighbours(Attack):
    """Number of common neighbours."""

    def score(self, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:  # noqa: ARG002
        """CN(u, v) = |N(u) ∩ N(v)|."""
        return common_neighbour_scores(published, pairs, np.ones(published.num_nodes))


@register("aa", version=1, tags=("paper",))
class AdamicAdar(Attack):
    """Common neighbours weighted by 1 / ln(degree) (Adamic–Adar)."""

    def score(self, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:  # noqa: ARG002
        """AA(u, v) = Σ over common neighbours z of 1 / ln(d_z)."""
        return common_neighbour_scores(published, pairs, inverse_log_degrees(published))


@register("ra", version=1, tags=("paper",))
class ResourceAllocation(Attack):
    """Common neighbours weighted by 1 / degree (resource allocation)."""

    def score(self, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:  # noqa: ARG002
        """RA(u, v) = Σ over common neighbours z of 1 / d_z."""
        return resource_allocation(published, pairs)
