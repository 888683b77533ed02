"""Randomised response on every node pair: EdgeRand (Wu et al., "LinkTeller", IEEE S&P 2022)."""

import numpy as np
from scipy.special import expit

from ppgsl_bench.defenses import Defense, Field, Guarantee, register
from ppgsl_bench.defenses.output_size import too_many_links
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs, pairs_at, ranks_outside
from ppgsl_bench.randomness import bernoulli_positions


@register("edgerand", version=1, tags=("paper", "dp"))
class EdgeRand(Defense):
    """Flip every node pair, linked or not, with probability 1 / (1 + e^epsilon)."""

    epsilon: float = Field(6.0, ge=0, help="edge-DP budget; smaller is more private and adds more links")

    # Each step down multiplies the added links by e. At 5 the sparsest graphs of the paper are 97 % noise and have
    # 2.7 million links; further down, attacks and utilities would measure nothing but their own running time.
    sweep = tuple({"epsilon": epsilon} for epsilon in (9, 8, 7, 6, 5))

    @property
    def guarantee(self) -> Guarantee:
        """ε-edge-DP: the log-likelihood ratio of each published bit is ±ε."""
        return Guarantee.edge_dp(self.epsilon)

    @property
    def flip_probability(self) -> float:
        """The probability q = 1/(1 + e^ε), half the released code's probability of replacing a bit by a fair coin."""
        return float(expit(-self.epsilon))

    def why_not(self, graph: Graph) -> str | None:
        """Refuse if the expected number of links, (1 - q)m + qK for K unlinked pairs, does not fit."""
        q = self.flip_probability
        return too_many_links((1 - q) * graph.num_edges + q * graph.num_non_edges)

    def publish(self, graph: Graph, sensitive: Pairs, rng: np.random.Generator) -> Graph:  # noqa: ARG002
        """Keep each link with probability 1 - q, add each unlinked pair with probability q, without weights."""
        kept = graph.edges[rng.random(graph.num_edges) >= self.flip_probability]
        positions = bernoulli_positions(self.flip_probability, graph.num_non_edges, rng)
        added = pairs_at(ranks_outside(graph.ranks, positions), graph.num_nodes)
        return graph.with_edges(kept, added)
