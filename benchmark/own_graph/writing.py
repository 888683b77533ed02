"""Writing a published graph in the format of the file it came from: ids, links and weights, and nothing else.

Links come in the order of the nodes, whatever their order and direction in the original, and bring no attributes of
their own: either would tell which links are real and which a defense has added.
"""

import csv
import io
import os
import tempfile
from pathlib import Path
from typing import Literal

import numpy as np
import scipy.sparse as sp

from ppgsl_bench.datasets.edge_list import Layout
from ppgsl_bench.datasets.files import EDGE_LIST_SUFFIXES, SUFFIXES
from ppgsl_bench.errors import UserError
from ppgsl_bench.graph import Graph

_PLAIN = Layout(",", None)


def refuse_other_format(source: Path, target: Path) -> None:
    """Raise an error unless both files are of the same kind."""
    kinds = [_kind(path) for path in (source, target)]
    if kinds[0] != kinds[1]:
        raise UserError(
            f"{target}: the published graph is written in the format of {source}; "
            f"end its name in {source.suffix}, not {target.suffix or 'nothing'}"
        )
    if target.exists() and source.exists() and target.samefile(source):
        raise UserError(f"{target}: this is the original graph; choose another name for the published one")


def write_graph(path: Path, graph: Graph, ids: list[str], layout: Layout | None = None) -> None:
    """Write a graph; the ending of the file's name says how, the layout how an edge list looks."""
    kind = _kind(path)
    if kind == "text":
        content = _edge_list(graph, ids, layout or _PLAIN)
    elif kind == ".npz":
        content = _npz(graph)
    else:
        content = _networkx_file(graph, ids, kind)
    write_whole(path, content)


def write_whole(path: Path, content: bytes) -> None:
    """The file appears whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, partial = tempfile.mkstemp(dir=path.parent, suffix=".partial")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            # mkstemp gives the file to its owner alone; a published file follows the user's usual permissions.
            mask = os.umask(0)
            os.umask(mask)
            Path(partial).chmod(0o666 & ~mask)
            Path(partial).replace(path)
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


def _kind(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(f"{path}: unknown ending {path.suffix!r}; expected one of {', '.join(SUFFIXES)}")
    return "text" if suffix in EDGE_LIST_SUFFIXES else suffix


def _edge_list(graph: Graph, ids: list[str], layout: Layout) -> bytes:
    text = io.StringIO(newline="")
    # Names that look like a comment, a header or several columns are quoted, as are those with blanks at their ends.
    is_plain = all(_is_plain(name, layout.separator) for name in ids)
    quoting: Literal[0, 1] = csv.QUOTE_MINIMAL if is_plain else csv.QUOTE_ALL
    writer = csv.writer(text, delimiter=layout.separator, quoting=quoting, lineterminator="\n")
    width = 2 if graph.weights is None else 3
    if layout.titles is not None:
        writer.writerow(layout.titles[:width])
    names = [(ids[u], ids[v]) for u, v in graph.edges.tolist()]
    if graph.weights is None:
        writer.writerows(names)
    else:
        weights = graph.weights
        writer.writerows(
            (*pair, np.format_float_positional(w, trim="-")) for pair, w in zip(names, weights, strict=True)
        )
    return text.getvalue().encode()


def _is_plain(name: str, separator: str) -> bool:
    return not (name.startswith("#") or separator in name or any(c in name for c in '"\n\r\t') or " " in name)


def _npz(graph: Graph) -> bytes:
    arrays: dict[str, object] = {"edges": graph.edges, "num_nodes": np.array(graph.num_nodes)}
    optional = {"weights": graph.weights, "y": graph.y}
    arrays |= {name: array for name, array in optional.items() if array is not None}
    if isinstance(graph.x, sp.csr_array):
        arrays |= {"x_data": graph.x.data, "x_indices": graph.x.indices}
        arrays |= {"x_indptr": graph.x.indptr, "x_shape": np.array(graph.x.shape)}
    elif graph.x is not None:
        arrays["x"] = graph.x
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _networkx_file(graph: Graph, ids: list[str], kind: str) -> bytes:
    import networkx as nx

    source = nx.Graph()
    source.add_nodes_from(ids)
    pairs = [(ids[u], ids[v]) for u, v in graph.edges.tolist()]
    if graph.weights is None:
        source.add_edges_from(pairs)
    else:
        source.add_weighted_edges_from((u, v, float(w)) for (u, v), w in zip(pairs, graph.weights, strict=True))
    buffer = io.BytesIO()
    (nx.write_graphml if kind == ".graphml" else nx.write_gml)(source, buffer)
    return buffer.getvalue()
