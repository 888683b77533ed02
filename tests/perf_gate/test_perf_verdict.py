"""What the gate says about measurements, unchanged and with a regression put in."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from ppgsl_bench.cli import app
from ppgsl_bench.errors import UserError
from ppgsl_bench.perf.baseline import SEPARATOR, Baseline, Measurement
from ppgsl_bench.perf.verdict import FAILING, QUALITY_LEVEL, compare, expectations, notes

MACHINE = {"processor": "abacus", "cores": 2, "memory_bytes": 2**34, "system": "Linux", "libraries": {"numpy": "2"}}
NAMES = [f"kernel/{i}" for i in range(8)]
DEFENSES, ATTACKS = [f"d{i}" for i in range(9)], [f"a{i}" for i in range(18)]


def measured(rng, names=NAMES, rounds=9, noise=0.04):
    """Measurements of code that takes 3 units a call, with times that vary by about `noise`."""
    return Baseline(
        MACHINE,
        reference=1,
        measurements={
            name: Measurement(
                tuple(3 * np.exp(rng.normal(0, noise, rounds))),
                0.01,
                {"peak_bytes": 1_000_000, "touched": 5000, "resident_bytes": 9_000_000},
                {"time": 1.0 + rng.normal(0, 0.05), "touched": 1.0},
            )
            for name in names
        },
    )


def changed(file, name, **changes):
    return replace(file, measurements={**file.measurements, name: replace(file.measurements[name], **changes)})


def failed(verdicts):
    return {(v.kind, v.benchmark, v.quantity) for v in verdicts if v.outcome in FAILING}


@pytest.fixture
def base(rng):
    return measured(rng)


@pytest.fixture
def head(rng, base):
    return measured(rng, rounds=5)


def test_unchanged_code_raises_no_alarm():
    """100 comparisons of 8 benchmarks whose times vary by 10 %: none of 800 tests may fail.

    The null hypothesis is "at most 1.25 times as slow"; for equal code the chance that the median of five rounds lies
    above 1.25 times that of nine others is below 1e-4 at this noise, and the test asks for more than that.
    """
    rng = np.random.default_rng(1)
    base = measured(rng, noise=0.1)
    for _ in range(100):
        assert not failed(compare(base, measured(rng, rounds=5, noise=0.1)))


@pytest.mark.parametrize("noise", [0.02, 0.06])
def test_one_and_a_half_times_the_time_is_a_regression(noise):
    rng = np.random.default_rng(2)
    base, head = measured(rng, noise=noise), measured(rng, noise=noise, rounds=5)
    for name in NAMES:
        slower = tuple(1.5 * np.array(head.measurements[name].ratios))
        assert failed(compare(base, changed(head, name, ratios=slower))) == {("ratios", name, "time")}


def test_less_time_is_better(base, head):
    faster = changed(head, NAMES[0], ratios=tuple(0.5 * np.array(head.measurements[NAMES[0]].ratios)))
    (found,) = (v for v in compare(base, faster) if v.outcome == "better")
    assert (found.kind, found.benchmark) == ("ratios", NAMES[0])


@pytest.mark.parametrize(("counter", "factor"), [("peak_bytes", 2), ("touched", 1.5), ("resident_bytes", 2)])
def test_a_counter_that_rises_is_a_regression(base, head, counter, factor):
    counters = dict(head.measurements[NAMES[3]].counters)
    counters[counter] = round(factor * counters[counter])
    assert failed(compare(base, changed(head, NAMES[3], counters=counters))) == {("counters", NAMES[3], counter)}


def test_one_cell_computed_again_is_a_regression(base, head):
    base = changed(base, NAMES[0], counters={"recomputed": 0})
    assert not failed(compare(base, changed(head, NAMES[0], counters={"recomputed": 0})))
    assert failed(compare(base, changed(head, NAMES[0], counters={"recomputed": 1})))
    # A counter that is no longer counted is no counter that fell to nothing.
    assert failed(compare(base, changed(head, NAMES[0], counters={})))


def test_faster_growth_is_a_regression(base, head):
    worse = changed(head, NAMES[1], exponents={"time": 2.0, "touched": 1.0})
    assert failed(compare(base, worse)) == {("exponents", NAMES[1], "time")}
    worse = changed(head, NAMES[1], exponents={"time": 1.0, "touched": 1.1})
    assert failed(compare(base, worse)) == {("exponents", NAMES[1], "touched")}


def test_fewer_benchmarks_than_the_manifest_lists_fail(base, head):
    fewer = replace(head, measurements={n: m for n, m in head.measurements.items() if n != NAMES[5]})
    assert failed(compare(base, fewer, NAMES)) == {("manifest", NAMES[5], "did not run")}
    # Also if nobody measured it in base either.
    both = replace(base, measurements=fewer.measurements)
    assert not failed(compare(both, fewer))
    assert failed(compare(both, fewer, NAMES)) == {("manifest", NAMES[5], "did not run")}
    refused = replace(fewer, refusals={NAMES[5]: "too small for me"})
    assert failed(compare(base, refused, NAMES)) == {("manifest", NAMES[5], "too small for me")}


def test_nothing_at_all_fails(base):
    assert len(failed(compare(base, replace(base, measurements={})))) == len(NAMES)


def test_a_new_benchmark_is_no_failure(base, rng):
    head = measured(rng, names=[*NAMES, "attack/new"])
    verdicts = compare(base, head, NAMES)
    assert not failed(verdicts)
    assert [v.benchmark for v in verdicts if v.outcome == "new"] == ["attack/new"]


def test_on_another_machine_the_tolerance_is_wider_and_is_said(base, head):
    slower = changed(head, NAMES[0], ratios=tuple(1.5 * np.array(head.measurements[NAMES[0]].ratios)))
    elsewhere = replace(slower, machine={**MACHINE, "processor": "sliderule"})
    assert failed(compare(base, slower))
    assert not failed(compare(base, elsewhere))
    assert "different machines" in notes(base, elsewhere)[0]
    assert not any("machines" in note for note in notes(base, slower))
    much_slower = changed(elsewhere, NAMES[0], ratios=tuple(2.0 * np.array(slower.measurements[NAMES[0]].ratios)))
    assert failed(compare(base, much_slower)) == {("ratios", NAMES[0], "time")}
    # Counters mean the same everywhere.
    counters = {**head.measurements[NAMES[0]].counters, "peak_bytes": 2_000_000}
    assert failed(compare(base, changed(elsewhere, NAMES[0], counters=counters)))


def test_ratios_to_different_references_are_not_compared(base, head):
    other = replace(head, reference=2)
    assert not any(v.kind == "ratios" for v in compare(base, other))
    assert "reference" in notes(base, other)[0]


def test_a_quick_head_leaves_growth_and_quality_unjudged_and_says_so(base, head):
    quick = replace(head, quick=True)
    golden = {"d × a": (0.5, 0.6)}
    assert {v.kind for v in compare(base, quick, golden=golden)} == {"counters", "ratios"}
    assert [("growth" in note, "quality" in note) for note in notes(base, quick, golden)] == [
        (True, False),
        (False, True),
    ]


def aucs(rng, streams, noise=0.02, weakened="", by=0.0):
    values = {}
    for d, defense in enumerate(DEFENSES):
        for attack in ATTACKS:
            middle = 0.9 - 0.04 * d - (by if attack == weakened else 0)
            # The first attack has no randomness of its own, and the first defense has none either.
            spread = 0.0 if defense == DEFENSES[0] and attack == ATTACKS[0] else noise
            values[f"{defense}{SEPARATOR}{attack}"] = tuple(middle + spread * rng.standard_normal(streams))
    return values


def test_equal_quality_with_other_random_numbers_raises_no_alarm():
    """100 new streams against golden values of four: each interval may be missed with probability 1e-4.

    180 intervals a comparison, of which 18 are means: about 1.8 alarms are expected of all 18,000; ten or more have a
    chance of 1e-4 (Poisson).
    """
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(100):
        head = replace(measured(rng, names=["x"]), quality=aucs(rng, 1))
        alarms += len(failed(compare(head, head, golden=aucs(rng, 4))))
    assert alarms < 10
    assert QUALITY_LEVEL <= 1e-4


def test_a_weakened_attack_is_a_regression():
    rng = np.random.default_rng(4)
    golden = aucs(rng, 12)
    one = replace(measured(rng, names=["x"]), quality=aucs(rng, 1, weakened=ATTACKS[2], by=0.25))
    found = {name for _, name, _ in failed(compare(one, one, golden=golden))}
    assert found == {f"{d}{SEPARATOR}{ATTACKS[2]}" for d in [*DEFENSES, "all"]}


def test_an_attack_weakened_by_little_shows_in_the_mean():
    """A loss of 0.06 is three times the spread of one cell: no cell is sure, their mean is."""
    rng = np.random.default_rng(5)
    golden = aucs(rng, 4)
    one = replace(measured(rng, names=["x"]), quality=aucs(rng, 1, weakened=ATTACKS[2], by=0.06))
    assert f"all{SEPARATOR}{ATTACKS[2]}" in {name for _, name, _ in failed(compare(one, one, golden=golden))}


def test_a_cell_that_never_varies_has_the_narrowest_interval():
    golden = aucs(np.random.default_rng(6), 4)
    widths = {e.name: e.half_width(1) for e in expectations(golden)}
    assert min(widths, key=widths.get) == f"{DEFENSES[0]}{SEPARATOR}{ATTACKS[0]}"


def test_a_cell_with_a_spread_of_its_own_is_as_uncertain_as_its_few_values():
    """Twelve values of a cell noisier than the others: a new one lies outside with the stated probability, not more."""
    rng = np.random.default_rng(8)
    golden = {f"d{i}{SEPARATOR}a": tuple(0.01 * rng.standard_normal(12)) for i in range(8)}
    outside, trials = 0, 4000
    for _ in range(trials):
        noisy = 0.3 * rng.standard_normal(13)
        found = {e.name: e for e in expectations({**golden, f"noisy{SEPARATOR}a": tuple(noisy[:12])})}
        expected = found[f"noisy{SEPARATOR}a"]
        outside += abs(noisy[12] - expected.middle) > expected.half_width(1)
    # Poisson with mean 0.4: five or more have a chance of 1e-4. With the pooled freedom of 99 there were 17.
    assert outside < 5


def test_a_missing_value_of_quality_fails():
    rng = np.random.default_rng(7)
    golden = aucs(rng, 4)
    values = aucs(rng, 1)
    del values[f"d1{SEPARATOR}a1"]
    one = replace(measured(rng, names=["x"]), quality=values)
    found = {name for _, name, _ in failed(compare(one, one, golden=golden))}
    assert found == {f"d1{SEPARATOR}a1", f"all{SEPARATOR}a1"}


def test_files_are_read_as_they_were_written(base, tmp_path):
    file = replace(base, quality={"d × a": (0.5, 0.625)}, refusals={"attack/x": "no links"})
    file.write(tmp_path / "file.json")
    again = Baseline.read(tmp_path / "file.json")
    assert not failed(compare(again, again))
    assert again.quality == file.quality
    assert again.refusals == file.refusals
    assert again.machine == file.machine
    for name, measurement in file.measurements.items():
        assert again.measurements[name].ratios == pytest.approx(measurement.ratios, rel=1e-3)
        assert again.measurements[name].counters == measurement.counters


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": 999}', '{"schema": 1, "measurements": {"a": 3}}'])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "file.json"
    path.write_text(content)
    with pytest.raises(UserError, match=r"file\.json"):
        Baseline.read(path)


def test_the_command_exits_with_1_on_a_regression(base, head, tmp_path):
    base.write(tmp_path / "base.json")
    head.write(tmp_path / "head.json")
    worse = changed(head, NAMES[0], counters={**head.measurements[NAMES[0]].counters, "peak_bytes": 2_000_000})
    worse.write(tmp_path / "worse.json")
    run = CliRunner().invoke
    command = ["perf", "compare", str(tmp_path / "base.json")]
    fine = run(app, [*command, str(tmp_path / "head.json")])
    assert fine.exit_code == 0, fine.output
    assert "all" in fine.output
    bad = run(app, [*command, str(tmp_path / "worse.json")])
    assert bad.exit_code == 1
    assert "× 2.00" in bad.output
    as_json = run(app, [*command, str(tmp_path / "worse.json"), "--json"])
    assert as_json.exit_code == 1
    assert sum(v["outcome"] == "regression" for v in json.loads(as_json.stdout)["verdicts"]) == 1
    # The manifest beside base is found without being named.
    (tmp_path / "manifest.txt").write_text("\n".join(["# a comment", *NAMES, "attack/gone", ""]))
    gone = run(app, [*command, str(tmp_path / "head.json")])
    assert gone.exit_code == 1
    assert "attack/gone" in gone.output
