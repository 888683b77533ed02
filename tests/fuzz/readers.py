"""What reads what a user hands in, each as a function of bytes: anything but an answer or a `UserError` is a bug."""

import gzip
import io
import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from ppgsl_bench.datasets.files import read_graph_file
from ppgsl_bench.errors import UserError
from ppgsl_bench.expressions import parse, split_list
from ppgsl_bench.leaderboard.measurements import Measurements
from ppgsl_bench.leaderboard.packed import pack
from ppgsl_bench.leaderboard.ranking import rank
from ppgsl_bench.leaderboard.sources import board_rows
from ppgsl_bench.leaderboard.submission import check, known_digests, opened
from ppgsl_bench.leaderboard.tables import ranking_text
from ppgsl_bench.plan import choose
from ppgsl_bench.quantities import parse_duration, parse_seeds, parse_size
from ppgsl_bench.store import Objects, Results, _checksum
from ppgsl_bench.suite import load_suite

CHOICE = {"datasets": ["karate"], "defenses": ["none"], "attacks": ["cn"], "utilities": [], "seeds": [0]}


def text_of(data):
    return data.decode("utf-8", "surrogateescape")


def expressions(data):
    """`NAME[…]`, lists of them, durations, sizes, seeds."""
    for read in (parse, split_list, parse_duration, parse_size, parse_seeds):
        tolerated(read, text_of(data))


def plugin_names(data):
    """Names and parameters of every kind of plugin; those of files and downloads are other readers' work."""
    for axis in ("datasets", "defenses", "attacks", "utilities"):
        tolerated(lambda axis=axis: choose(**{**CHOICE, axis: [text_of(data)]}))


def suite(data):
    with folder() as place:
        (place / "mine.toml").write_bytes(data)
        tolerated(load_suite, str(place / "mine.toml"))


def suite_name(data):
    tolerated(load_suite, text_of(data))


def packed_rows(data):
    """A `.jsonl.gz` file; the bytes are what is in it, so that not only gzip is tested."""
    with folder() as place:
        (place / "theirs.jsonl.gz").write_bytes(gzip.compress(data, 1))
        tolerated(read_board, place / "theirs.jsonl.gz")
        tolerated(check_submission, place / "theirs.jsonl.gz")


def packed_file(data):
    with folder() as place:
        (place / "theirs.jsonl.gz").write_bytes(data)
        tolerated(read_board, place / "theirs.jsonl.gz")


def archive(data):
    with folder() as place:
        (place / "theirs.zip").write_bytes(data)
        tolerated(check_submission, place / "theirs.zip")


def stored_row(data):
    """A row in somebody's results folder, with the checksum that it should have."""
    with folder() as place:
        document = data.decode("utf-8", "replace")
        try:
            key = json.loads(document)["key"]
        except (KeyError, RecursionError, TypeError, ValueError):
            key = "k"
        (place / "rows.sqlite").write_bytes(empty_database())
        with sqlite3.connect(place / "rows.sqlite") as connection:
            sql = "INSERT INTO rows (key, document, checksum) VALUES (?, ?, ?)"
            connection.execute(sql, (str(key), document, _checksum(str(key), document)))
        connection.close()
        tolerated(read_board, place)
        tolerated(check_submission, place)


def database(data):
    with folder() as place:
        (place / "rows.sqlite").write_bytes(data)
        tolerated(read_board, place)
        with Results(place).writing() as results:
            tolerated(results.rows)


def stored_arrays(data):
    """Arrays whose name is right and whose content is not ours."""
    with folder() as place:
        objects = Objects(place)
        try:
            objects.get(objects._write(data))
        except Exception as error:
            if type(error).__name__ != "DamagedObjectError":
                raise


def graph_file(suffix):
    def read(data):
        with folder() as place:
            (place / f"graph{suffix}").write_bytes(data)
            tolerated(read_graph_file, place / f"graph{suffix}")

    return read


READERS: dict[str, Callable[[bytes], None]] = {
    "expressions": expressions,
    "plugin names": plugin_names,
    "suite": suite,
    "suite name": suite_name,
    "packed rows": packed_rows,
    "packed file": packed_file,
    "archive": archive,
    "stored row": stored_row,
    "database": database,
    "stored arrays": stored_arrays,
    **{f"graph{suffix}": graph_file(suffix) for suffix in (".csv", ".txt", ".graphml", ".gml", ".npz")},
}


def tolerated(read, *arguments):
    """Call; bad input may be refused, and must not be answered by anything else."""
    try:
        return read(*arguments)
    except UserError:
        return None


def read_board(place):
    """As `leaderboard --results`."""
    return ranking_text(rank(Measurements(board_rows([place]))), "table", None)


def check_submission(place):
    """As `submit-check`."""
    with opened(place) as given:
        return check(given, known())


@cache
def known():
    from leaderboard_rows import board

    return known_digests(board())


@cache
def empty_database():
    """A results folder's database without rows, made once."""
    with folder() as place:
        with Results(place).writing() as results:
            results.delete([])
        return (place / "rows.sqlite").read_bytes()


def folder():
    return _Folder()


class _Folder(tempfile.TemporaryDirectory):
    """A place of its own, beside which nothing may appear."""

    def __enter__(self):
        outer = Path(super().__enter__())
        self._place = outer / "place"
        self._place.mkdir()
        return self._place

    def __exit__(self, *args):
        strangers = [path.name for path in self._place.parent.iterdir() if path != self._place]
        super().__exit__(*args)
        assert strangers == []


def sample_archive(rows):
    """A submission as a `.zip` file, in bytes."""
    with tempfile.TemporaryDirectory() as place:
        pack(rows, Path(place) / "rows.jsonl.gz", "somebody", artifacts=True)
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as members:
            members.write(Path(place) / "rows.jsonl.gz", "rows.jsonl.gz")
        return content.getvalue()
