"""Random rewiring, the plain baseline of Yu et al. as the PPGSL paper uses it.

"Target Defense Against Link-Prediction-Based Attacks via Evolutionary Perturbations", IEEE TKDE 2021 (online 2019).
"""

import numpy as np

from ppgsl_bench.defenses import Defense, Field, register
from ppgsl_bench.defenses.edits import edit_count, edited
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs, sample_distinct, sample_pairs_outside


@register("random", version=1, tags=("paper",))
class RandomRewiring(Defense):
    """Replace a share of the links by as many uniformly drawn unlinked pairs."""

    rate: float = Field(0.3, ge=0, le=1, help="share r of the links that is replaced: ⌊r·m⌋ of m links")

    sweep = tuple({"rate": rate} for rate in (0.1, 0.2, 0.3, 0.5, 0.7, 0.9))

    def publish(self, graph: Graph, sensitive: Pairs, rng: np.random.Generator) -> Graph:  # noqa: ARG002
        """Remove ⌊r·m⌋ links, add as many pairs that are no links of `graph`; the number of links stays m.

        A graph that is nearly complete has fewer unlinked pairs than that; both numbers are then cut to it.
        """
        edits = min(edit_count(self.rate, graph.num_edges), graph.num_non_edges)
        keep = np.ones(graph.num_edges, dtype=np.bool_)
        keep[sample_distinct(graph.num_edges, edits, rng)] = False
        added = sample_pairs_outside(graph.ranks, graph.num_nodes, edits, rng)
        return edited(graph, keep, added, rng)
