"""The rows that ship with the package, and the README that quotes them."""

import re
from pathlib import Path

import pytest

from ppgsl_bench import PROTOCOL_VERSION
from ppgsl_bench.leaderboard.measurements import Measurements
from ppgsl_bench.leaderboard.ranking import rank
from ppgsl_bench.leaderboard.sources import shipped_rows
from ppgsl_bench.leaderboard.submission import known_digests
from ppgsl_bench.leaderboard.tables import ranking_text
from ppgsl_bench.leaderboard.webpage import MAX_BYTES, write_page

README = Path(__file__).parents[2] / "README.md"
BEGIN, END = "<!-- ppgsl-bench leaderboard --format markdown -->", "<!-- end -->"


@pytest.fixture(scope="module")
def rows():
    return shipped_rows()


def test_the_readme_shows_the_ranking_of_the_shipped_rows(rows):
    """Between the two comments stands what the first of them says, and nothing where no rows ship."""
    found = re.search(f"{BEGIN}\n+(.*?)\n+{END}", README.read_text(encoding="utf-8"), re.DOTALL)
    expected = ranking_text(rank(Measurements(rows)), "markdown") if rows else None
    assert (found[1] if found else None) == expected


def test_shipped_rows_are_of_this_protocol_and_of_one_split_a_seed(rows):
    assert {row.provenance["protocol"] for row in rows} <= {PROTOCOL_VERSION}
    known = known_digests(rows)
    for row in rows:
        if row.status == "ok":
            assert row.digests["dataset"] == known[row.dataset_label].dataset
            assert row.digests["split"] == known[row.dataset_label].splits[row.seed]


def test_shipped_evaluations_are_of_the_shipped_publications(rows):
    """Rows of several runs are packed together: all must speak of the same published graph."""
    published = {
        (row.dataset_label, row.seed, row.defense_label): row.digests["published"]
        for row in rows
        if row.kind == "publish" and row.status == "ok"
    }
    evaluated = [row for row in rows if row.kind in {"attack", "utility"} and row.status == "ok"]
    assert evaluated
    for row in evaluated:
        assert row.digests["published"] == published[row.dataset_label, row.seed, row.defense_label]


def test_the_page_of_the_shipped_rows_is_small_enough(rows, tmp_path):
    if rows:
        assert write_page(Measurements(rows), tmp_path / "board.html") < MAX_BYTES
