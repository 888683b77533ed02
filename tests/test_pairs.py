import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ppgsl_bench.errors import GraphError
from ppgsl_bench.pairs import (
    contains,
    num_pairs,
    pairs_at,
    ranks_of,
    ranks_outside,
    sample_distinct,
    sample_pairs_outside,
)


@given(st.integers(2, 60))
def test_ranks_number_the_upper_triangle_row_by_row(n):
    expected = [(i, j) for i in range(n) for j in range(i + 1, n)]
    ranks = np.arange(num_pairs(n))
    assert pairs_at(ranks, n).tolist() == [list(p) for p in expected]
    assert ranks_of(np.array(expected), n).tolist() == ranks.tolist()
    assert ranks_of(np.array(expected)[:, ::-1], n).tolist() == ranks.tolist()


@given(st.integers(2, 2_000_000), st.data())
def test_ranks_survive_large_graphs_exactly(n, data):
    total = num_pairs(n)
    corners = [0, total - 1, n - 2, min(n - 1, total - 1)]
    ranks = np.array(corners + data.draw(st.lists(st.integers(0, total - 1), max_size=20)), dtype=np.int64)
    pairs = pairs_at(ranks, n)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert (pairs >= 0).all()
    assert (pairs < n).all()
    assert ranks_of(pairs, n).tolist() == ranks.tolist()


@given(st.sets(st.integers(0, 40)), st.integers(41, 60))
def test_ranks_outside_lists_the_complement(members, total):
    inside = np.array(sorted(members), dtype=np.int64)
    complement = [r for r in range(total) if r not in members]
    assert ranks_outside(inside, np.arange(len(complement))).tolist() == complement
    assert contains(inside, np.arange(total)).tolist() == [r in members for r in range(total)]


@pytest.mark.parametrize(("total", "count"), [(10, 3), (10, 9), (1000, 2)])
def test_sample_distinct_is_uniform_over_items(total, count):
    """Chi-square over 20,000 draws; a false alarm once in 1,000 (fixed seed, so never by chance)."""
    rng = np.random.default_rng(1)
    draws = np.array([sample_distinct(total, count, rng) for _ in range(20_000)])
    assert all(len(set(d)) == count for d in draws[:100].tolist())
    counts = np.bincount(draws.ravel(), minlength=total)
    # Without replacement the counts vary less than multinomial ones by the factor 1 - count / total.
    statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum() / (1 - count / total) * (total - 1) / total
    assert stats.chi2.sf(statistic, total - 1) > 1e-3
    assert stats.chi2.cdf(statistic, total - 1) > 1e-3


def test_sample_pairs_outside_never_draws_a_member_and_says_when_there_are_too_few(rng):
    members = np.arange(0, num_pairs(8), 2)
    pairs = sample_pairs_outside(members, 8, 14, rng)
    assert sorted(ranks_of(pairs, 8)) == list(range(1, 28, 2))
    with pytest.raises(GraphError, match="cannot draw 15 unlinked pairs: 8 nodes leave only 14"):
        sample_pairs_outside(members, 8, 15, rng)
