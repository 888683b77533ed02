"""What a run promises: nothing twice, nothing lost, nothing trusted that is damaged, the same numbers again."""

import gc
import hashlib
import sqlite3

import numpy as np
import pytest
from in_process import InProcess

from ppgsl_bench import attacks, defenses, execute, store, utilities
from ppgsl_bench.errors import UserError
from ppgsl_bench.metrics import roc_auc
from ppgsl_bench.rows import Row
from ppgsl_bench.store import Results

AXES = {"defenses": ("none", "random"), "attacks": ("cn", "ra"), "seeds": (0, 1)}


def outcome(rows):
    return {(r.key, r.kind, r.status, tuple(sorted(r.metrics.items())), tuple(sorted(r.digests.items()))) for r in rows}


def test_two_runs_of_the_same_command_give_identical_rows_and_the_second_computes_nothing(run_cells, recorder):
    first = run_cells(**AXES)
    watch = recorder()
    second = run_cells(**AXES, observer=watch)
    assert watch.ran == []
    assert watch.done == len(second) == 2 + 4 + 8
    assert outcome(first) == outcome(second)


def test_another_folder_gives_the_same_metrics(run_cells, tmp_path):
    assert outcome(run_cells(**AXES)) == outcome(run_cells(**AXES, folder=tmp_path / "other", jobs=1))


def test_only_what_is_missing_runs(run_cells, recorder):
    run_cells(defenses=("none",), attacks=("cn",))
    watch = recorder()
    run_cells(defenses=("none",), attacks=("cn", "aa"), observer=watch)
    assert [c.evaluator.name for c in watch.ran] == ["aa"]


def test_all_defenses_see_the_same_split_and_every_row_names_it(run_cells):
    rows = run_cells(defenses=("none", "random", "edgerand"))
    assert len({r.digests["split"] for r in rows}) == 1
    assert len({r.digests["published"] for r in rows if r.kind == "publish"}) >= 2


def test_metrics_can_be_recomputed_from_the_stored_scores(run_cells, row_of, tmp_path):
    rows = run_cells(attacks=("ra",))
    objects = Results(tmp_path / "results").objects
    (split,) = (r for r in rows if r.kind == "split")
    attack = row_of(rows, "ra")
    scores = objects.get(attack.artifacts["scores"])["scores"]
    group = objects.get(split.artifacts["answers"])["group"]
    chosen = group <= 1
    assert roc_auc(group[chosen] == 0, scores[chosen]) == attack.metrics["auc"]


def test_a_row_says_where_it_comes_from(run_cells, row_of):
    row = row_of(run_cells(), "cn")
    assert row.provenance["plugin"] == "cn@1"
    for name in (
        "ppgsl_bench",
        "protocol",
        "python",
        "libraries",
        "processor",
        "cores",
        "threads",
        "device",
        "finished",
    ):
        assert row.provenance[name]
    assert row.wall_seconds > 0
    assert row.baseline_host_bytes > 10 * 2**20
    assert row.peak_host_bytes < row.baseline_host_bytes


@pytest.mark.parametrize("harm", ["flip", "truncate", "delete"])
def test_a_damaged_cache_entry_is_set_aside_and_recomputed(run_cells, row_of, recorder, tmp_path, harm):
    rows = run_cells(attacks=("cn",))
    published = row_of(rows)
    path = Results(tmp_path / "results").objects.path(published.artifacts["graph"])
    content = bytearray(path.read_bytes())
    if harm == "flip":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif harm == "truncate":
        path.write_bytes(content[:100])
    else:
        path.unlink()
    watch = recorder()
    again = run_cells(attacks=("cn", "ra"), observer=watch)
    # The visible and the published graph of `none` are the same object, which the split cell made.
    assert {c.kind for c in watch.ran} >= {"attack"}
    assert "split" in {c.kind for c in watch.ran} or "publish" in {c.kind for c in watch.ran}
    assert row_of(again, "ra").status == "ok"
    assert row_of(again, "cn").metrics == row_of(rows, "cn").metrics
    if harm != "delete":
        assert list((tmp_path / "results" / "quarantine").iterdir())


def test_a_tampered_row_is_not_trusted(run_cells, row_of, recorder, tmp_path):
    rows = run_cells()
    good = row_of(rows, "cn")
    database = tmp_path / "results" / "rows.sqlite"
    with sqlite3.connect(database) as connection:
        forged = good.to_json().replace('"auc": ', '"auc": 0.1')
        connection.execute("UPDATE rows SET document = ? WHERE key = ?", (forged, good.key))
    connection.close()
    assert good.key not in {r.key for r in Results(tmp_path / "results").rows()}
    watch = recorder()
    again = run_cells(observer=watch)
    assert [c.key for c in watch.ran] == [good.key]
    assert row_of(again, "cn").metrics == good.metrics


@pytest.mark.parametrize("where", [0.0, 0.5], ids=["header", "middle"])
def test_a_corrupt_database_is_set_aside_and_sound_rows_are_saved(run_cells, tmp_path, where):
    rows = run_cells(**AXES)
    database = tmp_path / "results" / "rows.sqlite"
    content = bytearray(database.read_bytes())
    start = int(where * len(content))
    content[start : start + 60] = b"\xff" * 60
    database.write_bytes(content)
    again = run_cells(**AXES)
    assert outcome(again) == outcome(rows)
    with Results(tmp_path / "results") as results:
        assert len(results.rows()) == len(rows)


