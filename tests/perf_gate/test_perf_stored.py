"""The baseline and the manifest of the repository belong together and can tell a regression."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ppgsl_bench.perf.baseline import Baseline, read_manifest
from ppgsl_bench.perf.verdict import FAILING, compare

STORED = Path(__file__).parents[1] / "perf"


def failed(verdicts):
    return {(v.kind, v.benchmark, v.quantity) for v in verdicts if v.outcome in FAILING}


def test_every_benchmark_of_the_manifest_has_a_baseline():
    manifest, baseline = read_manifest(STORED / "manifest.txt"), Baseline.read(STORED / "baseline.json")
    assert len(manifest) > 30
    assert not baseline.quick
    assert any(measurement.exponents for measurement in baseline.measurements.values())
    assert not failed(compare(baseline, baseline, manifest))


def test_in_the_baseline_a_slowdown_would_show():
    """The true noise of the stored measurements leaves room to tell 1.5 times the time."""
    baseline = Baseline.read(STORED / "baseline.json")
    for name, measurement in baseline.measurements.items():
        slower = replace(measurement, ratios=tuple(1.5 * np.array(measurement.ratios)))
        head = replace(baseline, measurements={**baseline.measurements, name: slower})
        assert ("ratios", name, "time") in failed(compare(baseline, head)), name
