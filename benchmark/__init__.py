"""ppgsl-bench: link-privacy defenses against link-inference attacks, under one protocol."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ppgsl_bench.graph import Graph as Graph
    from ppgsl_bench.own_graph.api import audit as audit
    from ppgsl_bench.own_graph.api import protect as protect
    from ppgsl_bench.own_graph.api import run as run
    from ppgsl_bench.split import Split as Split

__version__ = "0.1.0"

# Part of every cache key: raised whenever the meaning of a stored number changes.
PROTOCOL_VERSION = 1

_LAZY = {
    "Graph": "ppgsl_bench.graph",
    "Split": "ppgsl_bench.split",
    "audit": "ppgsl_bench.own_graph.api",
    "protect": "ppgsl_bench.own_graph.api",
    "run": "ppgsl_bench.own_graph.api",
}

__all__ = ["PROTOCOL_VERSION", "Graph", "Split", "__version__", "audit", "protect", "run"]


def __getattr__(name: str) -> Any:
    """Import the public names on first use: the command line must start without NumPy."""
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
