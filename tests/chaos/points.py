"""Faults at the points where a run makes something durable; installed in a process that is about to run a command.

A point is the moment before or after a file is created, synced, renamed or removed, or a transaction is committed, be
it in the supervisor or in a cell's process. Points are counted over both. With one cell at a time their order is always
the same, so that a fault can be put at each of them in turn.
"""

import errno
import mmap
import os
import random
import signal
import sqlite3
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

from ppgsl_bench import provenance, store

YEARS = 10
FAULT = "fault"
"""The line of the trace that says that the fault really happened."""


class Points:
    """Counts points, and does what a fault says when its point is reached.

    A fault is a dictionary: `action` (kill-supervisor, kill-cell, no-space, torn-write or change-file), `at` (the
    number of the point from 1), and for change-file `file` and `content`.
    """

    def __init__(self, fault, trace, acknowledged):
        self._fault = fault
        self._trace = trace
        self._acknowledged = acknowledged
        self._supervisor = os.getpid()
        # Shared with the cells' processes, which are forked from this one.
        self._count = mmap.mmap(-1, 8)

    def reach(self, name, descriptor=None):
        number = int.from_bytes(self._count[:], "big") + 1
        self._count[:] = number.to_bytes(8, "big")
        in_cell = os.getpid() != self._supervisor
        append(self._trace, f"{'cell' if in_cell else 'supervisor'} {name}")
        if number == self._fault.get("at"):
            self._act(name, descriptor, in_cell)

    def _act(self, name, descriptor, in_cell):
        action = self._fault["action"]
        if action == "kill-supervisor":
            append(self._trace, FAULT)
            os.kill(self._supervisor, signal.SIGKILL)
            time.sleep(60)  # a cell dies with its supervisor
        elif action == "kill-cell" and in_cell:
            append(self._trace, FAULT)
            os.kill(os.getpid(), signal.SIGKILL)
        elif action == "no-space" and name.startswith("before"):
            append(self._trace, FAULT)
            if "commit" in name:
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise error
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        elif action == "torn-write" and descriptor is not None:
            append(self._trace, FAULT)
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
        elif action == "change-file":
            append(self._trace, FAULT)
            Path(self._fault["file"]).write_text(self._fault["content"])

    def install(self):
        """Put the points into this process and all that are forked from it."""
        os.fsync = self._around(os.fsync, "sync", takes_descriptor=True)
        os.replace = self._around(os.replace, "rename")
        os.unlink = self._around(os.unlink, "removal")
        tempfile.mkstemp = self._around(tempfile.mkstemp, "creation")
        points = self

        class Connection(sqlite3.Connection):
            def __exit__(self, kind, error, trace):
                try:
                    points.reach("before a commit")
                except sqlite3.OperationalError:
                    self.rollback()
                    raise
                swallowed = super().__exit__(kind, error, trace)
                points.reach("after a commit")
                return swallowed

        connect = sqlite3.connect
        store.sqlite3.connect = lambda *args, **options: connect(*args, **options, factory=Connection)
        put = store.Results.put

        def acknowledge(results, row):
            put(results, row)
            append(points._acknowledged, row.key)

        store.Results.put = acknowledge

    def _around(self, function, what, *, takes_descriptor=False):
        def surrounded(*args, **options):
            self.reach(f"before a {what}", args[0] if takes_descriptor else None)
            result = function(*args, **options)
            self.reach(f"after a {what}")
            return result

        return surrounded


def append(path, line):
    """Survives the process, for nothing is buffered."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def let_the_clock_jump(seed):
    """The time of day jumps by up to ten years, back or forth, whenever somebody asks for it."""
    draw = random.Random(seed)
    real, real_ns = time.time, time.time_ns
    jump = lambda: draw.uniform(-YEARS, YEARS) * 365 * 86400  # noqa: E731
    time.time = lambda: real() + jump()
    time.time_ns = lambda: real_ns() + int(jump() * 1e9)

    class JumpingClock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(seconds=jump())

    provenance.datetime = JumpingClock
