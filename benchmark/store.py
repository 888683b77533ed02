"""Where results live: rows in SQLite, arrays in a content-addressed folder of `.npz` files.

    DIR/rows.sqlite        one row a finished cell, each with a checksum of its own
    DIR/objects/ab/….npz   arrays, named by the SHA-256 of the file; never pickles
    DIR/quarantine/        what was found damaged, set aside and no longer trusted
    DIR/lock               held by the one process that writes

Nothing is trusted that does not match its checksum: a damaged row or array counts as absent, and its cell runs again.
A full disk or a folder that cannot be written is not damage: then nothing is moved, and the user is told.
"""

import hashlib
import io
import os
import re
import shutil
import sqlite3
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import filelock
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ppgsl_bench.errors import UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.rows import Row
from ppgsl_bench.salvage import PAGE_BYTES, Columns, rows_in_log, rows_in_pages

Arrays = Mapping[str, NDArray[Any]]

_DIGEST = re.compile(r"[0-9a-f]{64}")
# A file being written is called so; what a killed process left of one is cleared away after an hour.
_PARTIAL = ".partial"
_ABANDONED_SECONDS = 3600

_TABLE = (
    "CREATE TABLE rows "
    "(sequence INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, document TEXT NOT NULL, checksum TEXT NOT NULL)"
)
_SCHEMA = [("table", "rows", 2, _TABLE), ("index", "sqlite_autoindex_rows_1", 3, None)]
# What SQLite says when the disk, the folder or another process is in the way; anything else it says means damage.
_NOT_DAMAGE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    }
)


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
        """Where an object of that digest is kept; nothing else that a row may name is a place."""
        if not _DIGEST.fullmatch(digest):
            raise DamagedObjectError(digest, "this is not a SHA-256")
        return self.folder / digest[:2] / f"{digest}.npz"

    def put(self, arrays: Arrays) -> str:
        """Store arrays and return their digest."""
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        return self._write(buffer.getvalue())

    def get(self, digest: str) -> dict[str, NDArray[Any]]:
        """Read arrays back, after checking that the file is what its name says."""
        content = self._read(digest)
        try:
            _refuse_compressed(content)
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except (
            ArithmeticError,
            EOFError,
            LookupError,
            MemoryError,
            OSError,
            SyntaxError,
            TypeError,
            ValueError,
        ) as error:
            raise DamagedObjectError(digest, f"not arrays as this program stores them ({error})") from error
        except (RuntimeError, zipfile.BadZipFile) as error:
            raise DamagedObjectError(digest, f"not a readable archive ({error})") from error

    def copy(self, digest: str, source: "Objects") -> None:
        """Take over an object from another folder, checked on the way."""
        self._write(source._read(digest))

    def clear_abandoned(self) -> None:
        """Remove what processes that were killed left half written."""
        for path in self.folder.glob(f"*/*{_PARTIAL}"):
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                    path.unlink()

    def _write(self, content: bytes) -> str:
        """The file appears whole or not at all; a damaged one in its place is replaced."""
        digest = hashlib.sha256(content).hexdigest()
        path = self.path(digest)
        if path.exists() and path.read_bytes() == content:
            return digest
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=_PARTIAL)
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
        except OSError as error:
            raise DamagedObjectError(digest, f"the file cannot be read ({error.strerror})") from error
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
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._lock: filelock.BaseFileLock | None = None
        self.notices: list[str] = []

    def writing(self) -> "Results":
        """Take the folder for this process; refused while another one has it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = filelock.FileLock(self.folder / "lock")
            lock.acquire(timeout=0)
            self.objects.clear_abandoned()
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
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def row(self, key: str) -> Row | None:
        """The row of a cell, or None; a damaged one counts as absent."""
        return next(self._query("WHERE key = ?", (key,)), None)

    def rows(self) -> list[Row]:
        """All sound rows, in the order in which their cells first finished."""
        return list(self.each_row())

    def each_row(self) -> Iterator[Row]:
        """The same, one at a time: for those who need not have all of them in memory."""
        return self._query("ORDER BY sequence", ())

    def put(self, row: Row) -> None:
        """Store a row; durable when this returns."""
        document = row.to_json()
        self._change(
            "INSERT INTO rows (key, document, checksum) VALUES (?, ?, ?) "
            "ON CONFLICT (key) DO UPDATE SET document = excluded.document, checksum = excluded.checksum",
            [(row.key, document, _checksum(row.key, document))],
        )

    def delete(self, keys: Iterable[str]) -> None:
        """Forget rows, so that their cells run again."""
        self._change("DELETE FROM rows WHERE key = ?", [(key,) for key in keys])

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

    def _change(self, sql: str, parameters: Sequence[tuple[object, ...]]) -> None:
        """Write to the database; durable when this returns."""
        if self._lock is None:
            raise RuntimeError("Results must be opened with writing() before rows are stored")
        for last_try in (False, True):
            connection = self._open()
            try:
                with connection:
                    connection.executemany(sql, parameters)
            except sqlite3.DatabaseError as error:
                if last_try or not _is_damage(error):
                    raise self._cannot("store a row in", error) from error
                self._rebuild(str(error))
            else:
                return

    def _cannot(self, do: str, error: Exception) -> UserError:
        return UserError(f"cannot {do} {self._database}: {error}; the rows that it has are kept")

    def _query(self, condition: str, arguments: tuple[str, ...]) -> Iterator[Row]:
        if not (self._database.exists() or self._rebuilt.exists()):
            return
        sql = f"SELECT sequence, key, document, checksum FROM rows {condition}"  # noqa: S608 - conditions of this class
        damaged = []
        for number, *columns in self._selected(sql, arguments):
            row = _sound_row(*columns)
            if row is not None:
                yield row
            else:
                damaged.append((number, columns))
        if damaged:
            self._forget(damaged)

    def _selected(self, sql: str, arguments: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
        """What a query finds; from the beginning again, should the database turn out damaged on the way."""
        seen = 0
        try:
            for columns in self._open().execute(sql, arguments):
                seen += 1
                yield columns
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise self._cannot("read", error) from error
            if self._lock is None or seen:
                raise UserError(
                    f"{self._database} is damaged ({error}); the next run sets it aside and saves what is sound"
                ) from error
            self._rebuild(str(error))
            yield from self._open().execute(sql, arguments)

    def _forget(self, damaged: Iterable[tuple[int, Sequence[object]]]) -> None:
        """Say which rows are damaged; who may write takes them out, so that nobody meets them again."""
        damaged = list(damaged)
        for number, columns in damaged:
            self._notice(f"ignored the damaged row {str(columns[0])[:12]}…; its cell is computed again")
            if self._lock is not None:
                self._quarantine(f"row-{number}.txt").write_text(repr(columns), encoding="utf-8")
        if self._lock is not None:
            self._change("DELETE FROM rows WHERE sequence = ?", [(number,) for number, _ in damaged])

    def _notice(self, text: str) -> None:
        if text not in self.notices:
            self.notices.append(text)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            if self._lock is None:
                self._connection = self._open_for_reading()
            else:
                self._open_for_writing()
        if self._connection is None:
            raise RuntimeError("the database did not open")
        return self._connection

    def _open_for_reading(self) -> sqlite3.Connection:
        try:
            return _read_only(self._database)
        except sqlite3.OperationalError as error:
            if _code(error) not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
                raise self._cannot("read", error) from error
        # SQLite keeps an index of the log beside the database. In a folder that cannot be written it reads a copy.
        try:
            self._copy = tempfile.TemporaryDirectory(prefix="ppgsl-bench-")
            for path in self._parts():
                shutil.copy(path, self._copy.name)
            return _read_only(Path(self._copy.name) / self._database.name)
        except (OSError, sqlite3.OperationalError) as error:
            raise self._cannot("read", error) from error

    def _open_for_writing(self) -> None:
        if self._rebuilt.exists():
            self._adopt_rebuilt()
        logged = _sound_rows(rows_in_log(self._database))
        problem = _problem(self._database)
        if problem is None:
            try:
                self._connection = _connect(self._database)
                problem = self._connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise self._cannot("open", error) from error
                problem = str(error)
        if problem not in {None, "ok"}:
            self._rebuild(str(problem))
        self._restore(logged)

    def _restore(self, logged: Mapping[str, Row]) -> None:
        """Put back rows of a log that a killed run left and SQLite, which stops at the first wrong byte, did not read.

        Only results: a failure may have been deleted on purpose.
        """
        lost = [row for row in logged.values() if row.status == "ok" and self.row(row.key) is None]
        for row in lost:
            self.put(row)
        if lost:
            self._notice(f"the log of the results database was damaged; {len(lost)} rows saved from it")

    @property
    def _rebuilt(self) -> Path:
        """A whole new database that has yet to take the place of the damaged one."""
        return self._database.with_name(f"{self._database.name}.rebuilt")

    def _parts(self) -> list[Path]:
        """The files of the database that there are."""
        parts = (Path(f"{self._database}{suffix}") for suffix in ("", "-wal", "-shm"))
        return [part for part in parts if part.exists()]

    def _rebuild(self, problem: str) -> None:
        """Set a damaged database aside and carry over every row in it that matches its checksum.

        The damaged files stay in place until the new one is whole: being killed on the way, or a full disk, costs
        nothing.
        """
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        unfinished = self._database.with_name(f"{self._database.name}{_PARTIAL}")
        for suffix in ("", "-journal", "-wal", "-shm"):
            Path(f"{unfinished}{suffix}").unlink(missing_ok=True)
        saved = _sound_rows(rows_in_pages(self._database)) | _sound_rows(rows_in_log(self._database))
        try:
            connection = _connect(unfinished)
            with connection:
                connection.executemany(
                    "INSERT INTO rows (key, document, checksum) VALUES (?, ?, ?)",
                    [(row.key, row.to_json(), _checksum(row.key, row.to_json())) for row in saved.values()],
                )
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.close()
            aside = self._quarantine(self._database.name)
            for part in self._parts():
                shutil.copy(part, f"{aside}{part.name.removeprefix(self._database.name)}")
        except (OSError, sqlite3.DatabaseError) as error:
            raise UserError(
                f"{self._database} is damaged ({problem}) and could not be mended: {error}; nothing was changed"
            ) from error
        unfinished.replace(self._rebuilt)
        self._adopt_rebuilt()
        self._connection = _connect(self._database)
        self._notice(
            f"the results database was damaged ({problem}); set aside as {aside.name}, {len(saved)} rows saved"
        )

    def _adopt_rebuilt(self) -> None:
        # A log beside a database is applied to it, whosever it was: it goes first.
        for part in self._parts()[1:]:
            part.unlink()
        self._rebuilt.replace(self._database)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30)
    try:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(_TABLE.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
        _refuse_other_schema(connection)
    except BaseException:
        connection.close()
        raise
    connection.text_factory = _decoded
    return connection


def _read_only(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    connection.text_factory = _decoded
    _refuse_other_schema(connection)
    return connection


def _decoded(text: bytes) -> str:
    """A damaged text does not match its checksum, but it must not keep the others from being read."""
    return text.decode("utf-8", "replace")


def _refuse_other_schema(connection: sqlite3.Connection) -> None:
    """A damaged schema hides rows, and somebody's view called `rows` could compute for ever."""
    found = connection.execute("SELECT type, name, rootpage, sql FROM sqlite_schema").fetchall()
    if found not in ([], _SCHEMA):
        raise sqlite3.DatabaseError("its tables are not those of a results folder")


