"""A synthetic graph from noisy communities: PrivGraph (Yuan et al., USENIX Security 2023)."""

import math

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from ppgsl_bench.chung_lu import chung_lu_pairs
from ppgsl_bench.defenses import Defense, Field, Guarantee, register
from ppgsl_bench.defenses.budget import PrivacyBudget
from ppgsl_bench.defenses.norm_sub import noisy_cells, noisy_vector
from ppgsl_bench.graph import Graph
from ppgsl_bench.louvain import Communities, louvain
from ppgsl_bench.pairs import Pairs, num_pairs, pairs_at, ranks_of

_THIRD = 1 / 3
# The matrix that Louvain runs on and the next, coarser one take this many bytes a link (measured).
_BYTES_PER_GROUP_LINK = 150
_MAX_GROUP_LINKS = 50_000_000


@register("privgraph", version=2, tags=("paper", "dp"))
class PrivGraph(Defense):
    """Draw a new graph from noisy communities, degrees within them and link counts between them."""

    epsilon: float = Field(3.5, ge=0.01, help="edge-DP budget, a third for each of the three steps")
    group_size: int = Field(20, ge=1, help="nodes in each random group that communities are first made of")
    resolution: float = Field(1.0, gt=0, help="Louvain's resolution; larger means more communities")
    as_released: bool = Field(
        False, help="start all links between communities in the last one, as the released code does by mistake"
    )

    sweep = tuple({"epsilon": epsilon} for epsilon in (20, 10, 5, 3.5, 1))

    @property
    def guarantee(self) -> Guarantee:
        """ε-edge-DP: three steps in sequence; the queries within a step look at disjoint links."""
        return Guarantee.edge_dp(self.epsilon)

    def why_not(self, graph: Graph) -> str | None:
        """Refuse if the graph of noisy group counts, which has about as many links as the graph, does not fit."""
        pairs = num_pairs(math.ceil(graph.num_nodes / self.group_size))
        noise = 3 * math.sqrt(2 * pairs) / (self.epsilon * _THIRD)
        expected = min(pairs, graph.num_edges + noise)
        if expected <= _MAX_GROUP_LINKS:
            return None
        return (
            f"Louvain would run on about {expected:,.0f} links between groups, which take some "
            f"{expected * _BYTES_PER_GROUP_LINK / 2**30:,.0f} GiB of memory; the limit is {_MAX_GROUP_LINKS:,}"
        )

    def publish(self, graph: Graph, sensitive: Pairs, rng: np.random.Generator) -> Graph:  # noqa: ARG002
        """Find communities under DP, count links within and between them under DP, draw a graph with such counts."""
        budget = PrivacyBudget(self.epsilon)
        communities = self._initial_communities(graph, budget.spend(_THIRD, "communities"), rng)
        communities = _adjusted(graph, communities, budget.spend(_THIRD, "adjustment"), rng)
        epsilon = budget.spend_rest("statistics")
        # A link is either within a community or between two: both queries may spend the whole of this third.
        degrees = _noisy_degrees(graph, communities, epsilon, rng)
        between, counts = _noisy_link_counts(graph, communities, epsilon, rng)
        within_pairs = chung_lu_pairs(degrees, communities, rng)
        between_pairs = self._pairs_between(communities, between, counts, rng)
        return graph.with_edges(within_pairs, between_pairs)

    def _initial_communities(self, graph: Graph, epsilon: float, rng: np.random.Generator) -> Communities:
        """Louvain on the noisy link counts among random groups of nodes.

        A link changes one count by 1, Lap(1/ε), or one group's own entry by 2, Lap(2/ε): it is stored doubled.
        """
        num_groups = math.ceil(graph.num_nodes / self.group_size)
        groups = random_groups(graph.num_nodes, self.group_size, rng)
        ends = groups[graph.edges]
        inside = ends[:, 0] == ends[:, 1]
        own = 2 * np.bincount(ends[inside, 0], minlength=num_groups)
        cells, counts = np.unique(ranks_of(ends[~inside], num_groups), return_counts=True)
        cells, counts = noisy_cells(cells, counts, num_pairs(num_groups), 1 / epsilon, rng)
        own = noisy_vector(own, 2 / epsilon, rng)

        # Both ends of a link count it; a group's own entry, a link to itself, is counted by both of its ends as well.
        first, second = pairs_at(cells, num_groups).T
        every = np.arange(num_groups)
        rows, columns = np.concatenate([first, second, every]), np.concatenate([second, first, every])
        weights = np.concatenate([counts, counts, 2 * own])
        group_graph = sp.csr_array((weights, (rows, columns)), shape=(num_groups, num_groups))
        group_graph.eliminate_zeros()
        return louvain(group_graph, rng, self.resolution)[groups]

    def _pairs_between(
        self, communities: Communities, between: Pairs, counts: NDArray[np.int64], rng: np.random.Generator
    ) -> Pairs:
        """For each two communities as many random pairs as counted, with replacement; repeated pairs collapse."""
        if self.as_released and len(between):
            # The stale variable holds the last community. Pairs that end there, too, are overwritten later on.
            last = communities.max()
            counts = np.where(between[:, 1] == last, 0, counts)
            between = np.stack([np.full(len(between), last), between[:, 1]], axis=1)
        members = np.argsort(communities, kind="stable")
        sizes = np.bincount(communities)
        starts = np.cumsum(sizes) - sizes
        ends = np.repeat(between, counts, axis=0)
        drawn = members[starts[ends] + rng.integers(sizes[ends])] if len(ends) else ends
        return pairs_at(np.unique(ranks_of(drawn, len(communities))), len(communities))


