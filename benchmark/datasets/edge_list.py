"""Edge lists as people keep them: text, one link a line, any names for nodes, perhaps a weight, perhaps a header.

Reading is vectorised (pandas' C reader), so that millions of lines take seconds. Lines are looked at one by one only
to say which of them are wrong.
"""

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.errors import GraphError
from ppgsl_bench.pairs import Pairs, ranks_of

if TYPE_CHECKING:
    import pandas as pd

Untidy: TypeAlias = Literal["refuse", "drop"]
"""What to do with self-loops and with links given twice: refuse the file, or drop and count them."""

# Column names that make the first line a header, in lower case.
SOURCE_NAMES = frozenset({"source", "src", "from", "node1", "node_1", "id1", "id_1", "head"})
TARGET_NAMES = frozenset({"target", "dst", "to", "node2", "node_2", "id2", "id_2", "tail"})
WEIGHT_NAMES = frozenset({"weight", "weights", "w"})

# Separators to look for in the first line, by the ending of the file's name; " " stands for any white space.
_SEPARATORS = {".csv": ",;\t ", ".tsv": "\t"}
_OTHER_SEPARATORS = "\t,; "

# How many offending lines a message lists before it says "and N more", and how much of each.
_SHOWN = 5
_SHOWN_CHARACTERS = 60

_EXPECTED = "expected a source, a target and perhaps a weight a line; a header names them source, target, weight"
# How files begin that people take for text.
_SIGNATURES = {
    b"PK\x03\x04": "a ZIP archive, as .xlsx and .npz files are: save the sheet as CSV, or end the file's name in .npz",
    b"\x1f\x8b": "compressed with gzip: unpack it first",
    b"\xff\xfe": "perhaps UTF-16 text: save it as UTF-8",
    b"\xfe\xff": "perhaps UTF-16 text: save it as UTF-8",
    b"SQLite format 3": "an SQLite database: export the table as CSV",
    b"PAR1": "a Parquet file: save it as CSV",
}
_COMMENT = re.compile(rb"^[ \t]*#[^\n]*", re.MULTILINE)
INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_BLANKS = " \t"


@dataclass(frozen=True)
class Layout:
    """How a text file of links is written, so that another can be written alike.

    Attributes:
        separator: between columns.
        titles: of source, target and weight; None without a header.
        ignored: titles of the columns that were not read.
    """

    separator: str
    titles: tuple[str, str, str] | None
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class EdgeList:
    """What a text file of links says.

    Attributes:
        ids: names of the nodes, in numeric order if all are whole numbers, else in alphabetical order: the order of
            the lines does not matter.
        pairs: positions in `ids`, shape [L, 2], in the order of the file; no loops, no pair twice in any orientation.
        weights: shape [L], finite and positive; None if the file has none.
        lines: the line number of each pair, counted from 1.
        layout: how the file is written.
        loops, repeats: how many self-loops and links given before were dropped.
    """

    ids: list[str]
    pairs: Pairs
    weights: NDArray[np.float32] | None
    lines: NDArray[np.int64]
    layout: Layout
    loops: int = 0
    repeats: int = 0


def read_edge_list(
    path: Path, *, untidy: Untidy = "refuse", weighted: bool = True, confidential: bool = False
) -> EdgeList:
    """Read a file separated by commas, semicolons, tabs or white space; errors give the numbers of the bad lines.

    Empty lines and lines that start with `#` are skipped. Names may be quoted, and blanks around them do not count.
    Columns other than source, target and weight are ignored, and need a header that says which is which.

    Args:
        path: the file.
        untidy: what to do with self-loops and links given twice.
        weighted: whether a third column is a weight; if not, it is ignored.
        confidential: whether errors give line numbers only, and nothing of what the lines say.
    """
    table = _Table(path, weighted=weighted, confidential=confidential)
    cells = table.cells()
    codes, names = _factorized(cells[table.source], cells[table.target])
    if any("\n" in name for name in names):
        raise table.malformed("a quoted name runs over several lines")
    row = np.arange(len(codes))
    unnamed = codes == (names.index("") if "" in names else -1)
    blank = unnamed.all(axis=1)
    blank[blank] = [not table.lines[r].strip() for r in row[blank]]
    if (unnamed.any(axis=1) & ~blank).any():
        raise table.malformed("a name is missing")
    row, codes = row[~blank], codes[~blank]
    layout = table.layout(named=table.has_header or _is_title(codes, names))
    if layout.titles is not None:
        row, codes = row[1:], codes[1:]
    if not len(row):
        raise GraphError(f"{path}: a header but no links")
    ids, pairs = _ordered(codes, names)

    def where(i: int) -> str:
        return f"line {row[i] + 1}"

    weights = None
    if table.weight is not None:
        weights = _weights(path, cells[table.weight].iloc[row], where, confidential=confidential)
    if untidy == "refuse":
        refuse_loops_and_repeats(path, pairs, ids, where)
        return EdgeList(ids, pairs, weights, row + 1, layout)
    kept, loops, repeats = tidied(pairs, len(ids))
    return EdgeList(ids, pairs[kept], None if weights is None else weights[kept], row[kept] + 1, layout, loops, repeats)