def _problem(database: Path) -> str | None:
    """What is wrong with the first bytes of a database, of which SQLite takes some for a wish to be read only."""
    with database.open("rb") if database.exists() else io.BytesIO() as file:
        header = file.read(24)
    # A database that was never written to is empty. Versions are 1 until it has a log, and 2 from then on.
    if not header or re.fullmatch(rb"SQLite format 3\0\x10\x00(\x01\x01|\x02\x02)\x00\x40\x20\x20", header, re.DOTALL):
        return None
    return "its header is damaged"


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    return _code(error) not in _NOT_DAMAGE


def _code(error: sqlite3.DatabaseError) -> int:
    """SQLite's primary code; errors of Python's own module have none and tell of content that it cannot take."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)) & 0xFF


def _checksum(key: str, document: str) -> str:
    return hashlib.sha256(f"{key}\n{document}".encode()).hexdigest()


def _sound_rows(found: Iterable[Columns]) -> dict[str, Row]:
    """Rows by key; of several versions the last one, but a result before a failure."""
    rows: dict[str, Row] = {}
    for columns in found:
        row = _sound_row(*(text.decode("utf-8", "replace") for text in columns)) if len(columns) == 3 else None
        if row is not None and (row.status == "ok" or row.key not in rows or rows[row.key].status != "ok"):
            rows[row.key] = row
    return rows


def _sound_row(key: object, document: object, checksum: object) -> Row | None:
    if not isinstance(key, str) or not isinstance(document, str) or _checksum(key, document) != checksum:
        return None
    try:
        row = Row.from_json(document)
    except (RecursionError, TypeError, ValueError):
        return None
    return row if row.key == key else None


def _refuse_compressed(archive: bytes) -> None:
    """Arrays are stored as they are, so that a small file cannot unpack to a large one."""
    with zipfile.ZipFile(io.BytesIO(archive)) as members:
        if any(member.compress_type != zipfile.ZIP_STORED for member in members.infolist()):
            raise ValueError("a compressed archive")
