"""Carrying out a plan: what is done already is kept, what is missing runs, and every cell ends as a row."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, Protocol, Self

from ppgsl_bench import attacks, defenses, utilities
from ppgsl_bench.cell import Inputs, Message, request_for, run_request
from ppgsl_bench.datasets import Sources
from ppgsl_bench.errors import UserError
from ppgsl_bench.plan import Cell
from ppgsl_bench.processes import CellProcesses, Limits, Outcome
from ppgsl_bench.provenance import provenance
from ppgsl_bench.registry import Registry
from ppgsl_bench.rows import FAILURES, Row
from ppgsl_bench.store import Results

# A cell whose input turns out damaged makes its requirement run again, this many times at most.
_MAX_REPAIRS = 3


@dataclass(frozen=True)
class Settings:
    """How cells are run; nothing here changes what they compute.

    Attributes:
        jobs: cells side by side; on a cluster, as many as it was seen to have room for.
        device: where torch code runs.
        scheduler: of the dask cluster that runs the cells (see `cluster.connect`); None for this machine alone.
        cache_dir: folder that this machine and all workers see, for the arrays that cells exchange.
        limits: what one cell may use.
        sources: where datasets come from.
        plugin_files: files that register plugins.
        is_confidential: whether the graphs are somebody's secret: what goes wrong is then told without numbers.
    """

    jobs: int = 1
    device: str = "cpu"
    scheduler: str | None = None
    cache_dir: Path | None = None
    limits: Limits = field(default_factory=Limits)
    sources: Sources = field(default_factory=Sources)
    plugin_files: tuple[Path, ...] = ()
    is_confidential: bool = False


class CellRunner(Protocol):
    """Runs cells somewhere and says how each ended. A context manager: leaving it ends what still runs."""

    capacity: int
    """How many cells may be started before one has ended."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def __len__(self) -> int: ...

    def start(self, token: str, request: Message) -> None:
        """Begin one cell."""

    def wait(self) -> list[tuple[str, Outcome]]:
        """Cells that ended, at least one of them unless nothing runs."""


class Observer(Protocol):
    """Told how a run goes on."""

    def planned(self, remaining: list[Cell], done: int) -> None:
        """Called once, before anything runs."""

    def started(self, cell: Cell) -> None:
        """A cell's process begins."""

    def finished(self, cell: Cell, row: Row) -> None:
        """A cell has its row."""


class Silent:
    """An observer that does nothing."""

    def planned(self, remaining: list[Cell], done: int) -> None:
        """Nothing to say."""

    def started(self, cell: Cell) -> None:
        """Nothing to say."""

    def finished(self, cell: Cell, row: Row) -> None:
        """Nothing to say."""


def execute(cells: list[Cell], results: Results, settings: Settings, observer: Observer | None = None) -> None:
    """Run every cell that has no row yet. Rows are stored one by one, as cells end."""
    _Run(cells, results, settings, observer or Silent()).to_the_end()


