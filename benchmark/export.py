"""Rows as long tables: one line a metric."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from ppgsl_bench.errors import UserError
from ppgsl_bench.rows import Row

FORMATS = ("csv", "jsonl", "parquet")
EXPORTED_KINDS = ("publish", "attack", "utility")

COLUMNS = (
    *("dataset", "seed", "defense", "defense_params", "kind", "evaluator", "evaluator_params", "metric", "value"),
    *("status", "wall_seconds", "peak_host_bytes", "peak_gpu_bytes"),
    *("baseline_host_bytes", "peak_gpu_reserved_bytes", "dataset_params", "reason", "key"),
    *("dataset_digest", "split_digest", "published_digest", "plugin", "ppgsl_bench", "protocol", "revision", "python"),
    *("torch", "numpy", "device", "threads", "processor", "finished"),
)


def long_table(rows: Iterable[Row]) -> pd.DataFrame:
    """One line a metric; a cell without metrics (it failed, say) has one line with an empty metric and value."""
    return pd.DataFrame(list(_lines(rows)), columns=list(COLUMNS))


def _lines(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    for row in rows:
        if row.kind not in EXPORTED_KINDS:
            continue
        origin = row.provenance
        libraries = origin.get("libraries", {})
        common = {
            **{name: getattr(row, name) for name in COLUMNS if name in Row.__dataclass_fields__},
            **{name: origin.get(name) for name in COLUMNS if name in origin},
            **{name: libraries.get(name) for name in ("torch", "numpy")},
            **{f"{name}_digest": row.digests.get(name, "") for name in ("dataset", "split", "published")},
        }
        for metric, value in row.metrics.items() or [("", None)]:
            yield {**common, "metric": metric, "value": value}


def export(rows: Iterable[Row], path: Path, file_format: str | None = None) -> int:
    """Write the long table to a file; returns the number of lines. The format follows from the name unless given."""
    file_format = file_format or path.suffix.removeprefix(".").lower()
    if file_format not in FORMATS:
        raise UserError(
            f"{path}: cannot export to {file_format or 'a file without suffix'!r}; use {', '.join(FORMATS)}"
        )
    table = long_table(rows)
    partial = path.with_name(f".{path.name}.partial")
    try:
        if file_format == "csv":
            table.to_csv(partial, index=False)
        elif file_format == "jsonl":
            table.to_json(partial, orient="records", lines=True, double_precision=15)
        else:
            _to_parquet(table, partial)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    return len(table)


def _to_parquet(table: pd.DataFrame, path: Path) -> None:
    try:
        table.to_parquet(path, index=False)
    except ImportError as error:
        raise UserError("Parquet needs pyarrow; install it with: pip install 'ppgsl-bench[parquet]'") from error


def row_document(row: Row) -> dict[str, Any]:
    """A row as plain data, parameters decoded, for `--json`."""
    document: dict[str, Any] = json.loads(row.to_json())
    for name in ("dataset_params", "defense_params", "evaluator_params"):
        document[name] = json.loads(document[name])
    return document
