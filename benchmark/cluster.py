"""Cells on a dask.distributed cluster.

The client decides what runs, and alone writes rows; dask finds a worker for each cell and another one if that is lost.
Splits are made by the client, which has the datasets and has hashed them; all other cells build on stored arrays, which
travel through the scheduler (a worker says which it lacks, and is sent those) or lie in a folder that all machines see.
"""

import asyncio
import logging
import os
import queue
import re
import uuid
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from ppgsl_bench import PROTOCOL_VERSION, __version__
from ppgsl_bench.cell import run_request
from ppgsl_bench.cluster_worker import Report, Task, TravellingObjects, needed, run_on_worker
from ppgsl_bench.errors import UserError
from ppgsl_bench.processes import CellProcesses, Limits, Message, Outcome
from ppgsl_bench.store import DamagedObjectError, Objects

try:
    from distributed import Client, Future, KilledWorker
    from distributed.comm import CommClosedError
except ImportError as error:
    raise UserError(
        "--scheduler needs dask.distributed; install it with: pip install 'ppgsl-bench[cluster]'"
    ) from error

GPU = "GPU"
"""The resource that a worker with a GPU offers, and that a cell on a GPU asks for."""

_CONNECT_SECONDS = 10.0
# The scheduler is told of this many cells at a time, enough for an adaptive cluster to see that it should grow.
_MOST_SUBMITTED = 1000
# A cell is sent again with the arrays that its worker lacks, or because workers were lost; not for ever.
_MOST_SENDINGS = 10
# While splits are made here, news of the cluster are looked at this often.
_POLL_SECONDS = 0.05
_PATIENCE_SECONDS = 1.0
# Those to which distributed gives handlers when it is imported.
_LOGGERS = ("distributed", "distributed.client", "tornado", "tornado.application")
# What dask's own tasks end with when the scheduler is gone, or when the client is closed while it tries to reconnect.
_LOST_CONNECTION = (CommClosedError, ConnectionError, asyncio.CancelledError)


