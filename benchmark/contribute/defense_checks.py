"""What a defense owes to those who publish with it."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pydantic
import scipy.sparse as sp

from ppgsl_bench.contribute import cases
from ppgsl_bench.contribute.conduct_checks import SEEDS
from ppgsl_bench.contribute.subject import DefenseSubject, check_rng, published
from ppgsl_bench.contribute.verdicts import REPEATABLE, SOUND, Kind, check, fail, not_applicable
from ppgsl_bench.defenses import Defense, Guarantee, Publication
from ppgsl_bench.errors import UserError
from ppgsl_bench.graph import Features, Graph
from ppgsl_bench.pairs import contains

_DEFENSE: tuple[Kind, ...] = ("defense",)
# Along a sweep every setting is tried on so many seeds, or three settings on one seed if a call takes this long.
_SWEEP_SEEDS = 5
_SLOW_SECONDS = 0.2
# By so much of the links may the mean edit distance fall from one setting to a stronger one: it is noise.
_MONOTONE_SLACK = 0.15


@check(hint="Return graph.with_edges(…), or a Publication of that.", kinds=_DEFENSE, needs=("works-on-a-plain-graph",))
def publishes_a_graph(subject: DefenseSubject) -> None:
    """`publish` returns a Graph or a Publication, which are simple and undirected by construction."""
    published(subject.usual_result())


@check(
    hint="Build the result with graph.with_edges(…) or graph.without_edges(…): nodes are never dropped or added.",
    kinds=_DEFENSE,
    needs=("publishes-a-graph",),
)
def keeps_the_nodes(subject: DefenseSubject) -> None:
    """The published graph has the nodes of the input."""
    found, expected = published(subject.usual_result()).num_nodes, cases.standard().graph.num_nodes
    if found != expected:
        fail(f"{found} nodes were published of {expected}")


@check(
    hint="Build the result with graph.with_edges(…), which passes features and labels on.", kinds=_DEFENSE, needs=SOUND
)
def keeps_features_and_labels(subject: DefenseSubject) -> None:
    """Features have their shape and labels their values in the published graph: defenses rewrite links."""
    given, found = cases.standard().graph, published(subject.usual_result())
    if found.y is None or not np.array_equal(found.y, np.asarray(given.y)):
        fail("the labels were dropped or changed")
    if found.x is None or _shape(found.x) != _shape(given.x):
        fail("the features were dropped or have another shape")


def _shape(x: Features | None) -> tuple[int, ...]:
    return () if x is None else tuple(x.shape)


@check(
    hint="Give an added link the weight of a random link (ppgsl_bench.defenses.edits.edited), or publish no weights.",
    kinds=_DEFENSE,
    needs=(*SOUND, "works-with-weights"),
)
def hides_added_links_among_weights(subject: DefenseSubject) -> str:
    """The weights of the published links do not tell added links from real ones."""
    given = cases.weighted().graph
    found = published(subject.unless_refused(cases.weighted()))
    if found.weights is None:
        return "publishes no weights"
    added = found.weights[~contains(given.ranks, found.ranks)]
    strange = ~np.isin(added, np.asarray(given.weights))
    if strange.any() and len(np.unique(added[strange])) <= len(added) // 2:
        fail(
            f"{strange.sum()} of {len(added)} added links have a weight that no link had, such as {added[strange][0]:g}"
        )
    return "weights look alike"


@check(
    hint="Put one-dimensional arrays of numbers into the trace, by name.",
    kinds=_DEFENSE,
    needs=("publishes-a-graph",),
)
def traces_in_plain_arrays(subject: DefenseSubject) -> str:
    """The trace of a Publication holds one-dimensional arrays of numbers."""
    result = subject.usual_result()
    if not isinstance(result, Publication) or not result.trace:
        not_applicable("it returns no trace")
    for name, values in result.trace.items():
        array = np.asarray(values)
        if array.ndim != 1 or array.dtype.kind not in "biuf":
            fail(f"the trace {name!r} has shape {array.shape} and type {array.dtype}")
    return f"{len(result.trace)} traces"


@check(
    hint="Set uses_sensitive = True if the method is meant to look at them; otherwise do not touch `sensitive`.",
    kinds=_DEFENSE,
    needs=REPEATABLE,
)
def sees_only_what_it_declares(subject: DefenseSubject) -> None:
    """Without `uses_sensitive` the result does not depend on the sensitive links."""
    if subject.cls.uses_sensitive:
        not_applicable("it declares that it uses the sensitive links")
    case = cases.standard()
    blind = subject.fingerprint(subject.usual_result())
    for shown in (case.hidden[:5], case.hidden):
        if subject.fingerprint(subject.plugin().publish(case.graph, shown.copy(), check_rng())) != blind:
            fail(f"shown {len(shown)} sensitive links, it publishes another graph")


@check(
    hint="Set uses_sensitive = False: a method that needs no sensitive links should not be given any.",
    kinds=_DEFENSE,
    needs=REPEATABLE,
)
def uses_what_it_declares(subject: DefenseSubject) -> None:
    """With `uses_sensitive` the result depends on the sensitive links."""
    if not subject.cls.uses_sensitive:
        not_applicable("it does not declare that it uses the sensitive links")
    case = cases.standard()
    seen = {subject.fingerprint(subject.usual_result())}
    for shown in (case.hidden[:3], case.others):
        seen.add(subject.fingerprint(subject.plugin().publish(case.graph, shown.copy(), check_rng())))
    if len(seen) == 1:
        fail("it publishes the same graph for three different sets of sensitive links")


@check(
    hint="Leave the sensitive pairs out of what may be added: a defense that knows them must not publish them.",
    kinds=_DEFENSE,
    needs=SOUND,
)
def publishes_no_sensitive_link(subject: DefenseSubject) -> None:
    """A defense that is given the sensitive links publishes none of them."""
    if not subject.cls.uses_sensitive:
        not_applicable("it does not know them, and may publish one by chance")
    hidden = cases.standard().hidden
    for seed in SEEDS:
        shown = int(published(subject.result(cases.standard(), seed)).has_edges(hidden).sum())
        if shown:
            fail(f"{shown} of {len(hidden)} sensitive links are in the published graph")


@check(
    hint="Handle an array of shape (0, 2), or raise a UserError that says what is missing.",
    kinds=_DEFENSE,
    needs=SOUND,
    group="graphs",
)
def works_without_sensitive_links(subject: DefenseSubject) -> None:
    """An empty set of sensitive links."""
    case = cases.standard()
    try:
        published(subject.plugin().publish(case.graph, case.hidden[:0].copy(), check_rng()))
    except UserError as error:
        not_applicable(f"it refuses: {error}")


@check(
    hint='List settings from weakest to strongest: sweep = tuple({"rate": r} for r in (0.1, 0.3, 0.5)).',
    kinds=_DEFENSE,
)
def has_a_sweep(subject: DefenseSubject) -> str:
    """A defense with parameters has at least two settings for its trade-off curve."""
    if not subject.cls.model_fields:
        not_applicable("it has no parameters")
    if len(subject.cls.sweep) < 2:
        fail("the sweep has one setting: a curve needs two")
    return f"{len(subject.cls.sweep)} settings"


@check(
    hint="Use the names and limits of the declared parameters in the sweep, and each setting once.",
    kinds=_DEFENSE,
    needs=("has-a-sweep", "has-valid-defaults"),
)
def sweeps_over_valid_settings(subject: DefenseSubject) -> None:
    """Every setting of the sweep can be made, and no two are the same."""
    made = set()
    for setting in subject.cls.sweep:
        try:
            made.add(subject.plugin(**setting).canonical)
        except pydantic.ValidationError as error:
            fail(f"{dict(setting)}: {error.errors()[0]['loc'][0]}: {error.errors()[0]['msg'].lower()}")
    if len(made) < len(subject.cls.sweep):
        fail(f"{len(subject.cls.sweep)} settings, of which {len(made)} differ")


@check(
    hint="Let the swept parameter decide how much is changed.",
    kinds=_DEFENSE,
    needs=(*SOUND, "sweeps-over-valid-settings"),
)
def changes_along_the_sweep(subject: DefenseSubject) -> None:
    """The settings of the sweep publish different graphs."""
    seen = {
        subject.fingerprint(subject.result(cases.standard(), seed, setting))
        for setting, seed in _tried(subject)
        if seed == 0
    }
    if len(seen) == 1:
        fail("all settings publish the same graph")


@check(
    hint="Order the sweep from the setting that changes least to the one that changes most.",
    kinds=_DEFENSE,
    needs=(*SOUND, "changes-along-the-sweep"),
)
def sweeps_from_weak_to_strong(subject: DefenseSubject) -> str:
    """The edit distance to the input grows along the sweep."""
    given = cases.standard().graph
    by_setting: dict[str, list[float]] = {}
    for setting, seed in _tried(subject):
        found = published(subject.result(cases.standard(), seed, setting))
        by_setting.setdefault(str(dict(setting)), []).append(_edit_share(given, found))
    means = {text: float(np.mean(values)) for text, values in by_setting.items()}
    highest, at = -math.inf, ""
    for text, mean in means.items():
        if mean < highest - _MONOTONE_SLACK:
            fail(f"{text} changes {mean:.0%} of the links, the weaker {at} {highest:.0%}")
        if mean > highest:
            highest, at = mean, text
    first, *_, last = means.values()
    if last <= first:
        fail(f"the last setting changes {last:.0%} of the links, the first {first:.0%}")
    return f"from {first:.0%} to {last:.0%} of the links"


def _tried(subject: DefenseSubject) -> list[tuple[Mapping[str, Any], int]]:
    """Settings in order, with seeds: all of both if the plugin is fast."""
    settings = list(subject.cls.sweep)
    subject.result(cases.standard(), 0, settings[0])
    if subject.quickest_call > _SLOW_SECONDS:
        return [(settings[i], 0) for i in sorted({0, len(settings) // 2, len(settings) - 1})]
    return [(setting, seed) for setting in settings for seed in range(_SWEEP_SEEDS)]


def _edit_share(given: Graph, found: Graph) -> float:
    kept = int(contains(given.ranks, found.ranks).sum())
    return (given.num_edges + found.num_edges - 2 * kept) / given.num_edges


@check(
    hint="Return Guarantee.edge_dp(self.epsilon), or None if there is no formal promise.",
    kinds=_DEFENSE,
    needs=("has-valid-defaults",),
)
def states_its_guarantee_in_full(subject: DefenseSubject) -> str:
    """A guarantee names its kind, a finite ε ≥ 0, and what it covers."""
    guarantee = _guarantee(subject.plugin())
    if not isinstance(guarantee, Guarantee):
        fail(f"guarantee is of type {type(guarantee).__name__}")
    if not guarantee.kind or not guarantee.covers or not (0 <= guarantee.epsilon < math.inf):
        fail(f"incomplete: {guarantee}")
    return f"{guarantee.kind}, ε = {guarantee.epsilon:g}"


@check(
    hint="Compute ε from the parameters of the instance.",
    kinds=_DEFENSE,
    needs=("states-its-guarantee-in-full", "sweeps-over-valid-settings"),
)
def tightens_its_guarantee_along_the_sweep(subject: DefenseSubject) -> str:
    """Stronger settings of the sweep have a smaller ε."""
    found = [_guarantee(subject.plugin(**setting)) for setting in subject.cls.sweep]
    budgets = [guarantee.epsilon for guarantee in found]
    if any(later > earlier for earlier, later in pairwise(budgets)) or len(set(budgets)) == 1:
        fail(f"ε along the sweep: {', '.join(f'{b:g}' for b in budgets)}")
    return f"ε from {budgets[0]:g} to {budgets[-1]:g}"


@check(
    hint="Publish no weights (graph.with_edges without weights): ε says nothing about them.",
    kinds=_DEFENSE,
    needs=(*SOUND, "states-its-guarantee-in-full", "works-with-weights"),
)
def publishes_no_weights_under_a_guarantee(subject: DefenseSubject) -> None:
    """A guarantee for links does not cover weights, so none are published with it."""
    if published(subject.unless_refused(cases.weighted())).weights is not None:
        fail("weights are published beside a guarantee that covers links only")


def _guarantee(plugin: Defense) -> Guarantee:
    guarantee = plugin.guarantee
    if guarantee is None:
        not_applicable("it states no guarantee")
    return guarantee


@check(
    hint="Use graph.x through scipy.sparse.issparse, and pass it on unchanged unless changing it is the method.",
    kinds=_DEFENSE,
    needs=("keeps-features-and-labels",),
)
def keeps_sparse_features_sparse(subject: DefenseSubject) -> None:
    """Features that come as a sparse matrix are published as one."""
    if not sp.issparse(published(subject.usual_result()).x):
        fail("the features were made dense")
