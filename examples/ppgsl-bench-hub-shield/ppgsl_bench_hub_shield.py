"""Hub shield: drop links at popular nodes. An example of a defense in a package of its own; no paper proposes it."""

import numpy as np

from ppgsl_bench.defenses import Defense, Field, register
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs


@register("hub-shield", version=1)
class HubShield(Defense):
    """Drop links, the more likely the more links their two ends have."""

    rate: float = Field(0.2, ge=0, le=1, help="probability of dropping a link between nodes of mean degree")

    sweep = tuple({"rate": rate} for rate in (0.05, 0.1, 0.2, 0.4, 0.8))

    def publish(self, graph: Graph, sensitive: Pairs, rng: np.random.Generator) -> Graph:  # noqa: ARG002
        """Drop (u, v) with probability min(1, rate · √(d_u d_v) / d̄), d̄ being the mean degree."""
        mean_degree = 2 * graph.num_edges / max(graph.num_nodes, 1)
        ends = graph.degrees[graph.edges]
        # A graph without links has a mean degree of 0, and no link to drop.
        popularity = np.sqrt(ends[:, 0] * ends[:, 1]) / max(mean_degree, 1e-9)
        keep = rng.random(graph.num_edges) >= self.rate * popularity
        weights = None if graph.weights is None else graph.weights[keep]
        return graph.with_edges(graph.edges[keep], weights=weights)
