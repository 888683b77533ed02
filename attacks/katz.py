"""Katz's index, truncated: short walks between the two nodes, longer ones discounted.

Katz, "A new status index derived from sociometric analysis", Psychometrika 1953; as a link predictor in Liben-Nowell
and Kleinberg, "The link prediction problem for social networks", JASIST 2007. The full index needs the inverse of an
N×N matrix; walks of up to four steps are counted here exactly, pair by pair, with memory for a few numbers a node.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppgsl_bench.attacks import Attack, Field, Scores, register
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs

# A walk of four steps is two walks of two steps that meet; a fifth step would cost a neighbourhood more.
LONGEST_WALK = 4


@register("katz", version=1)
class Katz(Attack):
    """Walks of up to four steps between the two nodes, discounted by length (Katz index)."""

    beta: float = Field(0.005, gt=0, lt=1, help="discount of each step; 0.005 as in Liben-Nowell and Kleinberg")
    max_length: int = Field(LONGEST_WALK, ge=1, le=LONGEST_WALK, help="longest walk that counts")

    def score(self, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:  # noqa: ARG002
        """Σ over lengths l = 1 … max_length of beta^l (A^l)_uv, A being the 0/1 adjacency; weights play no part."""
        counts = walk_counts(published, pairs, self.max_length)
        scores = np.zeros(len(pairs))
        # Horner's rule, column by column: equal counts give equal bits, which a BLAS product does not promise.
        for column in counts.T[::-1]:
            scores = self.beta * (scores + column)
        return scores


def walk_counts(graph: Graph, pairs: Pairs, max_length: int) -> NDArray[np.float64]:
    """Number of walks of 1, 2, … max_length (at most 4) steps between the ends of each pair, shape [P, max_length].

    Counts are whole numbers, exact up to 2^53, so that they do not depend on how the nodes are numbered.
    """
    adjacency = graph.adjacency
    two_steps = adjacency.astype(bool).astype(np.int64) @ graph.degrees
    # Steps from a source are walked once for all its pairs, from a target once a pair: the target is the cheaper end.
    swap = two_steps[pairs[:, 0]] < two_steps[pairs[:, 1]]
    source = np.where(swap, pairs[:, 1], pairs[:, 0])
    target = np.where(swap, pairs[:, 0], pairs[:, 1])
    counts = np.zeros((len(pairs), LONGEST_WALK))
    order = np.argsort(source, kind="stable")
    _count_walks(adjacency.indptr, adjacency.indices, source, target, order, max_length, counts)
    return counts[:, :max_length]


@njit(cache=True)
def _count_walks(indptr, indices, source, target, order, max_length, counts):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill counts[p, l-1] = (A^l)_st for the pairs (s, t) in the given order, which puts equal sources together.

    With one = A e_s and two = A² e_s as dense vectors: (A)_st = one[t], (A²)_st = two[t], (A³)_st = Σ two[z] over the
    neighbours z of t, and (A⁴)_st = Σ two[y] over the neighbours y of those.
    """
    num_nodes = len(indptr) - 1
    one = np.zeros(num_nodes)
    two = np.zeros(num_nodes)
    current = -1
    for p in order:
        s, t = source[p], target[p]
        if s != current:
            if current >= 0:
                _walk_two_steps(indptr, indices, current, one, two, False)
            _walk_two_steps(indptr, indices, s, one, two, True)
            current = s
        counts[p, 0] = one[t]
        counts[p, 1] = two[t]
        if max_length < 3:
            continue
        three, four = 0.0, 0.0
        for i in range(indptr[t], indptr[t + 1]):
            z = indices[i]
            three += two[z]
            if max_length >= 4:
                for j in range(indptr[z], indptr[z + 1]):
                    four += two[indices[j]]
        counts[p, 2] = three
        counts[p, 3] = four


@njit(cache=True)
def _walk_two_steps(indptr, indices, source, one, two, add):  # type: ignore[no-untyped-def] # pragma: no cover
    """Enter the walks from `source` into the two vectors, or wipe them out again."""
    for i in range(indptr[source], indptr[source + 1]):
        z = indices[i]
        one[z] = 1.0 if add else 0.0
        for j in range(indptr[z], indptr[z + 1]):
            if add:
                two[indices[j]] += 1.0
            else:
                two[indices[j]] = 0.0
