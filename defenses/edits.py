"""What defenses that delete some links and add others have in common: the number of edits, and the weights."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs


def edit_count(rate: float, num_edges: int) -> int:
    """⌊rate · num_edges⌋ of the decimal number that a user wrote: 0.29 · 100 is 29, though not in binary floats."""
    return math.floor(Fraction(repr(rate)) * num_edges)


def edited(graph: Graph, keep: NDArray[np.bool_], added: Pairs, rng: np.random.Generator) -> Graph:
    """The graph with the links that `keep` marks and the pairs `added`.

    Kept links keep their weight; an added link gets the weight of a uniformly drawn link of the graph, so that weights
    tell nothing about which links are real.
    """
    weights = None
    if graph.weights is not None:
        weights = np.concatenate([graph.weights[keep], drawn_weights(graph, len(added), rng)])
    return graph.with_edges(graph.edges[keep], added, weights=weights)


def drawn_weights(graph: Graph, count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Weights for new links, each that of a uniformly drawn link of the weighted `graph`."""
    if graph.weights is None or count == 0:
        return np.empty(0, dtype=np.float32)
    return graph.weights[rng.integers(graph.num_edges, size=count)]
