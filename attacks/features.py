"""Similarity of node features alone: the floor that no defense of the links can go below.

A defense that rewrites links publishes the features as they are. Where linked nodes resemble each other, this attack
finds hidden links without looking at a single published one (compare attack 0 of He et al., "Stealing Links from
Graph Neural Networks", USENIX Security 2021).
"""

import numpy as np
import scipy.sparse as sp

from ppgsl_bench.attacks import Attack, Scores, register
from ppgsl_bench.graph import Features, Graph
from ppgsl_bench.pairs import Pairs

# Rows are gathered for this many feature values at a time: 32 MB of float64 an end.
_VALUES_AT_ONCE = 1 << 22


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
        return feature_cosine(published.x, pairs)


def feature_cosine(x: Features, pairs: Pairs) -> Scores:
    """Cosine of the feature rows (dense or CSR, shape [N, F]) of each pair; 0 where a row is all zero."""
    if sp.issparse(x):
        x = sp.csr_array(x, dtype=np.float64)
        norm = np.sqrt(x.power(2).sum(axis=1))
    else:
        norm = np.sqrt(np.einsum("nf,nf->n", x, x, dtype=np.float64))
    scale = np.divide(1.0, norm, out=np.zeros(len(norm)), where=norm > 0)
    scores = np.empty(len(pairs))
    step = max(1, _VALUES_AT_ONCE // x.shape[1])
    for start in range(0, len(pairs), step):
        u, v = pairs[start : start + step].T
        first, second = x[u], x[v]
        dot = (
            first.multiply(second).sum(axis=1) if sp.issparse(x) else np.einsum("pf,pf->p", first, second, dtype=float)
        )
        # The factors of the ends are multiplied first, so that (u, v) and (v, u) agree to the last bit.
        scores[start : start + step] = dot * (scale[u] * scale[v])
    return scores