class _Run:
    """Cells become ready when everything they build on has a row; ready cells start in the order of the plan."""

    def __init__(self, cells: list[Cell], results: Results, settings: Settings, observer: Observer) -> None:
        self.cells = {cell.key: cell for cell in cells}
        self.position = {cell.key: i for i, cell in enumerate(cells)}
        self.results = results
        self.settings = settings
        self.observer = observer
        self.required = {key for cell in cells for key in cell.requires}
        # Of most cells nothing but their row in the store is needed again: a long run keeps none of it in memory.
        self.rows: dict[str, Row] = {}
        self.stored: set[str] = set()
        for row in results.each_row():
            if row.key in self.cells:
                self.stored.add(row.key)
                self._remember(row)
        self.ready: list[tuple[int, str]] = []
        self.dependents: defaultdict[str, list[str]] = defaultdict(list)
        self.unsettled: set[str] = set()
        self.repairs: Counter[str] = Counter()
        self.must_recheck = False

    def to_the_end(self) -> None:
        self.unsettled = self._missing()
        remaining = [cell for cell in self.cells.values() if cell.key in self.unsettled]
        self.observer.planned(remaining, len(self.cells) - len(remaining))
        for cell in remaining:
            self._admit(cell)
        if self.ready:
            self._run_ready()
        if self.unsettled:
            raise RuntimeError(f"{len(self.unsettled)} cells never became ready")

    def _run_ready(self) -> None:
        """Run the cells that are ready, and those that become so."""
        with self._runner() as runner:
            while self.ready or len(runner):
                while self.ready and len(runner) < runner.capacity:
                    cell = self.cells[heappop(self.ready)[1]]
                    self.observer.started(cell)
                    runner.start(cell.key, request_for(cell, self._inputs(cell)))
                for key, outcome in runner.wait():
                    self._settle(self.cells[key], outcome)
                self._recheck_ready()

    def _runner(self) -> CellRunner:
        settings = self.settings
        if settings.scheduler is None:
            return CellProcesses(run_request, settings.limits, settings.jobs, self._modules())
        from ppgsl_bench.cluster import ClusterCells, connect

        client, objects = connect(settings.scheduler), self.results.objects
        return ClusterCells(client, settings.limits, objects, jobs=settings.jobs, cache_dir=settings.cache_dir)

    def _modules(self) -> set[str]:
        """Modules of the plugins that will run. What they import (scikit-learn, PyG) takes seconds."""
        registries: dict[str, Registry[Any]] = {"publish": defenses.registry, "utility": utilities.registry}
        modules: set[str] = set()
        for cell in (self.cells[key] for key in self.unsettled):
            ref = cell.evaluator or cell.defense
            if ref is not None:
                modules.add(registries.get(cell.kind, attacks.registry).built_in_module(ref.name) or "")
        return modules - {""}

    def _missing(self) -> set[str]:
        """Cells without a row; a split or embedding, which only serves others, counts if one of those is missing."""
        missing = {k for k, c in self.cells.items() if k not in self.stored and c.kind not in {"split", "embed"}}
        return missing | {a for key in missing for a in self._ancestor_keys(key) if a not in self.stored}

    def _ancestor_keys(self, key: str) -> list[str]:
        """Everything that a cell builds on, directly or not, nearest first."""
        found: dict[str, None] = dict.fromkeys(self.cells[key].requires)
        for near in list(found):
            found |= dict.fromkeys(self._ancestor_keys(near))
        return list(found)

    def _admit(self, cell: Cell) -> None:
        """Make a cell ready, or let it wait for the first thing that it lacks, or give it the row of a lost cause."""
        for key in self._ancestor_keys(cell.key):
            row = self.rows.get(key)
            if row is None:
                self.dependents[key].append(cell.key)
                return
            if row.status != "ok":
                self._store(cell, _consequence(row))
                return
        heappush(self.ready, (self.position[cell.key], cell.key))

    def _recheck_ready(self) -> None:
        """After a repair has taken a row away, cells that were ready may have to wait again."""
        if self.must_recheck:
            self.must_recheck = False
            ready, self.ready = self.ready, []
            for _, key in ready:
                self._admit(self.cells[key])

    def _inputs(self, cell: Cell) -> Inputs:
        ancestors = self._ancestors(cell)
        sources = self.settings.sources
        return Inputs(
            objects=str(self.results.objects.folder),
            sources={
                "data_dirs": [str(p) for p in sources.data_dirs],
                "cache_dir": str(sources.cache_dir),
                "offline": sources.offline,
            },
            plugin_files=tuple(str(p) for p in self.settings.plugin_files),
            device=self.settings.device,
            artifacts={row.kind: row.artifacts for row in ancestors},
            digests={name: digest for row in ancestors for name, digest in row.digests.items()},
            is_confidential=self.settings.is_confidential,
        )

    def _ancestors(self, cell: Cell) -> list[Row]:
        return [self.rows[key] for key in self._ancestor_keys(cell.key)]

    def _settle(self, cell: Cell, outcome: Outcome) -> None:
        if outcome.status == "disk-full":
            # Not the cell's fault, so not its row: it is still to be done once there is room.
            raise UserError(f"{outcome.reason}, in {cell.label}; make room and give the same command again")
        if outcome.status != "damaged-input":
            self._store(cell, outcome)
            return
        damaged = outcome.message["damaged"]
        # An input turned out damaged: the cell that made it runs again, and this one waits for it.
        rows = [self.rows[key] for key in self._ancestor_keys(cell.key) if key in self.rows]
        source = next((row for row in rows if damaged in row.artifacts.values()), None)
        if source is not None:
            self.repairs[damaged] += 1
            self.must_recheck = True
            if self.repairs[damaged] > _MAX_REPAIRS:
                raise UserError(f"{outcome.reason}; computing it again did not help. Is the disk failing?")
            self.results.set_aside(damaged)
            self.results.delete([source.key])
            del self.rows[source.key]
            self.unsettled.add(source.key)
            self._admit(self.cells[source.key])
        self._admit(cell)

    def _store(self, cell: Cell, outcome: Outcome) -> None:
        row = self._row(cell, outcome)
        self.results.put(row)
        self._remember(row)
        self.unsettled.discard(cell.key)
        self.observer.finished(cell, row)
        for key in self.dependents.pop(cell.key, ()):
            self._admit(self.cells[key])

    def _remember(self, row: Row) -> None:
        """Keep what cells that build on this one need of its row, if there are any."""
        if row.key in self.required:
            self.rows[row.key] = replace(row, metrics={}, provenance={}, log="")

    def _row(self, cell: Cell, outcome: Outcome) -> Row:
        ancestors = [self.rows[key] for key in self._ancestor_keys(cell.key) if key in self.rows]
        digests = {name: digest for row in ancestors for name, digest in row.digests.items()}
        settings = self.settings
        origin = provenance(device=settings.device, threads=settings.limits.threads, jobs=settings.jobs)
        known = {name: value for name, value in outcome.message.items() if name != "digests"}
        if outcome.status == "disk-full" or outcome.status == "damaged-input":  # noqa: PLR1714 - narrows the type
            raise ValueError(f"{outcome.status} is not an outcome of {cell.label}")
        row = Row(
            key=cell.key,
            kind=cell.kind,
            dataset=cell.dataset.name,
            dataset_params=cell.dataset.params,
            dataset_label=cell.dataset.label,
            seed=cell.seed,
            **_described("defense", cell.defense),
            **_described("evaluator", cell.evaluator),
            status=outcome.status,
            reason=outcome.reason,
            digests={**digests, **outcome.message.get("digests", {})},
            provenance={
                **origin,
                **outcome.origin,
                "plugin": (cell.evaluator or cell.defense or cell.dataset).identity,
            },
            log=outcome.log,
            requires=cell.requires,
            **known,
        )
        embedding = next((r for r in ancestors if r.kind == "embed"), None)
        return _with_embedding_cost(row, embedding) if cell.kind == "attack" and embedding is not None else row


