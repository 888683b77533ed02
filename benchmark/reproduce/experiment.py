"""An experiment of the paper: which cells it needs, and what follows from their rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ppgsl_bench.attacks import Attack
from ppgsl_bench.datasets import Dataset
from ppgsl_bench.defenses import Defense
from ppgsl_bench.defenses import registry as defense_registry
from ppgsl_bench.plan import Choice, Kind, choose
from ppgsl_bench.reproduce.evidence import Evidence
from ppgsl_bench.reproduce.verdicts import Verdict
from ppgsl_bench.utilities import Utility

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The paper repeats everything five times.
PAPER_SEEDS = 5
# A training of seconds, to see that all works: figures from it say nothing about the paper.
QUICK_TRAINING = {"learner_steps": 60, "surrogate_updates": 30}
QUICK_GRAPH = "synthetic[n=300]"

LINK_PREDICTION, NODE_CLASSIFICATION = "link-prediction", "node-classification"


@dataclass(frozen=True)
class Scope:
    """What a user asked for.

    Attributes:
        datasets: the graphs.
        seeds: the splits.
        quick: the small version.
    """

    datasets: tuple[Dataset, ...]
    seeds: tuple[int, ...]
    quick: bool = False

    @property
    def labels(self) -> list[str]:
        """Of the datasets."""
        return [dataset.label for dataset in self.datasets]

    def choice(
        self,
        defenses: Sequence[Defense],
        attacks: Sequence[str] = (),
        utilities: Sequence[str] = (),
        datasets: Sequence[Dataset] | None = None,
    ) -> Choice:
        """Cells on all graphs and seeds."""
        chosen = choose(datasets=(), defenses=(), attacks=attacks, utilities=utilities, seeds=self.seeds)
        found_attacks: Sequence[Attack] = chosen.attacks
        found_utilities: Sequence[Utility] = chosen.utilities
        graphs = self.datasets if datasets is None else datasets
        return Choice(graphs, list(defenses), found_attacks, found_utilities, self.seeds)

    def ppgsl(self, **parameters: Any) -> Defense:
        """PPGSL with some parameters; in the small version its trainings are short."""
        short = QUICK_TRAINING if self.quick else {}
        return defense_registry.get("ppgsl").create(**{**short, **parameters})


def defenses_named(*expressions: str) -> list[Defense]:
    """Defenses by what a user would type."""
    return list(choose(datasets=(), defenses=expressions, attacks=(), utilities=(), seeds=()).defenses)


@dataclass(frozen=True)
class Table:
    """Numbers for a CSV file."""

    columns: tuple[str, ...]
    lines: Sequence[tuple[object, ...]]


@dataclass(frozen=True)
class Result:
    """What an experiment found.

    Attributes:
        table: every number behind the figure.
        figure: drawn.
        verdicts: the paper's statements, judged.
        notes: what a reader should know: what was scaled, left out, or differs from the paper.
    """

    table: Table
    figure: "Figure"
    verdicts: Sequence[Verdict]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    Attributes:
        name: as typed.
        title: for people.
        source: where in the paper.
        plan: the cells it needs.
        conclude: what follows from their rows; runs nothing.
        datasets, quick_datasets: expressions, unless the user names others.
        seeds, quick_seeds: how many, unless the user says otherwise.
        arrays: kinds of cells of which it reads more than the metrics: stored arrays, or times measured here.
        jobs: cells side by side; None for one a core. Measurements of time want the machine for themselves.
        family: the only datasets that make sense here, by name; any if empty.
    """

    name: str
    title: str
    source: str
    plan: Callable[[Scope], Sequence[Choice]]
    conclude: Callable[[Evidence, Scope], Result]
    datasets: tuple[str, ...] = ("cora",)
    quick_datasets: tuple[str, ...] = (QUICK_GRAPH,)
    seeds: int = PAPER_SEEDS
    quick_seeds: int = 1
    arrays: frozenset[Kind] = frozenset()
    jobs: int | None = None
    family: str = ""