def tidied(pairs: Pairs, num_nodes: int) -> tuple[NDArray[np.int64], int, int]:
    """Positions of the pairs that are no loops and were not there before, and how many of the others there are."""
    proper = np.flatnonzero(pairs[:, 0] != pairs[:, 1])
    _, first = np.unique(ranks_of(pairs[proper], num_nodes), return_index=True)
    return proper[np.sort(first)], len(pairs) - len(proper), len(proper) - len(first)


def refuse_loops_and_repeats(path: Path, pairs: Pairs, ids: list[str], where: Callable[[int], str]) -> None:
    """Raise an error that says `where` the self-loops are, or the links that were there before."""
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(loops):
        raise GraphError(f"{path}: self-loops: {listed(loops, lambda i: f'{where(i)} ({ids[pairs[i, 0]]})')}")
    ranks = ranks_of(pairs, len(ids))
    order = np.argsort(ranks, kind="stable")
    is_new = np.diff(ranks[order], prepend=-1) != 0
    if not is_new.all():
        first = np.empty_like(order)
        first[order] = order[np.flatnonzero(is_new)][np.cumsum(is_new) - 1]
        repeats = np.sort(order[~is_new])

        def repeat(i: int) -> str:
            return f"{where(i)} ({ids[pairs[i, 0]]}, {ids[pairs[i, 1]]}) repeats {where(first[i])}"

        raise GraphError(f"{path}: links given twice (their direction does not count): {listed(repeats, repeat)}")


def canonical_order(names: list[str]) -> list[str]:
    """Whole numbers by value, anything else by code point."""
    return sorted(names, key=int) if all(map(INTEGER.fullmatch, names)) else sorted(names)


def listed(positions: NDArray[np.intp], describe: Callable[[int], str]) -> str:
    """The first few, and how many more."""
    more = f" and {len(positions) - _SHOWN} more" if len(positions) > _SHOWN else ""
    return "; ".join(describe(int(i)) for i in positions[:_SHOWN]) + more


class _Table:
    """The text of a file, its separator, and which column is what."""

    def __init__(self, path: Path, *, weighted: bool = True, confidential: bool = False) -> None:
        self.path = path
        self.confidential = confidential
        self.text = _text(path)
        start = re.search(rb"\S", self.text)
        if start is None:
            raise GraphError(f"{path}: no links, only comments and empty lines; {_EXPECTED}")
        begin = self.text.rfind(b"\n", 0, start.start()) + 1
        first_line = self.text[begin:].split(b"\n", 1)[0].decode()
        candidates = _SEPARATORS.get(path.suffix.lower(), _OTHER_SEPARATORS)
        self.separator = next((s for s in candidates if s in first_line.strip()), candidates[0])
        fields = _fields(first_line, self.separator) or [first_line]
        self.width = len(fields)
        titles = [field.strip(_BLANKS).lower() for field in fields]
        source, target, weight = (
            next((i for i, title in enumerate(titles) if title in known), None)
            for known in (SOURCE_NAMES, TARGET_NAMES, WEIGHT_NAMES)
        )
        self.has_header = source is not None and target is not None
        if not self.has_header and self.width not in {2, 3}:
            number = self.text.count(b"\n", 0, begin) + 1
            columns = "one column" if self.width == 1 else f"{self.width} columns"
            raise GraphError(f"{path}: line {number} has {columns}{self._quoted(first_line, ': ')}; {_EXPECTED}")
        self.source = source if source is not None and self.has_header else 0
        self.target = target if target is not None and self.has_header else 1
        self.weight = weight if self.has_header else (2 if self.width == 3 else None)
        if not weighted:
            self.weight = None
        self._titles = [field.strip(_BLANKS) for field in fields]

    def layout(self, *, named: bool) -> Layout:
        """The layout, given whether the first line names the columns."""
        if not named:
            return Layout(self.separator, None)
        weight = "weight" if self.weight is None else self._titles[self.weight]
        ignored = [title for i, title in enumerate(self._titles) if i not in {self.source, self.target, self.weight}]
        return Layout(self.separator, (self._titles[self.source], self._titles[self.target], weight), tuple(ignored))

    def _quoted(self, line: str, before: str) -> str:
        return "" if self.confidential else before + _shortened(line)

    @cached_property
    def lines(self) -> list[bytes]:
        return self.text.split(b"\n")

    def cells(self) -> "pd.DataFrame":
        """All cells as strings, one row a line, the empty lines too, so that a row's number is its line's."""
        import pandas as pd

        try:
            return pd.read_csv(
                BytesIO(self.text),
                sep=r"\s+" if self.separator == " " else self.separator,
                header=None,
                names=range(self.width),
                index_col=False,
                dtype=str,
                na_filter=False,
                skip_blank_lines=False,
                skipinitialspace=True,
                engine="c",
            )
        except pd.errors.ParserError as error:
            raise self.malformed(str(error)) from None

    def malformed(self, reason: str) -> GraphError:
        """The error that lists the lines with too few or too many columns, empty names or open quotes."""
        needed = {self.source, self.target} | ({self.weight} - {None})

        def is_bad(line: bytes) -> bool:
            fields = _fields(line.decode(), self.separator)
            if fields is None or len(fields) != self.width:
                return bool(line.strip())
            return not all(fields[i].strip(_BLANKS) for i in needed if i is not None)

        bad = np.flatnonzero([is_bad(line) for line in self.lines])
        columns = f"{self.width} columns, as in the first line"
        expected = f"expected {columns}, and no empty name; correct or delete them"
        if not len(bad):
            return GraphError(f"{self.path}: malformed lines ({expected}): {reason}")
        total = sum(bool(line.strip()) for line in self.lines)
        share = f"{len(bad)} of {total}, {len(bad) / total:.0%}"
        found = listed(bad, lambda i: f"line {i + 1}{self._quoted(self.lines[i].decode(), ' ')}")
        return GraphError(f"{self.path}: malformed lines ({share}; {expected}): {found}")


