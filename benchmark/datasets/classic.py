"""Two small networks that come with networkx: fit for tests and first steps."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.datasets import Dataset, Sources, register
from ppgsl_bench.graph import Graph


class Classic(Dataset):
    """Base of the two networks."""

    licence = "3-clause BSD, as part of networkx"

    def fingerprint(self, sources: Sources) -> str:  # noqa: ARG002
        """The graphs have not changed since they were published."""
        return "networkx"


@register("karate", version=1)
class Karate(Classic):
    """34 members of a karate club, 78 friendships; labels: the club after the split."""

    origin = "Zachary, An Information Flow Model for Conflict and Fission in Small Groups, 1977; weights dropped"

    def load(self, sources: Sources) -> Graph:  # noqa: ARG002
        """From networkx."""
        import networkx as nx

        karate = nx.karate_club_graph()
        clubs = [karate.nodes[node]["club"] for node in karate]
        return _graph(karate, self.label, y=np.unique(clubs, return_inverse=True)[1])


@register("lesmis", version=1)
class LesMiserables(Classic):
    """77 characters of Les Misérables, 254 pairs that meet in a chapter; no features, no labels."""

    origin = "Knuth, The Stanford GraphBase, 1993; weights dropped"

    def load(self, sources: Sources) -> Graph:  # noqa: ARG002
        """From networkx."""
        import networkx as nx

        return _graph(nx.les_miserables_graph(), self.label)


def _graph(source: Any, name: str, y: NDArray[np.int64] | None = None) -> Graph:
    index = {node: i for i, node in enumerate(source)}
    pairs = np.array([(index[u], index[v]) for u, v in source.edges])
    return Graph.from_pairs(len(index), pairs, y=y, name=name)
