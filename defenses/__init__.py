"""Defenses: what a data holder does to a graph before it is published. One file a defense."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs
from ppgsl_bench.plugin import Field, Plugin
from ppgsl_bench.registry import Registry

__all__ = ["Defense", "Field", "Guarantee", "Publication", "register", "registry"]


@dataclass(frozen=True)
class Guarantee:
    """A formal promise and what it covers."""

    kind: str
    epsilon: float
    covers: str

    @classmethod
    def edge_dp(cls, epsilon: float) -> "Guarantee":
        """ε-differential privacy for one link of the *input*: the visible graph, sensitive links already masked."""
        return cls("edge-dp", epsilon, "the visible links (the sensitive links are masked before the mechanism runs)")


@dataclass(frozen=True)
class Publication:
    """A published graph with the trace of how it came about: named one-dimensional arrays of equal meaning."""

    graph: Graph
    trace: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)


class Defense(Plugin):
    """Rewrites the visible graph before publication."""

    uses_sensitive: ClassVar[bool] = False
    """Whether `publish` is given the sensitive pairs; if not, it gets an empty array in their place."""

    sweep: ClassVar[Sequence[Mapping[str, Any]]] = ({},)
    """Parameter settings from weakest to strongest: the defense's trade-off curve."""

    @property
    def guarantee(self) -> Guarantee | None:
        """The formal guarantee, if the defense has one."""
        return None

    @abstractmethod
    def publish(self, graph: Graph, sensitive: Pairs, rng: np.random.Generator) -> Graph | Publication:
        """The graph to publish: same nodes, simple, undirected.

        Args:
            graph: the visible graph (sensitive links are not in it); read-only.
            sensitive: the hidden links, shape [S, 2]; empty unless `uses_sensitive`.
            rng: the only source of randomness.
        """


registry: Registry[Defense] = Registry("defense", __name__)
register = registry.register
