"""Is the pair itself published? The attack that local predictors and SEAL are blind to.

Defenses that add links (random perturbation, differential privacy, random walks) may publish a hidden link again, for
instance because it was noise to them. Predictors that take the pair's own link out of the picture cannot notice; this
one looks at nothing else first.
"""

import numpy as np

from ppgsl_bench.attacks import Attack, Scores, register
from ppgsl_bench.graph import Graph
from ppgsl_bench.neighbourhoods import resource_allocation
from ppgsl_bench.pairs import Pairs


@register("edge-presence", version=1)
class EdgePresence(Attack):
    """Published pairs on top; ties broken by resource allocation."""

    def score(self, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:  # noqa: ARG002
        """1[(u, v) is published] + RA / (1 + RA): the second term lies in [0, 1) and keeps the order of RA."""
        ra = resource_allocation(published, pairs)
        return published.has_edges(pairs) + ra / (1.0 + ra)
