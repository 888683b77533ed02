"""The user's own graph, from a file: edge lists, GraphML, GML, NumPy archives."""

import hashlib
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ppgsl_bench.datasets import Dataset, Field, Sources, register
from ppgsl_bench.datasets.edge_list import (
    INTEGER,
    EdgeList,
    Layout,
    Untidy,
    canonical_order,
    listed,
    read_edge_list,
    refuse_loops_and_repeats,
    tidied,
)
from ppgsl_bench.errors import GraphError, UserError
from ppgsl_bench.graph import Features, Graph

EDGE_LIST_SUFFIXES = (".csv", ".tsv", ".txt", ".edges", ".edgelist")
SUFFIXES = (*EDGE_LIST_SUFFIXES, ".graphml", ".gml", ".npz")

_CSR_KEYS = ("x_data", "x_indices", "x_indptr", "x_shape")
_NPZ_KEYS = ("edges", "num_nodes", "weights", "x", *_CSR_KEYS, "y")

# What the libraries that read files for us raise where these are not what they expect, beside errors of their own:
# networkx takes any value for a block, numpy believes every size, and zipfile says RuntimeError of encrypted members.
_STUMBLES = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)


@register("file", version=1)
class GraphFile(Dataset):
    """Your own graph: edge list (.csv, .tsv, .txt), .graphml, .gml or .npz."""

    path: str = Field("", min_length=1, help="the file; its ending says how to read it")

    origin = "the user's own file"

    def fingerprint(self, sources: Sources) -> str:  # noqa: ARG002
        """SHA-256 of the file."""
        with existing_file(Path(self.path)).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def load(self, sources: Sources) -> Graph:  # noqa: ARG002
        """Read the file; the names of the nodes are not kept (`read_graph_file` gives them)."""
        graph, _ = read_graph_file(Path(self.path))
        return replace(graph, name=self.label)


def read_graph_file(path: Path) -> tuple[Graph, list[str]]:
    """A graph and the names of its nodes (node i is called `ids[i]`), from any of the known kinds of file.

    Edge lists: see `read_edge_list`. GraphML and GML: nodes, links and the links' attribute `weight`, if all have it;
    the direction of links is dropped. NumPy archives (no pickles): `edges` of shape [E, 2], and optionally `num_nodes`,
    `weights`, features `x` (dense) or `x_data`, `x_indices`, `x_indptr`, `x_shape` (CSR), labels `y`.
    Self-loops and links given twice, in either direction, are refused.
    """
    content = _read(path, "refuse")
    return content.graph, content.ids


@dataclass(frozen=True, eq=False)
class FileContent:
    """A graph from a file, and what else there is to know about it.

    Attributes:
        graph: the graph.
        ids: node i is called `ids[i]`.
        layout: of an edge list, how it is written; None for other kinds of file.
        notes: what was dropped or looks odd, each a sentence for the user.
    """

    graph: Graph
    ids: list[str]
    layout: Layout | None = None
    notes: tuple[str, ...] = ()


def read_tidied(path: Path) -> FileContent:
    """As `read_graph_file`, but self-loops and repeated links are dropped, and `notes` say how many there were."""
    return _read(path, "drop")


