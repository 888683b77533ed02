"""How a long run shows that it is alive: a live display on a terminal, plain lines elsewhere."""

import time
from collections import defaultdict
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from ppgsl_bench.plan import Cell
from ppgsl_bench.quantities import format_duration
from ppgsl_bench.rows import Row

# Without a terminal a line is printed at most this often, except for failures.
_LINE_SECONDS = 10.0


class RunProgress:
    """An observer of `execute` that a person can watch."""

    def __init__(self, console: Console, jobs: int) -> None:
        self._console = console
        self._estimate = _TimeLeft(jobs)
        self._live: Progress | None = None
        self._task: TaskID | None = None
        self._total = 0
        self._done = 0
        self._last_line = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def planned(self, remaining: list[Cell], done: int) -> None:
        """Say how much there is to do."""
        self._total = len(remaining)
        self._estimate.expect(remaining)
        if done:
            self._console.print(f"{done} cells are done already")
        if remaining and self._console.is_terminal:
            columns = (
                SpinnerColumn(),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
                TextColumn("{task.description}", markup=False),
            )
            self._live = Progress(*columns, console=self._console, transient=True)
            self._task = self._live.add_task("", total=self._total, left="")
            self._live.start()
        elif remaining:
            self._console.print(f"{self._total} cells to run")

    def started(self, cell: Cell) -> None:
        """Show what is running."""
        if self._live is not None and self._task is not None:
            self._live.update(self._task, description=cell.label)

    def finished(self, cell: Cell, row: Row) -> None:
        """Count a cell, and report it if it failed."""
        self._done += 1
        self._estimate.learn(cell, row)
        left = self._estimate.text()
        failed = row.status not in {"ok", "inapplicable"}
        if failed and row.status != "blocked":
            self._console.print(f"{row.status}: {cell.label}: {row.reason}", markup=False, style="red")
        if self._live is not None and self._task is not None:
            self._live.update(self._task, completed=self._done, left=left)
        elif self._done == self._total or time.monotonic() - self._last_line > _LINE_SECONDS:
            self._last_line = time.monotonic()
            self._console.print(f"[{self._done}/{self._total}] {cell.label}{', ' + left if left else ''}", markup=False)


class _TimeLeft:
    """Predicts the rest from what like cells took so far."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._waiting: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        self._finished: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        self._seconds: defaultdict[tuple[str, str, str], float] = defaultdict(float)
        self._begun = time.monotonic()

    def expect(self, cells: list[Cell]) -> None:
        for cell in cells:
            self._waiting[_likeness(cell)] += 1

    def learn(self, cell: Cell, row: Row) -> None:
        self._waiting[_likeness(cell)] -= 1
        self._finished[_likeness(cell)] += 1
        self._seconds[_likeness(cell)] += row.wall_seconds or 0.0

    def text(self) -> str:
        finished = sum(self._finished.values())
        remaining = sum(self._waiting.values())
        if not finished or not remaining:
            return ""
        # What a cell costs beside its plugin's own time: loading, storing, starting.
        own = sum(self._seconds.values())
        overhead = max(0.0, (time.monotonic() - self._begun) * self._jobs - own) / finished
        typical = own / finished
        seconds = sum(
            count * (overhead + (self._seconds[kind] / known if (known := self._finished.get(kind)) else typical))
            for kind, count in self._waiting.items()
        )
        return f"about {format_duration(seconds / self._jobs)} left"


def _likeness(cell: Cell) -> tuple[str, str, str]:
    plugin = cell.evaluator or cell.defense or cell.dataset
    return cell.kind, cell.dataset.label, plugin.name
