import math
import subprocess
import sys

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from ppgsl_bench import metrics
from ppgsl_bench.metrics import (
    HITS_K,
    attack_metrics,
    auc_standard_error,
    average_precision,
    hits_at_k,
    mean_interval,
    outranked_share,
    roc_auc,
    strength,
    tpr_at_fpr,
)

# Few distinct values, so that ties are the rule; -0.0 and 0.0 are one value.
VALUES = st.sampled_from([-2.5, -1.0, -0.0, 0.0, 1e-9, 0.5, 1.0, 3.0])


@st.composite
def scored_pairs(draw):
    links = draw(st.lists(VALUES, min_size=1, max_size=20))
    others = draw(st.lists(VALUES, min_size=1, max_size=20))
    order = draw(st.permutations(range(len(links) + len(others))))
    labels = np.array([True] * len(links) + [False] * len(others))
    return labels[order], np.array(links + others)[order]


@given(scored_pairs())
def test_auc_is_the_share_of_ordered_pairs_with_ties_at_one_half(pairs):
    labels, scores = pairs
    wins = [(p > n) + 0.5 * (p == n) for p in scores[labels] for n in scores[~labels]]
    assert roc_auc(labels, scores) == pytest.approx(np.mean(wins), abs=1e-12)
    assert roc_auc(labels, scores) == pytest.approx(sklearn.metrics.roc_auc_score(labels, scores), abs=1e-12)
    assert outranked_share(scores[labels], scores[~labels]).mean() == pytest.approx(np.mean(wins), abs=1e-12)


@given(scored_pairs())
def test_negated_scores_give_the_complement(pairs):
    labels, scores = pairs
    assert roc_auc(labels, -scores) == pytest.approx(1 - roc_auc(labels, scores), abs=1e-12)
    assert strength(roc_auc(labels, -scores)) == pytest.approx(strength(roc_auc(labels, scores)), abs=1e-12)


@given(scored_pairs())
def test_average_precision_is_sklearns(pairs):
    labels, scores = pairs
    expected = sklearn.metrics.average_precision_score(labels, scores)
    assert average_precision(labels, scores) == pytest.approx(expected, abs=1e-12)


@given(scored_pairs(), st.sampled_from([0.0, 0.001, 0.01, 0.1, 0.25, 0.29, 0.5, 1.0]))
def test_tpr_at_fpr_is_the_best_threshold(pairs, fpr):
    labels, scores = pairs
    thresholds = [np.inf, *scores]
    admissible = [t for t in thresholds if np.sum(scores[~labels] >= t) <= fpr * np.sum(~labels) + 1e-9]
    assert tpr_at_fpr(labels, scores, fpr) == max(np.mean(scores[labels] >= t) for t in admissible)


def test_tpr_at_fpr_survives_rounding():
    scores = np.concatenate([np.arange(100.0), [71.5, 70.5]])
    labels = np.arange(102) >= 100
    # 0.29 × 100 is 28.999… in floating point, yet the 29 false positives 71 … 99 are allowed.
    assert tpr_at_fpr(labels, scores, 0.29) == 1.0
    assert tpr_at_fpr(labels, scores, 0.28) == 0.5


@given(scored_pairs(), st.integers(1, 25))
def test_hits_are_ogbs_with_and_without_ogb(pairs, k):
    labels, scores = pairs
    assert metrics._ogb_evaluator() is not None, "this test needs ogb"
    assert hits_at_k(labels, scores, k) == pytest.approx(metrics._hits(scores[labels], scores[~labels], k), abs=1e-12)


def test_hits_without_ogb(monkeypatch):
    monkeypatch.setattr(metrics, "_ogb_evaluator", lambda: None)
    assert hits_at_k([True, True, False, False], [3.0, 1.0, 2.0, 1.0], 1) == 0.5
    assert hits_at_k([True, True, False, False], [3.0, 1.0, 2.0, 1.0], 2) == 0.5
    assert hits_at_k([True, True, False, False], [3.0, 1.0, 2.0, 1.0], 3) == 1.0


