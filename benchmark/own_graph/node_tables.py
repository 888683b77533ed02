"""Features and labels of nodes, from text files: one node a line, its id in the first column."""

import csv
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.datasets.edge_list import listed
from ppgsl_bench.datasets.files import existing_file
from ppgsl_bench.errors import GraphError, UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.own_graph.naming import NamedGraph

Rows = list[tuple[int, list[str]]]

_SHOWN_NAMES = 5


def with_node_tables(nodes: NamedGraph, features: Path | None, labels: Path | None) -> tuple[NamedGraph, list[str]]:
    """The graph with features and labels from files, and notes for the user."""
    graph, notes = nodes.graph, list[str]()
    if features is not None:
        if graph.x is not None:
            raise UserError(f"--features {features}: {nodes.title} has features of its own; leave out one of the two")
        x, note = _features(features, nodes)
        graph, notes = replace(graph, x=x), [*notes, *note]
    if labels is not None:
        if graph.y is not None:
            raise UserError(f"--labels {labels}: {nodes.title} has labels of its own; leave out one of the two")
        y, note = _labels(labels, nodes)
        graph, notes = replace(graph, y=y), [*notes, *note]
    return replace_graph(nodes, graph), notes


def replace_graph(nodes: NamedGraph, graph: Graph) -> NamedGraph:
    """Other links, features or labels for the same nodes."""
    return NamedGraph(graph, nodes.ids, nodes.title)


def _features(path: Path, nodes: NamedGraph) -> tuple[NDArray[np.float32], list[str]]:
    rows, notes = _rows_by_node(path, nodes, _is_numeric)
    missing = [str(name) for i, name in enumerate(nodes.ids) if i not in rows]
    if missing:
        shown = ", ".join(missing[:_SHOWN_NAMES]) + (" …" if len(missing) > _SHOWN_NAMES else "")
        raise GraphError(
            f"{path}: {len(missing)} of {len(nodes.ids)} nodes of {nodes.title} have no line ({shown}); "
            "every node needs its features"
        )
    lines = {rows[i][0]: rows[i][1] for i in range(len(nodes.ids))}
    x = np.empty((len(lines), len(next(iter(lines.values())))), dtype=np.float32)
    bad = []
    for i, (number, cells) in enumerate(lines.items()):
        if _is_numeric(cells):
            x[i] = [float(cell) for cell in cells]
        if not _is_numeric(cells) or not np.isfinite(x[i]).all():
            bad.append(number)
    if bad:
        found = listed(np.sort(np.array(bad)), lambda number: f"line {number}")
        raise GraphError(f"{path}: features that are not finite numbers: {found}; write one number a column")
    return x, notes


def _labels(path: Path, nodes: NamedGraph) -> tuple[NDArray[np.int64], list[str]]:
    rows, notes = _rows_by_node(path, nodes, lambda cells: cells[0].strip().lower() not in {"label", "class", "y"})
    wide = [number for number, cells in rows.values() if len(cells) != 1]
    if wide:
        found = listed(np.sort(np.array(wide)), lambda number: f"line {number}")
        raise GraphError(f"{path}: expected two columns, id and label: {found}")
    classes = sorted({cells[0].strip() for _, cells in rows.values()} - {""})
    number_of = {name: i for i, name in enumerate(classes)} | {"": -1}
    y = np.array([number_of[rows[i][1][0].strip()] if i in rows else -1 for i in range(len(nodes.ids))], dtype=np.int64)
    unlabelled = int((y < 0).sum())
    if unlabelled:
        notes.append(f"{path}: {unlabelled} of {len(y)} nodes have no label")
    return y, notes


def _rows_by_node(
    path: Path, nodes: NamedGraph, is_data: Callable[[list[str]], bool]
) -> tuple[dict[int, tuple[int, list[str]]], list[str]]:
    """Line number and cells by node; the first line is a header if its id is unknown and its cells are no data."""
    rows = list(_lines(existing_file(path)))
    index = {str(name): i for name, i in nodes.index.items()}
    if rows and rows[0][1][0].strip() not in index and not is_data(rows[0][1][1:] or [""]):
        rows = rows[1:]
    if not rows:
        raise GraphError(f"{path}: the file is empty; expected one node a line: its id, then its values")
    width = len(rows[0][1])
    malformed = np.array([number for number, cells in rows if len(cells) != width or width < 2])
    if len(malformed):
        found = listed(malformed, lambda number: f"line {number}")
        share = f"{len(malformed)} of {len(rows)}, {len(malformed) / len(rows):.0%}"
        expected = f"expected {max(width, 2)} columns, the id first; correct or delete them"
        raise GraphError(f"{path}: malformed lines ({share}; {expected}): {found}")
    by_node: dict[int, tuple[int, list[str]]] = {}
    unknown, repeated = 0, []
    for number, cells in rows:
        node = index.get(cells[0].strip())
        if node is None:
            unknown += 1
        elif node in by_node:
            repeated.append(number)
        else:
            by_node[node] = (number, cells[1:])
    if repeated:
        found = listed(np.array(repeated), lambda number: f"line {number}")
        raise GraphError(f"{path}: nodes that have a line already: {found}; keep one line a node")
    if not by_node:
        raise GraphError(
            f"{path}: none of the {unknown} ids is a node of {nodes.title}; use the same ids in both files"
        )
    notes = [f"{path}: ignored {unknown} lines of nodes that {nodes.title} does not have"] if unknown else []
    return by_node, notes


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise GraphError(
            f"{path}: a binary file or not UTF-8 text; expected one node a line: its id, then its values"
        ) from None
    if "\0" in text:
        raise GraphError(f"{path}: a binary file; expected one node a line: its id, then its values")
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    separator = next((s for s in "\t,;" if s in first), ",")
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, next(csv.reader([line], delimiter=separator, skipinitialspace=True))


def _is_numeric(cells: list[str]) -> bool:
    try:
        for cell in cells:
            float(cell)
    except ValueError:
        return False
    return True
