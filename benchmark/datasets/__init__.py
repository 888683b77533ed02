"""Datasets: where graphs come from. One file a family."""

from abc import abstractmethod
from dataclasses import dataclass, field
from pathlib import Path

from ppgsl_bench.graph import Graph
from ppgsl_bench.plugin import Field, Plugin
from ppgsl_bench.registry import Registry

__all__ = ["Dataset", "Field", "Sources", "register", "registry"]


def default_cache_dir() -> Path:
    """The user's cache folder for downloaded datasets."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("ppgsl-bench")) / "datasets"


@dataclass(frozen=True)
class Sources:
    """Where raw files may be taken from.

    Attributes:
        data_dirs: folders in the layout of PyG's raw files, searched first.
        cache_dir: where downloads are kept.
        offline: never touch the network.
    """

    data_dirs: tuple[Path, ...] = ()
    cache_dir: Path = field(default_factory=default_cache_dir)
    offline: bool = False


class Dataset(Plugin):
    """A graph by name."""

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
