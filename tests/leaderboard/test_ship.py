"""What `docs/scripts/ship.py` takes into the package, of everything that was ever measured."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from ppgsl_bench.datasets import Sources
from ppgsl_bench.leaderboard.packed import packed_key
from ppgsl_bench.plan import choose, plan
from ppgsl_bench.rows import Row

SCRIPT = Path(__file__).parents[2] / "docs" / "scripts" / "ship.py"


@pytest.fixture(scope="module")
def ship():
    spec = importlib.util.spec_from_file_location("ship", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def cells():
    choice = choose(
        datasets=["karate"], defenses=["none", "random"], attacks=["cn", "aa"], utilities=["structure"], seeds=[0, 1]
    )
    return plan(choice, Sources(offline=True))


def row(cell, **fields):
    parts = {}
    for role in ("dataset", "defense", "evaluator"):
        if (ref := getattr(cell, role)) is not None:
            parts |= {role: ref.name, f"{role}_params": ref.params, f"{role}_label": ref.label}
    return Row(key=packed_key(cell.key), kind=cell.kind, seed=cell.seed, **{"wall_seconds": 1.0, **parts, **fields})


def found(rows, cell):
    (only,) = (r for r in rows if r.key == packed_key(cell.key))
    return only


def test_a_whole_seed_is_complete(ship, cells):
    assert {r.key for r in ship.complete([row(c) for c in cells], cells)} == {packed_key(c.key) for c in cells}


def test_rows_that_nothing_plans_do_not_count(ship, cells):
    strange = replace(row(cells[1]), key="0" * len(packed_key(cells[1].key)))
    assert strange not in ship.complete([strange, *map(row, cells)], cells)


def test_a_seed_without_every_publication_waits(ship, cells):
    (lacking,) = (c for c in cells if c.kind == "publish" and c.seed == 1 and c.defense.name == "random")
    kept = ship.complete([row(c) for c in cells if c is not lacking], cells)
    assert {r.seed for r in kept} == {0}


def test_an_evaluator_that_misses_a_setting_waits_and_the_others_do_not(ship, cells):
    (lacking,) = (
        c for c in cells if c.seed == 1 and c.evaluator and c.evaluator.name == "aa" and c.defense.name == "none"
    )
    kept = ship.complete([row(c) for c in cells if c is not lacking], cells)
    assert {r.seed for r in kept if r.evaluator == "aa"} == {0}
    assert {r.seed for r in kept if r.evaluator == "cn"} == {0, 1}


def test_a_failure_is_a_result_that_completes(ship, cells):
    rows = [row(c, status="timeout", reason="exceeded") if c.kind == "attack" else row(c) for c in cells]
    assert len(ship.complete(rows, cells)) == len(cells)


@pytest.mark.parametrize("later_first", [False, True])
def test_of_two_sound_rows_of_a_cell_the_quicker_stays(ship, cells, later_first):
    pair = [row(cells[1], wall_seconds=3.0), row(cells[1], wall_seconds=2.0)]
    rows = ship._one_a_cell(pair[::-1] if later_first else pair, cells)
    assert found(rows, cells[1]).wall_seconds == 2.0


def test_of_two_rows_of_a_cell_the_later_stays_where_one_is_not_sound(ship, cells):
    sound, failed = (
        row(cells[1], wall_seconds=3.0),
        row(cells[1], wall_seconds=None, status="failed", reason="it broke"),
    )
    assert found(ship._one_a_cell([failed, sound], cells), cells[1]) == sound
    assert found(ship._one_a_cell([sound, failed], cells), cells[1]) == failed


def published_as(cell, digest, **fields):
    return row(cell, digests={"published": digest} if cell.defense else {}, **fields)


@pytest.mark.parametrize("more_first", [False, True])
def test_rows_of_a_setting_are_of_the_graph_that_was_evaluated_most(ship, cells, more_first):
    """A defense that learns publishes another graph on another processor: their rows are not to be mixed."""
    here = [published_as(c, "a", wall_seconds=9.0) for c in cells]
    elsewhere = [published_as(c, "b") for c in cells if c.evaluator is None or c.evaluator.name == "cn"]
    rows = ship.complete([*here, *elsewhere] if more_first else [*elsewhere, *here], cells)
    assert len(rows) == len(cells)
    assert {r.digests["published"] for r in rows if r.defense} == {"a"}


def test_an_evaluator_run_on_another_graph_than_the_rest_waits(ship, cells):
    rows = [published_as(c, "b" if c.evaluator and c.evaluator.name == "aa" and c.seed == 1 else "a") for c in cells]
    kept = ship.complete(rows, cells)
    assert {r.seed for r in kept if r.evaluator == "aa"} == {0}
    assert {r.seed for r in kept if r.evaluator == "cn"} == {0, 1}


def test_a_failure_that_published_nothing_belongs_to_any_graph(ship, cells):
    rows = [published_as(c, "a") if c.kind != "utility" else row(c, status="blocked") for c in cells]
    assert len(ship.complete(rows, cells)) == len(cells)
