"""A provisional place on the board: the method beside cheap references, on two graphs that need no download."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from tabulate import tabulate

from ppgsl_bench.contribute.subject import AnySubject, DefenseSubject
from ppgsl_bench.datasets import Sources
from ppgsl_bench.errors import UserError
from ppgsl_bench.execute import Settings, execute
from ppgsl_bench.leaderboard.front import CHANCE
from ppgsl_bench.leaderboard.measurements import UNDEFENDED, Measurements
from ppgsl_bench.leaderboard.ranking import rank
from ppgsl_bench.leaderboard.resampling import Estimate, Place, Sample
from ppgsl_bench.leaderboard.tables import ranking_text
from ppgsl_bench.metrics import strength
from ppgsl_bench.plan import choose, plan
from ppgsl_bench.processes import Limits
from ppgsl_bench.progress import RunProgress
from ppgsl_bench.rows import Row
from ppgsl_bench.run_options import cells_at_once, fair_share
from ppgsl_bench.store import Results

# One small real graph without features, one generated with features, labels and communities.
GRAPHS = ("lesmis", "synthetic[n=300]")
SEEDS = (0, 1, 2)
# Attacks of different make that take milliseconds: what a new attack is ranked beside.
RIVALS = ("cn", "aa", "ra", "katz", "degree", "edge-presence", "feature-cos")
# Those that a defense meets; the strongest counts. The other rivals hardly ever are: docs/quick-comparison.md.
ATTACKS = ("ra", "katz", "degree", "feature-cos")
UTILITY = "link-prediction"
# References with three points each on their curves: enough to see where a new one runs.
DEFENSES = (
    "none",
    *(f"random[rate={rate}]" for rate in (0.1, 0.3, 0.7)),
    *(f"dice[rate={rate}]" for rate in (0.1, 0.3, 0.7)),
    *(f"edgerand[epsilon={epsilon}]" for epsilon in (9, 7, 5)),
)
# What an attack is tried against.
TARGETS = ("none", "random", "dice", "edgerand")

_CELL_SECONDS = 120.0


@dataclass(frozen=True)
class Comparison:
    """Where a method stands.

    Attributes:
        table: the ranking as text.
        place: the place of the method in it.
        competitors: how many are ranked.
        failed: cells of the method that did not end well.
    """

    table: str
    place: Place
    competitors: int
    failed: Sequence[Row]

    @property
    def sentence(self) -> str:
        """The place in words."""
        between = ""
        if self.place.best is not None and self.place.best != self.place.worst:
            between = f" (95 % interval: {self.place.best} to {self.place.worst})"
        return f"place {self.place.rank} of {self.competitors}{between}"


def compare(subject: AnySubject, file: Path | None, results: Path, console: Console) -> Comparison:
    """Run a method and the references through the harness, as far as that is not done yet, and rank them."""
    name = subject.cls.name
    if not name:
        raise UserError(f"{subject.cls.__name__} has no name: put @register(…) above the class")
    if name == UNDEFENDED:
        raise UserError(f"{name!r} is what defenses are compared with; name another one")
    if isinstance(subject, DefenseSubject):
        rows = _run([*DEFENSES, f"{name}[sweep]"], ATTACKS, [UTILITY], file, results, console)
        return _among_defenses(rows, name)
    rows = _run(TARGETS, [*RIVALS, name], [], file, results, console)
    return _among_attacks(rows, name)


def _run(
    defenses: Sequence[str],
    attacks: Sequence[str],
    utilities: Sequence[str],
    file: Path | None,
    results: Path,
    console: Console,
) -> list[Row]:
    choice = choose(datasets=GRAPHS, defenses=defenses, attacks=attacks, utilities=utilities, seeds=SEEDS)
    sources = Sources.from_environment([], offline=True)
    cells = plan(choice, sources)
    jobs = cells_at_once(None)
    settings = Settings(
        jobs=jobs,
        limits=Limits(_CELL_SECONDS, fair_share(jobs)),
        sources=sources,
        plugin_files=() if file is None else (file.resolve(),),
    )
    with Results(results).writing() as store, RunProgress(console, jobs) as progress:
        execute(cells, store, settings, progress)
        wanted = {cell.key for cell in cells}
        return [row for row in store.rows() if row.key in wanted]


def _among_defenses(rows: Sequence[Row], name: str) -> Comparison:
    ranking = rank(Measurements(rows), attack="worst", utility=UTILITY)
    ranked = [standing for standing in ranking.standings if not standing.is_reference]
    place = next(standing.place[ranking.summary] for standing in ranked if standing.label == name)
    failed = [row for row in rows if row.defense == name and row.status not in {"ok", "inapplicable"}]
    return Comparison(ranking_text(ranking), place, len(ranked), failed)


def _among_attacks(rows: Sequence[Row], name: str) -> Comparison:
    """Attacks by mean strength over what they were tried against; what is missing counts as a guess."""
    found = {(row.evaluator, row.dataset_label, row.defense, row.seed): row for row in rows if row.kind == "attack"}
    names = sorted({attack for attack, *_ in found})
    graphs = sorted({graph for _, graph, *_ in found})

    def value(attack: str, graph: str, defense: str, seed: int) -> float:
        row = found.get((attack, graph, defense, seed))
        return strength(row.metrics["auc"]) if row is not None and row.status == "ok" else CHANCE

    def values(attack: str, graph: str, defenses: Sequence[str]) -> list[float]:
        return [float(np.mean([value(attack, graph, defense, seed) for defense in defenses])) for seed in SEEDS]

    def sample(defenses: Sequence[str]) -> Sample:
        return Sample({graph: np.array([values(attack, graph, defenses) for attack in names]) for graph in graphs})

    overall = sample(TARGETS)
    complete = np.ones(len(names), dtype=np.bool_)
    places = overall.places(higher_is_better=True, complete=complete)
    columns = [overall.estimates(CHANCE, 1.0), *(sample([defense]).estimates(CHANCE, 1.0) for defense in TARGETS)]
    order = sorted(range(len(names)), key=lambda k: (places[k].rank, names[k]))
    lines = [[_rank(places[k]), names[k], *(_shown(column[k]) for column in columns)] for k in order]
    headers = ["rank", "attack", "strength", *(f"on {target}" for target in TARGETS)]
    text = (
        f"Ranked by attack strength, max(AUC, 1 - AUC), over {len(TARGETS)} defenses; {', '.join(graphs)}; "
        f"{len(SEEDS)} seeds; 95 % intervals in brackets; what does not apply counts as a guess.\n\n"
        f"{tabulate(lines, headers=headers, disable_numparse=True)}"
    )
    failed = [row for row in rows if row.evaluator == name and row.status not in {"ok", "inapplicable"}]
    return Comparison(text, places[names.index(name)], len(names), failed)


def _rank(place: Place) -> str:
    if place.best is None or place.best == place.worst:
        return str(place.rank)
    return f"{place.rank} ({place.best}–{place.worst})"


def _shown(estimate: Estimate) -> str:
    interval = "" if estimate.low is None else f" [{estimate.low:.2f}, {estimate.high:.2f}]"
    return f"{estimate.value:.3f}{interval}"
