"""Utility tasks: what the published graph is still good for. One file a task."""

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from ppgsl_bench.graph import Graph
from ppgsl_bench.plugin import Field, Plugin
from ppgsl_bench.registry import Registry
from ppgsl_bench.split import Split

__all__ = ["Field", "Utility", "register", "registry"]


class Utility(Plugin):
    """Measures a published graph against what is known of the original."""

    @abstractmethod
    def evaluate(self, published: Graph, split: Split, rng: np.random.Generator) -> Mapping[str, float]:
        """Finite numbers by metric name.

        Args:
            published: the published graph, labels included.
            split: test links, train and test nodes, and the visible graph to compare with.
            rng: the only source of randomness.
        """


registry: Registry[Utility] = Registry("utility", __name__)
register = registry.register
