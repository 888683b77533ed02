import json

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from ppgsl_bench import cli
from ppgsl_bench.reproduce import suggestion
from ppgsl_bench.reproduce.suggestion import LARGEST, LEAST, MOST_SHORT, MOST_WHOLE, TOLERANCE, Trial, suggest


def world(most=1.5, middle=0.05, steepness=1.0, whole_factor=1.0):
    """Distortion falls with the price along a logistic curve; whole trainings change more links than short ones."""

    def train(alpha, whole):
        share = most / (1 + (alpha / middle) ** steepness) * (whole_factor if whole else 1.0)
        return Trial(alpha, share, 100.0, 10.0, whole, 0.0)

    return train


@given(
    wanted=st.floats(0.02, 1.0),
    middle=st.floats(0.003, 0.5),
    steepness=st.floats(0.7, 2.0),
    whole_factor=st.floats(0.85, 1.2),
)
@example(wanted=0.125, middle=0.5, steepness=0.75, whole_factor=1.0)
def test_the_wanted_distortion_is_found(wanted, middle, steepness, whole_factor):
    train = world(1.5, middle, steepness, whole_factor)
    for whole in (False, True):
        assume(train(LARGEST, whole).distortion <= wanted <= train(LEAST, whole).distortion)
    found = suggest(wanted, train)
    assert found.chosen.whole
    assert sum(not trial.whole for trial in found.trials) <= MOST_SHORT
    assert sum(trial.whole for trial in found.trials) <= MOST_WHOLE
    assert found.chosen.distortion == pytest.approx(wanted, rel=2 * TOLERANCE)
    assert found.reached == (abs(found.chosen.distortion - wanted) <= TOLERANCE * wanted)


def test_what_cannot_be_reached_is_said():
    found = suggest(1.9, world(most=0.5))
    assert not found.reached
    assert found.chosen.alpha < 1e-3


def test_a_graph_that_never_changes_ends_the_search():
    found = suggest(0.2, lambda alpha, whole: Trial(alpha, 0.0, 1.0, 0.0, whole, 0.0))
    assert not found.reached


def test_a_price_for_a_graph_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setattr(suggestion, "SHORT", {"learner_steps": 20, "surrogate_updates": 5})
    monkeypatch.setattr(suggestion, "MOST_SHORT", 3)
    monkeypatch.setattr(suggestion, "MOST_WHOLE", 1)
    rng = np.random.default_rng(0)
    links = sorted({tuple(sorted(pair)) for pair in rng.integers(30, size=(90, 2)).tolist() if pair[0] != pair[1]})
    graph, hidden = tmp_path / "graph.csv", tmp_path / "hidden.csv"
    graph.write_text("\n".join(f"n{u},n{v}" for u, v in links))
    hidden.write_text("\n".join(f"n{u},n{v}" for u, v in links[:6]))
    arguments = ["suggest-alpha", str(graph), "--sensitive", str(hidden), "--distortion", "0.3", "--json"]
    answer = CliRunner().invoke(cli.app, arguments)
    assert answer.exit_code in {0, 1}, answer.output
    document = json.loads(answer.stdout)
    assert document["defense"].startswith("ppgsl[alpha=")
    assert document["reached"] == (answer.exit_code == 0)
    assert len(document["trials"]) <= 4


def test_a_name_that_is_no_node_is_an_error_that_does_not_tell_it(tmp_path):
    graph, hidden = tmp_path / "graph.csv", tmp_path / "hidden.csv"
    graph.write_text("a,b\nb,c\n")
    hidden.write_text("a,zq\n")
    answer = CliRunner().invoke(cli.app, ["suggest-alpha", str(graph), "--sensitive", str(hidden)])
    assert answer.exit_code != 0
    assert "line 1" in str(answer.exception)
    assert "zq" not in str(answer.exception).replace(str(hidden), "").replace(str(graph), "")
