import base64
import hashlib
import json
import re
from dataclasses import replace

import pytest
from leaderboard_rows import board

from ppgsl_bench.leaderboard.measurements import Measurements
from ppgsl_bench.leaderboard.pagedata import page_data
from ppgsl_bench.leaderboard.ranking import rank
from ppgsl_bench.leaderboard.webpage import page

EVIL = "</script><script>alert(1)</script><!-- {{own}}"


@pytest.fixture(scope="module")
def measurements():
    return Measurements(
        [replace(r, defense=EVIL, defense_label=f"{EVIL}[a=1]") if r.defense == "soft" else r for r in board(seeds=2)]
    )


@pytest.fixture(scope="module")
def text(measurements):
    return page(page_data(measurements))


def scripts(text):
    return re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL)


def test_there_are_three_scripts_and_no_name_adds_one(text):
    assert [attributes for attributes, _ in scripts(text)] == [' type="application/json" id="data"', "", ""]
    assert "alert(1)</script>" not in text
    data = json.loads(scripts(text)[0][1])
    assert EVIL in [entry["label"] for entry in data["entries"]]


def test_the_policy_allows_these_scripts_and_no_connection(text):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    for _, script in scripts(text)[1:]:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy
    assert "'unsafe-inline'" not in policy.replace("style-src 'unsafe-inline'", "")


def test_nothing_is_loaded_from_elsewhere(text):
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.findall(r"(?:src|href)\s*=\s*[\"'](?!#|data:)", outside)
    assert "url(" not in outside
    assert "@import" not in outside


def test_the_data_hold_every_ranking(measurements):
    data = page_data(measurements)
    for dataset in ("*", *measurements.datasets):
        for attack in measurements.attack_views:
            for utility in measurements.utilities:
                expected = rank(measurements, [] if dataset == "*" else [dataset], attack, utility)
                stored = data["rankings"][dataset][attack][utility]["lines"]
                assert len(stored) == len(expected.standings)
                labels = [entry["label"] for entry in data["entries"]]
                for standing in expected.standings:
                    if not standing.is_reference:
                        line = stored[labels.index(standing.label)]
                        assert line[2][0] == pytest.approx(standing.estimates["strength"].value, abs=1e-5)
                        assert line[2][3] == standing.place["strength"].rank


def test_the_data_are_plain_json(measurements):
    data = page_data(measurements)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
