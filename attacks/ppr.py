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
        # Unsigned, so that the kernel need not ask whether a node counts from the end of an array.
        neighbours = adjacency.indices.view(np.uint32)
        mass = _push_from_each(adjacency.indptr, neighbours, source[order], target[order], self.restart, self.tolerance)
        scores = np.zeros(len(pairs))
        np.add.at(scores, order % len(pairs), mass)
        return np.round(scores, _DECIMALS)


@njit(cache=True)
def _push_from_each(indptr, indices, source, target, restart, tolerance):  # type: ignore[no-untyped-def] # pragma: no cover
    """π_s(t) for the pairs (s, t), equal sources standing together in the list."""
    num_nodes = len(indptr) - 1
    settled, held, share = np.zeros(num_nodes), np.zeros(num_nodes), np.empty(num_nodes)
    bound = tolerance * np.diff(indptr)
    pushed = np.empty(num_nodes, np.int64)
    # One place more than there are nodes: `_push_round` writes before it knows whether a node is due.
    due, due_next = np.empty(num_nodes + 1, np.int64), np.empty(num_nodes + 1, np.int64)
    result = np.zeros(len(source))
    start = 0
    while start < len(source):
        s = source[start]
        num_pushed = 0
        if indptr[s + 1] > indptr[s]:
            held[s] = 1.0
            due[0] = s
            num_due = 1
            while num_due > 0:
                num_due, num_pushed = _push_round(
                    indptr, indices, restart, bound, settled, held, share, pushed, num_pushed, due, num_due, due_next
                )
                due, due_next = due_next, due
        stop = start
        while stop < len(source) and source[stop] == s:
            result[stop] = settled[target[stop]]
            stop += 1
        for i in range(num_pushed):
            x = pushed[i]
            settled[x] = 0.0
            held[x] = 0.0
            for j in range(indptr[x], indptr[x + 1]):
                held[indices[j]] = 0.0
        start = stop
    return result


@njit(cache=True)
def _push_round(  # type: ignore[no-untyped-def] # pragma: no cover
    indptr, indices, restart, bound, settled, held, share, pushed, num_pushed, due, num_due, due_next
):
    """All nodes that hold too much push what they hold at the start of the round.

    Pushing in rounds makes the result independent of the order of the nodes within a round.
    """
    for i in range(num_due):
        x = due[i]
        if settled[x] == 0.0:
            pushed[num_pushed] = x
            num_pushed += 1
        settled[x] += restart * held[x]
        share[i] = (1.0 - restart) * held[x] / (indptr[x + 1] - indptr[x])
        held[x] = 0.0
    num_next = 0
    for i in range(num_due):
        x, given = due[i], share[i]
        for j in range(indptr[x], indptr[x + 1]):
            y = indices[j]
            before = held[y]
            after = before + given
            held[y] = after
            # At the start of a round nobody holds too much, so that a node is due once it crosses the bound. No
            # processor can guess when: the node is written in any case, and overwritten unless it counts.
            due_next[num_next] = y
            num_next += (before < bound[y]) & (after >= bound[y])
    return num_next, num_pushed
