"""The compact file that results travel in: gzipped JSON Lines, a header and then one row a line.

Rows are trimmed to what ranking and provenance need. Left out are logs, digests of stored arrays (unless the arrays
travel along, see `submission`) and keys of required cells; what equals a field's default is not written; provenances
and names of metrics stand once, in the header. Numbers keep five significant digits. Rows stand in the order of their
cells, so that equal rows give equal bytes.
"""

import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any

import pydantic

from ppgsl_bench import PROTOCOL_VERSION
from ppgsl_bench.errors import UserError
from ppgsl_bench.rows import Row

SUFFIX = ".jsonl.gz"
FORMAT = "ppgsl-bench rows"
VERSION = 1
PACKED_KINDS = frozenset({"split", "publish", "attack", "utility"})
"""Embeddings are left out: their time and memory are part of their attacks'."""

SIGNIFICANT_DIGITS = 5
# Enough to tell millions of rows apart; `ppgsl-bench show` takes the beginning of a key.
_KEY_DIGITS = 24
_REASON_LENGTH = 300
# Four times the shipped results; a file that unpacks to more than this is not one of rows.
_MAX_UNPACKED_BYTES = 512 * 2**20

# What differs from row to row; the rest of a provenance is shared.
_OWN_PROVENANCE = ("finished", "plugin", "source")
_DROPPED = frozenset({"baseline_host_bytes", "log", "requires"})
_DEFAULTS: dict[str, Any] = {
    **{f.name: f.default for f in fields(Row)},
    **{name: {} for name in ("artifacts", "digests")},
}


def pack(rows: Iterable[Row], path: Path, source: str = "", *, artifacts: bool = False) -> int:
    """Write rows to a file; returns how many.

    Args:
        rows: of any kinds, in any order.
        path: should end in `.jsonl.gz`.
        source: whose results they are, as the board shows it; if empty, rows keep what they say themselves.
        artifacts: whether rows keep the digests of their stored arrays.
    """
    kept = sorted((row for row in rows if row.kind in PACKED_KINDS), key=cell_order)
    dropped = _DROPPED if artifacts else _DROPPED | {"artifacts"}
    tables = _Tables()
    lines = [_line(row, tables, dropped) for row in kept]
    header = {
        "format": FORMAT,
        "version": VERSION,
        "protocol": PROTOCOL_VERSION,
        "source": source,
        "metrics": [list(names) for names in tables.metrics],
        "provenances": [json.loads(text) for text in tables.provenances],
    }
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as raw, gzip.GzipFile("", "wb", compresslevel=9, fileobj=raw, mtime=0) as file:
            for document in [header, *lines]:
                file.write(json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode())
                file.write(b"\n")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    return len(kept)


