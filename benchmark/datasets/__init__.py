"""Datasets: where graphs come from. One file a family."""

from abc import abstractmethod
from typing import ClassVar

from ppgsl_bench.datasets.sources import Layout, RawFile, Sources, default_cache_dir
from ppgsl_bench.graph import Graph
from ppgsl_bench.plugin import Field, Plugin
from ppgsl_bench.registry import Registry

__all__ = ["Dataset", "Field", "Layout", "RawFile", "Sources", "default_cache_dir", "register", "registry"]


class Dataset(Plugin):
    """A graph by name."""

    layouts: ClassVar[tuple[Layout, ...]] = ()
    """Pinned raw files; any one complete layout will do, earlier ones are preferred. Empty for generated graphs."""

    origin: ClassVar[str] = ""
    """Whose data it is and what was done to it, in a sentence or two."""

    licence: ClassVar[str] = ""
    """What is known of the terms of use."""

    @abstractmethod
    def fingerprint(self, sources: Sources) -> str:
        """A digest of everything that `load` depends on beside version and parameters (raw files, say).

        It must be cheap and must not import torch: the plan computes it for every dataset to know which cells are done.
        """

    @abstractmethod
    def load(self, sources: Sources) -> Graph:
        """The whole graph, nothing hidden yet."""


registry: Registry[Dataset] = Registry("dataset", __name__)
register = registry.register
