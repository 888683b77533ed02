"""One process a cell, with hard limits.

Cells are forked from multiprocessing's fork server, which has the heavy libraries loaded already. Each leads a process
group of its own, so that a limit ends everything that the cell started; what it prints goes to a file; and it dies
with the supervisor. (Pebble's pool was measured first: five times the overhead a cell, and a timed-out cell's own
child processes survived it. See docs/design.md.)
"""

import json
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Self

import psutil

from ppgsl_bench.rows import Status

Message = dict[str, Any]
Interruption = Literal["damaged-input", "disk-full"]
"""Ways to end that are not the cell's own doing: no row is made of them."""
Work = Callable[[Message], Message]

# Last, since it freezes what has been loaded before it.
PRELOADED = "ppgsl_bench.preloaded"

_LOG_TAIL_BYTES = 4000
# How often resident memory is looked at while a memory limit is set.
_MEMORY_POLL_SECONDS = 0.05
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Limits:
    """What one cell may use."""

    seconds: float | None = None
    memory_bytes: int | None = None
    threads: int = 1


@dataclass(frozen=True)
class Outcome:
    """How a cell's process ended.

    Attributes:
        status, reason: how, and why if not well.
        message: what it reported, if it came to that.
        log: the last lines that it printed.
        origin: provenance, as far as it is not that of the supervisor because the cell ran on another machine.
    """

    status: Status | Interruption
    reason: str = ""
    message: Message = field(default_factory=dict)
    log: str = ""
    origin: Message = field(default_factory=dict)


class CellProcesses:
    """Runs cells side by side and says how each ended. A context manager: leaving it kills what still runs.

    Args:
        work: what a cell's process does.
        limits: what one cell may use.
        capacity: cells side by side.
        preload: modules that many cells import, loaded once by the fork server if it does not run yet. It serves all
            cells, so only modules that can be trusted to be imported belong there.
    """

    def __init__(self, work: Work, limits: Limits, capacity: int = 1, preload: Iterable[str] = ()) -> None:
        self.capacity = capacity
        self._work = work
        self._limits = limits
        self._running: dict[str, _Running] = {}
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([*preload, PRELOADED])
        # Libraries read their number of threads when they are loaded. And the server must not look for modules in the
        # folder that the user happens to be in: a file called random.py there would take the place of Python's own.
        with _environment({**dict.fromkeys(_THREAD_VARIABLES, str(limits.threads)), "PYTHONSAFEPATH": "1"}):
            forkserver.ensure_running()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for running in self._running.values():
            running.kill()
        self._running.clear()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, token: str, request: Message) -> None:
        """Begin one cell."""
        receiving, sending = self._context.Pipe(duplex=False)
        descriptor, log_name = tempfile.mkstemp(prefix="ppgsl-bench-", suffix=".log")
        os.close(descriptor)  # the cell opens it by name
        log = Path(log_name)
        arguments = (self._work, request, sending, str(log), self._limits.threads)
        process = self._context.Process(target=_run, args=arguments, daemon=False)
        with _without_main_module():
            process.start()
        sending.close()
        self._running[token] = _Running(process, receiving, log, time.monotonic(), self._limits)

    def wait(self, seconds: float | None = None) -> list[tuple[str, Outcome]]:
        """Cells that ended, at least one of them unless `seconds` pass or nothing runs."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while self._running:
            ready = wait([r.process.sentinel for r in self._running.values()], self._patience(deadline))
            ended = []
            for token, running in list(self._running.items()):
                if running.process.sentinel in ready or running.over_limit():
                    ended.append((token, running.finish()))
                    del self._running[token]
            if ended or (deadline is not None and time.monotonic() >= deadline):
                return ended
        return []

    def _patience(self, deadline: float | None) -> float | None:
        moments = [m for m in (deadline, *(r.deadline for r in self._running.values())) if m is not None]
        patience = max(0.0, min(moments) - time.monotonic()) if moments else None
        if self._limits.memory_bytes is not None:
            patience = min(patience, _MEMORY_POLL_SECONDS) if patience is not None else _MEMORY_POLL_SECONDS
        return patience


class _Running:
    """A cell's process as its supervisor sees it."""

    def __init__(self, process: BaseProcess, receiving: Connection, log: Path, begun: float, limits: Limits) -> None:
        if process.pid is None:
            raise ValueError("a cell's process is to be started before it is watched")
        self.process = process
        self._pid = process.pid
        self.deadline = None if limits.seconds is None else begun + limits.seconds
        self._receiving = receiving
        self._log = log
        self._limits = limits
        self._verdict: Outcome | None = None

    def over_limit(self) -> bool:
        """Whether a limit is exceeded; the verdict is remembered for `finish`."""
        if self.deadline is not None and time.monotonic() >= self.deadline:
            self._verdict = Outcome("timeout", f"exceeded the time limit of {self._limits.seconds:g} s")
        elif self._limits.memory_bytes is not None and _resident_bytes(self._pid) > self._limits.memory_bytes:
            limit = self._limits.memory_bytes / 2**20
            self._verdict = Outcome("out-of-memory", f"exceeded the memory limit of {limit:,.0f} MiB")
        return self._verdict is not None

    def finish(self) -> Outcome:
        """End the process group if it still runs, and say how the cell ended."""
        message = self._received()
        self.kill()
        log = _tail(self._log)
        self._log.unlink(missing_ok=True)
        code = self.process.exitcode
        self.process.close()
        if self._verdict is not None and message is None:
            return Outcome(self._verdict.status, self._verdict.reason, log=log)
        if message is not None:
            status: Status | Interruption = message.pop("status")
            return Outcome(status, message.pop("reason", ""), message, log if status != "ok" else "")
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            hint = " (the system may have run out of memory)" if -code == signal.SIGKILL else ""
            return Outcome("killed", f"the process was ended by {name}{hint}", log=log)
        return Outcome("failed", f"the process exited with code {code} and without a result", log=log)

    def kill(self) -> None:
        """Kill the whole group; the cell made itself its leader."""
        try:
            os.killpg(self._pid, signal.SIGKILL)
        except ProcessLookupError:
            # It had not come round to making a group, or everything in it has ended.
            if self.process.is_alive():
                self.process.kill()
        self.process.join()
        self._receiving.close()

    def _received(self) -> Message | None:
        if self._receiving.closed:
            return None
        try:
            if self._receiving.poll():
                message: Message = json.loads(self._receiving.recv_bytes())
                return message
        except (EOFError, OSError):
            pass  # the process died while it was writing: there is no message
        return None


