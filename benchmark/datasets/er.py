"""Erdős–Rényi graphs (Gilbert, "Random Graphs", 1959), for measurements of time and memory."""

import numpy as np
from pydantic import ValidationInfo, field_validator

from ppgsl_bench.datasets import Dataset, Field, Sources, register
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import num_pairs, pairs_at, sample_distinct
from ppgsl_bench.seeds import generator


@register("er", version=1)
class ErdosRenyi(Dataset):
    """Random graph G(n, p): all pairs are equally likely to be linked; no features, no labels."""

    n: int = Field(1000, ge=2, help="number of nodes")
    degree: float = Field(10.0, ge=0, help="expected number of links of a node")
    seed: int = Field(0, ge=0, help="which of the random graphs")

    origin = "generated"

    @field_validator("degree")
    @classmethod
    def _reachable(cls, degree: float, info: ValidationInfo) -> float:
        if "n" in info.data and degree > info.data["n"] - 1:
            raise ValueError(f"the degree cannot exceed n - 1 = {info.data['n'] - 1}")
        return degree

    def fingerprint(self, sources: Sources) -> str:  # noqa: ARG002
        """Nothing but the parameters matters."""
        return "generated"

    def load(self, sources: Sources) -> Graph:  # noqa: ARG002
        """Draw the number of links, Binomial(n(n-1)/2, p), then that many distinct pairs: O(links)."""
        rng = generator("dataset", "er", self.n, self.seed)
        pairs = num_pairs(self.n)
        links = int(rng.binomial(pairs, self.degree / (self.n - 1)))
        ranks = np.sort(sample_distinct(pairs, links, rng))
        return Graph(num_nodes=self.n, edges=pairs_at(ranks, self.n), name=self.label)
