"""What a dask worker does for a cell: it gives it the arrays it builds on, a process of its own, and its limits.

A cell's process imports this module to find its work, and every worker does: dask and torch are not loaded here before
they are needed.
"""

import hashlib
import multiprocessing
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from ppgsl_bench.processes import CellProcesses, Limits, Message, Outcome
from ppgsl_bench.provenance import provenance
from ppgsl_bench.store import Objects

if TYPE_CHECKING:
    from distributed import Worker

# A cell with which this many workers were lost is not tried again.
MOST_LOST_WORKERS = 3

_BEGINS, _ENDED = "begins", "ended"

# States of a worker (`distributed.core.Status`) that has left its cluster, or is about to.
_GONE = frozenset({"closing", "closed", "failed"})

# How often a running cell's worker looks whether the client still wants it.
_WANTED_POLL_SECONDS = 0.5

# A worker may have several threads, but has one environment, which starting a cell changes for a moment.
_starting = threading.Lock()


class TravellingObjects(Objects):
    """Stored arrays that can be sent from one machine to another."""

    def pack(self, digest: str) -> bytes:
        """The file of an object, checked."""
        return self._read(digest)

    def unpack(self, content: bytes) -> str:
        """Store the file of an object; returns its digest."""
        return self._write(content)


@dataclass(frozen=True)
class Task:
    """A cell on its way to a worker.

    Attributes:
        request: the cell and its inputs; paths in it are those of the client.
        limits: what it may use; without a memory limit, the worker's own is divided among its threads.
        plugins: names and contents of the files that register plugins.
        arrays: files that the worker said it lacks, by digest.
        shared: folder of arrays that client and workers see; None if arrays travel with tasks and reports.
        topic: of the scheduler's events, where workers note that the cell's process begins, and that it has ended.
        jobs: for the row's provenance.
    """

    request: Message
    limits: Limits
    plugins: tuple[tuple[str, bytes], ...]
    arrays: Mapping[str, bytes]
    shared: str | None
    topic: str
    jobs: int


@dataclass(frozen=True)
class Report:
    """What a worker sends back: an outcome with the arrays that the cell stored, or the digests of those it lacks."""

    worker: str
    lacking: tuple[str, ...] = ()
    outcome: Outcome | None = None
    arrays: Mapping[str, bytes] = field(default_factory=dict)


def needed(request: Message) -> list[str]:
    """Digests of the arrays that a cell may read."""
    return [digest for artifacts in request["inputs"]["artifacts"].values() for digest in artifacts.values()]


def run_on_worker(task: Task) -> Report:
    """Run a cell on the dask worker that this is called on."""
    from distributed import get_worker

    worker = get_worker()
    folder = Path(worker.local_directory) / "ppgsl-bench"
    objects = TravellingObjects(Path(task.shared) if task.shared else folder / "objects")
    for content in task.arrays.values():
        objects.unpack(content)
    lacking = tuple(digest for digest in needed(task.request) if not objects.path(digest).exists())
    if lacking:
        return Report(worker.address, lacking)
    inputs = {
        **task.request["inputs"],
        "objects": str(objects.folder),
        "plugin_files": _unpacked_plugins(task.plugins, folder / "plugins"),
    }
    limits = _limits_on(worker, task.limits)
    origin = provenance(device=inputs["device"], threads=limits.threads, jobs=task.jobs)
    if (lost := _lost_workers(worker, task.topic)) >= MOST_LOST_WORKERS:
        reason = f"the worker that it ran on was lost, {lost} times"
        return Report(worker.address, outcome=Outcome("killed", reason, origin=origin))
    worker.log_event(task.topic, _BEGINS)
    outcome = _in_own_process({**task.request, "inputs": inputs}, limits, worker)
    worker.log_event(task.topic, _ENDED)
    if outcome.status == "damaged-input":
        damaged = outcome.message["damaged"]
        objects.path(damaged).unlink(missing_ok=True)
        return Report(worker.address, (damaged,))
    stored = () if task.shared else outcome.message.get("artifacts", {}).values()
    arrays = {digest: objects.pack(digest) for digest in stored}
    return Report(worker.address, outcome=replace(outcome, origin=origin), arrays=arrays)


def _lost_workers(worker: "Worker", topic: str) -> int:
    """How many workers began a cell and did not live to see its end.

    The scheduler counts too, but blames a lost worker on all cells that waited for it, and by rules of its own.
    """
    from distributed.utils import sync

    events = Counter(event for _, event in sync(worker.loop, worker.scheduler.events, topic=topic))
    return events[_BEGINS] - events[_ENDED]


def _unpacked_plugins(plugins: Iterable[tuple[str, bytes]], folder: Path) -> tuple[str, ...]:
    paths = []
    with _starting:
        for name, content in plugins:
            path = folder / hashlib.sha256(content).hexdigest() / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            paths.append(str(path))
    return tuple(paths)


def _limits_on(worker: "Worker", limits: Limits) -> Limits:
    if limits.memory_bytes is not None:
        return limits
    memory = worker.memory_manager.memory_limit or psutil.virtual_memory().total
    return replace(limits, memory_bytes=int(memory / worker.state.nthreads))


def _in_own_process(request: Message, limits: Limits, worker: "Worker") -> Outcome:
    key = worker.get_current_task()
    # Dask forbids its workers to have children, lest these outlive them; a cell dies with its supervisor anyway.
    multiprocessing.current_process().daemon = False
    with _starting:
        processes = CellProcesses(_run_request, limits)
        processes.start("cell", request)
    with processes:
        while not (ended := processes.wait(_WANTED_POLL_SECONDS)):
            if not _is_wanted(worker, str(key)):
                return Outcome("killed", "the client went away")
    return ended[0][1]


def _is_wanted(worker: "Worker", key: str) -> bool:
    """Whether the client still waits for a task, and the worker can answer: either may have been stopped."""
    task = worker.state.tasks.get(key)
    return task is not None and task.state == "executing" and worker.status.name not in _GONE


def _run_request(request: Message) -> Message:
    from ppgsl_bench.cell import run_request

    return run_request(request)
