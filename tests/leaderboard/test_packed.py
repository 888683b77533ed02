import gzip
import json
import random
from dataclasses import replace

import pytest
from leaderboard_rows import attack_row, board, publish_row, row

from ppgsl_bench.errors import UserError
from ppgsl_bench.leaderboard.measurements import Measurements
from ppgsl_bench.leaderboard.packed import checked, pack, unpack
from ppgsl_bench.leaderboard.ranking import rank
from ppgsl_bench.leaderboard.sources import board_rows, shipped_rows
from ppgsl_bench.store import Results


def lines_of(path):
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def write_lines(path, lines):
    path.write_bytes(gzip.compress("\n".join(json.dumps(line) for line in lines).encode() + b"\n"))


def test_packing_keeps_what_ranking_and_provenance_need(tmp_path):
    rows = board()
    path = tmp_path / "rows.jsonl.gz"
    assert pack(rows, path) == len(rows)
    restored = unpack(path)
    assert {r.key for r in restored} == {r.key[:24] for r in rows}
    before, after = rank(Measurements(rows)), rank(Measurements(restored))
    assert [s.label for s in after.standings] == [s.label for s in before.standings]
    for old, new in zip(before.standings, after.standings, strict=True):
        for name, estimate in old.estimates.items():
            assert new.estimates[name].value == pytest.approx(estimate.value, abs=1e-5)
    one, same = rows[3], next(r for r in restored if r.key == rows[3].key[:24])
    assert same.provenance == one.provenance
    assert same.digests == one.digests
    assert (same.status, same.seed, same.defense_label, same.wall_seconds) == ("ok", 0, "none", 1.0)


def test_equal_rows_in_any_order_give_equal_bytes(tmp_path):
    rows = board()
    pack(rows, tmp_path / "a.jsonl.gz")
    pack(random.Random(1).sample(rows, len(rows)), tmp_path / "b.jsonl.gz")
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


def test_failures_keep_their_reason_and_embeddings_are_left_out(tmp_path):
    rows = [publish_row("d", 0, "x", status="timeout", log="a long log"), row("embed", "d", 0, "x", "gae-cos")]
    assert pack(rows, tmp_path / "r.jsonl.gz") == 1
    (restored,) = unpack(tmp_path / "r.jsonl.gz")
    assert (restored.status, restored.reason, restored.log) == ("timeout", "made to end as timeout", "")


def test_a_row_takes_little_room(tmp_path):
    """A board of 50,000 rows with all metrics of an attack should take a few MB."""
    draw = random.Random(0)
    rows = []
    for setting in range(100):
        for attack in range(20):
            drawn = {f"metric_{i}": draw.random() for i in range(27)}
            made = attack_row("d", 0, f"x[a={setting}]", f"attack-{attack:02}", draw.random())
            rows.append(replace(made, metrics=made.metrics | drawn))
    pack(rows, tmp_path / "r.jsonl.gz")
    assert (tmp_path / "r.jsonl.gz").stat().st_size / len(rows) < 130


def test_the_source_of_a_file_is_put_into_its_rows(tmp_path):
    pack([publish_row("d", 0, "x")], tmp_path / "r.jsonl.gz", source="A. Author")
    (restored,) = unpack(tmp_path / "r.jsonl.gz")
    assert restored.provenance["source"] == "A. Author"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("status", "fine", "status"),
        ("seed", "0", "seed"),
        ("metrics", [0, 1, 2, 3, 4, "0.5"], "metrics.sensitive_published"),
        ("metrics", [0, 1, 2, 3, 4, float("nan")], "NaN is not a number"),
        ("metrics", [0, 1, 2, 3, 4], "4 values for 5 names"),
        ("metrics", [True], "no place in the header"),
        ("metrics", {"auc": 0.5}, "not a list"),
        ("wall_seconds", float("inf"), "Infinity is not a number"),
        ("colour", "red", "colour: extra inputs"),
        ("provenance", {"of": 7}, "no place in the header"),
        ("provenance", 3, "not an object"),
        ("key", None, "key"),
    ],
)
def test_a_damaged_row_is_refused_with_its_line(tmp_path, field, value, message):
    path = tmp_path / "r.jsonl.gz"
    pack([publish_row("d", seed, "x") for seed in range(3)], path)
    lines = lines_of(path)
    lines[2][field] = value
    write_lines(path, lines)
    with pytest.raises(UserError, match=rf"line 3: .*{message}"):
        unpack(path)


def test_a_file_without_the_right_header_is_refused(tmp_path):
    path = tmp_path / "r.jsonl.gz"
    for header, message in (
        ({"format": "other"}, "header"),
        ({"format": "ppgsl-bench rows", "version": 99}, "version 99"),
        ([], "not a JSON object"),
    ):
        write_lines(path, [header])
        with pytest.raises(UserError, match=message):
            unpack(path)
    path.write_bytes(b"not gzip")
    with pytest.raises(UserError, match="gzip"):
        unpack(path)
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(UserError, match="line 1"):
        unpack(path)


def test_rows_come_from_folders_files_or_the_package(tmp_path):
    rows = board(datasets=("d",), seeds=1)
    with Results(tmp_path / "results").writing() as store:
        for one in rows:
            store.put(one)
    pack(rows, tmp_path / "r.jsonl.gz")
    assert len(board_rows([tmp_path / "results"])) == len(board_rows([tmp_path / "r.jsonl.gz"])) == len(rows)
    beside = board_rows([tmp_path / "results"], with_shipped=True)
    assert {r.provenance["source"] for r in beside[-len(rows) :]} == {"results"}
    assert len(beside) == len(shipped_rows()) + len(rows)
    with pytest.raises(UserError, match="no results in"):
        board_rows([tmp_path])


def test_a_checked_row_has_every_field_of_its_type():
    document = json.loads(publish_row("d", 0, "x").to_json())
    assert checked(document) == publish_row("d", 0, "x")
    with pytest.raises(ValueError, match="peak_host_bytes"):
        checked({**document, "peak_host_bytes": 1.5})
