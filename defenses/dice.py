"""DICE, "delete internally, connect externally": three algorithms that share the name.

`paper` is the text of the PPGSL paper; `class` is the original, by node labels (Waniek et al., Nature Human Behaviour
2018; Zügner & Günnemann, ICLR 2019); `ppne` follows the code released with PPNE (Han et al., IEEE TDSC 2023).
"""

from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppgsl_bench.defenses import Defense, Field, Publication, register
from ppgsl_bench.defenses.edits import edit_count, edited
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs, ranks_of, ranks_outside, sample_distinct, sample_pairs_outside


@register("dice", version=1, tags=("paper",))
class Dice(Defense):
    """Delete links at nodes that have sensitive links, add links between nodes that have none."""

    rate: float = Field(0.3, ge=0, le=1, help="number of edits as a share r of the links: ⌊r·m⌋ of m links")
    variant: Literal["paper", "class", "ppne"] = Field(
        "paper",
        help="paper: as the PPGSL paper words it; class: the original DICE, by labels; ppne: as PPNE's code does it",
    )

    uses_sensitive = True
    sweep = tuple({"rate": rate} for rate in (0.1, 0.3, 0.5, 0.7, 0.9))

    def why_not(self, graph: Graph) -> str | None:
        """The original DICE needs labels."""
        if self.variant == "class" and graph.y is None:
            return "variant=class deletes links within classes and adds links across them; this graph has no labels"
        return None

    def publish(self, graph: Graph, sensitive: Pairs, rng: np.random.Generator) -> Publication:
        """Make ⌊r·m⌋ edits, or fewer where the links to delete or the pairs to add run out.

        The trace tells how many links were deleted and added.
        """
        edits = edit_count(self.rate, graph.num_edges)
        if self.variant == "paper":
            deleted, added = _near_and_far(graph, sensitive, edits, rng)
        elif self.variant == "class":
            deleted, added = _within_and_across_classes(graph, edits, rng)
        else:
            deleted, added = _near_and_anywhere(graph, sensitive, edits, rng)
        keep = np.ones(graph.num_edges, dtype=np.bool_)
        keep[deleted] = False
        trace = {"deleted_links": np.array([len(deleted)]), "added_links": np.array([len(added)])}
        return Publication(edited(graph, keep, added, rng), trace)


def _near_and_far(
    graph: Graph, sensitive: Pairs, edits: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], Pairs]:
    """Half the edits (the odd one too) delete links that meet V_s, half add pairs with no end in V_s."""
    touched = _touched_nodes(graph, sensitive)
    near = np.flatnonzero(touched[graph.edges].any(axis=1))
    deleted = near[sample_distinct(len(near), min((edits + 1) // 2, len(near)), rng)]

    far_nodes = np.flatnonzero(~touched)
    new_id = np.cumsum(~touched) - 1
    far_links = new_id[graph.edges[~touched[graph.edges].any(axis=1)]]
    taken = np.sort(ranks_of(far_links, len(far_nodes)))
    available = len(far_nodes) * (len(far_nodes) - 1) // 2 - len(taken)
    added = sample_pairs_outside(taken, len(far_nodes), min(edits // 2, available), rng)
    return deleted, far_nodes[added]


def _within_and_across_classes(graph: Graph, edits: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], Pairs]:
    """Each edit is a fair coin: delete a link within a class, or add a pair across classes.

    Nodes of unknown label take no part.
    """
    if graph.y is None:
        raise ValueError("variant=class needs labels")
    ends = graph.y[graph.edges]
    within = np.flatnonzero((ends[:, 0] == ends[:, 1]) & (ends[:, 0] >= 0))
    deletions = int(rng.binomial(edits, 0.5))
    deleted = within[sample_distinct(len(within), min(deletions, len(within)), rng)]

    # With the nodes sorted by class, the partners of the node at place p in later classes are the places from the end
    # of its class on, so that pairs across classes can be numbered like all pairs are in `ppgsl_bench.pairs`.
    nodes = np.argsort(graph.y, kind="stable")
    nodes = nodes[graph.y[nodes] >= 0]
    labels = graph.y[nodes]
    class_end = np.searchsorted(labels, labels, side="right")
    row_start = np.concatenate([[0], np.cumsum(len(nodes) - class_end)])
    place = np.full(graph.num_nodes, -1, dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    across = np.sort(place[graph.edges[(ends[:, 0] != ends[:, 1]) & (ends >= 0).all(axis=1)]], axis=1)
    taken = np.sort(row_start[across[:, 0]] + across[:, 1] - class_end[across[:, 0]])
    available = int(row_start[-1]) - len(taken)
    numbers = ranks_outside(taken, sample_distinct(available, min(edits - deletions, available), rng))
    first = np.searchsorted(row_start, numbers, side="right") - 1
    second = numbers - row_start[first] + class_end[first]
    return deleted, np.stack([nodes[first], nodes[second]], axis=1)


def _near_and_anywhere(
    graph: Graph, sensitive: Pairs, edits: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], Pairs]:
    """Each edit is a fair coin: add any pair that is neither link nor sensitive, or delete a link that meets V_s.

    A deletion that would leave a node without links is refused and another link drawn. Deletions come after the
    additions here; the released script mixes them, which matters only to links refused early. It also keeps the
    evaluation's negatives from being added, which no defense can know.
    """
    deletions = int(rng.binomial(edits, 0.5))
    taken = np.union1d(graph.ranks, ranks_of(sensitive, graph.num_nodes))
    available = graph.num_non_edges - (len(taken) - graph.num_edges)
    added = sample_pairs_outside(taken, graph.num_nodes, min(edits - deletions, available), rng)

    near = rng.permutation(np.flatnonzero(_touched_nodes(graph, sensitive)[graph.edges].any(axis=1)))
    degrees = graph.degrees + np.bincount(added.ravel(), minlength=graph.num_nodes)
    return near[_deletable(graph.edges[near], degrees, deletions)], added


@njit(cache=True)
def _deletable(links: Pairs, degrees: NDArray[np.int64], wanted: int) -> NDArray[np.bool_]:
    """Mark the first `wanted` links that can go, one after the other, without leaving a node alone.

    Degrees only fall, so that a link once refused stays refused and one pass in random order will do.
    """
    goes = np.zeros(len(links), dtype=np.bool_)
    for row in range(len(links)):
        if wanted == 0:
            break
        u, v = links[row]
        if degrees[u] > 1 and degrees[v] > 1:
            degrees[u] -= 1
            degrees[v] -= 1
            wanted -= 1
            goes[row] = True
    return goes


def _touched_nodes(graph: Graph, sensitive: Pairs) -> NDArray[np.bool_]:
    """The set V_s: which nodes are an end of a sensitive pair."""
    touched = np.zeros(graph.num_nodes, dtype=np.bool_)
    touched[sensitive.ravel()] = True
    return touched
