"""Laplace noise on every node pair, thresholded to a noisy link count: LapGraph (Wu et al., "LinkTeller", S&P 2022)."""

import math

import numpy as np

from ppgsl_bench.defenses import Defense, Field, Guarantee, register
from ppgsl_bench.defenses.budget import PrivacyBudget
from ppgsl_bench.defenses.output_size import too_many_links
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs, num_pairs, pairs_at, ranks_outside, sample_distinct
from ppgsl_bench.randomness import laplace_top, two_sided_geometric

# The noisy count exceeds m + ln(1/this)/ε₁ with less than this probability; the memory estimate is made there.
_COUNT_TAIL = 1e-9


@register("lapgraph", version=1, tags=("paper", "dp"))
class LapGraph(Defense):
    """Add Laplace noise to all node pairs; publish the top ones, as many as a noisy count says."""

    epsilon: float = Field(6.0, gt=0, help="edge-DP budget; smaller is more private and keeps fewer true links")
    count_share: float = Field(0.01, gt=0, lt=1, help="share of the budget that is spent on the number of links")

    # The share of true links kept falls with ln(K/m) - ε for K unlinked pairs: on PolBlogs from 99 % at 12 to 8 % at 2,
    # on Cora from 96 % to 1 %, on DeezerEurope from 90 % to 0.1 %. The number of links stays near m throughout.
    sweep = tuple({"epsilon": epsilon} for epsilon in (10, 8, 7, 6, 5, 2))

    @property
    def guarantee(self) -> Guarantee:
        """ε-edge-DP: count and entries compose sequentially, thresholding is post-processing."""
        return Guarantee.edge_dp(self.epsilon)

    def why_not(self, graph: Graph) -> str | None:
        """Refuse if the noisy count may be more than fits, which takes an ε near 0."""
        above = math.log(1 / _COUNT_TAIL) / (self.count_share * self.epsilon)
        return too_many_links(min(graph.num_edges + above, num_pairs(graph.num_nodes)))

    def publish(self, graph: Graph, sensitive: Pairs, rng: np.random.Generator) -> Graph:  # noqa: ARG002
        """The T pairs of highest noisy score A_ij + Lap(1/ε₂), T = m + discrete Laplace noise, without weights.

        The noisy scores of the K unlinked pairs are K independent Laplace variables of which no more than T can win:
        only those upper order statistics are drawn. Which pairs they belong to is uniform and independent of them.
        """
        budget = PrivacyBudget(self.epsilon)
        count = noisy_count(graph.num_edges, budget.spend(self.count_share, "count"), rng)
        count = min(max(count, 0), num_pairs(graph.num_nodes))
        entry_scale = 1 / budget.spend_rest("entries")

        linked = 1 + rng.laplace(0, entry_scale, size=graph.num_edges)
        unlinked = entry_scale * laplace_top(graph.num_non_edges, min(count, graph.num_non_edges), rng)
        scores = np.concatenate([linked, unlinked])
        winners = np.argpartition(scores, len(scores) - count)[len(scores) - count :] if count else np.arange(0)
        kept = graph.edges[winners[winners < graph.num_edges]]
        positions = sample_distinct(graph.num_non_edges, count - len(kept), rng)
        added = pairs_at(ranks_outside(graph.ranks, positions), graph.num_nodes)
        return graph.with_edges(kept, added)


def noisy_count(count: int, epsilon: float, rng: np.random.Generator) -> int:
    """A count of sensitivity 1 under ε-DP: two-sided geometric noise with ratio e^(-ε).

    The released code adds `int(Laplace noise)`, whose rounding towards zero doubles the probability of no noise at all:
    the count then reveals ε + ln 2.
    """
    return count + int(two_sided_geometric(epsilon, 1, rng)[0])