def _resident_bytes(pid: int) -> int:
    """Of a process and all that it started.

    Linux lists the children of each thread. psutil would look at every process of the machine to find them, twenty
    times a second, which on a busy machine takes longer than all else that the supervisor does.
    """
    try:
        process = psutil.Process(pid)
        total = int(process.memory_info().rss)
        lists = list(Path(f"/proc/{pid}/task").glob("*/children"))
        if not lists:
            return total + sum(int(child.memory_info().rss) for child in process.children(recursive=True))
    except (psutil.Error, OSError):  # OSError where it ends while the list of its threads is read
        return 0  # it has just ended
    for listed in lists:
        with suppress(OSError):  # of a thread that has just ended
            total += sum(_resident_bytes(int(child)) for child in listed.read_text().split())
    return total


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _without_main_module() -> Iterator[None]:
    """Keep multiprocessing from running the caller's script again in every cell, which needs nothing of it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _run(work: Work, request: Message, sending: Connection, log: str, threads: int) -> None:
    """What happens inside a cell's process."""
    os.setsid()
    _die_with_supervisor()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout = os.fdopen(os.dup(1), "w", buffering=1, errors="replace")
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, errors="replace")
    _limit_threads(threads)
    try:
        message = work(request)
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises becomes a row
        traceback.print_exc()
        message = failure(error)
    sys.stdout.flush()
    sys.stderr.flush()
    sending.send_bytes(json.dumps(message).encode())
    sending.close()
    # Threads or exit handlers of a plugin must not keep a finished cell alive.
    os._exit(0)


def failure(error: Exception) -> Message:
    """What a cell reports that ended with an exception."""
    status: Status = "out-of-memory" if _is_out_of_memory(error) else "failed"
    return {"status": status, "reason": f"{type(error).__name__}: {error}"}


def _die_with_supervisor() -> None:
    """Kill this cell, and what it started, when the supervisor is gone; the fork server outlives it for our sake."""
    supervisor = multiprocessing.parent_process()
    if supervisor is None:
        raise RuntimeError("not the process of a cell")

    def watch(sentinel: int) -> None:
        wait([sentinel])
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, args=(supervisor.sentinel,), daemon=True).start()


def _limit_threads(threads: int) -> None:
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)
    numba = sys.modules.get("numba")
    # Asking numba for a number starts its threads, so it is asked only where the server had more.
    if numba is not None and threads < numba.config.NUMBA_NUM_THREADS:
        numba.set_num_threads(threads)


def _is_out_of_memory(error: BaseException) -> bool:
    torch = sys.modules.get("torch")
    allocation = "not enough memory" in str(error) or "can't allocate memory" in str(error)
    known = isinstance(error, MemoryError) or (torch is not None and isinstance(error, torch.OutOfMemoryError))
    return allocation or known


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _LOG_TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