def unpack(path: Path) -> list[Row]:
    """Read rows back, each checked field by field; the file's source is put into each row's provenance."""
    try:
        with gzip.open(path, "rb") as file:
            text = file.read(_MAX_UNPACKED_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: not a readable gzip file ({error})") from error
    if len(text) > _MAX_UNPACKED_BYTES:
        raise UserError(f"{path}: unpacks to more than {_MAX_UNPACKED_BYTES >> 20} MiB")
    lines = io.BytesIO(text)
    try:
        header = _header(next(lines, b""))
        return [_row(line, header) for line in lines]
    except (RecursionError, ValueError) as error:
        number = text[: lines.tell()].count(b"\n")
        raise UserError(f"{path}, line {number}: {error}") from error


def packed_key(key: str) -> str:
    """What of a cell's key stands in a file."""
    return key[:_KEY_DIGITS]


def cell_order(row: Row) -> tuple[str | int, ...]:
    """Sorts rows by cell, those of one published graph side by side."""
    return (row.dataset_label, row.seed, row.defense_label, row.kind, row.evaluator_label, row.key)


class _Tables:
    """What rows have in common, each with its place in the header."""

    def __init__(self) -> None:
        self.metrics: dict[tuple[str, ...], int] = {}
        self.provenances: dict[str, int] = {}


def _line(row: Row, tables: _Tables, dropped: frozenset[str]) -> dict[str, Any]:
    origin = json.dumps({k: v for k, v in row.provenance.items() if k not in _OWN_PROVENANCE}, sort_keys=True)
    own = {k: row.provenance[k] for k in _OWN_PROVENANCE if k in row.provenance}
    document: dict[str, Any] = {
        **vars(row),
        "key": packed_key(row.key),
        "reason": row.reason[:_REASON_LENGTH],
        "metrics": [
            tables.metrics.setdefault(tuple(row.metrics), len(tables.metrics)),
            *(_rounded(value) for value in row.metrics.values()),
        ],
        "wall_seconds": None if row.wall_seconds is None else _rounded(row.wall_seconds),
        "provenance": {"of": tables.provenances.setdefault(origin, len(tables.provenances)), **own},
    }
    return {name: value for name, value in document.items() if name not in dropped and value != _DEFAULTS[name]}


def _rounded(value: float) -> float | int:
    """Whole numbers stay whole."""
    return int(value) if float(value).is_integer() else float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def _header(line: bytes) -> dict[str, Any]:
    header = _parsed(line)
    if header.get("format") != FORMAT:
        raise ValueError(f"does not begin with the header of {FORMAT!r}")
    if header.get("version") != VERSION:
        raise ValueError(f"format version {header.get('version')!r}; this program reads version {VERSION}")
    for table, kind in (("metrics", list), ("provenances", dict)):
        content = header.get(table)
        if not isinstance(content, list) or not all(isinstance(item, kind) for item in content):
            raise ValueError(f"the header lacks its table of {table}")
    if not isinstance(header.get("source"), str):
        raise ValueError("the header's source is not a text")  # noqa: TRY004 - as below
    return header


def _row(line: bytes, header: dict[str, Any]) -> Row:
    document = _parsed(line)
    values = document.get("metrics")
    if not isinstance(values, list) or not values:
        raise ValueError("metrics: not a list of values")
    names = _looked_up(header, "metrics", values[0])
    if len(names) != len(values) - 1:
        raise ValueError(f"metrics: {len(values) - 1} values for {len(names)} names")
    document["metrics"] = dict(zip(names, values[1:], strict=True))
    own = document.get("provenance")
    if not isinstance(own, dict):
        raise ValueError("provenance: not an object")  # noqa: TRY004 - as below
    document["provenance"] = {**_looked_up(header, "provenances", own.pop("of", None)), **own}
    if header["source"]:
        document["provenance"]["source"] = header["source"]
    return checked(document)


def _looked_up(header: dict[str, Any], table: str, index: object) -> Any:
    content = header[table]
    if not isinstance(index, int) or not 0 <= index < len(content):
        raise ValueError(f"{table}: {index!r} is no place in the header's table")
    return content[index]


def checked(document: dict[str, Any]) -> Row:
    """A row from plain data, every field of the right type and none unknown."""
    given = {**document, "requires": tuple(document.get("requires", ()))}
    try:
        _schema().model_validate(given)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}, not {first['input']!r:.60}") from None
    return Row(**given)


@cache
def _schema() -> type[pydantic.BaseModel]:
    """The fields of a row as a model that converts nothing: "1" is no number."""
    config = pydantic.ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    defaults = {f.name: f.default_factory() if f.default_factory is not MISSING else f.default for f in fields(Row)}
    types: dict[str, Any] = {
        f.name: (f.type, ... if defaults[f.name] is MISSING else defaults[f.name]) for f in fields(Row)
    }
    return pydantic.create_model("PackedRow", __config__=config, **types)


def _parsed(line: bytes) -> dict[str, Any]:
    document = json.loads(line, parse_constant=_refuse_constant)
    if not isinstance(document, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - all that is wrong with a file is a ValueError
    return document


def _refuse_constant(name: str) -> Iterator[None]:
    raise ValueError(f"{name} is not a number that JSON knows")
