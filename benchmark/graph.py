"""The graph that every part of the suite passes around: undirected, simple, frozen."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias, Union

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ppgsl_bench.errors import GraphError
from ppgsl_bench.pairs import Pairs, Ranks, contains, num_pairs, pairs_at, ranks_of

Features: TypeAlias = Union[NDArray[np.float32], "sp.csr_array"]

# How many offending rows a message lists before it says "and N more".
_SHOWN = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class Graph:
    """An undirected simple graph on the nodes 0 … num_nodes-1, canonical and read-only.

    Attributes:
        num_nodes: number of nodes N; isolated nodes count.
        edges: int64, shape [E, 2], u < v in each row, rows sorted and unique.
        weights: float32, shape [E], finite and positive; None for an unweighted graph.
        x: node features, float32 of shape [N, F], dense or CSR; None if there are none.
        y: node labels, int64 of shape [N], -1 for unknown; None if there are none.
        name: where the graph comes from, for people.

    The constructor takes canonical edges and refuses others; `Graph.from_pairs` canonicalises.
    """

    num_nodes: int
    edges: Pairs
    weights: NDArray[np.float32] | None = None
    x: Features | None = None
    y: NDArray[np.int64] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        edges = _frozen(self.edges, np.int64)
        if self.num_nodes < 0:
            raise GraphError(f"num_nodes is {self.num_nodes}; it must not be negative")
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise GraphError(f"edges have shape {edges.shape}; expected (number of links, 2)")
        _refuse_out_of_range(edges, self.num_nodes)
        _refuse_rows(edges[:, 0] == edges[:, 1], edges, "self-loops")
        _refuse_rows(edges[:, 0] > edges[:, 1], edges, "links not written as (smaller id, larger id)")
        ranks = ranks_of(edges, self.num_nodes)
        _refuse_rows(np.diff(ranks, prepend=-1) == 0, edges, "duplicate links")
        _refuse_rows(np.diff(ranks, prepend=-1) < 0, edges, "links out of order")
        object.__setattr__(self, "edges", edges)
        self.__dict__["ranks"] = _frozen(ranks, np.int64, copy=False)
        if self.weights is not None:
            object.__setattr__(self, "weights", _checked_weights(self.weights, edges))
        if self.x is not None:
            object.__setattr__(self, "x", _checked_features(self.x, self.num_nodes))
        if self.y is not None:
            object.__setattr__(self, "y", _checked_labels(self.y, self.num_nodes))

    @classmethod
    def from_pairs(
        cls,
        num_nodes: int,
        pairs: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        x: Features | None = None,
        y: ArrayLike | None = None,
        name: str = "",
        loops: Literal["refuse", "drop"] = "refuse",
        duplicates: Literal["refuse", "merge"] = "refuse",
    ) -> "Graph":
        """Canonicalise node pairs in any order and orientation.

        Self-loops and repeated pairs are refused unless asked otherwise; `(v, u)` repeats `(u, v)`, so directed
        data need `duplicates="merge"`. Of merged links the first weight is kept.
        """
        array = _pair_array(pairs)
        _refuse_out_of_range(array, num_nodes)
        values = None if weights is None else np.asarray(weights, dtype=np.float32)
        if values is not None and values.shape != (len(array),):
            raise GraphError(f"{len(array)} links but weights of shape {values.shape}; expected one weight a link")
        is_loop = array[:, 0] == array[:, 1]
        if loops == "refuse":
            _refuse_rows(is_loop, array, "self-loops")
        array = array[~is_loop]
        values = None if values is None else values[~is_loop]
        ranks, first = np.unique(ranks_of(array, num_nodes), return_index=True)
        if duplicates == "refuse" and len(ranks) < len(array):
            repeated = np.ones(len(array), dtype=np.bool_)
            repeated[first] = False
            _refuse_rows(repeated, array, "duplicate links")
        return cls(
            num_nodes=num_nodes,
            edges=pairs_at(ranks, num_nodes),
            weights=None if values is None else values[first],
            x=x,
            y=None if y is None else np.asarray(y),
            name=name,
        )

    @property
    def num_edges(self) -> int:
        """Number of undirected links."""
        return len(self.edges)

    @property
    def num_non_edges(self) -> int:
        """Number of unlinked unordered pairs."""
        return num_pairs(self.num_nodes) - self.num_edges

    @cached_property
    def ranks(self) -> Ranks:
        """Sorted ranks of the links among all pairs (see `ppgsl_bench.pairs`)."""
        return _frozen(ranks_of(self.edges, self.num_nodes), np.int64, copy=False)

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """Number of links at each node, shape [N]."""
        counts = np.bincount(self.edges.ravel(), minlength=self.num_nodes)
        return _frozen(counts, np.int64, copy=False)

    @cached_property
    def adjacency(self) -> sp.csr_array:
        """Symmetric N×N CSR matrix of float32 weights (ones if unweighted), int32 indices, sorted rows."""
        values = np.ones(self.num_edges, dtype=np.float32) if self.weights is None else self.weights
        u, v = self.edges.T.astype(np.int32)
        shape = (self.num_nodes, self.num_nodes)
        matrix = sp.csr_array(
            (np.concatenate([values, values]), (np.concatenate([u, v]), np.concatenate([v, u]))), shape=shape
        )
        matrix.sort_indices()
        for array in (matrix.data, matrix.indices, matrix.indptr):
            array.flags.writeable = False
        return matrix

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content (links, weights, features, labels; not the name)."""
        sha = hashlib.sha256(f"graph:{self.num_nodes}".encode())
        for label, array in (("edges", self.edges), ("weights", self.weights), ("y", self.y)):
            _update(sha, label, array)
        if isinstance(self.x, sp.csr_array):
            sha.update(f"|x.shape:{self.x.shape}".encode())
            for label, array in (
                ("data", self.x.data),
                ("indices", self.x.indices),
                ("indptr", self.x.indptr),
            ):
                _update(sha, f"x.{label}", array if label == "data" else array.astype(np.int64))
        else:
            _update(sha, "x", self.x)
        return sha.hexdigest()

    def has_edges(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Which of the pairs are links, in either orientation."""
        return contains(self.ranks, ranks_of(pairs, self.num_nodes))

    def with_edges(self, *pair_sets: Pairs, weights: NDArray[np.float32] | None = None) -> "Graph":
        """The same nodes, features and labels with other links: the union of the given pairs.

        Args:
            pair_sets: arrays of shape [?, 2]; loops and repeated pairs are refused.
            weights: one weight a pair, in the order given; None for an unweighted graph.
        """
        pairs = np.concatenate([np.asarray(p, dtype=np.int64).reshape(-1, 2) for p in pair_sets])
        return Graph.from_pairs(self.num_nodes, pairs, weights=weights, x=self.x, y=self.y, name=self.name)

    def without_edges(self, pairs: Pairs) -> "Graph":
        """The graph less the given links, weights kept; every pair must be a link."""
        pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        _refuse_rows(~self.has_edges(pairs), pairs, "pairs that are not links of the graph")
        keep = ~contains(np.sort(ranks_of(pairs, self.num_nodes)), self.ranks)
        return replace(self, edges=self.edges[keep], weights=None if self.weights is None else self.weights[keep])

    def without_labels(self) -> "Graph":
        """What an attacker gets to see: links, weights and features."""
        return replace(self, y=None)

    def __repr__(self) -> str:
        features = "none" if self.x is None else f"{self.x.shape[1]}{' sparse' * sp.issparse(self.x)}"
        return f"Graph({self.name or 'unnamed'}: {self.num_nodes} nodes, {self.num_edges} links, features {features})"


def checked_sensitive(graph: Graph, pairs: ArrayLike) -> Pairs:
    """Sensitive pairs as canonical sorted rows; each must be a link of `graph`, named once."""
    array = _pair_array(pairs)
    _refuse_out_of_range(array, graph.num_nodes)
    _refuse_rows(array[:, 0] == array[:, 1], array, "self-loops among the sensitive pairs")
    _refuse_rows(~graph.has_edges(array), array, "sensitive pairs that are not links of the graph")
    ranks, first = np.unique(ranks_of(array, graph.num_nodes), return_index=True)
    repeated = np.ones(len(array), dtype=np.bool_)
    repeated[first] = False
    _refuse_rows(repeated, array, "duplicate sensitive pairs")
    return pairs_at(ranks, graph.num_nodes)


def _frozen(array: ArrayLike, dtype: type[np.generic], *, copy: bool = True) -> NDArray[np.int64]:
    result = np.array(array, dtype=dtype, order="C") if copy else np.asarray(array, dtype=dtype)
    result.flags.writeable = False
    return result


def _pair_array(pairs: ArrayLike) -> Pairs:
    array = np.asarray(pairs)
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise GraphError(f"node pairs have shape {array.shape}; expected (number of pairs, 2)")
    if not np.issubdtype(array.dtype, np.integer):
        raise GraphError(f"node ids are of type {array.dtype}; expected integers from 0 to num_nodes - 1")
    return array.astype(np.int64, copy=False)


def _refuse_out_of_range(pairs: Pairs, num_nodes: int) -> None:
    bad = ((pairs < 0) | (pairs >= num_nodes)).any(axis=1)
    _refuse_rows(np.asarray(bad), pairs, f"node ids outside 0 … {num_nodes - 1}")


def _refuse_rows(bad: NDArray[np.bool_], values: NDArray[np.generic], what: str) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        raise GraphError(f"{what}: {_listed(rows, values)}")


def _listed(rows: NDArray[np.intp], values: NDArray[np.generic]) -> str:
    shown = ", ".join(f"row {r} {_plain(values[r])}" for r in rows[:_SHOWN])
    return shown + (f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else "")


def _plain(value: Iterable[np.generic] | np.generic) -> str:
    return f"({', '.join(str(v) for v in value)})" if isinstance(value, np.ndarray) else str(value)


def _checked_weights(weights: ArrayLike, edges: Pairs) -> NDArray[np.float32]:
    array = np.array(weights, dtype=np.float32)
    if array.shape != (len(edges),):
        raise GraphError(f"{len(edges)} links but weights of shape {array.shape}; expected one weight a link")
    _refuse_rows(~np.isfinite(array) | (array <= 0), array, "weights that are not finite and positive")
    array.flags.writeable = False
    return array


def _checked_features(x: Features, num_nodes: int) -> Features:
    if sp.issparse(x):
        matrix = sp.csr_array(x, dtype=np.float32, copy=True)
        matrix.sum_duplicates()
        if matrix.shape[0] != num_nodes:
            raise GraphError(f"features of {matrix.shape[0]} nodes for a graph of {num_nodes}")
        bad_rows = np.unique(np.repeat(np.arange(num_nodes), np.diff(matrix.indptr))[~np.isfinite(matrix.data)])
        if len(bad_rows):
            raise GraphError(f"features that are NaN or infinite: {_listed(bad_rows, np.arange(num_nodes))}")
        for array in (matrix.data, matrix.indices, matrix.indptr):
            array.flags.writeable = False
        return matrix
    dense = np.array(x, dtype=np.float32, order="C")
    if dense.ndim != 2 or len(dense) != num_nodes:
        raise GraphError(f"features have shape {dense.shape}; expected ({num_nodes}, number of features)")
    if dense.shape[1] == 0:
        raise GraphError("features of width 0: pass x=None for a graph without features")
    bad = ~np.isfinite(dense).all(axis=1)
    if bad.any():
        raise GraphError(f"features that are NaN or infinite: {_listed(np.flatnonzero(bad), np.arange(num_nodes))}")
    dense.flags.writeable = False
    return dense


def _checked_labels(y: ArrayLike, num_nodes: int) -> NDArray[np.int64]:
    labels = np.array(y)
    if labels.shape != (num_nodes,):
        raise GraphError(f"labels have shape {labels.shape}; expected ({num_nodes},)")
    if not np.issubdtype(labels.dtype, np.integer):
        raise GraphError(f"labels are of type {labels.dtype}; expected integers, -1 for unknown")
    _refuse_rows(labels < -1, labels, "negative labels other than -1 (unknown)")
    return _frozen(labels, np.int64)


def _update(sha: "hashlib._Hash", label: str, array: NDArray[np.generic] | None) -> None:
    sha.update(f"|{label}:{None if array is None else (array.shape, array.dtype.str)}".encode())
    if array is not None:
        sha.update(np.ascontiguousarray(array).data)