def test_two_runs_on_one_folder_are_refused(tmp_path):
    with Results(tmp_path).writing(), pytest.raises(UserError, match="another run is writing"):
        Results(tmp_path).writing()
    with Results(tmp_path).writing():
        pass


def test_a_folder_that_cannot_be_written_is_an_error_with_its_name(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    with pytest.raises(UserError, match="cannot write to the results folder"):
        Results(blocker / "results").writing()


def test_a_file_changed_between_two_runs_is_computed_anew(run_cells, recorder, tmp_path):
    graph = tmp_path / "graph.csv"
    rng = np.random.default_rng(0)
    lines = sorted({tuple(sorted(p)) for p in rng.integers(40, size=(150, 2)).tolist() if p[0] != p[1]})
    graph.write_text("source,target\n" + "\n".join(f"n{u},n{v}" for u, v in lines))
    first = run_cells(datasets=(str(graph),))
    graph.write_text("source,target\n" + "\n".join(f"n{u},n{v}" for u, v in lines[1:]))
    watch = recorder()
    second = run_cells(datasets=(str(graph),), observer=watch)
    assert len(watch.ran) == 3
    assert {r.key for r in first} < {r.key for r in second}


def test_a_full_disk_stops_the_run_and_keeps_what_is_done(run_cells, tmp_path):
    with pytest.raises(UserError, match=r"No space left on device.*same command"):
        run_cells(attacks=("cn", "bad-fills-disk"), jobs=1)
    kept = Results(tmp_path / "results").rows()
    assert {(r.kind, r.evaluator) for r in kept} == {("split", ""), ("publish", ""), ("attack", "cn")}


def test_a_database_that_cannot_grow_stops_the_run_and_keeps_the_rows_before(run_cells, monkeypatch, tmp_path):
    def cramped(path, connect=store._connect):
        connection = connect(path)
        connection.execute("PRAGMA max_page_count = 4")
        return connection

    monkeypatch.setattr(store, "_connect", cramped)
    with pytest.raises(UserError, match=r"cannot store a row.*full"):
        run_cells(attacks=("cn", "aa", "ra"), seeds=range(4))
    monkeypatch.undo()
    assert Results(tmp_path / "results").rows()
    assert all(r.status == "ok" for r in run_cells(attacks=("cn", "aa", "ra"), seeds=range(4)))


def test_an_interrupt_keeps_finished_cells_and_leaves_no_process(run_cells, recorder, tmp_path):
    class Impatient(recorder):
        def finished(self, cell, row):
            if cell.kind == "publish":
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_cells(attacks=("bad-hangs", "cn"), observer=Impatient())
    assert {r.kind for r in Results(tmp_path / "results").rows()} == {"split", "publish"}


class RowsInMemory:
    """An observer that counts rows in memory: before the first cell runs, and while each is reported."""

    def __init__(self):
        self.counts = []

    def planned(self, remaining, done):
        self._count()

    def started(self, cell):
        pass

    def finished(self, cell, row):
        self._count()

    def _count(self):
        self.counts.append(sum(type(thing) is Row for thing in gc.get_objects()))


def test_rows_that_no_cell_builds_on_are_not_kept_in_memory(run_cells, monkeypatch):
    def work(request):
        return {"status": "ok", "artifacts": {"graph": hashlib.sha256(request["cell"]["key"].encode()).hexdigest()}}

    monkeypatch.setattr(execute, "CellProcesses", lambda _, *options: InProcess(work, *options))
    settings = [f"random[rate={rate / 100}]" for rate in range(1, 3)]
    run_cells(defenses=settings, attacks=["cn", "aa", "ra"], seeds=range(5))
    watch = RowsInMemory()
    gc.collect()
    elsewhere = sum(type(thing) is Row for thing in gc.get_objects())
    run_cells(defenses=settings, attacks=["cn", "aa", "ra", "degree", "katz"], seeds=range(5), observer=watch)
    # Of 5 splits and 10 published graphs, and the one that is being reported; not of 50 attacks, 30 of them stored.
    assert watch.counts[0] - elsewhere <= 5 + 10
    assert max(watch.counts) - elsewhere <= 5 + 10 + 1
    assert len(watch.counts) == 1 + 20


def test_the_untimed_first_call_is_brief_and_the_row_is_of_the_whole(run_cells, row_of, tmp_path):
    notes = tmp_path / "notes"
    rows = run_cells(attacks=(f"long-winded[notes={notes},scale=3]",))
    assert notes.read_text() == "24 nodes, 1 steps, scale 3\n34 nodes, 1000 steps, scale 3\n"
    assert row_of(rows, "long-winded").evaluator_label.startswith("long-winded[")


def test_what_plugins_do_briefly_is_a_parameter_of_theirs():
    shortened = 0
    for registry in (attacks.registry, defenses.registry, utilities.registry):
        for name in registry:
            plugin = registry.get(name).create()
            assert type(plugin).create(**plugin.brief) == plugin.briefly(), name
            shortened += plugin.briefly() != plugin
    assert shortened >= 9
