"""Where results live: rows in SQLite, arrays in a content-addressed folder of `.npz` files.

    DIR/rows.sqlite        one row a finished cell, each with a checksum of its own
    DIR/objects/ab/….npz   arrays, named by the SHA-256 of the file; never pickles
    DIR/quarantine/        what was found damaged, set aside and no longer trusted
    DIR/lock               held by the one process that writes

Nothing is trusted that does not match its checksum: a damaged row or array counts as absent, and its cell runs again.
"""

import hashlib
import io
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import filelock
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ppgsl_bench.errors import UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.rows import Row

Arrays = Mapping[str, NDArray[Any]]


class DamagedObjectError(Exception):
    """A stored array file is missing or does not match its name."""

    def __init__(self, digest: str, problem: str) -> None:
        super().__init__(f"stored arrays {digest[:12]}…: {problem}")
        self.digest = digest


class Objects:
    """Arrays by the SHA-256 of their file. Writing the same content twice stores it once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, digest: str) -> Path:
        """Where an object of that digest is kept."""
        return self.folder / digest[:2] / f"{digest}.npz"

    def put(self, arrays: Arrays) -> str:
        """Store arrays and return their digest."""
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        return self._write(buffer.getvalue())

    def get(self, digest: str) -> dict[str, NDArray[Any]]:
        """Read arrays back, after checking that the file is what its name says."""
        with np.load(io.BytesIO(self._read(digest)), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}

    def copy(self, digest: str, source: "Objects") -> None:
        """Take over an object from another folder, checked on the way."""
        if not self.path(digest).exists():
            self._write(source._read(digest))

    def _write(self, content: bytes) -> str:
        """The file appears whole or not at all."""
        digest = hashlib.sha256(content).hexdigest()
        path = self.path(digest)
        if path.exists():
            return digest
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".partial")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return digest

    def _read(self, digest: str) -> bytes:
        try:
            content = self.path(digest).read_bytes()
        except FileNotFoundError:
            raise DamagedObjectError(digest, "the file is missing") from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise DamagedObjectError(digest, "the file does not match its SHA-256")
        return content

    def put_graph(self, graph: Graph) -> dict[str, str]:
        """Store a graph as links and, apart, features, which most published graphs share."""
        structure: dict[str, NDArray[Any]] = {
            "num_nodes": np.array(graph.num_nodes, dtype=np.int64),
            "edges": graph.edges,
        }
        structure["name"] = np.array(graph.name)
        optional = {"weights": graph.weights, "y": graph.y}
        structure |= {name: array for name, array in optional.items() if array is not None}
        artifacts = {"graph": self.put(structure)}
        if isinstance(graph.x, sp.csr_array):
            x = graph.x
            sparse = {"data": x.data, "indices": x.indices, "indptr": x.indptr, "shape": np.array(x.shape)}
            artifacts["features"] = self.put(sparse)
        elif graph.x is not None:
            artifacts["features"] = self.put({"x": graph.x})
        return artifacts

    def get_graph(self, artifacts: Mapping[str, str]) -> Graph:
        """Inverse of `put_graph`."""
        structure = self.get(artifacts["graph"])
        x: Any = None
        if "features" in artifacts:
            stored = self.get(artifacts["features"])
            x = stored.get("x")
            if x is None:
                parts = (stored["data"], stored["indices"], stored["indptr"])
                x = sp.csr_array(parts, shape=tuple(stored["shape"]))
        return Graph(
            num_nodes=int(structure["num_nodes"]),
            edges=structure["edges"],
            weights=structure.get("weights"),
            x=x,
            y=structure.get("y"),
            name=str(structure["name"]),
        )


class Results:
    """A results folder. Open it for writing with `with Results(folder).writing():`; reading needs no lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects = Objects(folder / "objects")
        self._database = folder / "rows.sqlite"
        self._connection: sqlite3.Connection | None = None
        self._lock: filelock.BaseFileLock | None = None
        self.notices: list[str] = []

    def writing(self) -> "Results":
        """Take the folder for this process; refused while another one has it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = filelock.FileLock(self.folder / "lock")
            lock.acquire(timeout=0)
        except filelock.Timeout:
            raise UserError(
                f"another run is writing to {self.folder}; wait for it to end, or choose another folder with --results"
            ) from None
        except OSError as error:
            raise UserError(f"cannot write to the results folder {self.folder}: {error.strerror or error}") from error
        self._lock = lock
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the database and the folder."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def row(self, key: str) -> Row | None:
        """The row of a cell, or None; a damaged one counts as absent."""
        found = self._query("SELECT key, document, checksum FROM rows WHERE key = ?", (key,))
        return next(iter(found), None)

    def rows(self) -> list[Row]:
        """All sound rows, in the order in which their cells first finished."""
        return list(self._query("SELECT key, document, checksum FROM rows ORDER BY sequence", ()))

    def put(self, row: Row) -> None:
        """Store a row; durable when this returns."""
        document = row.to_json()
        try:
            with self._writable() as connection:
                connection.execute(
                    "INSERT INTO rows (key, document, checksum) VALUES (?, ?, ?) "
                    "ON CONFLICT (key) DO UPDATE SET document = excluded.document, checksum = excluded.checksum",
                    (row.key, document, _checksum(row.key, document)),
                )
        except sqlite3.OperationalError as error:
            raise UserError(f"cannot store a row in {self._database}: {error}; the rows before it are kept") from error

    def delete(self, keys: Iterable[str]) -> None:
        """Forget rows, so that their cells run again."""
        with self._writable() as connection:
            connection.executemany("DELETE FROM rows WHERE key = ?", [(key,) for key in keys])

    def set_aside(self, digest: str) -> None:
        """Move a damaged object out of the way."""
        path = self.objects.path(digest)
        if path.exists():
            path.replace(self._quarantine(path.name))
            self.notices.append(f"set aside the damaged file {path.name}; what it held is computed again")

    def _quarantine(self, name: str) -> Path:
        folder = self.folder / "quarantine"
        folder.mkdir(exist_ok=True)
        return folder / f"{time.time_ns()}-{name}"

    def _query(self, sql: str, arguments: tuple[str, ...]) -> Iterator[Row]:
        if not self._database.exists():
            return
        try:
            stored = self._open().execute(sql, arguments).fetchall()
        except sqlite3.DatabaseError as error:
            if self._lock is None:
                raise UserError(
                    f"{self._database} is damaged ({error}); the next run sets it aside and saves what is sound"
                ) from error
            self._rebuild(str(error))
            stored = self._open().execute(sql, arguments).fetchall()
        for key, document, checksum in stored:
            row = _sound_row(key, document, checksum)
            if row is not None:
                yield row
            else:
                self._notice(f"ignored the damaged row {str(key)[:12]}…; its cell is computed again")

    def _notice(self, text: str) -> None:
        if text not in self.notices:
            self.notices.append(text)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            if self._lock is None:
                self._connection = sqlite3.connect(f"file:{self._database}?mode=ro", uri=True)
            else:
                self._connection = self._open_for_writing()
        return self._connection

    def _open_for_writing(self) -> sqlite3.Connection:
        try:
            connection = _connect(self._database)
            problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.DatabaseError as error:
            problem = str(error)
        if problem != "ok":
            return self._rebuild(problem)
        return connection

    def _rebuild(self, problem: str) -> sqlite3.Connection:
        """Set a damaged database aside and carry over every row in it that matches its checksum."""
        if self._connection is not None:
            self._connection.close()
        aside = self._quarantine(self._database.name)
        for suffix in ("", "-wal", "-shm"):
            part = Path(f"{self._database}{suffix}")
            if part.exists():
                part.replace(f"{aside}{suffix}")
        self._connection = _connect(self._database)
        saved = 0
        for row in _salvage(aside):
            self.put(row)
            saved += 1
        self._notice(f"the results database was damaged ({problem}); set aside as {aside.name}, {saved} rows saved")
        return self._connection

    def _writable(self) -> sqlite3.Connection:
        if self._lock is None:
            raise RuntimeError("Results must be opened with writing() before rows are stored")
        return self._open()


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS rows "
        "(sequence INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, document TEXT NOT NULL, checksum TEXT NOT NULL)"
    )
    return connection


def _salvage(path: Path) -> Iterator[Row]:
    try:
        connection = sqlite3.connect(path)
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        cursor = connection.execute("SELECT key, document, checksum FROM rows ORDER BY sequence")
        while (stored := cursor.fetchone()) is not None:
            row = _sound_row(*stored)
            if row is not None:
                yield row
    except sqlite3.DatabaseError:
        return  # the pages after this one cannot be read; their cells run again


def _checksum(key: str, document: str) -> str:
    return hashlib.sha256(f"{key}\n{document}".encode()).hexdigest()


def _sound_row(key: object, document: object, checksum: object) -> Row | None:
    if not isinstance(key, str) or not isinstance(document, str) or _checksum(key, document) != checksum:
        return None
    try:
        return Row.from_json(document)
    except (TypeError, ValueError):
        return None
