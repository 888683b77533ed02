"""What an attack's scores are worth: numbers for one set of scores, and their spread over seeds.

Ties count one half in the AUC and in the risk of a link, and never in the attacker's favour in TPR at a fixed FPR
and in Hits@K: no number here depends on the order in which pairs come.
"""

import importlib
import importlib.util
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special
from numpy.typing import ArrayLike, NDArray

from ppgsl_bench.split import NEGATIVE_FAMILIES

Labels = NDArray[np.bool_]
Scores = NDArray[np.float64]

# ogb measures ogbl-collab at 50; a smaller K would rest on a handful of negatives of a small graph.
HITS_K = 50
# A mean over fewer links says more about chance than about the group.
MIN_GROUP = 20
# The share of a graph's links that counts as its worst served, and the number of groups by degree.
DECILES = 10


@dataclass(frozen=True)
class MeanInterval:
    """Mean of `count` values, sample standard deviation, and the 95 % t-interval; NaN where one value is too few."""

    mean: float
    sd: float
    low: float
    high: float
    count: int


def roc_auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Mann–Whitney: the chance that a link outscores a non-link, ties at one half. Exactly 0.5 for constant scores."""
    links, others = _divided(labels, scores)
    below, tied = _placements(links, np.sort(others))
    return (2 * int(below.sum()) + int(tied.sum())) / (2 * len(links) * len(others))


def auc_standard_error(labels: ArrayLike, scores: ArrayLike) -> float:
    """Standard error of the AUC (DeLong et al. 1988), for pairs drawn independently; NaN for fewer than two a class."""
    links, others = _divided(labels, scores)
    if min(len(links), len(others)) < 2:
        return math.nan
    of_links = outranked_share(links, others)
    of_others = outranked_share(others, links)
    return math.sqrt(of_links.var(ddof=1) / len(links) + of_others.var(ddof=1) / len(others))


def strength(auc: float) -> float:
    """max(AUC, 1 - AUC): an attack that is reliably wrong is right once inverted."""
    return max(auc, 1.0 - auc)


def average_precision(labels: ArrayLike, scores: ArrayLike) -> float:
    """Sum of precision × gain in recall over the distinct thresholds, tied pairs entering together."""
    links, others = _divided(labels, scores)
    values, where = np.unique(np.concatenate([links, others]), return_inverse=True)
    gained = np.bincount(where[: len(links)], minlength=len(values))[::-1]
    total = np.cumsum(np.bincount(where, minlength=len(values))[::-1])
    return float((gained * (np.cumsum(gained) / total)).sum() / len(links))


def tpr_at_fpr(labels: ArrayLike, scores: ArrayLike, fpr: float) -> float:
    """The largest share of links above a threshold that lets through at most the share `fpr` of non-links.

    The exact step function: nothing is interpolated, and links tied with one false positive too many do not count.
    With fewer than 1 / fpr non-links it is the share of links above all of them.
    """
    links, others = _divided(labels, scores)
    # The tiny term undoes rounding in products such as 0.29 × 100.
    allowed = math.floor(fpr * len(others) + 1e-9)
    if allowed >= len(others):
        return 1.0
    first_refused = np.partition(others, len(others) - 1 - allowed)[len(others) - 1 - allowed]
    return float(np.mean(links > first_refused))


def hits_at_k(labels: ArrayLike, scores: ArrayLike, k: int = HITS_K) -> float:
    """Share of links that score strictly above the k-th best non-link, as ogb's `Evaluator` defines it.

    A tie with the k-th non-link is a miss; with fewer than k non-links the value is 1. The Evaluator itself computes it
    where ogb is installed.
    """
    if k < 1:
        raise ValueError(f"k is {k}; it must be at least 1")
    links, others = _divided(labels, scores)
    evaluator = _ogb_evaluator()
    if evaluator is None:
        return _hits(links, others, k)
    evaluator.K = k
    return float(evaluator.eval({"y_pred_pos": links, "y_pred_neg": others})[f"hits@{k}"])


def outranked_share(scores: Scores, others: Scores) -> Scores:
    """For each of `scores` the share of `others` below it, ties at one half: the risk of a link."""
    below, tied = _placements(scores, np.sort(others))
    return (below + 0.5 * tied) / len(others)


def attack_metrics(
    scores: ArrayLike,
    group: ArrayLike,
    *,
    degrees: ArrayLike | None = None,
    communities: ArrayLike | None = None,
) -> dict[str, float]:
    """All numbers of one attack on one published graph.

    Against each family of negatives: `auc`, `auc_se` (DeLong), `strength`, `tpr_at_1pct_fpr`, `tpr_at_0.1pct_fpr`,
    `average_precision` (one negative a link, so 0.5 is chance) and `hits_at_50`. The uniform family is the
    headline and has the plain names; the others end in `_degree` and `_hard`.

    `zero_share` is the share of all pairs that sit on the most common score (0 for most heuristics): where it is
    large, the AUC measures little more than who has any score at all.

    The risk of a link is the share of uniform negatives that it outranks. `risk_worst_decile` is its mean over the
    tenth of links with the highest risk; `risk_worst_degree_decile` the mean over the worst of ten groups by the
    product of the ends' degrees; `risk_worst_community` over the worst community, a link belonging to the
    communities of both its ends. Groups of fewer than 20 links are passed over.

    What cannot be computed is left out rather than made up: a family without pairs, `hits_at_50` with fewer than 50
    negatives, a worst group where all groups are too small.

    Args:
        scores: shape [Q], finite.
        group: shape [Q], as in `ppgsl_bench.split.Queries`: 0 for a sensitive link, 1 + i for the i-th family.
        degrees: shape [Q, 2], degrees of the ends of each pair.
        communities: shape [Q, 2], labels of the ends, negative for unknown.
    """
    scores, group = np.asarray(scores, dtype=np.float64), np.asarray(group)
    if scores.shape != group.shape:
        raise ValueError(f"{scores.shape} scores for {group.shape} groups; expected one score a pair")
    sensitive = group == 0
    metrics: dict[str, float] = {}
    for i, family in enumerate(NEGATIVE_FAMILIES):
        chosen = sensitive | (group == 1 + i)
        if (group == 1 + i).any():
            suffix = "" if family == "uniform" else f"_{family}"
            for name, value in _against(sensitive[chosen], scores[chosen]).items():
                metrics[name + suffix] = value
    metrics["zero_share"] = float(np.unique(scores, return_counts=True)[1].max() / len(scores))
    uniform = scores[group == 1 + NEGATIVE_FAMILIES.index("uniform")]
    if len(uniform):
        risk = outranked_share(scores[sensitive], uniform)
        worst = math.ceil(len(risk) / DECILES)
        metrics["risk_worst_decile"] = float(np.sort(risk)[-worst:].mean())
        if degrees is not None:
            metrics |= _named("risk_worst_degree_decile", _worst_degree_decile(risk, np.asarray(degrees)[sensitive]))
        if communities is not None:
            metrics |= _named("risk_worst_community", _worst_community(risk, np.asarray(communities)[sensitive]))
    return metrics


def mean_interval(values: Sequence[float] | NDArray[np.float64]) -> MeanInterval:
    """Mean over seeds with sample standard deviation and 95 % t-interval."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"values of shape {array.shape}; expected a list of at least one number")
    n, mean = len(array), float(array.mean())
    if n == 1:
        return MeanInterval(mean, math.nan, math.nan, math.nan, 1)
    sd = float(array.std(ddof=1))
    half = float(scipy.special.stdtrit(n - 1, 0.975)) * sd / math.sqrt(n)
    return MeanInterval(mean, sd, mean - half, mean + half, n)


