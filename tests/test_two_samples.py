import numpy as np
from two_samples import same_frequencies_p, same_histogram_p

FALSE_ALARM = 1e-3


def test_equal_laws_pass_and_a_small_difference_is_noticed(rng):
    first, second = rng.random((2, 4_000, 30)) < 0.3
    assert same_frequencies_p(first, second) > FALSE_ALARM
    assert same_histogram_p(first.sum(axis=1).tolist(), second.sum(axis=1).tolist()) > FALSE_ALARM
    second[:, 3] = rng.random(4_000) < 0.36
    assert same_frequencies_p(first, second) < FALSE_ALARM
    second = rng.random((4_000, 30)) < 0.31
    second[:, 1] = second[:, 0]
    assert same_histogram_p(first.sum(axis=1).tolist(), second.sum(axis=1).tolist()) < FALSE_ALARM


def test_constant_draws_are_equal():
    ones = np.ones((50, 4), dtype=bool)
    assert same_frequencies_p(ones, ones) == 1
    assert same_histogram_p([1] * 50, [1] * 50) == 1