def connect(scheduler: str) -> Client:
    """A client of the cluster at `tcp://host:port`, or of a new one on this machine with N processes, `local:N`."""
    _spare_the_user_lost_connections()
    if workers := _local_workers(scheduler):
        return Client(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            # Its plain web server starts all the same, and should not insist on a port that may be taken.
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            resources={GPU: 1},
            set_as_default=False,
        )
    if not re.match(r"\w+://.", scheduler):
        raise UserError(f"--scheduler {scheduler}: expected tcp://host:port, or local:N for N workers on this machine")
    try:
        return Client(scheduler, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UserError(f"--scheduler {scheduler}: cannot connect: {error}") from error


def _spare_the_user_lost_connections() -> None:
    """Of what dask logs, leave out the tracebacks of a lost scheduler: the run ends with one message that says so."""
    for name in _LOGGERS:
        for handler in logging.getLogger(name).handlers:
            handler.addFilter(_tells_more_than_a_lost_connection)


def _tells_more_than_a_lost_connection(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, _LOST_CONNECTION)


def room_on(scheduler: str, device: str) -> int:
    """How many cells a cluster has room for as it is now; one that can never run them is refused."""
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise UserError(f"--device {device}: on a cluster, expected cpu, cuda or cuda:N")
    if workers := _local_workers(scheduler):
        return workers
    with connect(scheduler) as client:
        found = client.scheduler_info(n_workers=-1)["workers"].values()
    if found and needs_gpu(device) and not any(worker["resources"].get(GPU) for worker in found):
        raise UserError(
            f"--device {device}: none of the {len(found)} workers offers a GPU; start them with --resources '{GPU}=1'"
        )
    return max(1, sum(int(worker["nthreads"]) for worker in found))


def needs_gpu(device: str) -> bool:
    """Whether cells on that device ask for a GPU."""
    return device.startswith("cuda")


@dataclass(frozen=True)
class _Sent:
    """A cell that the scheduler has been given."""

    token: str
    request: Message
    lacking: frozenset[str]
    sendings: int
    future: "Future[Report]"


class ClusterCells:
    """Runs cells on a cluster and says how each ended. A context manager: leaving it ends what still runs."""

    def __init__(
        self, client: Client, limits: Limits, objects: Objects, *, jobs: int = 1, cache_dir: Path | None = None
    ) -> None:
        self.capacity = _MOST_SUBMITTED
        self._client = client
        self._limits = limits
        self._jobs = jobs
        self._objects = TravellingObjects(objects.folder)
        self._shared = None if cache_dir is None else TravellingObjects(cache_dir.resolve() / "objects")
        self._run = uuid.uuid4().hex[:12]
        self._sent: dict[str, _Sent] = {}
        self._done: queue.SimpleQueue[Future[Report]] = queue.SimpleQueue()
        self._unfit: list[tuple[str, Outcome]] = []
        self._splits: deque[tuple[str, Message]] = deque()
        self._here = CellProcesses(run_request, limits, max(1, (os.cpu_count() or 1) // limits.threads))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._here.__exit__()
        # Workers notice that their cells are no longer wanted, and end them.
        self._sent.clear()
        self._client.close()

    def __len__(self) -> int:
        return len(self._sent) + len(self._unfit) + len(self._splits) + len(self._here)

    def start(self, token: str, request: Message) -> None:
        """Hand a cell over."""
        if request["cell"]["kind"] == "split":
            # Nothing but files is read and links are drawn: no GPU is needed, which this machine may not have.
            self._splits.append((token, {**request, "inputs": {**request["inputs"], "device": "cpu"}}))
        else:
            self._send(token, request)

    def wait(self) -> list[tuple[str, Outcome]]:
        """Cells that ended, at least one of them unless nothing runs."""
        while len(self):
            while self._splits and len(self._here) < self._here.capacity:
                self._here.start(*self._splits.popleft())
            ended, self._unfit = self._unfit, []
            if len(self._here):
                ended += self._here.wait(_POLL_SECONDS)
            ended += self._reported(0.0 if ended or len(self._here) else _PATIENCE_SECONDS)
            if ended:
                return ended
        return []

    def _send(self, token: str, request: Message, lacking: frozenset[str] = frozenset(), sendings: int = 1) -> None:
        """Give a cell to the scheduler, along with all arrays that a worker has been found to lack.

        It is not tied to that worker: dask forgets a task that is tied to a worker just lost, when all others are too.
        """
        try:
            arrays = {digest: self._objects.pack(digest) for digest in lacking}
            if self._shared is not None:
                for digest in needed(request):
                    self._shared.copy(digest, self._objects)
        except DamagedObjectError as error:
            self._unfit.append((token, Outcome("damaged-input", str(error), {"damaged": error.digest})))
            return
        task = Task(
            request=request,
            limits=self._limits,
            plugins=tuple((Path(p).name, Path(p).read_bytes()) for p in request["inputs"]["plugin_files"]),
            arrays=arrays,
            shared=None if self._shared is None else str(self._shared.folder),
            topic=f"{self._run}-{token}",
            jobs=self._jobs,
        )
        key = f"{request['cell']['kind']}-{uuid.uuid4()}"
        future = self._client.submit(
            run_on_worker,
            task,
            key=key,
            pure=False,
            resources={GPU: 1} if needs_gpu(request["inputs"]["device"]) else None,
            priority=sendings,
        )
        self._sent[key] = _Sent(token, request, lacking, sendings, future)
        future.add_done_callback(self._done.put)

    def _reported(self, patience: float) -> list[tuple[str, Outcome]]:
        ended: list[tuple[str, Outcome]] = []
        try:
            future = self._done.get(timeout=patience)
            while True:
                if future.cancelled() and ended:
                    self._done.put(future)  # what was done before the scheduler went away is stored first
                    return ended
                sent = self._sent.pop(str(future.key))
                if (outcome := self._outcome(sent)) is not None:
                    ended.append((sent.token, outcome))
                future = self._done.get_nowait()
        except queue.Empty:
            return ended

    def _outcome(self, sent: _Sent) -> Outcome | None:
        """How a cell ended; None if it was sent again instead."""
        if sent.future.cancelled():
            raise UserError("lost the connection to the scheduler; finished cells are kept, the same command goes on")
        problem = sent.future.exception()
        if isinstance(problem, KilledWorker):
            # Perhaps it only waited for workers that others killed: workers know how often it was itself at work.
            return self._again(sent, "the workers that it was given to were lost")
        if problem is not None:
            raise UserError(f"a worker could not run a cell: {type(problem).__name__}: {problem}")
        report: Report = sent.future.result()
        if report.outcome is None:
            sent = replace(sent, lacking=sent.lacking | set(report.lacking))
            return self._again(sent, f"workers do not keep the arrays that they are sent, {report.worker} for one")
        try:
            return self._taken_over(report.worker, report.outcome, report.arrays)
        except DamagedObjectError as error:
            return self._again(sent, f"what it stored in the shared folder cannot be read: {error}")

    def _again(self, sent: _Sent, why: str) -> Outcome | None:
        """Send a cell once more, unless that was done often enough."""
        if sent.sendings >= _MOST_SENDINGS:
            return Outcome("killed", f"{why} (tried {sent.sendings} times)")
        self._send(sent.token, sent.request, sent.lacking, sent.sendings + 1)
        return None

    def _taken_over(self, worker: str, outcome: Outcome, arrays: Mapping[str, bytes]) -> Outcome:
        """Store here what a cell stored there."""
        theirs = (outcome.origin["ppgsl_bench"], outcome.origin["protocol"])
        if theirs != (__version__, PROTOCOL_VERSION):
            raise UserError(
                f"the worker {worker} has ppgsl-bench {theirs[0]} (protocol {theirs[1]}), but this is {__version__} "
                f"(protocol {PROTOCOL_VERSION}); install the same version"
            )
        for content in arrays.values():
            self._objects.unpack(content)
        if self._shared is not None:
            for digest in outcome.message.get("artifacts", {}).values():
                try:
                    self._objects.copy(digest, self._shared)
                except DamagedObjectError:
                    self._shared.path(digest).unlink(missing_ok=True)
                    raise
        return outcome


def _local_workers(scheduler: str) -> int | None:
    """N of `local:N`."""
    kind, _, number = scheduler.partition(":")
    if kind != "local":
        return None
    if not number.isdecimal() or int(number) < 1:
        raise UserError(f"--scheduler {scheduler}: expected local:N with the number of workers, for example local:4")
    return int(number)
