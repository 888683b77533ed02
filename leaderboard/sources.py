"""Where the board's rows come from: the files that ship with the package, results folders, packed files."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

from ppgsl_bench.errors import UserError
from ppgsl_bench.leaderboard.packed import SUFFIX, unpack
from ppgsl_bench.rows import Row
from ppgsl_bench.store import Results


def shipped_rows() -> list[Row]:
    """The rows in `results/` of this package: this project's own and merged submissions; empty if none ship."""
    folder = resources.files("ppgsl_bench.leaderboard") / "results"
    if not folder.is_dir():
        return []
    rows: list[Row] = []
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if file.name.endswith(SUFFIX):
            with resources.as_file(file) as path:
                rows += unpack(path)
    return rows


def rows_in(place: Path) -> list[Row]:
    """The rows of a results folder or a packed file."""
    if place.is_file() and place.name.endswith(SUFFIX):
        return unpack(place)
    if not (place / "rows.sqlite").exists():
        raise UserError(f"there are no results in {place}; name a results folder or a file that ends in {SUFFIX}")
    with Results(place) as results:
        return results.rows()


def board_rows(places: Sequence[Path], *, with_shipped: bool = False) -> list[Row]:
    """The rows of some places, or those that ship with the package if none is named, or both."""
    shipped = shipped_rows() if with_shipped or not places else []
    if not places and not shipped:
        raise UserError(
            "this installation ships no results; run `ppgsl-bench run`, then name the folder with --results"
        )
    own = [row for place in places for row in _marked(rows_in(place), place.name if with_shipped else "")]
    return shipped + own


def _marked(rows: Iterable[Row], source: str) -> list[Row]:
    """Beside shipped rows, a user's own stand with the name of their folder."""
    if not source:
        return list(rows)
    return [replace(row, provenance={"source": source, **row.provenance}) for row in rows]