def _read(path: Path, untidy: Untidy) -> FileContent:
    path = existing_file(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(f"{path}: unknown ending {path.suffix!r}; expected one of {', '.join(SUFFIXES)}")
    if suffix == ".npz":
        return _from_npz(path, untidy)
    if suffix in EDGE_LIST_SUFFIXES:
        return _from_edge_list(path, untidy)
    return _from_networkx(path, suffix, untidy)


def existing_file(path: Path) -> Path:
    """The path with `~` expanded; an error unless a file is there."""
    path = path.expanduser()
    if not path.exists():
        raise UserError(f"{path}: no such file")
    if not path.is_file():
        raise UserError(f"{path}: not a file; expected an edge list, GraphML, GML or .npz file")
    return path


def _from_edge_list(path: Path, untidy: Untidy) -> FileContent:
    edges = read_edge_list(path, untidy=untidy)
    notes = _dropped(path, edges.loops, edges.repeats)
    if edges.layout.ignored:
        notes.append(f"{path}: columns that are not read: {', '.join(edges.layout.ignored)}")
    # A header whose titles are not known to us, above names that are no numbers, looks like a link of two strangers.
    if edges.layout.titles is None and len(edges.pairs) > 1 and not np.isin(edges.pairs[1:], edges.pairs[0]).any():
        notes.append(
            f"{path}: the two names in line {edges.lines[0]} occur in no other line, which was read as a link; "
            "if it is a header, call its columns source and target"
        )
    notes += _mixed_ids(path, edges)
    graph = _graph(path, len(edges.ids), edges.pairs, weights=edges.weights)
    return FileContent(graph, edges.ids, edges.layout, tuple(notes))


def _mixed_ids(path: Path, edges: EdgeList) -> list[str]:
    """A note if some ids are numbers and others are not, as after an export that formatted a part of them."""
    is_number = np.array([INTEGER.fullmatch(name) is not None for name in edges.ids])
    numbers, others = (edges.lines[found[edges.pairs].any(axis=1)] for found in (is_number, ~is_number))
    if not len(numbers) or not len(others):
        return []
    note = (
        f"{path}: {is_number.sum()} ids are whole numbers (first in line {numbers[0]}), {(~is_number).sum()} are not "
        f"(first in line {others[0]}); all are read as text, so 7, 07 and 7.0 are three nodes: spell them alike if "
        "they are one"
    )
    return [note]


def _dropped(path: Path, loops: int, repeats: int) -> list[str]:
    found = {"self-loops": loops, "links given twice (their direction does not count)": repeats}
    return [f"{path}: dropped {count} {what}" for what, count in found.items() if count]


def _from_networkx(path: Path, suffix: str, untidy: Untidy) -> FileContent:
    import networkx as nx

    try:
        source = nx.read_graphml(path) if suffix == ".graphml" else _read_gml(path)
    except (nx.NetworkXException, ParseError, *_STUMBLES) as error:
        raise GraphError(f"{path}: not a readable {suffix[1:]} file: {error}") from error
    ids = canonical_order([str(node) for node in source])
    place = {name: i for i, name in enumerate(ids)}
    if len(place) < len(ids):
        raise GraphError(f"{path}: two nodes have the same name")
    links = list(source.edges(data="weight"))
    if not links:
        raise GraphError(f"{path}: no links")
    pairs = np.array([(place[str(u)], place[str(v)]) for u, v, _ in links], dtype=np.int64)
    kept, loops, repeats = tidied(pairs, len(ids))
    notes = _dropped(path, loops, repeats)
    attributes = sorted({str(key) for _, given in source.nodes(data=True) for key in given})
    if attributes:
        notes.append(f"{path}: attributes of nodes that are not read: {', '.join(attributes)}")

    def where(i: int) -> str:
        return f"link {i + 1}"

    if untidy == "refuse":
        refuse_loops_and_repeats(path, pairs, ids, where)
    weights = [weight for *_, weight in links]
    unweighted = np.flatnonzero([weight is None for weight in weights])
    if len(unweighted) == len(links):
        return FileContent(_graph(path, len(ids), pairs[kept]), ids, notes=tuple(notes))
    if len(unweighted):
        raise GraphError(f"{path}: some links have a weight, these have none: {listed(unweighted, where)}")
    unreadable = np.flatnonzero([not isinstance(weight, int | float) for weight in weights])
    if len(unreadable):
        raise GraphError(
            f"{path}: weights that are not numbers: {listed(unreadable, lambda i: f'{where(i)} {weights[i]!r}')}"
        )
    graph = _graph(path, len(ids), pairs[kept], weights=[weights[i] for i in kept])
    return FileContent(graph, ids, notes=tuple(notes))


def _read_gml(path: Path) -> Any:
    import networkx as nx

    try:
        return nx.read_gml(path, label="label")
    except nx.NetworkXError as error:
        if "no 'label' attribute" not in str(error):
            raise
        return nx.read_gml(path, label="id")


def _from_npz(path: Path, untidy: Untidy) -> FileContent:
    try:
        arrays = _npz_arrays(path)
    except (EOFError, OSError, zipfile.BadZipFile, zlib.error, *_STUMBLES) as error:
        raise GraphError(f"{path}: not a readable .npz archive of plain arrays: {error}") from error
    unknown = [key for key in arrays if key not in _NPZ_KEYS]
    if unknown or "edges" not in arrays:
        raise GraphError(
            f"{path}: has the arrays {', '.join(arrays) or 'none'}; "
            f"expected edges and, if wanted, {', '.join(_NPZ_KEYS[1:])}"
        )
    edges = arrays["edges"]
    counts = np.issubdtype(edges.dtype, np.integer) and edges.size > 0
    given = arrays.get("num_nodes", np.array(int(edges.max()) + 1 if counts else 0))
    if given.shape != () or not np.issubdtype(given.dtype, np.integer):
        raise GraphError(f"{path}: num_nodes is {given.tolist()!r}; expected one whole number")
    num_nodes = int(given)
    parts = {"weights": arrays.get("weights"), "x": _npz_features(path, arrays), "y": arrays.get("y")}
    if untidy == "refuse":
        graph = _graph(path, num_nodes, edges, **parts)
        return FileContent(graph, [str(i) for i in range(num_nodes)])
    graph = _graph(path, num_nodes, edges, **parts, loops="drop", duplicates="merge")
    _, loops, repeats = tidied(edges.reshape(-1, 2), num_nodes)
    return FileContent(graph, [str(i) for i in range(num_nodes)], notes=tuple(_dropped(path, loops, repeats)))


def _npz_arrays(path: Path) -> dict[str, NDArray[Any]]:
    loaded = np.load(path, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        raise TypeError("it is a single array without a name")
    with loaded as archive:
        return dict(archive)


def _npz_features(path: Path, arrays: dict[str, Any]) -> Features | None:
    given = [key for key in _CSR_KEYS if key in arrays]
    if not given:
        return arrays.get("x")
    if len(given) < len(_CSR_KEYS) or "x" in arrays:
        raise GraphError(
            f"{path}: sparse features need all of {', '.join(_CSR_KEYS)} and no x; found {', '.join(given)}"
        )
    data, indices, indptr, shape = (arrays[key] for key in _CSR_KEYS)
    try:
        matrix = sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise GraphError(f"{path}: the sparse features do not make a CSR matrix: {error}") from error
    return matrix


def _graph(path: Path, num_nodes: int, pairs: Any, **parts: Any) -> Graph:
    """`Graph.from_pairs`, with the file's name in front of what it refuses."""
    try:
        return Graph.from_pairs(num_nodes, pairs, name=path.name, **parts)
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from error
