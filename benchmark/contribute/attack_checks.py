"""What an attack owes to those who trust its numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.attacks import EmbeddingAttack
from ppgsl_bench.contribute import cases
from ppgsl_bench.contribute.subject import AttackSubject, check_rng
from ppgsl_bench.contribute.verdicts import REPEATABLE, SOUND, Kind, check, fail, not_applicable
from ppgsl_bench.graph import Graph
from ppgsl_bench.metrics import roc_auc
from ppgsl_bench.pairs import Pairs
from ppgsl_bench.seeds import generator

_ATTACK: tuple[Kind, ...] = ("attack",)
# Scores of equal pairs may differ by rounding, in float32 for some: by this share of their range.
_ROUNDING = 1e-4
# The hidden links of the plain graph stick out by neighbourhood, degree and features alike. With 16 links and 16 other
# pairs a blind attack exceeds this AUC in about 2 % of cases, but then on every seed.
_FOUND = 0.7


@check(
    hint="Return one score for each row of `pairs`, in that order.", kinds=_ATTACK, needs=("works-on-a-plain-graph",)
)
def scores_every_pair(subject: AttackSubject) -> None:
    """There is one score a pair."""
    shape = np.shape(subject.usual_result())
    if shape != (len(cases.standard().pairs),):
        fail(f"{len(cases.standard().pairs)} pairs got scores of shape {shape}")


@check(hint="Return a NumPy array of float64.", kinds=_ATTACK, needs=("scores-every-pair",))
def scores_are_numbers(subject: AttackSubject) -> None:
    """Scores are real numbers in a NumPy array."""
    result = subject.usual_result()
    if not isinstance(result, np.ndarray) or result.dtype.kind not in "fiu":
        fail(f"scores are of type {getattr(result, 'dtype', type(result).__name__)}")


@check(
    hint="Look for 0/0 and log 0: nodes without links or features need a score too.",
    kinds=_ATTACK,
    needs=("scores-are-numbers",),
)
def scores_are_finite(subject: AttackSubject) -> None:
    """No score is NaN or infinite."""
    bad = ~np.isfinite(subject.usual_result())
    if bad.any():
        fail(f"{bad.sum()} of {len(bad)} scores are NaN or infinite")


@check(
    hint="Score {u, v}, not (u, v): sort the ends, or add the scores of both orders.", kinds=_ATTACK, needs=REPEATABLE
)
def scores_either_order_of_ends_alike(subject: AttackSubject) -> None:
    """(v, u) gets the score of (u, v)."""
    case = cases.standard()
    _compare(subject.usual_result(), _score(subject, case.graph, case.pairs[:, ::-1]), "after swapping the ends")


@check(
    hint="The order of the pairs must not matter: seed per pair, or draw everything before you look at the pairs.",
    kinds=_ATTACK,
    needs=REPEATABLE,
)
def scores_any_order_of_pairs_alike(subject: AttackSubject) -> None:
    """A pair's score does not depend on its place among the pairs."""
    case = cases.standard()
    order = generator("check", "pair order").permutation(len(case.pairs))
    _compare(subject.usual_result()[order], _score(subject, case.graph, case.pairs[order]), "after shuffling the pairs")


@check(
    hint="Handle an array of shape (1, 2): do not standardise by the spread of the scores.", kinds=_ATTACK, needs=SOUND
)
def scores_a_single_pair(subject: AttackSubject) -> None:
    """One pair alone gets one finite score."""
    case = cases.standard()
    scores = np.asarray(_score(subject, case.graph, case.pairs[:1]))
    if scores.shape != (1,) or not np.isfinite(scores).all():
        fail(f"one pair got {scores}")


@check(
    hint="Compute a score from the pair, not from where it first occurs.",
    kinds=_ATTACK,
    needs=(*REPEATABLE, "scores-any-order-of-pairs-alike"),
)
def scores_a_repeated_pair_alike(subject: AttackSubject) -> None:
    """A pair that is asked twice gets the same score twice."""
    case = cases.standard()
    scores = np.asarray(_score(subject, case.graph, np.concatenate([case.pairs, case.pairs])))
    if scores.shape != (2 * len(case.pairs),):
        fail(f"{2 * len(case.pairs)} pairs got scores of shape {scores.shape}")
    _compare(scores[: len(case.pairs)], scores[len(case.pairs) :], "between the two")


@check(
    hint="Do not use published.y: labels are taken out before an attack sees the graph.",
    kinds=_ATTACK,
    needs=REPEATABLE,
)
def looks_at_no_labels(subject: AttackSubject) -> None:
    """Node labels, if they were there, would make no difference."""
    case = cases.standard()
    scores = subject.plugin().score(case.graph, case.pairs, check_rng())
    _compare(subject.usual_result(), scores, "once labels are there")


