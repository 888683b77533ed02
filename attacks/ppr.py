"""Personalised PageRank between the two nodes, by local push.

Personalised PageRank π_u is where a walk from u ends that stops with probability `restart` at each step (Page et al.
1999; Jeh and Widom, WWW 2003). Andersen, Chung and Lang ("Local graph partitioning using PageRank vectors", FOCS 2006)
approximate it by pushing probability mass along links until no node holds more than `tolerance` × its degree of it.
A vector costs at most 1 / (restart × tolerance) link visits, however large the graph, and is off at node v by at most
`tolerance` × degree(v), always downwards.
"""

import numpy as np
from numba import njit

from ppgsl_bench.attacks import Attack, Field, Scores, register
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs

# Scores are rounded to this many decimals, below any meaningful tolerance: the order in which masses are added up,
# which follows the numbering of the nodes, must not decide between pairs that are equal.
_DECIMALS = 12


@register("ppr", version=1)
class PersonalisedPageRank(Attack):
    """Personalised PageRank of each node seen from the other, by local push."""

    restart: float = Field(0.15, gt=0, lt=1, help="probability that the walk stops at a step")
    tolerance: float = Field(1e-5, ge=1e-9, lt=1, help="mass a degree left unpushed; smaller is exacter and slower")

    def score(self, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:  # noqa: ARG002
        """π_u(v) + π_v(u) on the published links, whose weights play no part."""
        adjacency = published.adjacency
        source = np.concatenate([pairs[:, 0], pairs[:, 1]])
        target = np.concatenate([pairs[:, 1], pairs[:, 0]])
        order = np.argsort(source, kind="stable")
        mass = _push_from_each(
            adjacency.indptr, adjacency.indices, source[order], target[order], self.restart, self.tolerance
        )
        scores = np.zeros(len(pairs))
        np.add.at(scores, order % len(pairs), mass)
        return np.round(scores, _DECIMALS)


@njit(cache=True)
def _push_from_each(indptr, indices, source, target, restart, tolerance):  # type: ignore[no-untyped-def] # pragma: no cover
    """π_s(t) for the pairs (s, t), equal sources standing together in the list."""
    num_nodes = len(indptr) - 1
    settled, held, share = np.zeros(num_nodes), np.zeros(num_nodes), np.empty(num_nodes)
    is_touched, is_due = np.zeros(num_nodes, np.bool_), np.zeros(num_nodes, np.bool_)
    touched = np.empty(num_nodes, np.int64)
    due, due_next = np.empty(num_nodes, np.int64), np.empty(num_nodes, np.int64)
    result = np.zeros(len(source))
    start = 0
    while start < len(source):
        s = source[start]
        num_touched = 0
        if indptr[s + 1] > indptr[s]:
            held[s] = 1.0
            is_touched[s] = True
            touched[0] = s
            num_touched = 1
            due[0] = s
            num_due = 1
            while num_due > 0:
                num_due, num_touched = _push_round(
                    indptr, indices, restart, tolerance, settled, held, share, is_touched, touched, num_touched,
                    is_due, due, num_due, due_next,
                )  # fmt: skip
                due, due_next = due_next, due
        stop = start
        while stop < len(source) and source[stop] == s:
            result[stop] = settled[target[stop]]
            stop += 1
        for i in range(num_touched):
            x = touched[i]
            settled[x] = 0.0
            held[x] = 0.0
            is_touched[x] = False
        start = stop
    return result


@njit(cache=True)
def _push_round(  # type: ignore[no-untyped-def] # pragma: no cover
    indptr, indices, restart, tolerance, settled, held, share, is_touched, touched, num_touched,
    is_due, due, num_due, due_next,
):  # fmt: skip
    """All nodes that hold too much push what they hold at the start of the round.

    Pushing in rounds makes the result independent of the order of the nodes within a round.
    """
    for i in range(num_due):
        x = due[i]
        settled[x] += restart * held[x]
        share[i] = (1.0 - restart) * held[x] / (indptr[x + 1] - indptr[x])
        held[x] = 0.0
        is_due[x] = False
    num_next = 0
    for i in range(num_due):
        for j in range(indptr[due[i]], indptr[due[i] + 1]):
            y = indices[j]
            held[y] += share[i]
            if not is_touched[y]:
                is_touched[y] = True
                touched[num_touched] = y
                num_touched += 1
            if not is_due[y] and held[y] >= tolerance * (indptr[y + 1] - indptr[y]):
                is_due[y] = True
                due_next[num_next] = y
                num_next += 1
    return num_next, num_touched