def _against(labels: Labels, scores: Scores) -> dict[str, float]:
    auc = roc_auc(labels, scores)
    return {
        "auc": auc,
        **_named("auc_se", auc_standard_error(labels, scores)),
        "strength": strength(auc),
        "tpr_at_1pct_fpr": tpr_at_fpr(labels, scores, 0.01),
        "tpr_at_0.1pct_fpr": tpr_at_fpr(labels, scores, 0.001),
        "average_precision": average_precision(labels, scores),
        **_named(f"hits_at_{HITS_K}", hits_at_k(labels, scores) if (~labels).sum() >= HITS_K else math.nan),
    }


def _named(name: str, value: float) -> dict[str, float]:
    return {} if math.isnan(value) else {name: value}


def _divided(labels: ArrayLike, scores: ArrayLike) -> tuple[Scores, Scores]:
    is_link, values = np.asarray(labels, dtype=np.bool_), np.asarray(scores, dtype=np.float64)
    if is_link.ndim != 1 or is_link.shape != values.shape:
        raise ValueError(
            f"labels of shape {is_link.shape}, scores of shape {values.shape}; expected one of each a pair"
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{np.count_nonzero(~np.isfinite(values))} of {len(values)} scores are NaN or infinite")
    links, others = values[is_link], values[~is_link]
    if not len(links) or not len(others):
        raise ValueError(f"{len(links)} links and {len(others)} non-links; at least one of each is needed")
    return links, others


def _placements(scores: Scores, sorted_others: Scores) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many of the others lie below each score, and how many are equal to it."""
    below = np.searchsorted(sorted_others, scores, side="left").astype(np.int64)
    return below, np.searchsorted(sorted_others, scores, side="right").astype(np.int64) - below


def _hits(links: Scores, others: Scores, k: int) -> float:
    if len(others) < k:
        return 1.0
    return float(np.mean(links > np.partition(others, len(others) - k)[len(others) - k]))


@cache
def _ogb_evaluator() -> Any:
    """An ogb link Evaluator, or None without ogb.

    Importing `ogb` asks the network for newer versions and loads torch; the one module that holds the Evaluator does
    neither when it is executed alone and a torch not loaded yet is kept out of its sight.
    """
    package = importlib.util.find_spec("ogb")
    if package is None or package.origin is None:
        return None
    source = Path(package.origin).parent / "linkproppred" / "evaluate.py"
    spec = importlib.util.spec_from_file_location("ppgsl_bench_ogb_evaluate", source)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    for name in ("pandas", "sklearn.metrics"):
        # What it imports besides torch: to be loaded while nothing is hidden.
        importlib.import_module(name)
    with nullcontext() if "torch" in sys.modules else _hidden("torch"):
        spec.loader.exec_module(module)
    return module.Evaluator("ogbl-collab")


@contextmanager
def _hidden(name: str) -> Iterator[None]:
    """Make `import name` fail for a while, for a module that is not loaded."""
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


def _worst_degree_decile(risk: Scores, degrees: NDArray[np.int64]) -> float:
    """Ten groups of links of like degree product, equal products kept together."""
    product = degrees.astype(np.float64).prod(axis=1)
    inner = np.quantile(product, np.arange(1, DECILES) / DECILES, method="inverted_cdf")
    return _worst_mean(risk, np.searchsorted(np.unique(inner), product, side="left"))


def _worst_community(risk: Scores, communities: NDArray[np.int64]) -> float:
    """Each link counts for the communities of both its ends, once where they are the same."""
    first, second = communities.T
    twice = first != second
    of_end = np.concatenate([first, second[twice]])
    known = of_end >= 0
    return _worst_mean(np.concatenate([risk, risk[twice]])[known], np.unique(of_end[known], return_inverse=True)[1])


def _worst_mean(risk: Scores, group: NDArray[np.int64]) -> float:
    sizes = np.bincount(group)
    large = sizes >= MIN_GROUP
    if not large.any():
        return math.nan
    return float((np.bincount(group, weights=risk)[large] / sizes[large]).max())
