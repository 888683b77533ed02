"""From a graph with secrets to a graph that can be published, in Python.

The cells (`# %%`) run one by one in VS Code, PyCharm or Spyder, or all together: python examples/walkthrough.py
"""

# %% A graph with names for nodes, and some links that nobody is to learn of
import networkx as nx

import ppgsl_bench as pb

graph = nx.les_miserables_graph()
sensitive = [edge for i, edge in enumerate(graph.edges) if i % 10 == 0]
print(f"{graph.number_of_nodes()} characters, {graph.number_of_edges()} meetings, {len(sensitive)} of them secret")

# %% Leaving them out is not enough: how well does each attack tell the secret links from pairs that never met?
masked = graph.copy()
masked.remove_edges_from(sensitive)
before = pb.audit(masked, sensitive, original=graph, attack="cn,ra,katz", utility="none")
print(before)

# %% Protect it. Whatever type goes in comes out: here, a networkx graph with the same names.
published, report = pb.protect(
    graph, sensitive, defense="dice[rate=0.5]", attack="cn,ra,katz", utility="structure", return_report=True
)
assert set(published.nodes) == set(graph.nodes)
assert not any(published.has_edge(u, v) for u, v in sensitive)
print(report.summary)

# %% What an attacker reaches now, attack by attack
after = pb.audit(published, sensitive, original=graph, attack="cn,ra,katz", utility="none")
print(after)

# %% Which defense, and which setting? The benchmark's own protocol as a DataFrame, one line a metric.
rows = pb.run(
    dataset="karate", defense="none,random[rate=0.5]", attack="cn,ra", utility="structure", seeds=2, results="results"
)
attacks = rows[(rows["kind"] == "attack") & (rows["metric"] == "auc")]
print(attacks.groupby(["defense_params", "evaluator"])["value"].agg(["mean", "std"]).round(3))

# %% A defense of one's own is a class; `ppgsl-bench check` says whether it keeps the rules
import numpy as np

from ppgsl_bench.contribute.checking import check_plugin
from ppgsl_bench.defenses import Defense, Field, register


@register("walkthrough-thinning", version=1)
class Thinning(Defense):
    """Drop each link with a given probability."""

    rate: float = Field(0.3, ge=0, le=1, help="probability that a link is dropped")
    sweep = tuple({"rate": rate} for rate in (0.1, 0.3, 0.6))

    def publish(self, graph: pb.Graph, sensitive: np.ndarray, rng: np.random.Generator) -> pb.Graph:  # noqa: ARG002
        """Keep each link with probability 1 - rate."""
        keep = rng.random(graph.num_edges) >= self.rate
        weights = None if graph.weights is None else graph.weights[keep]
        return graph.with_edges(graph.edges[keep], weights=weights)


verdicts = check_plugin(Thinning)
print(verdicts)
assert verdicts.conforms
