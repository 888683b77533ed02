"""Statistical tests have fixed seeds; a correct sampler fails each with probability 0.001."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ppgsl_bench.chung_lu import chung_lu_pairs

FALSE_ALARM = 1e-3
NOBODY = np.empty(0, dtype=np.int64)


def link_probabilities(weights, blocks):
    totals = np.bincount(blocks, weights)[blocks]
    probabilities = np.minimum(np.outer(weights, weights) / np.maximum(totals, 1)[:, None], 1)
    return np.where(blocks[:, None] == blocks[None, :], probabilities, 0)


def test_every_pair_is_linked_with_its_probability(rng):
    weights = np.array([9, 7, 5, 3, 3, 1, 1, 0, 0, 30, 2, 2, 2, 2, 2, 0, 4, 1])
    blocks = np.repeat([0, 1, 2], [9, 7, 2])[rng.permutation(18)]
    draws = 20_000
    hits = np.zeros((18, 18))
    sizes = np.zeros(draws)
    for draw in range(draws):
        pairs = chung_lu_pairs(weights, blocks, rng)
        np.add.at(hits, (pairs[:, 0], pairs[:, 1]), 1)
        sizes[draw] = len(pairs)
    hits = np.triu(hits + hits.T, 1)
    expected = np.triu(link_probabilities(weights, blocks), 1)
    certain = (expected == 0) | (expected == 1)
    assert (hits[certain] == draws * expected[certain]).all()
    p = expected[~certain]
    statistic = ((hits[~certain] - draws * p) ** 2 / (draws * p * (1 - p))).sum()
    assert stats.chi2.sf(statistic, len(p)) > FALSE_ALARM
    # Pairs are independent, so that the number of links has the sum of their variances.
    variance = (p * (1 - p)).sum()
    assert stats.chi2.sf(sizes.var() * draws / variance, draws - 1) > FALSE_ALARM
    assert stats.chi2.cdf(sizes.var() * draws / variance, draws - 1) > FALSE_ALARM


def test_expected_degrees(rng):
    """Unclipped, E[d_i] = w_i (1 - w_i / W)."""
    weights = rng.integers(0, 12, size=4_000)
    blocks = np.zeros(4_000, dtype=np.int64)
    pairs = chung_lu_pairs(weights, blocks, rng)
    degrees = np.bincount(pairs.ravel(), minlength=4_000)
    expected = weights * (1 - weights / weights.sum())
    for weight in (1, 5, 11):
        group = weights == weight
        error = (degrees[group].mean() - expected[group].mean()) / np.sqrt(weight / group.sum())
        assert 2 * stats.norm.sf(abs(error)) > FALSE_ALARM
    assert (degrees[weights == 0] == 0).all()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=20), st.integers(0, 2**32))
def test_pairs_are_distinct_and_within_blocks(nodes, seed):
    weights = np.array([w for w, _ in nodes], dtype=np.int64)
    blocks = np.array([b for _, b in nodes], dtype=np.int64)
    pairs = chung_lu_pairs(weights, blocks, np.random.default_rng(seed))
    assert pairs.shape[1] == 2
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert (blocks[pairs[:, 0]] == blocks[pairs[:, 1]]).all()
    assert len({tuple(sorted(p)) for p in pairs.tolist()}) == len(pairs)
