import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppgsl_bench.leaderboard.front import hypervolume, nondominated, strength_at, utility_at

# A coarse grid as well as any number, so that equal coordinates occur.
coordinates = st.one_of(st.integers(0, 8).map(lambda i: i / 8), st.floats(0, 1))
point_sets = st.lists(st.tuples(coordinates, coordinates.map(lambda x: 0.5 + x / 2)), min_size=1, max_size=7)


def arrays(points):
    return np.array(points, dtype=float).T


@given(point_sets)
def test_a_point_is_nondominated_unless_another_is_as_good_and_somewhere_better(points):
    expected = [
        not any(v >= u and b <= a and (v, b) != (u, a) for j, (v, b) in enumerate(points) if j != i)
        for i, (u, a) in enumerate(points)
    ]
    assert nondominated(*arrays(points)).tolist() == expected


@given(point_sets, st.floats(0, 1))
def test_strength_at_a_share_is_the_best_of_the_settings_that_keep_it(points, kept):
    assert strength_at(*arrays(points), kept) == min((a for u, a in points if u >= kept - 1e-12), default=1.0)


@given(point_sets, st.floats(0.5, 1))
def test_utility_at_a_strength_is_the_most_that_settings_below_it_keep(points, limit):
    assert utility_at(*arrays(points), limit) == max((u for u, a in points if a <= limit + 1e-12), default=0.0)


def inclusion_exclusion(boxes):
    """Area of a union of boxes [0, w] × [0, h], the slow and obvious way."""
    total = 0.0
    for size in range(1, len(boxes) + 1):
        for chosen in itertools.combinations(boxes, size):
            total += (-1) ** (size + 1) * min(w for w, _ in chosen) * min(h for _, h in chosen)
    return total


@given(point_sets)
def test_hypervolume_is_the_area_of_the_union_of_boxes(points):
    boxes = [(u, 2 * (1 - a)) for u, a in points]
    assert hypervolume(*arrays(points)) == pytest.approx(inclusion_exclusion(boxes), abs=1e-9)


def test_hypervolume_is_one_for_full_utility_at_chance_and_cuts_what_lies_outside():
    assert hypervolume([1.0], [0.5]) == 1.0
    assert hypervolume([1.3, 0.2], [0.5, 0.6]) == 1.0
    assert hypervolume([0.9], [1.0]) == 0.0
    assert hypervolume([0.5], [0.75]) == 0.25


@given(point_sets, st.integers(0, 6), st.floats(0, 1))
def test_taking_a_point_away_never_improves_anything(points, index, level):
    """The promise that makes a charge for failed cells safe; a line through the front would break it."""
    index %= len(points)
    fewer = [p for i, p in enumerate(points) if i != index] + [(1.0, 1.0)]
    more = [*points, (1.0, 1.0)]
    assert strength_at(*arrays(fewer), level) >= strength_at(*arrays(more), level)
    assert utility_at(*arrays(fewer), 0.5 + level / 2) <= utility_at(*arrays(more), 0.5 + level / 2)
    assert hypervolume(*arrays(fewer)) <= hypervolume(*arrays(more)) + 1e-12


def test_the_rejected_alternative_does_improve_when_a_point_is_taken_away():
    """Linear interpolation along the front: without the middle point, the line lies lower."""
    with_middle = np.interp(0.75, [0.5, 0.9, 1.0], [0.6, 0.95, 1.0])
    assert np.interp(0.75, [0.5, 1.0], [0.6, 1.0]) < with_middle
