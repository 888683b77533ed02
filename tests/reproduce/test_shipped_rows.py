"""Rows that ship with the package stand for cells, as far as metrics go."""

from dataclasses import replace

import pytest
from made_up_rows import SOURCES, World

from ppgsl_bench.execute import Settings
from ppgsl_bench.leaderboard.packed import PACKED_KINDS, pack, packed_key, unpack
from ppgsl_bench.reproduce import running
from ppgsl_bench.reproduce.running import Wish, cells_of, experiment_named, outstanding, reproduce, scope_of
from ppgsl_bench.store import Objects

SETTINGS = Settings(sources=SOURCES)
WISH = Wish(datasets=["karate"], quick=True, with_shipped=True, run=False)


def planned(name, wish=WISH):
    experiment = experiment_named(name)
    return cells_of(experiment, scope_of(experiment, wish), SETTINGS)


def keys(cells):
    return {packed_key(cell.key) for cell in cells if cell.kind in PACKED_KINDS}


def test_without_shipped_rows_everything_is_outstanding():
    cells = planned("tradeoff")
    assert outstanding(cells, (), frozenset()) == cells


def test_shipped_metrics_leave_nothing_to_do():
    cells = planned("tradeoff")
    assert not outstanding(cells, keys(cells), frozenset())


@pytest.mark.parametrize(
    ("kind", "needed"),
    [("utility", ["split", "publish", "utility"]), ("attack", ["split", "publish", "embed", "attack"])],
)
def test_what_did_not_ship_is_run_with_what_it_builds_on(kind, needed):
    cells = planned("tradeoff")
    missing = next(cell for cell in cells if cell.kind == kind)
    found = outstanding(cells, keys(cells) - {packed_key(missing.key)}, frozenset())
    assert [cell.kind for cell in found] == needed
    assert found[-1] == missing


def test_arrays_never_ship():
    cells = planned("protocols")
    found = outstanding(cells, keys(cells), experiment_named("protocols").arrays)
    assert {cell.kind for cell in found} == {"split", "publish"}
    assert sum(cell.kind == "publish" for cell in found) == sum(cell.kind == "publish" for cell in cells)


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    def ship(cells):
        world = World(Objects(tmp_path / "elsewhere"), True)
        pack([world.row(cell) for cell in cells], tmp_path / "rows.jsonl.gz")
        monkeypatch.setattr(running, "shipped_rows", lambda: unpack(tmp_path / "rows.jsonl.gz"))

    return ship


def page_of(name, wish, tmp_path):
    (tmp_path / "results").mkdir(exist_ok=True)
    done = reproduce(experiment_named(name), wish, SETTINGS, tmp_path / "results", tmp_path / "out")
    return done.result, (tmp_path / "out" / f"{name}.md").read_text("utf-8")


def test_a_page_comes_from_shipped_rows_alone(shipped, tmp_path):
    shipped(planned("tradeoff"))
    result, text = page_of("tradeoff", WISH, tmp_path)
    assert result.table.lines
    assert "Incomplete" not in text
    assert "`karate` (1 seed)" in text
    assert "--with-shipped --no-run" in text


def test_other_files_fill_what_did_not_ship(shipped, tmp_path):
    cells = planned("tradeoff")
    world = World(Objects(tmp_path / "elsewhere"), False)
    others = tmp_path / "others.jsonl.gz"
    pack([world.row(cell) for cell in cells], others)
    shipped([cell for cell in cells if cell.defense is None or cell.defense.name != "ppgsl"])
    assert {v.outcome for v in page_of("tradeoff", WISH, tmp_path)[0].verdicts} <= {"not measured"}
    result, text = page_of("tradeoff", replace(WISH, rows=[others]), tmp_path)
    assert "Incomplete" not in text
    assert f"--rows {others}" in text
    defenses = {line[2] for line in result.table.lines}
    assert {"ppgsl (k=1)", "ppgsl (k=0)", "random"} <= defenses


def test_graphs_and_seeds_that_did_not_ship_are_not_called_measured(shipped, tmp_path):
    """Two seeds of one graph and one of another ship; both with two seeds are wished for, and a third graph."""
    small = "synthetic[n=100]"
    one = Wish(datasets=[small], quick=True, seeds="1")
    two = Wish(datasets=["karate"], quick=True, seeds="2")
    shipped(planned("tradeoff", one) + planned("tradeoff", two))
    wish = Wish(["karate", small, "synthetic[n=120]"], "2", quick=True, with_shipped=True, run=False)
    result, text = page_of("tradeoff", wish, tmp_path)
    assert f"Measured on `karate` (2 seeds), `{small}` (1 seed); made by" in text
    assert "Incomplete" in text
    assert {line[0] for line in result.table.lines} == {"karate", small}
    # What is said about all baselines rests on the seed that is there.
    assert any(small in v.statement and "most baselines" in v.statement for v in result.verdicts)