def test_ogb_is_used_without_torch_network_thread_or_output():
    program = (
        "import sys, threading\n"
        "from ppgsl_bench.metrics import hits_at_k, _ogb_evaluator\n"
        "assert 'pandas' not in sys.modules, 'ogb is loaded before it is needed'\n"
        "hits_at_k([True, False], [1.0, 0.0], 1)\n"
        "assert _ogb_evaluator() is not None\n"
        "assert 'torch' not in sys.modules and 'ogb' not in sys.modules and 'outdated' not in sys.modules\n"
        "assert threading.active_count() == 1\n"
        "import torch\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_constant_scores_say_nothing():
    group = np.repeat([0, 1, 2, 3], 60)
    found = attack_metrics(np.full(240, 0.3), group)
    for suffix in ("", "_degree", "_hard"):
        assert found["auc" + suffix] == found["strength" + suffix] == found["average_precision" + suffix] == 0.5
        assert found["tpr_at_1pct_fpr" + suffix] == found["tpr_at_0.1pct_fpr" + suffix] == 0.0
        assert found[f"hits_at_{HITS_K}{suffix}"] == 0.0
    assert found["zero_share"] == 1.0
    assert found["risk_worst_decile"] == 0.5


def test_a_planted_leak_is_found_by_every_metric():
    group = np.random.default_rng(0).permutation(np.repeat([0, 1, 2, 3], 60))
    found = attack_metrics((group == 0).astype(float), group)
    for suffix in ("", "_degree", "_hard"):
        for name in ("auc", "strength", "tpr_at_1pct_fpr", "tpr_at_0.1pct_fpr", "average_precision", "hits_at_50"):
            assert found[name + suffix] == 1.0
    assert found["zero_share"] == 0.75


def test_permuted_labels_give_one_half(rng):
    # Two-sided z-test at 3 standard errors, 200 permutations: 0.27 % each, so more than 5 has a chance below 1e-4.
    scores = np.round(rng.standard_normal(800), 1)
    outside = 0
    for _ in range(200):
        labels = rng.permutation(np.arange(800) < 400)
        outside += abs(roc_auc(labels, scores) - 0.5) > 3 * auc_standard_error(labels, scores)
    assert outside <= 5


def test_standard_error_is_the_spread_over_samples(rng):
    labels = np.arange(300) < 120
    samples = [labels + rng.standard_normal(300) for _ in range(400)]
    spread = np.std([roc_auc(labels, s) for s in samples], ddof=1)
    # The sd of 400 normal values is known to 1 / sqrt(800) = 3.5 %; four times that is a false alarm in 6e-5.
    assert np.mean([auc_standard_error(labels, s) for s in samples]) == pytest.approx(spread, rel=0.14)
    assert math.isnan(auc_standard_error([True, False], [0.0, 1.0]))


def test_families_are_measured_apart():
    group = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    scores = np.array([2.0, 3.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    found = attack_metrics(scores, group)
    assert (found["auc"], found["auc_degree"], found["auc_hard"]) == (1.0, 0.5, 0.0)
    assert found["strength_hard"] == 1.0
    assert "hits_at_50" not in found
    only_uniform = attack_metrics(scores[:4], group[:4])
    assert only_uniform["auc"] == 1.0
    assert "auc_hard" not in only_uniform


def test_risk_by_degree_and_community():
    links = 200
    group = np.repeat([0, 1], links)
    # Link i outranks i of the 200 negatives, so that its risk is i / 200.
    scores = np.concatenate([np.arange(links) - 0.5, np.arange(links)])
    degrees = np.stack([np.repeat(np.arange(10), links // 10), np.ones(links)], axis=1)
    communities = np.full((links, 2), 7)
    communities[:30] = [3, 4]
    communities[-25:] = [5, 6]
    communities[-10:] = [9, -1]
    padding = np.zeros((links, 2), dtype=int)
    found = attack_metrics(
        scores,
        group,
        degrees=np.concatenate([degrees, padding]),
        communities=np.concatenate([communities, padding]),
    )
    assert found["risk_worst_decile"] == pytest.approx(np.arange(180, 200).mean() / 200)
    assert found["risk_worst_degree_decile"] == pytest.approx(np.arange(180, 200).mean() / 200)
    # 5 and 6 have 15 links each and 9 has 10: too few; 7 holds the links 30 … 174.
    assert found["risk_worst_community"] == pytest.approx(np.arange(30, 175).mean() / 200)


def test_worst_groups_need_enough_links():
    group = np.repeat([0, 1], 19)
    ends = np.ones((38, 2), dtype=int)
    found = attack_metrics(np.arange(38.0), group, degrees=ends, communities=ends)
    assert "risk_worst_degree_decile" not in found
    assert "risk_worst_community" not in found
    assert "risk_worst_decile" in found


def test_every_metric_is_finite_and_fast_to_key(rng):
    group = np.repeat([0, 1, 2, 3], 300)
    ends = rng.integers(1, 40, size=(1200, 2))
    found = attack_metrics(rng.standard_normal(1200), group, degrees=ends, communities=ends % 3)
    assert len(found) == 3 * 7 + 4
    assert all(math.isfinite(v) and isinstance(v, float) for v in found.values())


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_must_be_finite(bad):
    with pytest.raises(ValueError, match="1 of 3 scores are NaN or infinite"):
        roc_auc([True, False, True], [0.0, 1.0, bad])


def test_both_classes_are_needed():
    with pytest.raises(ValueError, match="0 links and 2 non-links"):
        roc_auc([False, False], [0.0, 1.0])
    with pytest.raises(ValueError, match="one score a pair"):
        attack_metrics([0.0, 1.0], [0, 1, 1])


def test_mean_interval():
    found = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.mean, found.count) == (3.0, 5)
    assert found.sd == pytest.approx(math.sqrt(2.5))
    # t quantile 2.776 at 4 degrees of freedom.
    assert found.high - found.mean == pytest.approx(2.7764451 * math.sqrt(2.5 / 5), rel=1e-6)
    assert found.mean - found.low == pytest.approx(found.high - found.mean)
    single = mean_interval([0.7])
    assert single.mean == 0.7
    assert math.isnan(single.sd)
    assert math.isnan(single.low)
    with pytest.raises(ValueError, match="at least one"):
        mean_interval([])
