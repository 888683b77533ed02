"""Preferential attachment: the control that knows nothing but how popular the two nodes are.

Barabási and Albert, "Emergence of scaling in random networks", Science 1999. Whatever this attack reaches, an attack
must exceed to have found more than degrees; a linear classifier on concatenated embeddings cannot.
"""

import numpy as np

from ppgsl_bench.attacks import Attack, Scores, register
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs


@register("degree", version=1)
class DegreeProduct(Attack):
    """Product of the two degrees (preferential attachment)."""

    def score(self, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:  # noqa: ARG002
        """d_u · d_v, exact in float64 for degrees up to 94 million, so that equal products tie."""
        ends = published.degrees[pairs].astype(np.float64)
        return ends[:, 0] * ends[:, 1]
