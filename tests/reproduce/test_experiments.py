"""Every experiment, from its plan to its pages, on rows made up for exactly the cells that it plans."""

import json
from dataclasses import replace

import numpy as np
import pytest
from made_up_rows import SOURCES, World

from ppgsl_bench.errors import UserError
from ppgsl_bench.execute import Settings
from ppgsl_bench.reproduce import NAMES
from ppgsl_bench.reproduce.attacks import alike
from ppgsl_bench.reproduce.curves import Curve
from ppgsl_bench.reproduce.drawing import draw_tradeoffs
from ppgsl_bench.reproduce.evidence import Evidence
from ppgsl_bench.reproduce.pages import Page, write
from ppgsl_bench.reproduce.running import Wish, cells_of, command, experiment_named, scope_of
from ppgsl_bench.reproduce.tradeoff import at_setting
from ppgsl_bench.reproduce.verdicts import OUTCOMES
from ppgsl_bench.store import Objects

LARGEST_PICTURE = 60_000


def concluded(name, objects, paper_is_right, seeds="3"):
    experiment = experiment_named(name)
    scope = scope_of(experiment, Wish(quick=True, seeds=seeds))
    cells = cells_of(experiment, scope, Settings(sources=SOURCES))
    world = World(objects, paper_is_right)
    evidence = Evidence([world.row(cell) for cell in cells], objects, SOURCES)
    return experiment, scope, evidence, experiment.conclude(evidence, scope)


@pytest.fixture
def objects(tmp_path):
    return Objects(tmp_path / "objects")


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_goes_from_plan_to_pages(name, objects, tmp_path):
    experiment, _, evidence, result = concluded(name, objects, True)
    assert result.table.lines
    assert all(len(line) == len(result.table.columns) for line in result.table.lines)
    assert all(verdict.outcome in OUTCOMES for verdict in result.verdicts)
    page = Page(command(experiment, Wish(quick=True)), evidence.seeds(), True, evidence.machine(), ["a | b"], (3, 9))
    files = write(experiment, result, page, tmp_path / "out")
    assert all(path.stat().st_size > 0 for path in files)
    assert (tmp_path / "out" / f"{name}.png").stat().st_size < LARGEST_PICTURE
    text = (tmp_path / "out" / f"{name}.md").read_text("utf-8")
    assert all(verdict.statement in text for verdict in result.verdicts)
    assert "small version" in text
    assert "3 of 9 cells" in text
    index = (tmp_path / "out" / "index.md").read_text("utf-8")
    assert f"({name}.md)" in index
    assert all(f"`ppgsl-bench reproduce {other}`" in index for other in NAMES if other != name)
    assert f"`ppgsl-bench reproduce {name}`" not in index


@pytest.mark.parametrize("name", [n for n in NAMES if n not in {"table1", "table2"}])
def test_verdicts_follow_the_numbers(name, objects):
    """The same rules on a world where the paper is right and on one where it is wrong."""
    *_, right = concluded(name, objects, True)
    *_, wrong = concluded(name, objects, False)
    assert right.verdicts
    before, after = ({v.statement: v.outcome for v in result.verdicts} for result in (right, wrong))
    better = [s for s in before if before[s] == "confirmed" and after.get(s) != "confirmed"]
    assert sum(outcome == "confirmed" for outcome in before.values()) > len(before) / 2, before
    assert better, (before, after)
    assert not [s for s in before if after.get(s) == "confirmed" and before[s] == "not confirmed"]
    assert "not confirmed" in after.values()


@pytest.mark.parametrize("name", NAMES)
def test_failed_cells_make_no_verdict(name, objects):
    """Only splits and the undefended graph are there: nothing may be confirmed, nothing may break."""
    experiment, scope, evidence, _ = concluded(name, objects, True, seeds="1")
    rows = [row for row in evidence.rows if row.kind == "split" or row.defense == "none"]
    result = experiment.conclude(Evidence(rows, objects, SOURCES), scope)
    if name not in {"table1", "table2"}:
        assert not [v for v in result.verdicts if v.outcome == "confirmed"], result.verdicts


def test_the_opposite_of_a_statement_is_not_confirmed(objects):
    """The learner's loss falls under SITP, as the paper says, but more under ADV, contrary to it."""
    experiment, scope, evidence, _ = concluded("protocols", objects, True)
    steep, flat = (1 + np.linspace(start, 0, 60) for start in (1.0, 0.2))

    def with_falling_loss(row):
        if "trace" not in row.artifacts:
            return row
        loss = steep if json.loads(row.defense_params)["protocol"] == "adv" else flat
        trace = {**objects.get(row.artifacts["trace"]), "privacy_loss": loss}
        return replace(row, artifacts={"trace": objects.put(trace)})

    result = experiment.conclude(Evidence([*map(with_falling_loss, evidence.rows)], objects, SOURCES), scope)
    assert next(v.outcome for v in result.verdicts if "loss falls more" in v.statement) == "not confirmed"


