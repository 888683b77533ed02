"""Cells of the benchmark on a data holder's graph, run by the benchmark's own machinery.

Everything that is stored while they run (node numbers, never names) lies in a folder that is readable by its owner
alone and removed at the end.
"""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.attacks import Attack
from ppgsl_bench.datasets import Dataset, Field, Sources
from ppgsl_bench.defenses import Defense
from ppgsl_bench.errors import UserError
from ppgsl_bench.execute import Observer, Settings, Silent, execute
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs
from ppgsl_bench.plan import Cell, Choice, plan
from ppgsl_bench.rows import Row
from ppgsl_bench.split import Queries, Split
from ppgsl_bench.store import Results
from ppgsl_bench.utilities import Utility

MakeObserver = Callable[[], AbstractContextManager[Observer]]


class OwnGraph(Dataset):
    """A data holder's graph. It is never loaded: its split is stored before any cell runs."""

    name = "own-graph"
    version = 1

    part: str = Field("release", help="which division of the graph: release or rehearsal")
    purpose: str = Field("report", help="what the division is for: search or report")

    def fingerprint(self, sources: Sources) -> str:  # noqa: ARG002
        """One graph a folder, so parameters and seed say it all."""
        return ""

    def load(self, sources: Sources) -> Graph:
        """Cannot be: the file was read when the split was made."""
        raise NotImplementedError


class AsPublished(Defense):
    """A graph that somebody has published already."""

    name = "as-published"
    version = 1

    def publish(self, graph: Graph, sensitive: Pairs, rng: np.random.Generator) -> Graph:
        """Cannot be: the publication is stored before any cell runs."""
        raise NotImplementedError


@dataclass(frozen=True)
class Outcomes:
    """The rows of some cells.

    Attributes:
        rows: publish, attack and utility rows.
    """

    rows: Sequence[Row] = field(default_factory=tuple)

    def publication(self, defense: Defense) -> Row:
        """The row of a publication."""
        return next(row for row in self.rows if row.kind == "publish" and _is_of(row, defense))

    def attacks(self, defense: Defense) -> list[Row]:
        """The attacks on it."""
        return [row for row in self.rows if row.kind == "attack" and _is_of(row, defense)]

    def utilities(self, defense: Defense) -> list[Row]:
        """The utility tasks on it."""
        return [row for row in self.rows if row.kind == "utility" and _is_of(row, defense)]


class Bench:
    """Runs cells in a folder that vanishes. A context manager."""

    def __init__(self, settings: Settings, seed: int, observer: MakeObserver | None = None) -> None:
        self._settings = replace(settings, is_confidential=True)
        self._seed = seed
        self._observer: MakeObserver = observer or (lambda: nullcontext(Silent()))
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="ppgsl-bench-"))
        self._results = self._stack.enter_context(Results(Path(folder)).writing())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def divide(self, dataset: OwnGraph, split: Split) -> Queries:
        """Store a split in place of the cell that would draw one; returns what attacks are asked on it."""
        queries = split.queries()
        objects = self._results.objects
        artifacts = objects.put_graph(split.visible)
        artifacts["sensitive"] = objects.put({"pairs": split.sensitive})
        artifacts["queries"] = objects.put({"pairs": queries.pairs})
        artifacts["answers"] = objects.put({"group": queries.group})
        artifacts["split"] = objects.put(split.arrays())
        (cell,) = self._plan(dataset)
        self._store(cell, artifacts, {"dataset": split.visible.digest, "split": split.digest})
        return queries

    def publish(self, dataset: OwnGraph, published: Graph) -> AsPublished:
        """Store a graph as what was published on a split."""
        defense = AsPublished()
        artifacts = self._results.objects.put_graph(published)
        *_, cell = self._plan(dataset, [defense])
        self._store(cell, artifacts, {"published": published.digest})
        return defense

    def run(
        self,
        dataset: OwnGraph,
        defenses: Sequence[Defense],
        attacks: Sequence[Attack] = (),
        utilities: Sequence[Utility] = (),
    ) -> Outcomes:
        """Run every defense against every attack and utility task on a split."""
        return self.run_together([(dataset, defenses, attacks, utilities)])[0]

    def run_together(
        self, parts: Iterable[tuple[OwnGraph, Sequence[Defense], Sequence[Attack], Sequence[Utility]]]
    ) -> list[Outcomes]:
        """As `run`, for several splits at once: cells of all of them run side by side."""
        plans = [self._plan(*part) for part in parts]
        cells = {cell.key: cell for cells in plans for cell in cells}
        try:
            with self._observer() as observer:
                execute(list(cells.values()), self._results, self._settings, observer)
        except OSError as error:
            raise UserError(f"{error.strerror or error}, in the folder for temporary files (TMPDIR)") from error
        rows = {row.key: row for row in self._results.rows()}
        return [Outcomes([rows[cell.key] for cell in cells if cell.key in rows]) for cells in plans]

    def graph(self, publication: Row) -> Graph:
        """The published graph of a publish row."""
        return self._results.objects.get_graph(publication.artifacts)

    def scores(self, attack: Row) -> NDArray[np.float64]:
        """The scores of an attack row, in the order of the split's queries."""
        return self._results.objects.get(attack.artifacts["scores"])["scores"]

    def _plan(
        self,
        dataset: OwnGraph,
        defenses: Sequence[Defense] = (),
        attacks: Sequence[Attack] = (),
        utilities: Sequence[Utility] = (),
    ) -> list[Cell]:
        choice = Choice([dataset], defenses, attacks, utilities, [self._seed])
        return plan(choice, self._settings.sources)

    def _store(self, cell: Cell, artifacts: dict[str, str], digests: dict[str, str]) -> None:
        defense = cell.defense
        self._results.put(
            Row(
                key=cell.key,
                kind=cell.kind,
                dataset=cell.dataset.name,
                dataset_params=cell.dataset.params,
                dataset_label=cell.dataset.label,
                seed=cell.seed,
                defense="" if defense is None else defense.name,
                defense_params="{}" if defense is None else defense.params,
                defense_label="" if defense is None else defense.label,
                artifacts=artifacts,
                digests=digests,
                requires=cell.requires,
            )
        )


def _is_of(row: Row, defense: Defense) -> bool:
    return row.defense == defense.name and row.defense_params == defense.canonical
