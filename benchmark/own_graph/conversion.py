"""Other libraries' graphs to ours and back: networkx, PyTorch Geometric, SciPy, pandas.

What comes back is of the type that was given, with its nodes, their names and attributes. Links come in the order of
the nodes and bring a weight at most: their former order, direction and other attributes would tell real links from
added ones.
"""

import copy
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ppgsl_bench.datasets.edge_list import SOURCE_NAMES, TARGET_NAMES, WEIGHT_NAMES, tidied
from ppgsl_bench.errors import GraphError, UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.own_graph.naming import Name, NamedGraph, NamePair
from ppgsl_bench.pairs import Pairs

TITLE = "the graph"


@dataclass(frozen=True, eq=False)
class Converted:
    """A graph in our terms, and the way back.

    Attributes:
        nodes: the graph and the names of its nodes.
        back: makes a published graph on the same nodes into the type that was given.
    """

    nodes: NamedGraph
    back: Callable[[Graph], Any]


def converted(source: Any) -> Converted:
    """Take a graph of any known type."""
    if isinstance(source, Graph):
        return Converted(NamedGraph(source, range(source.num_nodes), TITLE), lambda graph: graph)
    if sp.issparse(source):
        return _from_sparse(source)
    for module, name, convert in (
        ("networkx", "Graph", _from_networkx),
        ("torch_geometric.data", "Data", _from_pyg),
        ("pandas", "DataFrame", _from_pandas),
    ):
        # An object of a library that was never imported cannot be before us.
        if module in sys.modules and isinstance(source, getattr(sys.modules[module], name)):
            return convert(source)
    raise UserError(
        f"a graph of type {type(source).__name__}; expected a networkx Graph, PyTorch Geometric Data, a SciPy sparse "
        "matrix, a pandas DataFrame of links, or a ppgsl_bench.Graph"
    )


def named_pairs(pairs: Any) -> list[NamePair]:
    """Sensitive pairs from a list of pairs, an array or tensor of shape [S, 2], or a DataFrame."""
    if "pandas" in sys.modules and isinstance(pairs, sys.modules["pandas"].DataFrame):
        source, target, _ = _columns(pairs)
        return list(zip(pairs[source].tolist(), pairs[target].tolist(), strict=True))
    rows = pairs.tolist() if hasattr(pairs, "tolist") else list(pairs)
    wrong = [i for i, row in enumerate(rows) if not isinstance(row, list | tuple) or len(row) != 2]
    if wrong:
        raise UserError(
            f"sensitive pairs: entry {wrong[0]} is not a pair of nodes; expected [(node, node), …], or an array "
            "of shape [S, 2] (an edge_index has to be transposed)"
        )
    return [(u, v) for u, v in rows]


def with_features(nodes: NamedGraph, features: Any, labels: Any) -> NamedGraph:
    """Features and labels from arrays in the order of the nodes, or from anything indexed by their names."""
    graph = nodes.graph
    if features is not None:
        x = features.loc[list(nodes.ids)].to_numpy() if hasattr(features, "loc") else features
        graph = replace(graph, x=x if sp.issparse(x) else np.asarray(x, dtype=np.float32))
    if labels is not None:
        if hasattr(labels, "loc"):
            labels = labels.loc[list(nodes.ids)].to_numpy()
        elif isinstance(labels, Mapping):
            labels = [labels[name] for name in nodes.ids]
        values = np.asarray(labels)
        if not np.issubdtype(values.dtype, np.integer):
            values = np.unique(values.astype(str), return_inverse=True)[1]
        graph = replace(graph, y=values)
    return NamedGraph(graph, nodes.ids, nodes.title)


def aligned(published: NamedGraph, original: NamedGraph) -> NamedGraph:
    """The published links on the nodes of the original, which an edge list cannot all mention."""
    place = [original.index.get(name, -1) for name in published.ids]
    strangers = place.count(-1)
    if strangers:
        raise GraphError(
            f"{strangers} of {len(place)} nodes of {published.title} are not in {original.title}; "
            "is it the original of this publication, with the same ids?"
        )
    number = np.array(place, dtype=np.int64)
    graph = published.graph
    x, y = original.graph.x, original.graph.y
    if len(number) == original.graph.num_nodes:
        order = np.argsort(number)
        x = graph.x[order] if graph.x is not None else x
        y = graph.y[order] if graph.y is not None else y
    links = Graph.from_pairs(original.graph.num_nodes, number[graph.edges], weights=graph.weights, x=x, y=y)
    return NamedGraph(links, original.ids, published.title)


