"""No defense: the reference that every other defense is compared with."""

import numpy as np

from ppgsl_bench.defenses import Defense, register
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs


@register("none", version=1, tags=("reference",))
class NoDefense(Defense):
    """Publish the visible graph as it is: full utility, no protection beyond the masking."""

    def publish(self, graph: Graph, sensitive: Pairs, rng: np.random.Generator) -> Graph:  # noqa: ARG002
        """The visible graph itself."""
        return graph
