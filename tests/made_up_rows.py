"""Rows made up for planned cells, in a world where the paper is right or in one where it is wrong."""

import json
from functools import cache

import numpy as np

from ppgsl_bench.datasets import Sources
from ppgsl_bench.datasets import registry as datasets
from ppgsl_bench.rows import Row
from ppgsl_bench.split import make_split

SOURCES = Sources(offline=True)
UTILITY_METRICS = {"link-prediction": "auc", "node-classification": "micro_f1"}


@cache
def _split(name, params, seed):
    return make_split(datasets.get(name).create(**json.loads(params)).load(SOURCES), seed)


def _power(defense, given):
    """How strongly a setting acts, from 0 to 1."""
    if defense == "ppgsl":
        return 1 / (1 + 20 * given["alpha"]) * min(1.0, 0.6 + 0.4 * given["k"])
    return 0.5 if defense != "none" else 0.0


class World:
    """Rows as they would be if the paper were right, or if it were wrong."""

    def __init__(self, objects, paper_is_right):
        self.objects = objects
        self.right = paper_is_right

    def row(self, cell):
        parts = {}
        for role in ("dataset", "defense", "evaluator"):
            ref = getattr(cell, role)
            if ref is not None:
                parts |= {role: ref.name, f"{role}_params": ref.params, f"{role}_label": ref.label}
        facts = getattr(self, f"_{cell.kind}")(cell)
        return Row(key=cell.key, kind=cell.kind, seed=cell.seed, **{"wall_seconds": 1.0, **parts, **facts})

    def _split(self, cell):
        split = _split(cell.dataset.name, cell.dataset.params, cell.seed)
        hidden = len(split.sensitive)
        links = split.visible.num_edges + hidden + len(split.test_links)
        artifacts = {**self.objects.put_graph(split.visible), "split": self.objects.put(split.arrays())}
        metrics = {"nodes": float(split.visible.num_nodes), "links": float(links), "features": 200.0}
        return {"metrics": metrics, "artifacts": artifacts}

    def _publish(self, cell):
        given, nodes = cell.defense.given, _split(cell.dataset.name, cell.dataset.params, 0).visible.num_nodes
        changed = 40 * _power(cell.defense.name, given) * (1 if self.right else 0.01)
        facts = {
            "metrics": {"links_kept": 100 - changed, "links_removed": changed, "links_added": changed},
            "peak_host_bytes": int(1e4 * (nodes if self.right else nodes**2) * (50 if self._is_full(given) else 1)),
        }
        if cell.defense.name == "ppgsl":
            facts |= self._training(given, nodes)
        return facts

    def _is_full(self, given):
        return given.get("structure") == "full" and self.right

    def _training(self, given, nodes):
        steps, mu = given["learner_steps"], given["mu"]
        retrained = np.arange(steps) % mu == 0
        unit = 1e-5 * (nodes if self.right else nodes**1.8)
        seconds = np.cumsum(unit + retrained * given["surrogate_updates"] * unit * (2 if self.right else 0))
        # If the paper is right, losses fall, faster with a smaller mu, and jump when the surrogate is renewed.
        fall = np.exp(-np.arange(steps) / (0.05 * steps * (1 + mu / 10)))
        if not self.right or given["protocol"] == "adv":
            fall = fall[::-1] if not self.right else np.ones(steps)
        jump = np.where(retrained & (np.arange(steps) > 0), 0.2 if self.right else -0.02, 0.0)
        trace = {
            "seconds": seconds,
            "privacy_loss": 1 + fall + jump,
            "utility_loss": np.zeros(steps),
            "surrogate_loss": np.ones(steps),
            "surrogate_updates": np.arange(1, steps + 1) * (8 if given["protocol"] == "adv" else 2),
        }
        return {"artifacts": {"trace": self.objects.put(trace)}, "wall_seconds": float(seconds[-1])}

    def _embed(self, cell):
        split = _split(cell.dataset.name, cell.dataset.params, cell.seed)
        rng = np.random.default_rng(0)
        vectors = rng.standard_normal((split.visible.num_nodes, 8))
        if self.right:
            vectors = vectors + split.visible.adjacency @ vectors
        return {"artifacts": {"embedding": self.objects.put({"embedding": vectors.astype(np.float32)})}}

    def _attack(self, cell):
        power = _power(cell.defense.name, cell.defense.given) * (1 if self.right else -0.1)
        if cell.defense.given.get("protocol") == "adv":
            power *= 0.7 if self.right else 1.5
        if self.right and "learner_steps" in cell.defense.given:
            power *= min(1.0, 0.5 + cell.defense.given["learner_steps"] / 120)
        noise = 1e-4 * np.sin(cell.seed + len(cell.defense.label))
        return {"metrics": {"auc": 0.9 - 0.4 * power + noise}}

    def _utility(self, cell):
        power = _power(cell.defense.name, cell.defense.given)
        steps = cell.defense.given.get("learner_steps", 0)
        drift = (0.001 if self.right else -0.001) * steps
        if cell.defense.given.get("protocol") == "adv":
            drift -= 0.05 if self.right else -0.05
        loss = 0.1 if self.right and cell.defense.name == "ppgsl" else 0.4
        noise = 1e-4 * np.cos(cell.seed + len(cell.defense.label))
        return {"metrics": {UTILITY_METRICS[cell.evaluator.name]: 0.8 * (1 - loss * power) + drift + noise}}
