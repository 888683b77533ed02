"""Protecting a graph and auditing a published one: what is run, on what, in which order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ppgsl_bench import defenses as defense_plugins
from ppgsl_bench.attacks import Attack
from ppgsl_bench.defenses import Defense, Guarantee
from ppgsl_bench.errors import GraphError, UserError
from ppgsl_bench.execute import Settings
from ppgsl_bench.expressions import parse, split_list
from ppgsl_bench.graph import Graph
from ppgsl_bench.own_graph.bench import Bench, MakeObserver, Outcomes, OwnGraph
from ppgsl_bench.own_graph.division import Purpose, rehearsal_split, release_split
from ppgsl_bench.own_graph.findings import (
    FEATURES_ATTACK,
    HEADLINES,
    AttackFinding,
    Edits,
    Exposure,
    UtilityFinding,
    exposures,
    lowest_kept,
    percent,
    strongest,
    utility_findings,
)
from ppgsl_bench.own_graph.search import Trial, UnreachableError, Wanted, knob_settings, recommended, searched
from ppgsl_bench.pairs import Pairs, ranks_of
from ppgsl_bench.plan import choose
from ppgsl_bench.rows import Row
from ppgsl_bench.split import Queries
from ppgsl_bench.utilities import Utility

AUTO = "auto"
# What `auto` tries. PPNE is left out: it takes hours where the others take minutes.
AUTO_DEFENSES = ("ppgsl", "dice", "random", "rw-lp", "edgerand", "lapgraph", "privgraph")
# Quick ones of every kind: neighbourhoods, walks, a graph autoencoder, features, and a combination of them.
DEFAULT_ATTACKS = ("cn", "aa", "ra", "katz", "ppr", "edge-presence", "gae-cos", "ensemble", "feature-cos")
DEFAULT_UTILITIES = ("link-prediction", "node-classification", "structure")
# These can be judged on the release itself; any other task may ask for held-back links, so it is rehearsed.
_ON_RELEASE = ("node-classification", "structure")
_NOTHING = "none"
_FEATURES_ARE_THE_FLOOR = (
    "that attack looks at the features alone, which no defense changes: publish fewer features, or leave the attack "
    "out with --attack if features are not published"
)

Say = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """What to evaluate and how.

    Attributes:
        attacks, utilities: expressions; `none` for no utilities.
        seed: of every random stream.
        settings: how cells are run.
        observer: makes what shows the progress of a run.
        say: tells the user what is going on.
    """

    attacks: Sequence[str] = DEFAULT_ATTACKS
    utilities: Sequence[str] = DEFAULT_UTILITIES
    seed: int = 0
    settings: Settings = field(default_factory=Settings)
    observer: MakeObserver | None = None
    say: Say = lambda _: None

    def chosen_attacks(self) -> Sequence[Attack]:
        """The attacks, resolved."""
        return choose(datasets=(), defenses=(), attacks=_items(self.attacks), utilities=(), seeds=()).attacks

    def chosen_utilities(self) -> Sequence[Utility]:
        """The utility tasks, resolved."""
        texts = [] if list(self.utilities) == [_NOTHING] else _items(self.utilities)
        return choose(datasets=(), defenses=(), attacks=(), utilities=texts, seeds=()).utilities


@dataclass(frozen=True, eq=False)
class Protection:
    """A published graph and everything there is to say about it.

    Attributes:
        published: the graph to publish.
        defense: what made it.
        guarantee: what it promises formally, if anything.
        edits: what was changed.
        before, after: attacks on the graph less the sensitive links, and on the published graph.
        utilities: what it is good for.
        exposures: all sensitive links, the most exposed first.
        seconds, peak_bytes: what the defense took.
        wanted: what was asked for.
        trials: what the search tried, if there was one.
        skipped: candidates that could not be run, and why.
    """

    published: Graph
    defense: Defense
    guarantee: Guarantee | None
    edits: Edits
    before: Sequence[AttackFinding]
    after: Sequence[AttackFinding]
    utilities: Sequence[UtilityFinding]
    exposures: Sequence[Exposure]
    seconds: float
    peak_bytes: int
    wanted: Wanted
    trials: Sequence[Trial]
    skipped: Sequence[str]


@dataclass(frozen=True, eq=False)
class Audit:
    """How exposed the sensitive links are in a published graph.

    Attributes:
        attacks: on the published graph.
        undefended: the same attacks on the original less the sensitive links; empty without an original.
        edits: how it differs from the original; without one, of the published graph alone.
        utilities: what is left of the original's structure.
        exposures: all sensitive links, the most exposed first.
        has_original: whether the original was given.
    """

    attacks: Sequence[AttackFinding]
    undefended: Sequence[AttackFinding]
    edits: Edits
    utilities: Sequence[UtilityFinding]
    exposures: Sequence[Exposure]
    has_original: bool


def protect_graph(
    graph: Graph, sensitive: Pairs, defense: str | Defense, wanted: Wanted, request: Request
) -> Protection:
    """Hide the sensitive links, choose a setting if asked to, run the defense, and evaluate what comes out."""
    visible = graph.without_edges(sensitive)
    if visible.num_edges == 0:
        raise GraphError("every link of the graph is sensitive; nothing is left to publish")
    candidates, given = _candidates(defense, wanted)
    with Bench(request.settings, request.seed, request.observer) as bench:
        holder = _Holder(bench, graph, visible, sensitive, request)
        chosen, trials = candidates[0], list[Trial]()
        try:
            if wanted and given is not None:
                trial, trials = holder.search(knob_settings(type(chosen), given), wanted)
                chosen = trial.defense
            elif len(candidates) > 1:
                trial, trials = holder.compare(candidates, wanted)
                chosen = trial.defense
        except UnreachableError as error:
            if error.nearest is not None and error.nearest.attack.startswith(FEATURES_ATTACK):
                raise UnreachableError(f"{error}; {_FEATURES_ARE_THE_FLOOR}", error.nearest) from None
            raise
        return holder.publish(chosen, wanted, trials)


def audit_graph(published: Graph, sensitive: Pairs, original: Graph | None, request: Request) -> Audit:
    """Attack a published graph. Without the original, a link that a defense removed may pass for an unlinked pair."""
    hidden = np.sort(ranks_of(sensitive, published.num_nodes))
    if original is None:
        visible, true_links = published, np.union1d(published.ranks, hidden)
    else:
        visible, true_links = original.without_edges(sensitive), original.ranks
    attacks = request.chosen_attacks()
    utilities = [u for u in request.chosen_utilities() if original is not None and u.name in _ON_RELEASE]
    with Bench(request.settings, request.seed, request.observer) as bench:
        dataset = OwnGraph()
        queries = bench.divide(dataset, release_split(visible, sensitive, true_links, "report", request.seed))
        defense = bench.publish(dataset, published)
        undefended: Sequence[Defense] = [] if original is None else [defense_plugins.registry.get("none").create()]
        request.say(f"attacking the published graph; attacks: {len(attacks)}")
        outcomes = bench.run(dataset, [defense, *undefended], attacks, utilities)
        rows = outcomes.attacks(defense)
        _refuse_without_results(rows)
        reference = outcomes.utilities(undefended[0]) if undefended else []
        return Audit(
            attacks=_findings(rows, sensitive),
            undefended=_findings(outcomes.attacks(undefended[0]), sensitive) if undefended else [],
            edits=Edits.between(visible, published, sensitive),
            utilities=utility_findings(reference, outcomes.utilities(defense), rehearsed=False),
            exposures=exposures(bench, rows, queries, published),
            has_original=original is not None,
        )


class _Holder:
    """One graph, its sensitive links, and the evaluations made on it."""

    def __init__(self, bench: Bench, graph: Graph, visible: Graph, sensitive: Pairs, request: Request) -> None:
        self.bench = bench
        self.graph = graph
        self.visible = visible
        self.sensitive = sensitive
        self.request = request
        self.attacks = request.chosen_attacks()
        tasks = request.chosen_utilities()
        self.on_release = [task for task in tasks if task.name in _ON_RELEASE]
        self.rehearsed = [task for task in tasks if task.name not in _ON_RELEASE]
        self.undefended = defense_plugins.registry.get("none").create()
        self.skipped: dict[str, str] = {}

    def search(self, settings: Sequence[Defense], wanted: Wanted) -> tuple[Trial, list[Trial]]:
        """Search the knob of one defense."""
        self.request.say(f"searching the setting of {settings[0].name}")
        divisions = self._divisions("search")
        trials: list[Trial] = []

        def measure(defense: Defense) -> Trial:
            found = self._trials(divisions, [defense], with_utility=wanted.kept is not None)
            if not found:
                raise UserError(f"{defense.label} cannot be run on this graph: {self.skipped[defense.label]}")
            trials.append(found[0])
            self.request.say(_told(found[0]))
            return found[0]

        return searched(settings, wanted, measure), trials

    def compare(self, candidates: Sequence[Defense], wanted: Wanted) -> tuple[Trial, list[Trial]]:
        """Try all candidates and recommend one."""
        self.request.say(f"trying {len(candidates)} settings of {len({c.name for c in candidates})} defenses")
        trials = self._trials(self._divisions("search"), candidates, with_utility=True)
        best = recommended(trials, wanted)
        self.request.say(f"recommended: {_told(best)}")
        return best, trials

    def publish(self, defense: Defense, wanted: Wanted, trials: Sequence[Trial]) -> Protection:
        """Publish with fresh randomness and evaluate on pairs that no search has seen."""
        self.request.say(f"publishing with {defense.label} and attacking the result; attacks: {len(self.attacks)}")
        divisions = self._divisions("report")
        both = list({d.canonical + d.name: d for d in (self.undefended, defense)}.values())
        release, rehearsal = self._run(divisions, both, self.on_release, self.rehearsed)
        publication = release.publication(defense)
        if publication.status != "ok":
            raise UserError(f"{defense.label} cannot be run on this graph: {publication.reason or publication.status}")
        rows = release.attacks(defense)
        _refuse_without_results(rows)
        published = self.bench.graph(publication)
        utilities = utility_findings(release.utilities(self.undefended), release.utilities(defense), rehearsed=False)
        if rehearsal is not None:
            utilities = [
                *utility_findings(rehearsal.utilities(self.undefended), rehearsal.utilities(defense), rehearsed=True),
                *utilities,
            ]
        return Protection(
            published=published,
            defense=defense,
            guarantee=defense.guarantee,
            edits=Edits.between(self.visible, published, self.sensitive),
            before=_findings(release.attacks(self.undefended), self.sensitive),
            after=_findings(rows, self.sensitive),
            utilities=utilities,
            exposures=exposures(self.bench, rows, divisions.queries, published),
            seconds=publication.wall_seconds or 0.0,
            peak_bytes=publication.peak_host_bytes or 0,
            wanted=wanted,
            trials=trials,
            skipped=[f"{label}: {reason}" for label, reason in self.skipped.items()],
        )

    def _divisions(self, purpose: Purpose) -> "_Divisions":
        links = self.graph.ranks
        release = OwnGraph(purpose=purpose)
        seed = self.request.seed
        queries = self.bench.divide(release, release_split(self.visible, self.sensitive, links, purpose, seed))
        rehearsal = None
        split = rehearsal_split(self.visible, self.sensitive, links, purpose, seed)
        if split is not None:
            rehearsal = OwnGraph(part="rehearsal", purpose=purpose)
            self.bench.divide(rehearsal, split)
        return _Divisions(release, queries, rehearsal)

    def _run(
        self,
        divisions: "_Divisions",
        defenses: Sequence[Defense],
        on_release: Sequence[Utility],
        rehearsed: Sequence[Utility],
    ) -> tuple[Outcomes, Outcomes | None]:
        release = (divisions.release, defenses, self.attacks, on_release)
        if divisions.rehearsal is None or not rehearsed:
            return self.bench.run(*release), None
        both = self.bench.run_together([release, (divisions.rehearsal, defenses, (), rehearsed)])
        return both[0], both[1]

    def _trials(self, divisions: "_Divisions", defenses: Sequence[Defense], *, with_utility: bool) -> list[Trial]:
        """What each setting comes to; those that cannot be run are noted and left out."""
        tasks = [[task for task in group if task.name in HEADLINES] for group in (self.on_release, self.rehearsed)]
        if with_utility:
            release, rehearsal = self._run(divisions, [self.undefended, *defenses], *tasks)
        else:
            release, rehearsal = self._run(divisions, defenses, (), ())
        trials = []
        for defense in defenses:
            publication = release.publication(defense)
            worst = strongest(_findings(release.attacks(defense), self.sensitive))
            if publication.status != "ok" or worst is None:
                self.skipped[defense.label] = publication.reason or "no attack on it gave a result"
                continue
            utilities: list[UtilityFinding] = []
            for outcomes in (release, rehearsal):
                if with_utility and outcomes is not None:
                    before, after = outcomes.utilities(self.undefended), outcomes.utilities(defense)
                    utilities += utility_findings(before, after, rehearsed=outcomes is rehearsal)
            trials.append(Trial(defense, worst.strength, lowest_kept(utilities), worst.label))
        return trials


@dataclass(frozen=True, eq=False)
class _Divisions:
    release: OwnGraph
    queries: Queries
    rehearsal: OwnGraph | None


def _candidates(defense: str | Defense, wanted: Wanted) -> tuple[list[Defense], dict[str, object] | None]:
    """The settings to choose from; for a single defense also the parameters that the user has fixed."""
    if isinstance(defense, Defense):
        if wanted:
            raise UserError("a search needs the defense by name, such as defense='ppgsl': an instance has its setting")
        return [defense], None
    texts = [f"{name}[sweep]" for name in AUTO_DEFENSES] if defense == AUTO else split_list(defense)
    chosen = list(choose(datasets=(), defenses=texts, attacks=(), utilities=(), seeds=()).defenses)
    single = len(texts) == 1 and len(chosen) == 1
    given = parse(texts[0]).given if single else None
    return chosen, None if given is None else dict(given)


def _findings(attacks: Sequence[Row], sensitive: Pairs) -> list[AttackFinding]:
    return [AttackFinding.of(row, len(sensitive)) for row in attacks]


def _items(texts: Sequence[str]) -> list[str]:
    return [item for text in texts for item in split_list(text)]


def _refuse_without_results(attacks: Sequence[Row]) -> None:
    if not any(row.status == "ok" for row in attacks):
        reasons = (
            "; ".join(f"{row.evaluator_label}: {row.reason or row.status}" for row in attacks) or "none was chosen"
        )
        raise UserError(f"no attack gave a result, so nothing can be said about the sensitive links ({reasons})")


def _told(trial: Trial) -> str:
    kept = "" if trial.kept is None else f", utility kept {percent(trial.kept)}"
    return f"{trial.defense.label}: strongest attack {trial.strength:.3f}{kept}"
