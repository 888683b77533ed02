"""The golden values of the repository are complete and narrow enough to tell guessing from an attack."""

from pathlib import Path

from ppgsl_bench.perf.baseline import SEPARATOR, Baseline, read_manifest
from ppgsl_bench.perf.verdict import FAILING, compare

STORED = Path(__file__).parents[1] / "perf"


def failed(golden, values):
    head = Baseline({}, 1, quality=values)
    return {v.benchmark for v in compare(head, head, golden=golden) if v.outcome in FAILING}


def test_every_defense_and_attack_of_the_manifest_has_golden_values():
    golden = Baseline.read(STORED / "golden.json").quality
    plugins = {"attack": [], "defense": []}
    for name in read_manifest(STORED / "manifest.txt"):
        kind, _, plugin = name.partition("/")
        if kind in plugins:
            plugins[kind].append(plugin)
    assert {f"{d}{SEPARATOR}{a}" for d in plugins["defense"] for a in plugins["attack"]} <= set(golden)
    assert all(len(values) >= 3 for values in golden.values())
    assert not failed(golden, golden)


def test_guessing_would_show():
    golden = Baseline.read(STORED / "golden.json").quality
    for attack in ("aa", "gae-cos", "n2v-cos", "seal"):
        guessed = {n: (0.5,) if n.endswith(f"{SEPARATOR}{attack}") else v for n, v in golden.items()}
        assert f"all{SEPARATOR}{attack}" in failed(golden, guessed)
