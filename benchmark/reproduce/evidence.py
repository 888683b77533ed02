"""What an experiment's conclusions rest on: stored rows, and the arrays behind them."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.datasets import Sources
from ppgsl_bench.rows import Row
from ppgsl_bench.split import Split
from ppgsl_bench.store import Objects

Trace = Mapping[str, NDArray[np.float64]]
_Where = tuple[str, str, str, str]


@dataclass(frozen=True)
class Evidence:
    """The rows of an experiment's cells, looked up by the labels of what they measured.

    Attributes:
        rows: those of the cells that have one.
        objects: stored arrays: splits, traces, embeddings.
        sources: where raw files of datasets are.
    """

    rows: Sequence[Row]
    objects: Objects
    sources: Sources

    @cached_property
    def _found(self) -> Mapping[_Where, dict[int, Row]]:
        found: defaultdict[_Where, dict[int, Row]] = defaultdict(dict)
        for row in self.rows:
            found[row.kind, row.dataset_label, row.defense_label, row.evaluator_label][row.seed] = row
        return found

    def all_rows(self, kind: str, dataset: str, defense: str = "", evaluator: str = "") -> dict[int, Row]:
        """By seed, however they ended."""
        return self._found.get((kind, dataset, defense, evaluator), {})

    def sound(self, kind: str, dataset: str, defense: str = "", evaluator: str = "") -> dict[int, Row]:
        """By seed, those that ended well."""
        rows = self.all_rows(kind, dataset, defense, evaluator)
        return {seed: row for seed, row in sorted(rows.items()) if row.status == "ok"}

    def attack(self, dataset: str, defense: str, attack: str, metric: str = "auc") -> dict[int, float]:
        """A metric of an attack, by seed."""
        rows = self.sound("attack", dataset, defense, attack)
        return {seed: row.metrics[metric] for seed, row in rows.items() if metric in row.metrics}

    def utility(self, dataset: str, defense: str, utility: str, metric: str) -> dict[int, float]:
        """A metric of a utility task, by seed."""
        rows = self.sound("utility", dataset, defense, utility)
        return {seed: row.metrics[metric] for seed, row in rows.items() if metric in row.metrics}

    def distortion(self, dataset: str, defense: str) -> dict[int, float]:
        """Links removed and added, as a share of the visible links, by seed."""
        return {
            seed: (row.metrics["links_removed"] + row.metrics["links_added"])
            / (row.metrics["links_kept"] + row.metrics["links_removed"])
            for seed, row in self.sound("publish", dataset, defense).items()
        }

    def traces(self, dataset: str, defense: str) -> dict[int, Trace]:
        """What a defense noted step by step, by seed."""
        rows = self.sound("publish", dataset, defense)
        return {
            seed: self.objects.get(row.artifacts["trace"]) for seed, row in rows.items() if "trace" in row.artifacts
        }

    def splits(self, dataset: str) -> dict[int, Split]:
        """The divisions of a dataset, by seed."""
        return {seed: self._split(row) for seed, row in self.sound("split", dataset).items()}

    def embeddings(self, dataset: str, defense: str, encoder: str) -> dict[int, NDArray[np.float32]]:
        """Node vectors, by seed."""
        rows = self.sound("embed", dataset, defense, encoder)
        return {seed: self.objects.get(row.artifacts["embedding"])["embedding"] for seed, row in rows.items()}

    def seeds(self) -> dict[str, list[int]]:
        """The seeds of each graph on which anything ended well."""
        found: defaultdict[str, set[int]] = defaultdict(set)
        for row in self.rows:
            if row.status == "ok":
                found[row.dataset_label].add(row.seed)
        return {dataset: sorted(seeds) for dataset, seeds in found.items()}

    def problems(self) -> Counter[str]:
        """What did not end well, as `what: reason`, with the number of rows."""
        counter: Counter[str] = Counter()
        for row in self.rows:
            if row.status not in {"ok", "blocked"}:
                name = row.evaluator_label or row.defense_label or row.dataset_label
                counter[f"{name} on {row.dataset_label}: {row.status}: {row.reason}"] += 1
        return counter

    def machine(self) -> str:
        """Where the rows were computed."""
        seen: Counter[str] = Counter()
        for row in self.rows:
            facts: Mapping[str, Any] = row.provenance
            if facts.get("processor"):
                seen[
                    f"{facts['processor']}, {facts.get('threads', 1)} thread(s) a cell, {facts.get('device', 'cpu')}"
                ] += 1
        return seen.most_common(1)[0][0] if seen else ""

    def _split(self, row: Row) -> Split:
        visible = self.objects.get_graph(row.artifacts)
        return Split.from_arrays(visible, self.objects.get(row.artifacts["split"]), row.seed)