def random_groups(num_nodes: int, group_size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The group of each node; groups are drawn without a look at the links, all full but the last."""
    return rng.permutation(num_nodes) // group_size


def _adjusted(graph: Graph, communities: Communities, epsilon: float, rng: np.random.Generator) -> Communities:
    """Let every node once, in random order, choose a community by the exponential mechanism.

    The score of a community is the number of neighbours in it, of sensitivity 1. A link is seen by its two ends, so
    each choice may spend ε/2 and weighs a community by exp(ε/2 · score/2).
    """
    order = rng.permutation(graph.num_nodes)
    indptr, indices = graph.adjacency.indptr, graph.adjacency.indices
    _adjust(indptr, indices, communities, order, epsilon / 4, rng)
    return np.unique(communities, return_inverse=True)[1]


@njit(cache=True)
def _adjust(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    communities: Communities,
    order: NDArray[np.int64],
    exponent: float,
    rng: np.random.Generator,
) -> None:
    """Update `communities` in place; a community left by its last node is not offered to the nodes that follow."""
    num_communities = communities.max() + 1 if len(communities) else 0
    sizes = np.zeros(num_communities, dtype=np.int64)
    for community in communities:
        sizes[community] += 1
    live = np.flatnonzero(sizes)
    place = np.zeros(num_communities, dtype=np.int64)
    place[live] = np.arange(len(live))
    num_live = len(live)
    neighbours = np.zeros(num_communities, dtype=np.int64)
    met = np.empty(num_communities, dtype=np.int64)
    for node in order:
        num_met = 0
        for neighbour in indices[indptr[node] : indptr[node + 1]]:
            community = communities[neighbour]
            if neighbours[community] == 0:
                met[num_met] = community
                num_met += 1
            neighbours[community] += 1
        chosen = _choice(met[:num_met], neighbours, live[:num_live], exponent, rng)
        neighbours[met[:num_met]] = 0

        own = communities[node]
        communities[node] = chosen
        sizes[own] -= 1
        sizes[chosen] += 1
        if sizes[own] == 0:
            num_live -= 1
            live[place[own]] = live[num_live]
            place[live[num_live]] = place[own]


@njit(cache=True)
def _choice(
    met: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    live: NDArray[np.int64],
    exponent: float,
    rng: np.random.Generator,
) -> int:
    """One of the `live` communities, with probability proportional to exp(exponent · neighbours), in O(len(met)).

    The communities that are not `met` have no neighbours and weigh the same: their joint weight is drawn first, and one
    among them by rejection, which takes two tries on average if there are many and few communities in all otherwise.
    """
    most = 0
    for community in met:
        most = max(most, neighbours[community])
    # Weights are taken relative to the largest, so that no exponential overflows.
    total = (len(live) - len(met)) * math.exp(-exponent * most)
    for community in met:
        total += math.exp(exponent * (neighbours[community] - most))
    draw = rng.random() * total
    chosen = -1
    for community in met:
        chosen = community
        draw -= math.exp(exponent * (neighbours[community] - most))
        if draw < 0:
            return int(chosen)
    while len(met) < len(live):
        chosen = live[int(rng.random() * len(live))]
        if neighbours[chosen] == 0:
            break
    return int(chosen)


def _noisy_degrees(
    graph: Graph, communities: Communities, epsilon: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Degrees within the communities; a link changes two of them by 1: Lap(2/ε)."""
    within = graph.edges[communities[graph.edges[:, 0]] == communities[graph.edges[:, 1]]]
    degrees = np.bincount(within.ravel(), minlength=graph.num_nodes)
    for members in _members(communities):
        noisy = noisy_vector(degrees[members], 2 / epsilon, rng)
        degrees[members] = np.minimum(noisy, len(members) - 1)
    return degrees


def _noisy_link_counts(
    graph: Graph, communities: Communities, epsilon: float, rng: np.random.Generator
) -> tuple[Pairs, NDArray[np.int64]]:
    """Two communities each, and the noisy number of links between them; a link changes one number by 1: Lap(1/ε)."""
    num_communities = int(communities.max()) + 1 if len(communities) else 0
    ends = communities[graph.edges]
    cells, counts = np.unique(ranks_of(ends[ends[:, 0] != ends[:, 1]], num_communities), return_counts=True)
    cells, counts = noisy_cells(cells, counts, num_pairs(num_communities), 1 / epsilon, rng)
    return pairs_at(cells, num_communities), counts


def _members(communities: Communities) -> list[NDArray[np.int64]]:
    """The nodes of each community."""
    order = np.argsort(communities, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(communities[order])) + 1)