def _tidy(pairs: Pairs, num_nodes: int, weights: Any) -> tuple[Pairs, NDArray[Any] | None]:
    """Without loops and repeats; a warning says how many there were."""
    kept, loops, repeats = tidied(pairs, num_nodes)
    for count, what in ((loops, "self-loops"), (repeats, "links given twice (their direction does not count)")):
        if count:
            warnings.warn(f"dropped {count} {what}", stacklevel=2)
    return pairs[kept], None if weights is None else np.asarray(weights)[kept]


class _Weights:
    """Weights as they were before they became float32: what comes back has the value and type that was given."""

    def __init__(self, values: NDArray[Any] | None) -> None:
        self._of = {} if values is None else {float(np.float32(value)): value for value in values.tolist()}

    def restored(self, weights: NDArray[np.float32]) -> list[Any]:
        return [self._of.get(float(weight), float(weight)) for weight in weights]


def _from_networkx(source: Any) -> Converted:
    if source.is_directed() or source.is_multigraph():
        raise UserError(f"a networkx {type(source).__name__}: links must have no direction; pass networkx.Graph(graph)")
    ids = list(source)
    index = {name: i for i, name in enumerate(ids)}
    links = list(source.edges(data="weight"))
    pairs = np.array([(index[u], index[v]) for u, v, _ in links], dtype=np.int64).reshape(-1, 2)
    given = [weight for *_, weight in links]
    missing = given.count(None)
    if 0 < missing < len(given):
        raise GraphError(f"{missing} of {len(given)} links have no weight; give all of them one, or none")
    pairs, values = _tidy(pairs, len(ids), None if missing else given)
    originals = _Weights(values if given else None)
    graph = Graph.from_pairs(len(ids), pairs, weights=values if given else None)

    def back(published: Graph) -> Any:
        result = type(source)()
        result.graph.update(source.graph)
        result.add_nodes_from((name, dict(attributes)) for name, attributes in source.nodes(data=True))
        names = [(ids[u], ids[v]) for u, v in published.edges.tolist()]
        if published.weights is None:
            result.add_edges_from(names)
        else:
            weights = originals.restored(published.weights)
            result.add_weighted_edges_from((u, v, w) for (u, v), w in zip(names, weights, strict=True))
        return result

    return Converted(NamedGraph(graph, ids, TITLE), back)


def _from_sparse(source: Any) -> Converted:
    if source.shape[0] != source.shape[1]:
        raise UserError(f"a matrix of shape {source.shape}; an adjacency matrix is square")
    matrix = sp.csr_array(source)
    matrix.eliminate_zeros()
    upper, lower = sp.triu(matrix, k=1).tocsr(), sp.tril(matrix, k=-1).tocsr()
    is_triangular = lower.nnz == 0 and upper.nnz > 0
    if not is_triangular and (upper != lower.T).nnz:
        raise UserError("the matrix is not symmetric; links have no direction: pass A.maximum(A.T), say")
    n = matrix.shape[0]
    loops = int(np.count_nonzero(matrix.diagonal()))
    if loops:
        warnings.warn(f"dropped {loops} self-loops", stacklevel=2)
    entries = upper.tocoo()
    pairs = np.stack([entries.coords[0], entries.coords[1]], axis=1).astype(np.int64)
    is_weighted = bool((entries.data != 1).any())
    originals = _Weights(entries.data if is_weighted else None)
    graph = Graph.from_pairs(n, pairs, weights=entries.data if is_weighted else None)

    def back(published: Graph) -> Any:
        values = np.ones(published.num_edges)
        if published.weights is not None:
            values = np.array(originals.restored(published.weights))
        u, v = published.edges.T
        if not is_triangular:
            values, u, v = np.concatenate([values, values]), np.concatenate([u, v]), np.concatenate([v, u])
        return type(source)(sp.coo_array((values.astype(source.dtype), (u, v)), shape=(n, n)))

    return Converted(NamedGraph(graph, range(n), TITLE), back)


