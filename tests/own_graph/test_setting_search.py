"""The search finds the weakest setting that hides enough, or the strongest that keeps enough."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppgsl_bench.defenses import Defense, Field
from ppgsl_bench.errors import UserError
from ppgsl_bench.own_graph.search import (
    REFINEMENTS,
    Trial,
    UnreachableError,
    Wanted,
    halfway,
    knob_settings,
    recommended,
    searched,
)


class Fade(Defense):
    """A knob from 0 to 1 that does exactly what it says."""

    name = "fade"
    version = 1

    share: float = Field(0.5, ge=0, le=1, help="how much")
    steps: int = Field(10, ge=1, help="something else")

    sweep = tuple({"share": share} for share in (0.1, 0.2, 0.4, 0.6, 0.8, 1.0))

    def publish(self, graph, sensitive, rng):
        return graph


def measured(defense):
    """Attacks fall from 1 to 1/2 along the knob, utility from 1 to 0."""
    return Trial(defense, 1 - defense.share / 2, 1 - defense.share, "cn")


SETTINGS = knob_settings(Fade, {})


@given(st.floats(0.501, 0.95))
def test_the_target_is_met_by_the_weakest_setting_that_meets_it(target):
    tried = []

    def measure(defense):
        tried.append(defense)
        return measured(defense)

    found = searched(SETTINGS, Wanted(strength=target), measure)
    assert found.strength <= target
    # Between two settings of the sweep each step of refinement halves what is given away.
    assert target - found.strength <= 0.1 / 2**REFINEMENTS + 0.005 or found.defense.share == 0.1
    assert len(tried) <= 1 + math.ceil(math.log2(len(SETTINGS) + 1)) + REFINEMENTS
    assert len(tried) == len({d.canonical for d in tried})


@given(st.floats(0.05, 0.9))
def test_utility_is_kept_by_the_strongest_setting_that_keeps_it(kept):
    found = searched(SETTINGS, Wanted(kept=kept), measured)
    assert found.kept >= kept
    assert found.kept - kept <= 0.2 / 2**REFINEMENTS + 0.01 or found.defense.share == 1.0


def test_both_demands():
    found = searched(SETTINGS, Wanted(strength=0.8, kept=0.5), measured)
    assert found.strength <= 0.8
    assert found.kept >= 0.5
    with pytest.raises(
        UnreachableError, match=r"brings the strongest attack to .* but keeps 2. % of the utility|but keeps"
    ):
        searched(SETTINGS, Wanted(strength=0.6, kept=0.5), measured)


def test_out_of_reach():
    def stubborn(defense):
        return Trial(defense, 0.9 - defense.share / 10, 0.7, "ra")

    with pytest.raises(
        UnreachableError, match=r"no setting of fade .* down to 0\.7: fade\[share=1\] comes to 0\.800 \(ra\)"
    ):
        searched(SETTINGS, Wanted(strength=0.7), stubborn)
    with pytest.raises(UnreachableError, match=r"even fade\[share=0\.1\] keeps 70%"):
        searched(SETTINGS, Wanted(kept=0.9), stubborn)


def test_the_knob_must_be_free():
    with pytest.raises(UserError, match="share is what the search varies"):
        knob_settings(Fade, {"share": "0.3"})
    assert {setting.steps for setting in knob_settings(Fade, {"steps": "3"})} == {3}


def test_halfway():
    assert halfway(Fade(share=0.1), Fade(share=0.4)).share == pytest.approx(0.2)
    assert halfway(Fade(share=0.0), Fade(share=0.5)).share == 0.25
    assert halfway(Fade(steps=4), Fade(steps=9)).steps == 6
    assert halfway(Fade(steps=4), Fade(steps=5)) is None
    assert halfway(Fade(steps=4, share=0.1), Fade(steps=9, share=0.2)) is None


class TestRecommendation:
    TRIALS = tuple(measured(setting) for setting in SETTINGS)

    def test_target(self):
        assert recommended(self.TRIALS, Wanted(strength=0.8)).defense.share == 0.4

    def test_utility(self):
        assert recommended(self.TRIALS, Wanted(kept=0.35)).defense.share == 0.6

    def test_nothing_asked_for(self):
        assert recommended(self.TRIALS, Wanted()).defense.share == 0.1
        # If nothing keeps 90 %, the weakest attack wins.
        assert recommended(self.TRIALS[1:], Wanted()).defense.share == 1.0

    def test_impossible(self):
        with pytest.raises(UnreachableError, match="none of the 6 settings tried does what you ask for"):
            recommended(self.TRIALS, Wanted(strength=0.6, kept=0.9))
        with pytest.raises(UnreachableError, match="none of the candidate"):
            recommended([], Wanted())
