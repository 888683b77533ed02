"""Statistical tests have fixed seeds; a correct sampler fails each with probability 0.001."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from two_samples import same_frequencies_p, same_histogram_p

from ppgsl_bench.defenses.norm_sub import noisy_cells, noisy_vector, norm_sub_shift

FALSE_ALARM = 1e-3


def slow_shift(values):
    """The definition, one candidate after the other."""
    candidates = range(max(-min(values), 0)) or range(1)
    return min(candidates, key=lambda delta: abs(sum(max(x - delta, 0) for x in values) - sum(values)))


@given(st.lists(st.integers(-12, 12) | st.integers(-60, 90), min_size=1, max_size=30))
def test_shift_equals_the_slow_definition(values):
    array = np.array(values, dtype=np.int64)
    assert norm_sub_shift(array, np.ones_like(array)) == slow_shift(values)
    assert norm_sub_shift(*np.unique(array, return_counts=True)) == slow_shift(values)


def test_shift_equals_the_slow_definition_on_noise(rng):
    for _ in range(300):
        counts = rng.poisson(rng.uniform(0, 3), size=rng.integers(1, 200))
        noisy = np.trunc(counts + rng.laplace(0, rng.uniform(0.3, 8), len(counts))).astype(np.int64)
        assert norm_sub_shift(*np.unique(noisy, return_counts=True)) == slow_shift(noisy.tolist())


def test_nothing_to_subtract():
    empty = np.empty(0, dtype=np.int64)
    assert norm_sub_shift(empty, empty) == 0
    assert norm_sub_shift(np.array([0, 3]), np.array([5, 1])) == 0


def test_an_empty_vector_stays_empty(rng):
    empty = np.empty(0, dtype=np.int64)
    assert len(noisy_vector(empty, 1.0, rng)) == 0
    cells, counts = noisy_cells(empty, empty, 0, 1.0, rng)
    assert len(cells) == len(counts) == 0


@pytest.mark.parametrize("scale", [0.3, 1.5, 6.0])
def test_sparse_cells_have_the_law_of_the_dense_vector(rng, scale):
    num_cells, draws = 60, 4_000
    cells, counts = np.array([3, 4, 17, 40, 59]), np.array([1, 9, 2, 4, 1])
    full = np.zeros(num_cells, dtype=np.int64)
    full[cells] = counts
    dense = np.stack([noisy_vector(full, scale, rng) for _ in range(draws)])
    sparse = np.zeros((draws, num_cells), dtype=np.int64)
    for draw in range(draws):
        places, values = noisy_cells(cells, counts, num_cells, scale, rng)
        assert len(np.unique(places)) == len(places)
        assert (values > 0).all()
        sparse[draw, places] = values
    for statistic in (np.sum, np.max, np.count_nonzero):
        assert same_histogram_p(*(statistic(x, axis=1).tolist() for x in (dense, sparse))) > FALSE_ALARM
    for cell in (4, 10):
        assert same_histogram_p(dense[:, cell].tolist(), sparse[:, cell].tolist()) > FALSE_ALARM
    assert same_frequencies_p(dense > 0, sparse > 0) > FALSE_ALARM