def _from_pandas(source: Any) -> Converted:
    import pandas as pd

    first, second, weight = _columns(source)
    ends = pd.concat([source[first], source[second]], ignore_index=True)
    if ends.isna().any():
        rows = np.unique(np.flatnonzero(ends.isna()) % len(source))
        raise GraphError(f"links without an end in {len(rows)} rows, the first is row {rows[0]}; fill or drop them")
    ids = _sorted(ends.unique().tolist())
    index = {name: i for i, name in enumerate(ids)}
    numbers = np.array([index[name] for name in ends.tolist()], dtype=np.int64)
    pairs, values = _tidy(numbers.reshape(2, -1).T, len(ids), None if weight is None else source[weight].to_numpy())
    originals = _Weights(values)
    graph = Graph.from_pairs(len(ids), pairs, weights=values)

    def back(published: Graph) -> Any:
        names = np.empty(len(ids), dtype=object)
        names[:] = ids
        u, v = published.edges.T
        columns = {
            first: pd.Series(names[u], dtype=source[first].dtype),
            second: pd.Series(names[v], dtype=source[second].dtype),
        }
        if weight is not None and published.weights is not None:
            columns[weight] = pd.Series(originals.restored(published.weights), dtype=source[weight].dtype)
        return pd.DataFrame(columns)

    return Converted(NamedGraph(graph, ids, TITLE), back)


def _columns(table: Any) -> tuple[Any, Any, Any]:
    """The columns of source, target and weight (None without one), by their titles or else by their place."""
    titles = list(table.columns)
    if len(titles) < 2:
        raise UserError(f"a DataFrame with {len(titles)} column; expected one for the source and one for the target")
    by_title = {str(title).strip().lower(): title for title in titles}
    first, second, weight = (
        next((by_title[name] for name in by_title if name in known), None)
        for known in (SOURCE_NAMES, TARGET_NAMES, WEIGHT_NAMES)
    )
    if first is None or second is None:
        first, second = titles[:2]
    return first, second, weight


def _sorted(names: Sequence[Name]) -> list[Any]:
    """In an order that says nothing about the order of the links."""
    try:
        return sorted(names)
    except TypeError:
        return sorted(names, key=lambda name: (type(name).__name__, str(name)))


def _from_pyg(source: Any) -> Converted:
    import torch

    if source.edge_index is None:
        raise UserError("PyTorch Geometric Data without edge_index; expected a tensor of shape [2, number of links]")
    n = int(source.num_nodes)
    directed = source.edge_index.cpu().numpy().T.astype(np.int64)
    weight = next((key for key in ("edge_weight", "edge_attr") if _is_weight(source, key)), None)
    values = None if weight is None else source[weight].detach().cpu().numpy().reshape(-1)
    kept, loops, repeats = tidied(directed, n)
    # Most Data hold each link in both directions; those that hold each once get each once back.
    both_ways = repeats > 0
    if loops:
        warnings.warn(f"dropped {loops} self-loops", stacklevel=2)
    values = None if values is None else values[kept]
    originals = _Weights(values)
    graph = Graph.from_pairs(n, directed[kept], weights=values, x=_pyg_features(source), y=_pyg_labels(source, n))

    def back(published: Graph) -> Any:
        result = copy.copy(source)
        for key in source.keys():  # noqa: SIM118 - a method of Data, which is no mapping
            if not source.is_node_attr(key) and key != "num_nodes":
                del result[key]
        result.num_nodes = n
        pairs = published.edges
        weights = None if published.weights is None else np.array(originals.restored(published.weights))
        if both_ways:
            pairs = np.concatenate([pairs, pairs[:, ::-1]])
            order = np.lexsort((pairs[:, 1], pairs[:, 0]))
            pairs = pairs[order]
            weights = None if weights is None else np.concatenate([weights, weights])[order]
        result.edge_index = torch.tensor(pairs.T).to(source.edge_index)
        if weight is not None and weights is not None:
            result[weight] = torch.from_numpy(weights).to(source[weight]).reshape(len(pairs), *source[weight].shape[1:])
        return result

    return Converted(NamedGraph(graph, range(n), TITLE), back)


def _is_weight(source: Any, key: str) -> bool:
    value = source.get(key) if hasattr(source, "get") else getattr(source, key, None)
    return value is not None and value.numel() == source.edge_index.shape[1]


def _pyg_features(source: Any) -> Any:
    if source.x is None:
        return None
    if source.x.is_sparse or source.x.layout != source.edge_index.layout:
        coo = source.x.to_sparse_coo().coalesce().cpu()
        return sp.csr_array((coo.values().numpy(), coo.indices().numpy()), shape=tuple(coo.shape))
    return source.x.detach().cpu().numpy().reshape(int(source.num_nodes), -1)


def _pyg_labels(source: Any, n: int) -> NDArray[np.int64] | None:
    y = source.y
    if y is None or y.is_floating_point() or y.reshape(-1).shape[0] != n:
        return None
    labels: NDArray[np.int64] = y.cpu().numpy().reshape(-1).astype(np.int64)
    return np.maximum(labels, -1)
