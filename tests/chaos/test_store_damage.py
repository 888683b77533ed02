"""One wrong byte anywhere in the rows: what is returned is right, next to nothing is lost, and the store heals."""

import os
import shutil
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppgsl_bench import store
from ppgsl_bench.errors import UserError
from ppgsl_bench.rows import Row
from ppgsl_bench.store import DamagedObjectError, Objects, Results

# Some rows fit on a page together, some fill one, some go on over several (a page has 4,096 bytes).
LOG_LENGTHS = (0, 0, 0, 900, 900, 2500, 2500, 5000, 12000, 0, 0, 3500)
ROWS = {
    f"{i:064x}": Row(f"{i:064x}", "attack", "karate", "{}", "karate", 0, metrics={"auc": i / 16}, log="x" * length)
    for i, length in enumerate(LOG_LENGTHS)
}
# A page header that is hit takes with it the rows of that page: with rows as short as the shortest here, these many.
MOST_LOST = 5


def fill(folder):
    results = Results(folder).writing()
    for row in ROWS.values():
        results.put(row)
    return results


@pytest.fixture(scope="module")
def closed_store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("closed")
    fill(folder).close()
    return folder


@pytest.fixture(scope="module")
def killed_store(tmp_path_factory):
    """A store whose process died: its rows are in the log."""
    folder = tmp_path_factory.mktemp("killed")
    child = os.fork()
    if child == 0:
        fill(folder)
        os._exit(0)
    os.waitpid(child, 0)
    assert (folder / "rows.sqlite-wal").stat().st_size > 10 * 4096
    return folder


def read(folder):
    with Results(folder).writing() as results:
        return {row.key: row for row in results.rows()}, results.notices


def assert_heals(folder):
    """Whatever was done to the store, every row it returns is right; once the others are back, nobody notices more."""
    found, _ = read(folder)
    assert found.items() <= ROWS.items()
    with Results(folder).writing() as results:
        for key in ROWS.keys() - found.keys():
            results.put(ROWS[key])
    again, notices = read(folder)
    assert again == ROWS
    assert notices == []
    with Results(folder) as reader:
        assert len(reader.rows()) == len(ROWS)
    return len(ROWS) - len(found)


def harmed(source, folder, name, harm):
    shutil.copytree(source, folder)
    path = folder / name
    path.write_bytes(harm(path.read_bytes()))
    return folder


def flipped(content, offset, bit):
    changed = bytearray(content)
    changed[offset % len(content)] ^= 1 << bit
    return bytes(changed)


@pytest.mark.parametrize("name", ["rows.sqlite", "rows.sqlite-wal", "rows.sqlite-shm"])
@settings(max_examples=40)
@given(offset=st.one_of(st.integers(0, 120), st.integers(0, 10**9)), bit=st.integers(0, 7))
def test_a_flipped_bit(closed_store, killed_store, tmp_path_factory, name, offset, bit):
    source = closed_store if name == "rows.sqlite" else killed_store
    folder = harmed(source, tmp_path_factory.mktemp("f") / "s", name, lambda content: flipped(content, offset, bit))
    assert assert_heals(folder) <= MOST_LOST


@pytest.mark.parametrize("name", ["rows.sqlite", "rows.sqlite-wal"])
@settings(max_examples=40)
@given(share=st.floats(0, 1))
def test_a_torn_write_loses_only_what_was_torn_off(closed_store, killed_store, tmp_path_factory, name, share):
    source = closed_store if name == "rows.sqlite" else killed_store
    folder = harmed(
        source, tmp_path_factory.mktemp("t") / "s", name, lambda content: content[: int(share * len(content))]
    )
    assert_heals(folder)


def test_a_damaged_log_does_not_take_the_commits_after_it_along(killed_store, tmp_path):
    """SQLite alone stops at the first wrong frame; the guard is seen to fail on it."""
    folder = harmed(
        killed_store, tmp_path / "s", "rows.sqlite-wal", lambda content: flipped(content, 9 * 4120 + 100, 3)
    )
    shutil.copytree(folder, tmp_path / "plain")
    with sqlite3.connect(tmp_path / "plain" / "rows.sqlite") as plain:
        assert plain.execute("SELECT count(*) FROM rows").fetchone()[0] < len(ROWS) - MOST_LOST
    assert assert_heals(folder) <= MOST_LOST


def test_a_store_without_its_schema_is_not_taken_for_an_empty_one(closed_store, tmp_path):
    folder = harmed(
        closed_store, tmp_path / "s", "rows.sqlite", lambda c: c.replace(b"tablerowsrows", b"tablesowsrows")
    )
    assert assert_heals(folder) == 0


def test_a_view_in_the_place_of_the_table_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "rows.sqlite") as connection:
        connection.execute(
            "CREATE VIEW rows AS WITH RECURSIVE n(sequence) AS (SELECT 1 UNION ALL SELECT sequence + 1 FROM n) "
            "SELECT sequence, 'k' AS key, 'd' AS document, 'c' AS checksum FROM n"
        )
    with pytest.raises(UserError, match="damaged"):
        Results(tmp_path).rows()


@pytest.mark.parametrize("step", ["copy", "replace", "unlink", "second replace"])
def test_a_rebuild_may_be_killed_at_any_step(closed_store, tmp_path, monkeypatch, step):
    """First the new database is whole, then the damaged one goes."""
    folder = harmed(closed_store, tmp_path / "s", "rows.sqlite", lambda content: flipped(content, 5, 1))
    child = os.fork()
    if child == 0:
        die = lambda *_, **__: os._exit(9)  # noqa: E731
        if step == "copy":
            store.shutil.copy = die
        elif step == "replace":
            store.Path.replace = die
        else:
            (folder / "rows.sqlite-wal").write_bytes(b"")
            replace = store.Path.replace
            store.Path.unlink = die if step == "unlink" else store.Path.unlink
            store.Path.replace = lambda self, to: replace(self, to) if str(to).endswith("rebuilt") else die()
        read(folder)
        os._exit(0)
    assert os.waitpid(child, 0)[1] != 0
    assert assert_heals(folder) == 0


def test_a_full_disk_is_not_taken_for_damage(closed_store, tmp_path, monkeypatch):
    """Once it was: the database was moved away, and there was no room for the new one."""
    shutil.copytree(closed_store, tmp_path / "s")

    def full(path):
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr(store, "_connect", full)
    with pytest.raises(UserError, match="full; the rows that it has are kept"):
        read(tmp_path / "s")
    monkeypatch.undo()
    assert read(tmp_path / "s") == (ROWS, [])


def test_a_damaged_array_is_replaced_by_whoever_writes_it_again(tmp_path):
    objects = Objects(tmp_path)
    digest = objects.put({"a": [1, 2, 3]})
    objects.path(digest).write_bytes(b"torn")
    with pytest.raises(DamagedObjectError):
        objects.get(digest)
    assert objects.put({"a": [1, 2, 3]}) == digest
    assert objects.get(digest)["a"].tolist() == [1, 2, 3]


def test_what_a_killed_process_left_half_written_is_cleared_away(tmp_path):
    old, new = (tmp_path / "objects" / "ab" / f"{name}.partial" for name in ("old", "new"))
    old.parent.mkdir(parents=True)
    for path in (old, new):
        path.write_text("")
    os.utime(old, (0, 0))
    with Results(tmp_path).writing():
        assert new.exists()
        assert not old.exists()
