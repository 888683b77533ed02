import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppgsl_bench.metrics import MeanInterval
from ppgsl_bench.reproduce.verdicts import (
    OUTCOMES,
    above,
    apart,
    at_least,
    at_most,
    below,
    close_to,
    every,
    most,
    over_seeds,
    shown,
    surely_close_to,
    together,
    within,
)

YES, HALF, NO, UNKNOWN = OUTCOMES


def interval(low, high):
    return MeanInterval((low + high) / 2, 0.1, low, high, 5)


def single(value):
    return MeanInterval(value, math.nan, math.nan, math.nan, 1)


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (interval(3.1, 3.3), YES),
        (single(3.35), YES),
        (single(3.45), HALF),
        (interval(2.0, 6.0), HALF),
        (interval(3.9, 4.1), NO),
        (single(9.0), NO),
    ],
)
def test_close_to_a_published_figure(found, outcome):
    assert close_to(found, 3.2, 0.16) == outcome


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (interval(-0.3, -0.1), YES),
        (interval(-0.3, 0.1), HALF),
        (interval(-0.1, 0.3), HALF),
        (interval(0.1, 0.3), NO),
        (single(-5.0), HALF),
        (single(0.1), NO),
    ],
)
def test_direction(found, outcome):
    assert below(found, 0.0) == outcome


@given(st.floats(-1, 1), st.floats(0, 1))
def test_above_mirrors_below(mean, half):
    there = interval(mean - half, mean + half)
    back = interval(-mean - half, -mean + half)
    assert above(there, 0.0) == below(back, 0.0)


@pytest.mark.parametrize(
    ("found", "outcome"),
    [(interval(-0.01, 0.03), YES), (interval(-0.1, 0.1), HALF), (single(0.0), HALF), (interval(0.1, 0.2), NO)],
)
def test_no_difference(found, outcome):
    assert within(found, 0.05) == outcome


@pytest.mark.parametrize(
    ("lower", "higher", "outcome"),
    [
        (interval(1, 2), interval(3, 4), YES),
        (interval(1, 3), interval(2, 4), HALF),
        (single(1), single(2), HALF),
        (interval(3, 4), interval(1, 2), NO),
    ],
)
def test_apart(lower, higher, outcome):
    assert apart(lower, higher) == outcome


def test_bounds():
    assert [at_most(x, 10, 3) for x in (10, 11, 31)] == [YES, HALF, NO]
    assert [at_least(x, 10, 2) for x in (10, 9, 1, math.nan)] == [YES, HALF, NO, NO]


def test_statements_of_several_parts():
    assert together([YES, YES]) == YES
    assert together([YES, NO]) == HALF
    assert together([NO, NO]) == NO
    assert together([UNKNOWN, NO]) == NO
    assert together([]) == together([UNKNOWN]) == UNKNOWN


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (interval(0.48, 0.54), YES),
        (interval(0.50, 0.58), HALF),
        (single(0.549), HALF),
        (single(0.59), HALF),
        (single(0.61), NO),
    ],
)
def test_close_to_a_published_figure_beyond_luck(found, outcome):
    assert surely_close_to(found, 0.5, 0.05) == outcome


def test_statements_that_need_all_their_parts():
    assert every([YES, YES]) == YES
    assert every([YES, HALF]) == HALF
    assert every([YES, NO]) == every([HALF, NO]) == NO
    assert every([]) == every([YES, UNKNOWN]) == UNKNOWN


def test_statements_about_most_cases():
    assert most([YES, YES, NO]) == YES
    assert most([YES, HALF, NO]) == HALF
    assert most([YES, NO]) == NO
    assert most([]) == UNKNOWN


def test_an_interval_is_shown_where_there_is_one():
    assert shown(interval(1, 2), 1) == "1.5 [1.0, 2.0]"
    assert shown(over_seeds([1.5]), 1) == "1.5 (single value)"
    assert shown(None) == "–"
