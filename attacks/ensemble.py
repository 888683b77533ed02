"""A combiner of the cheap scores, trained on the published graph's own links.

Fixed predictors can be fooled one by one; an attacker who fits a classifier to several of them adapts to whatever the
published graph still gives away (late fusion with boosted trees, as in Ghasemian et al., "Stacking models for nearly
optimal link prediction in complex networks", PNAS 2020). Everything is learned from the published graph: some links are
hidden from a copy of it and told from unlinked pairs by the scores computed on that copy, which is how the hidden
links look in the published graph itself.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.attacks import Attack, Field, Scores, register
from ppgsl_bench.attacks.katz import LONGEST_WALK, walk_counts
from ppgsl_bench.graph import Graph
from ppgsl_bench.neighbourhoods import common_neighbour_scores, inverse_log_degrees, resource_allocation
from ppgsl_bench.pairs import Pairs, sample_pairs_outside
from ppgsl_bench.similarity import row_cosines

# Beyond this number of training pairs boosted trees on a dozen columns gain nothing more.
_MAX_TRAINING_PAIRS = 200_000
# A leaf of a tree holds at least this many examples (scikit-learn's default).
_FEWEST_EXAMPLES = 20


@register("ensemble", version=1)
class Ensemble(Attack):
    """Boosted trees over the cheap scores, features included, trained on published links."""

    folds: int = Field(5, ge=1, le=20, help="how many times links are hidden and asked for")
    hidden_share: float = Field(0.1, gt=0, lt=1, help="share of published links hidden in each fold")
    trees: int = Field(150, ge=1, help="number of boosted trees")
    leaves: int = Field(15, ge=2, help="leaves of a tree")
    learning_rate: float = Field(0.05, gt=0, le=1, help="shrinkage of each tree")

    def why_not(self, graph: Graph) -> str | None:
        """Needs links to learn from, and unlinked pairs to tell them from."""
        for found, what in ((graph.num_edges, "published links"), (graph.num_non_edges, "unlinked pairs")):
            if found < _FEWEST_EXAMPLES:
                return f"{found} {what}; at least {_FEWEST_EXAMPLES} are needed to learn from"
        return None

    def score(self, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:
        """Log-odds of a link given the pair's scores on the published graph."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        evidence, linked = self._training_set(published, rng)
        trees = HistGradientBoostingClassifier(
            max_iter=self.trees,
            max_leaf_nodes=self.leaves,
            learning_rate=self.learning_rate,
            early_stopping=False,
            random_state=int(rng.integers(2**32)),
        )
        trees.fit(evidence, linked)
        return np.asarray(trees.decision_function(pair_evidence(published, pairs)), dtype=np.float64)

    def _training_set(
        self, published: Graph, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        hidden = max(1, round(self.hidden_share * published.num_edges))
        hidden = min(hidden, published.num_non_edges, _MAX_TRAINING_PAIRS // (2 * self.folds))
        evidence, linked = [], []
        for _ in range(self.folds):
            links = published.edges[rng.choice(published.num_edges, size=hidden, replace=False)]
            others = sample_pairs_outside(published.ranks, published.num_nodes, hidden, rng)
            seen = published.without_edges(links)
            evidence.append(pair_evidence(seen, np.concatenate([links, others])))
            linked.append(np.arange(2 * hidden) < hidden)
        return np.concatenate(evidence), np.concatenate(linked)


def pair_evidence(graph: Graph, pairs: Pairs) -> NDArray[np.float64]:
    """The scores that are combined, one row a pair, each the same for (u, v) and (v, u)."""
    common = partial(common_neighbour_scores, graph, pairs)
    ends = np.sort(graph.degrees[pairs], axis=1).astype(np.float64)
    columns = [
        common(np.ones(graph.num_nodes)),
        common(inverse_log_degrees(graph)),
        resource_allocation(graph, pairs),
        *walk_counts(graph, pairs, LONGEST_WALK).T[2:],
        ends[:, 0],
        ends[:, 1],
        ends[:, 0] * ends[:, 1],
    ]
    if graph.x is not None:
        columns.append(row_cosines(graph.x, pairs))
    return np.stack(columns, axis=1)
