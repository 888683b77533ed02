"""Made-up rows for tests of the board: no plugin runs, every number follows from a formula and a seeded draw."""

import hashlib
import json
from dataclasses import replace

import numpy as np

from ppgsl_bench import PROTOCOL_VERSION
from ppgsl_bench.metrics import strength
from ppgsl_bench.rows import Row

PROVENANCE = {
    "ppgsl_bench": "0.1.0",
    "protocol": PROTOCOL_VERSION,
    "revision": "0123456789abcdef0123456789abcdef01234567",
    "python": "3.11.7",
    "libraries": {"torch": "2.13.0", "numpy": "2.4.6"},
    "system": "Linux",
    "processor": "a processor",
    "device": "cpu",
    "threads": 1,
}
FINISHED = "2026-01-01T00:00:00+00:00"

ATTACKS = ("cn", "gae-cos", "feature-cos")
UTILITIES = ("link-prediction", "node-classification")


def digest(*parts):
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def row(kind, dataset, seed, defense="", evaluator="", metrics=None, status="ok", **fields):
    """One row; `defense` and `evaluator` are labels such as `random[rate=0.5]`."""
    digests = {"dataset": digest("dataset", dataset), "split": digest("split", dataset, seed)}
    if defense:
        digests["published"] = digest("published", dataset, seed, defense)
    plugin = (evaluator or defense or dataset).partition("[")[0]
    own = {
        "reason": "" if status == "ok" else f"made to end as {status}",
        "wall_seconds": 1.0 if status == "ok" else None,
        "peak_host_bytes": 2**20 if status == "ok" else None,
        "digests": digests,
        "provenance": {**PROVENANCE, "plugin": f"{plugin}@1", "finished": FINISHED},
    }
    return Row(
        key=digest(kind, dataset, seed, defense, evaluator),
        kind=kind,
        dataset=dataset.partition("[")[0],
        dataset_params="{}",
        dataset_label=dataset,
        seed=seed,
        defense=defense.partition("[")[0],
        defense_label=defense,
        evaluator=evaluator.partition("[")[0],
        evaluator_label=evaluator,
        status=status,
        metrics=(metrics or {}) if status == "ok" else {},
        **{**own, **fields},
    )


def split_row(dataset, seed, nodes=1000, links=4000):
    return row("split", dataset, seed, metrics={"nodes": float(nodes), "links": float(links), "features": 10.0})


def publish_row(dataset, seed, defense, **fields):
    metrics = {"links": 3200.0, "links_kept": 3000.0, "links_removed": 200.0, "links_added": 200.0}
    return row("publish", dataset, seed, defense, metrics={**metrics, "sensitive_published": 0.0}, **fields)


def attack_row(dataset, seed, defense, attack, auc, **fields):
    metrics = {"auc": auc, "strength": strength(auc), "auc_se": 0.01}
    return row("attack", dataset, seed, defense, attack, metrics, **fields)


def utility_row(dataset, seed, defense, utility, value, floor=0.6, **fields):
    name = {"link-prediction": "auc", "node-classification": "micro_f1", "structure": "edge_jaccard"}[utility]
    metrics = {name: value} | ({f"floor_{name}": floor} if utility != "structure" else {})
    return row("utility", dataset, seed, defense, utility, metrics, **fields)


def point_rows(dataset, seed, defense, aucs, utilities):
    """A published graph and all that was measured on it."""
    yield publish_row(dataset, seed, defense)
    for attack, auc in aucs.items():
        yield attack_row(dataset, seed, defense, attack, auc)
    for utility, value in utilities.items():
        yield utility_row(dataset, seed, defense, utility, value)


def board(datasets=("one", "two"), defenses=("soft", "hard"), seeds=3, settings=4, attacks=ATTACKS, noise=0.02, salt=0):
    """A board with curves: from each setting to the next a defense lowers attacks and loses utility, with noise."""
    rows = []
    for dataset in datasets:
        for seed in range(seeds):
            rng = np.random.default_rng([salt, seed, *dataset.encode()])
            rows.append(split_row(dataset, seed))
            undefended = {
                a: float(np.clip(0.92 - 0.05 * i + noise * rng.normal(), 0, 1)) for i, a in enumerate(attacks)
            }
            useful = {u: float(np.clip(0.88 + noise * rng.normal(), 0, 1)) for u in UTILITIES}
            rows += point_rows(dataset, seed, "none", undefended, useful)
            for d, defense in enumerate(defenses):
                for k in range(1, settings + 1):
                    power = k / settings
                    aucs = {
                        a: float(np.clip(v - (v - 0.5) * power * (0.6 + 0.15 * d) + noise * rng.normal(), 0, 1))
                        for a, v in undefended.items()
                    }
                    values = {
                        u: float(np.clip(v * (1 - 0.3 * power ** (1 + d)) + noise * rng.normal(), 0, 1))
                        for u, v in useful.items()
                    }
                    rows += point_rows(dataset, seed, f"{defense}[power={power:g}]", aucs, values)
    return rows


def failed(rows, index, status="timeout"):
    """The same rows, one of which has failed."""
    broken = [*rows]
    old = broken[index]
    broken[index] = replace(old, status=status, metrics={}, wall_seconds=None, peak_host_bytes=None, reason="failed")
    return broken