def failures(rows: Iterable[Row]) -> list[Row]:
    """Rows of cells that should have worked and did not."""
    return [row for row in rows if row.status in FAILURES]


def _described(role: str, ref: Any) -> Mapping[str, Any]:
    if ref is None:
        return {}
    return {role: ref.name, f"{role}_params": ref.params, f"{role}_label": ref.label}


def _consequence(required: Row) -> Outcome:
    if required.status == "inapplicable":
        return Outcome("inapplicable", required.reason)
    cause = required.reason.removeprefix("blocked: ")
    return Outcome("blocked", f"blocked: the {required.kind} cell it builds on ended as {required.status}: {cause}")


def _with_embedding_cost(row: Row, embedding: Row) -> Row:
    return replace(
        row,
        wall_seconds=(row.wall_seconds or 0.0) + (embedding.wall_seconds or 0.0),
        peak_host_bytes=max(row.peak_host_bytes or 0, embedding.peak_host_bytes or 0),
        peak_gpu_bytes=_larger(row.peak_gpu_bytes, embedding.peak_gpu_bytes),
        peak_gpu_reserved_bytes=_larger(row.peak_gpu_reserved_bytes, embedding.peak_gpu_reserved_bytes),
    )


def _larger(a: int | None, b: int | None) -> int | None:
    return max((v for v in (a, b) if v is not None), default=None)