@check(
    hint="Node numbers mean nothing: use no order of ids, not even to break ties.",
    kinds=_ATTACK,
    needs=REPEATABLE,
)
def reads_nothing_into_node_numbers(subject: AttackSubject) -> None:
    """Renumbering the nodes does not change the scores of an attack without randomness."""
    if subject.is_random:
        not_applicable("it is random: another numbering is another draw")
    case = cases.standard()
    number = generator("check", "numbers").permutation(case.graph.num_nodes)
    pairs = np.sort(number[case.pairs], axis=1)
    x: Any = case.graph.x
    renamed = Graph.from_pairs(case.graph.num_nodes, number[case.graph.edges], x=x[np.argsort(number)])
    _compare(subject.usual_result(), _score(subject, renamed, pairs), "after renumbering the nodes")


@check(hint="Higher means more likely a link. Turn the sign, or see why nothing is found.", kinds=_ATTACK, needs=SOUND)
def finds_planted_links(subject: AttackSubject) -> str:
    """Links hidden inside dense groups score above pairs of strangers."""
    auc = roc_auc(cases.standard().answers, np.asarray(subject.usual_result(), dtype=np.float64))
    if auc < _FOUND:
        fail(f"AUC {auc:.2f} where the hidden links stick out")
    return f"AUC {auc:.2f}"


@check(hint='Say what the attacker knows, e.g. knowledge = "published graph" (the default).', kinds=_ATTACK)
def states_its_knowledge(subject: AttackSubject) -> str:
    """What the attacker knows is declared in words."""
    knowledge = subject.cls.knowledge
    if not isinstance(knowledge, str) or not knowledge.strip():
        fail(f"knowledge is {knowledge!r}")
    return knowledge


@check(
    hint="Give the encoder class `name` and `version` as class variables: they are part of the embedding's cache key.",
    kinds=_ATTACK,
)
def names_its_encoder(subject: AttackSubject) -> str:
    """The encoder of an embedding attack has a name and a version of its own."""
    encoder = _encoder_class(subject)
    if not encoder.name or encoder.version < 1:
        fail(f"the encoder {encoder.__name__} has the name {encoder.name!r} and the version {encoder.version}")
    return f"{encoder.name}, version {encoder.version}"


@check(
    hint="Derive the attack from the encoder's parameter class too, so that it has all parameters of the encoder.",
    kinds=_ATTACK,
    needs=("has-valid-defaults",),
)
def passes_parameters_to_its_encoder(subject: AttackSubject) -> str:
    """An embedding attack has the parameters of its encoder."""
    if not issubclass(subject.cls, EmbeddingAttack):
        return "it has no encoder"
    missing = set(_encoder_class(subject).model_fields) - set(subject.cls.model_fields)
    if missing:
        fail(f"the attack lacks the encoder's {', '.join(sorted(missing))}")
    return f"{len(subject.cls.encoder_class.model_fields)} parameters"


@check(
    hint="Return float32 of shape [number of nodes, width] from embed.",
    kinds=_ATTACK,
    needs=(*SOUND, "passes-parameters-to-its-encoder"),
)
def embeds_every_node(subject: AttackSubject) -> str:
    """The encoder gives each node a vector of finite numbers."""
    _encoder_class(subject)
    plugin = subject.plugin()
    if not isinstance(plugin, EmbeddingAttack):
        raise TypeError("unreachable: it has an encoder class")
    graph = cases.standard().graph.without_labels()
    embedding = np.asarray(plugin.encoder.embed(graph, check_rng()))
    if embedding.ndim != 2 or len(embedding) != graph.num_nodes or embedding.dtype != np.float32:
        fail(f"embed returned {embedding.dtype} of shape {embedding.shape} for {graph.num_nodes} nodes")
    if not np.isfinite(embedding).all():
        fail("embed returned NaN or infinite numbers")
    return f"{embedding.shape[1]} dimensions"


def _encoder_class(subject: AttackSubject) -> Any:
    if not issubclass(subject.cls, EmbeddingAttack):
        not_applicable("it has no encoder")
    return subject.cls.encoder_class


def _score(subject: AttackSubject, graph: Graph, pairs: Pairs) -> Any:
    return subject.plugin().score(graph.without_labels(), pairs.copy(), check_rng())


def _compare(expected: NDArray[np.float64], found: Any, when: str) -> None:
    values = np.asarray(found, dtype=np.float64)
    if values.shape != expected.shape:
        fail(f"scores of shape {values.shape} {when}; expected {expected.shape}")
    tolerance = _ROUNDING * (float(np.ptp(expected)) or 1.0)
    differing = int((np.abs(values - expected) > tolerance).sum())
    if differing:
        fail(f"{differing} of {len(values)} scores differ {when}")