def test_no_time_is_judged_where_scaling_fails_its_check(objects):
    """A whole training takes twice what a short one makes it: somebody disturbed one of them."""
    experiment, scope, evidence, before = concluded("scalability", objects, True)

    def with_slow_training(row):
        if "trace" not in row.artifacts or json.loads(row.defense_params)["learner_steps"] != 500:
            return row
        trace = {**objects.get(row.artifacts["trace"])}
        trace["seconds"] = 2 * trace["seconds"]
        return replace(row, artifacts={"trace": objects.put(trace)}, wall_seconds=2 * row.wall_seconds)

    after = experiment.conclude(Evidence([*map(with_slow_training, evidence.rows)], objects, SOURCES), scope)
    about_time = ("time", "in minutes", "faster than ppne")
    for old, new in zip(before.verdicts, after.verdicts, strict=True):
        assert new.statement == old.statement
        if any(words in new.statement for words in about_time):
            assert new.outcome == "not measured"
            assert "not trusted" in new.measured
        else:
            assert new == old
    assert "confirmed" in {v.outcome for v in before.verdicts if "time" in v.statement}


def test_a_curve_that_lacks_a_setting_is_not_compared(objects):
    """Fewer points dominate less, so that a gap would look like a difference."""
    experiment, scope, evidence, whole = concluded("sensitivity", objects, True)
    lacking = next(row.defense_label for row in evidence.rows if '"mu":10' in row.defense_params.replace(" ", ""))
    rows = [row for row in evidence.rows if row.defense_label != lacking]
    result = experiment.conclude(Evidence(rows, objects, SOURCES), scope)
    for before, after in zip(whole.verdicts, result.verdicts, strict=True):
        assert before.outcome != "not measured"
        assert (after.outcome == "not measured") == ("μ = 10" in after.statement)


def test_a_setting_is_told_with_the_next_one_below():
    curve = Curve("one", ("a", "b", "none"), np.array([[0.5], [0.6], [0.9]]), np.array([[0.70], [0.80], [0.90]]))
    assert at_setting(curve, 1).split("; ") == [
        "at `b`, utility 0.800 (single value)",
        "the next, `a`, has 0.500 (single value) at 0.700",
    ]
    assert at_setting(curve, 0) == "at `a`, utility 0.700 (single value)"


def test_a_curve_looks_the_same_in_every_panel():
    """The second graph lacks the first curve; the legend explains all."""

    def curve(label):
        return Curve(label, ("a", "none"), np.array([[0.6], [0.9]]), np.array([[0.7], [0.8]]))

    task = "link-prediction"
    figure = draw_tradeoffs({("one", task): [curve("first"), curve("second")], ("two", task): [curve("second")]}, "AUC")
    upper, lower = figure.axes
    colours = [
        {label: handle[0].get_color() for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
        for axes in (upper, lower)
    ]
    assert colours[1]["second"] == colours[0]["second"] != colours[0]["first"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["first", "second"]


def test_attacks_that_cannot_be_told_apart_count_once():
    settings, utility = ("a", "none"), np.full((2, 1), 0.8)
    curves = [
        Curve(name, settings, np.array([[auc], [auc + 0.1]]), utility)
        for name, auc in (("cn", 0.549), ("aa", 0.548), ("seal", 0.65), ("ra", 0.549))
    ]
    assert alike(curves) == [["cn", "aa", "ra"], ["seal"]]


def test_what_holds_on_some_of_the_graphs_is_not_confirmed_on_all(objects):
    experiment = experiment_named("tradeoff")
    scope = scope_of(experiment, Wish(["karate", "synthetic[n=100]"], "3", quick=True))
    rows = [World(objects, True).row(cell) for cell in cells_of(experiment, scope, Settings(sources=SOURCES))]

    def outcome(found):
        verdicts = experiment.conclude(Evidence(found, objects, SOURCES), scope).verdicts
        return next(v.outcome for v in verdicts if v.statement.startswith("link-prediction: ppgsl (k=1)"))

    assert outcome(rows) == "confirmed"
    assert outcome([row for row in rows if row.dataset == "karate"]) == "partly"


def test_one_seed_confirms_no_direction(objects):
    *_, result = concluded("protocols", objects, True, seeds="1")
    outcomes = {verdict.statement: verdict.outcome for verdict in result.verdicts}
    assert next(outcome for s, outcome in outcomes.items() if "better trade-off" in s) == "partly"


def test_the_whole_version_reuses_the_cells_of_the_board():
    """`ppgsl` at the prices of its sweep is the same cell whoever asks for it."""
    settings = Settings(sources=SOURCES)
    wish = Wish(datasets=["synthetic"], seeds="1")
    keys = {
        name: {cell.key for cell in cells_of(experiment_named(name), scope_of(experiment_named(name), wish), settings)}
        for name in ("tradeoff", "alpha", "sensitivity", "protocols")
    }
    assert keys["alpha"] <= keys["tradeoff"]
    assert len(keys["sensitivity"] & keys["tradeoff"]) > 10
    assert len(keys["protocols"] & keys["tradeoff"]) > 5


def test_scalability_takes_only_its_own_graphs():
    with pytest.raises(UserError, match="not 'karate'"):
        scope_of(experiment_named("scalability"), Wish(datasets=["karate"]))


def test_an_unknown_name_is_an_error_that_lists_the_right_ones():
    with pytest.raises(UserError, match="table1, table2"):
        experiment_named("table3")


def test_the_command_on_the_page_makes_the_page():
    wish = Wish(datasets=["er[n=100]", "er[n=200]"], seeds="2", quick=True)
    made = command(experiment_named("scalability"), wish)
    assert made == "ppgsl-bench reproduce scalability --quick --dataset 'er[n=100],er[n=200]' --seeds 2"
    assert command(experiment_named("alpha"), Wish(with_shipped=True, run=False)).endswith("--with-shipped --no-run")
