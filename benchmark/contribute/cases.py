"""Small graphs on which plugins are checked, each with hidden links and as many unlinked pairs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs, pairs_at, ranks_of, ranks_outside
from ppgsl_bench.seeds import generator

COMMUNITIES = 3
NODES = 48
WORDS = 12
HIDDEN = 16
# One byte for each of its pairs would be 400 MB: no dense matrix goes unnoticed.
LONG_PATH_NODES = 20_000


@dataclass(frozen=True)
class Case:
    """A graph as a defense or an attack is given it.

    Attributes:
        name: for people.
        graph: the visible graph.
        hidden: links that are not in it any more.
        others: pairs that never were links, as many.
    """

    name: str
    graph: Graph
    hidden: Pairs
    others: Pairs

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        return generator("check", "order", self.name).permutation(len(self.hidden) + len(self.others))

    @property
    def pairs(self) -> Pairs:
        """Hidden links and others, shuffled: what an attack is asked about."""
        return np.concatenate([self.hidden, self.others])[self._order]

    @property
    def answers(self) -> NDArray[np.bool_]:
        """Which of `pairs` are hidden links."""
        return self._order < len(self.hidden)


@cache
def standard() -> Case:
    """Three communities with a dense core each; links inside the cores are hidden.

    Neighbourhoods, degrees and features all tell a hidden link from a pair of outsiders in different communities: any
    attack has something to find.
    """
    return _planted("standard", "links")


@cache
def rewired() -> Case:
    """As many nodes as `standard`, other links."""
    return _planted("rewired", "other links")


def without_features() -> Case:
    """No node features."""
    return _changed("without features", x=None)


def with_dense_features() -> Case:
    """Features as a dense array."""
    x: Any = standard().graph.x
    return _changed("dense features", x=x.toarray())


def without_labels() -> Case:
    """No node labels."""
    return _changed("without labels", y=None)


def with_unknown_labels() -> Case:
    """Every third label is unknown."""
    labels = np.array(standard().graph.y)
    labels[::3] = -1
    return _changed("unknown labels", y=labels)


def weighted() -> Case:
    """Links with weights between a half and two."""
    weights = generator("check", "weights").uniform(0.5, 2.0, standard().graph.num_edges)
    return _changed("weighted", weights=weights.astype(np.float32))


def with_isolated_nodes() -> Case:
    """A dozen nodes without links, some of which had hidden ones."""
    plain = standard()
    extra = np.arange(NODES, NODES + 12)
    x = sp.csr_array(sp.vstack([plain.graph.x, sp.csr_array((len(extra), WORDS), dtype=np.float32)]))
    graph = Graph(
        num_nodes=NODES + len(extra),
        edges=plain.graph.edges,
        x=x,
        y=np.concatenate([np.asarray(plain.graph.y), np.zeros(len(extra), dtype=np.int64)]),
    )
    hidden = np.concatenate([plain.hidden, np.stack([np.arange(6), extra[:6]], axis=1)])
    others = np.concatenate([plain.others, np.stack([np.arange(6), extra[6:]], axis=1)])
    return Case("isolated nodes", graph, hidden, others)


def several_components() -> Case:
    """The communities without the links between them."""
    plain = standard()
    within = plain.graph.edges[:, 0] % COMMUNITIES == plain.graph.edges[:, 1] % COMMUNITIES
    return replace(plain, name="several components", graph=plain.graph.with_edges(plain.graph.edges[within]))


def one_link() -> Case:
    """Six nodes, one link."""
    return _bare("one link", 6, [(0, 1)], [(2, 3)])


def no_links() -> Case:
    """Six nodes, no link at all."""
    return _bare("no links", 6, [], [(0, 1)])


def star() -> Case:
    """One node linked to all the others."""
    return _bare("star", 30, [(0, v) for v in range(1, 30)], [(1, 2), (3, 4), (5, 6)])


def nearly_complete() -> Case:
    """All pairs are links except the hidden ones and as many others."""
    n, left_out = 14, [(0, 1), (2, 3), (4, 5), (6, 7)]
    links = [(u, v) for u in range(n) for v in range(u + 1, n) if (u, v) not in left_out]
    return _bare("nearly complete", n, links, left_out[:2], left_out[2:])


def ring() -> Case:
    """All nodes alike: a ring in which each node knows the next four."""
    n = 24
    links = [(u, (u + step) % n) for u in range(n) for step in (1, 2)]
    return _bare("ring", n, links, [(u, u + 3) for u in range(0, 18, 3)])


@cache
def long_path() -> Case:
    """A path of 20,000 nodes: little to store, unless somebody stores all pairs."""
    n = LONG_PATH_NODES
    nodes = np.arange(n - 1)
    hidden = np.stack([nodes[:2000:10], nodes[:2000:10] + 2], axis=1)
    others = np.stack([nodes[:2000:10], nodes[:2000:10] + n // 2], axis=1)
    return Case("long path", Graph(num_nodes=n, edges=np.stack([nodes, nodes + 1], axis=1)), hidden, others)


def _planted(name: str, stream: str) -> Case:
    rng = generator("check", stream)
    u, v = np.triu_indices(NODES, 1)
    pairs = np.stack([u, v], axis=1)
    community = np.arange(NODES) % COMMUNITIES
    core = (np.arange(NODES) // COMMUNITIES) % 2 == 0
    together = community[u] == community[v]
    in_core = core[u].astype(np.int64) + core[v]
    chance = np.where(together, np.array([0.12, 0.4, 0.9])[in_core], np.array([0.01, 0.02, 0.05])[in_core])
    linked = rng.random(len(pairs)) < chance
    hidden = rng.permutation(pairs[linked & together & (in_core == 2)])[:HIDDEN]
    others = rng.permutation(pairs[~linked & ~together & (in_core == 0)])[:HIDDEN]
    words = (
        rng.random((NODES, WORDS)) < np.where(np.arange(WORDS) % COMMUNITIES == community[:, None], 0.8, 0.1)
    ) * 1.0
    graph = Graph.from_pairs(
        NODES, pairs[linked], x=sp.csr_array(words.astype(np.float32)), y=community, name=name
    ).without_edges(hidden)
    return Case(name, graph, hidden[np.argsort(ranks_of(hidden, NODES))], others)


def _changed(name: str, **changes: object) -> Case:
    plain = standard()
    change: Callable[..., Graph] = replace
    return replace(plain, name=name, graph=change(plain.graph, name=name, **changes))


def _bare(
    name: str,
    n: int,
    links: list[tuple[int, int]],
    hidden: list[tuple[int, int]],
    others: list[tuple[int, int]] | None = None,
) -> Case:
    """A graph without features and labels; other pairs are the first ones that are neither links nor hidden."""
    graph = Graph.from_pairs(n, np.array(links, dtype=np.int64).reshape(-1, 2), name=name)
    secret = np.array(hidden, dtype=np.int64)
    if others is None:
        taken = np.sort(np.concatenate([graph.ranks, ranks_of(secret, n)]))
        free = pairs_at(ranks_outside(taken, np.arange(len(secret), dtype=np.int64)), n)
    else:
        free = np.array(others, dtype=np.int64)
    return Case(name, graph, secret, free)