def _text(path: Path) -> bytes:
    """UTF-8 text with plain line ends, comments blanked out (not removed: lines keep their numbers)."""
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise GraphError(f"{path}: the file is empty; {_EXPECTED}")
    kind = next((text for start, text in _SIGNATURES.items() if data.startswith(start)), "")
    if kind:
        raise GraphError(f"{path}: a binary file, {kind}; {_EXPECTED}")
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise GraphError(f"{path}: a binary file: line {line} has a NUL byte; save it as text; {_EXPECTED}")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise GraphError(
            f"{path}: not UTF-8 text: byte 0x{data[error.start]:02x} in line {line}; save it as UTF-8"
        ) from None
    return _COMMENT.sub(b"", data) if b"#" in data else data


def _fields(line: str, separator: str) -> list[str] | None:
    """The cells of one line; None if its quotes do not match."""
    if separator == " ":
        line = line.replace("\t", " ").strip()
    try:
        return next(csv.reader([line], delimiter=separator, skipinitialspace=True, strict=True), [])
    except csv.Error:
        return None


def _shortened(line: str) -> str:
    return repr(line if len(line) <= _SHOWN_CHARACTERS else line[: _SHOWN_CHARACTERS - 1] + "…")


def _factorized(source: "pd.Series[str]", target: "pd.Series[str]") -> tuple[NDArray[np.int64], list[str]]:
    """Numbers in place of names, shape [rows, 2], and the names, without the blanks around them."""
    import pandas as pd

    codes, uniques = pd.factorize(pd.concat([source, target], ignore_index=True))
    names: dict[str, int] = {}
    merged = np.array([names.setdefault(name.strip(_BLANKS), len(names)) for name in uniques], dtype=np.int64)
    return merged[codes].reshape(2, -1).T, list(names)


def _is_title(codes: NDArray[np.int64], names: list[str]) -> bool:
    """Whether the first row is a header with names of its own: two words above nothing but whole numbers."""
    is_number = np.array([INTEGER.fullmatch(name) is not None for name in names])
    return len(codes) > 1 and not is_number[codes[0]].any() and bool(is_number[codes[1:]].all())


def _ordered(codes: NDArray[np.int64], names: list[str]) -> tuple[list[str], Pairs]:
    """The names in use, in canonical order, and the links as positions among them."""
    used = np.zeros(len(names), dtype=np.bool_)
    used[codes] = True
    ids = canonical_order([name for name, is_used in zip(names, used, strict=True) if is_used])
    place = {name: i for i, name in enumerate(ids)}
    position = np.array([place.get(name, -1) for name in names], dtype=np.int64)
    return ids, position[codes]


def _weights(
    path: Path, cells: "pd.Series[str]", where: Callable[[int], str], *, confidential: bool
) -> NDArray[np.float32]:
    import pandas as pd

    values = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    with np.errstate(over="ignore"):
        weights = values.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(weights) | (weights <= 0))
    if len(bad):
        found = listed(bad, lambda i: where(i) + ("" if confidential else f" {_shortened(cells.iloc[i])}"))
        raise GraphError(f"{path}: weights that are not positive, finite numbers: {found}; {_EXPECTED}")
    return weights
