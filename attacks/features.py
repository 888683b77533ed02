"""Similarity of node features alone: the floor that no defense of the links can go below.

A defense that rewrites links publishes the features as they are. Where linked nodes resemble each other, this attack
finds hidden links without looking at a single published one (compare attack 0 of He et al., "Stealing Links from
Graph Neural Networks", USENIX Security 2021).
"""

import numpy as np

from ppgsl_bench.attacks import Attack, Scores, register
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs
from ppgsl_bench.similarity import row_cosines


@register("feature-cos", version=1)
class FeatureCosine(Attack):
    """Cosine of the two nodes' features; looks at no link at all."""

    def why_not(self, graph: Graph) -> str | None:
        """Needs features."""
        return "the graph has no features" if graph.x is None else None

    def score(self, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:  # noqa: ARG002
        """cos(x_u, x_v), and 0 where a node has no non-zero feature."""
        if published.x is None:
            raise ValueError("feature-cos was run on a graph without features; why_not says so beforehand")
        return row_cosines(published.x, pairs)
