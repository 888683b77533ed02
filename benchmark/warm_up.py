"""An untimed first call on a tiny graph.

Compiled kernels have to be loaded, or on a fresh machine compiled, and some libraries are imported on first use. That
is a cost of the machine, not of the method, so it is paid before the clock starts and the baseline of memory is read.
A plugin that trains does so for a step or two here: its `brief` says how.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs
from ppgsl_bench.seeds import generator
from ppgsl_bench.split import Split, make_split

_COMMUNITIES = 3
_COMMUNITY_SIZE = 8
_FEATURES = 4


class TinyCase:
    """A graph of two dozen nodes of the same make as a given one: weights, dense or sparse features, labels."""

    def __init__(self, like: Graph) -> None:
        self.graph = _tiny_graph(like)
        self.rng = generator("warm-up")

    @cached_property
    def split(self) -> Split:
        """A division of the tiny graph."""
        return make_split(self.graph, 0)

    @property
    def pairs(self) -> Pairs:
        """Some pairs to be scored."""
        return self.graph.edges[::7]

    def warm(self, call: Callable[[], object]) -> None:
        """Make the call. What goes wrong here goes wrong again, on the record, in the call that counts."""
        with suppress(Exception):
            call()


def _tiny_graph(like: Graph) -> Graph:
    n = _COMMUNITIES * _COMMUNITY_SIZE
    rng = generator("warm-up", "graph")
    inside = [(u, v) for u in range(n) for v in range(u + 1, n) if u // _COMMUNITY_SIZE == v // _COMMUNITY_SIZE]
    between = [(_COMMUNITY_SIZE * c - 1, _COMMUNITY_SIZE * c) for c in range(1, _COMMUNITIES)]
    edges = np.array([*inside, *between])
    x = None if like.x is None else rng.random((n, _FEATURES)).astype(np.float32)
    return Graph.from_pairs(
        n,
        edges,
        weights=None if like.weights is None else rng.uniform(0.5, 1, len(edges)),
        x=sp.csr_array(x) if sp.issparse(like.x) else x,
        y=None if like.y is None else np.arange(n) // _COMMUNITY_SIZE,
    )
