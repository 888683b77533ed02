"""Every sampler against the dense one that it stands for.

Seeds are fixed; a correct sampler fails each statistical test with probability 0.001.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ppgsl_bench.randomness import (
    bernoulli_positions,
    laplace_top,
    truncated_laplace_histogram,
    two_sided_geometric,
)

FALSE_ALARM = 1e-3


def chi_square_p(observed, expected):
    """Goodness of fit with cells of small expectation pooled into one."""
    observed, expected = np.asarray(observed, float), np.asarray(expected, float)
    small = expected < 5
    if small.any():
        observed = np.append(observed[~small], observed[small].sum())
        expected = np.append(expected[~small], expected[small].sum())
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


@pytest.mark.parametrize("probability", [0.001, 0.05, 0.3, 0.5, 0.9])
def test_bernoulli_positions_have_the_dense_law(rng, probability):
    total, draws = 40, 20_000
    hits = np.zeros(total)
    sizes = np.zeros(total + 1)
    for _ in range(draws):
        positions = bernoulli_positions(probability, total, rng)
        hits[positions] += 1
        sizes[len(positions)] += 1
    cells = np.concatenate([hits, draws - hits])
    expected = draws * np.repeat([probability, 1 - probability], total)
    statistic = ((cells - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, total) > FALSE_ALARM
    binomial = stats.binom.pmf(np.arange(total + 1), total, probability)
    assert chi_square_p(sizes, draws * binomial) > FALSE_ALARM


@given(st.floats(0, 1), st.integers(0, 200), st.integers(0, 2**32))
def test_bernoulli_positions_are_sorted_distinct_and_in_range(probability, total, seed):
    positions = bernoulli_positions(probability, total, np.random.default_rng(seed))
    assert positions.dtype == np.int64
    assert (np.diff(positions) > 0).all()
    assert not len(positions) or (positions[0] >= 0 and positions[-1] < total)


def test_bernoulli_positions_at_the_extremes(rng):
    assert len(bernoulli_positions(0.0, 10**12, rng)) == 0
    assert len(bernoulli_positions(1e-300, 10**15, rng)) == 0
    assert bernoulli_positions(1.0, 5, rng).tolist() == [0, 1, 2, 3, 4]
    # Far more trials than could be held; 10^15 trials and 10 expected successes.
    assert stats.poisson.sf(len(bernoulli_positions(1e-14, 10**15, rng)), 10) > FALSE_ALARM


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
def test_two_sided_geometric_law(rng, epsilon):
    draws = 100_000
    noise = two_sided_geometric(epsilon, draws, rng)
    a = math.exp(-epsilon)
    support = np.arange(-400, 401)
    expected = draws * (1 - a) / (1 + a) * a ** np.abs(support)
    observed = np.array([(noise == k).sum() for k in support])
    assert chi_square_p(observed, expected) > FALSE_ALARM


@pytest.mark.parametrize(("total", "count"), [(1, 1), (7, 7), (30, 30), (500, 12)])
def test_laplace_top_has_the_law_of_sorting_a_dense_sample(rng, total, count):
    draws = 4_000
    dense = -np.sort(-rng.laplace(size=(draws, total)), axis=1)[:, :count]
    sparse = np.stack([laplace_top(total, count, rng) for _ in range(draws)])
    assert (np.diff(sparse, axis=1) <= 0).all()
    for rank in {0, count // 2, count - 1}:
        assert stats.ks_2samp(dense[:, rank], sparse[:, rank]).pvalue > FALSE_ALARM
    # Joint law: the spread between first and last, not only the margins.
    assert count == 1 or (stats.ks_2samp(dense[:, 0] - dense[:, -1], sparse[:, 0] - sparse[:, -1]).pvalue > FALSE_ALARM)


@pytest.mark.parametrize("scale", [0.2, 1.0, 6.0])
def test_truncated_laplace_histogram_law(rng, scale):
    total = 200_000
    values, counts = truncated_laplace_histogram(scale, total, rng)
    assert counts.sum() == total
    assert (np.diff(values) > 0).all()
    assert (counts > 0).all()
    dense = np.trunc(rng.laplace(0, scale, total)).astype(int)
    support = np.arange(-200, 201)
    sparse_counts = np.zeros(len(support))
    sparse_counts[values + 200] = counts
    dense_counts = np.bincount(dense + 200, minlength=len(support))
    seen = sparse_counts + dense_counts >= 10
    table = np.stack([np.append(c[seen], c[~seen].sum()) for c in (sparse_counts, dense_counts)])
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue > FALSE_ALARM


def test_truncated_laplace_histogram_of_nothing(rng):
    values, counts = truncated_laplace_histogram(1.0, 0, rng)
    assert len(values) == 0
    assert len(counts) == 0
