"""A row: what a cell left behind."""

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

Status = Literal["ok", "inapplicable", "failed", "timeout", "out-of-memory", "killed", "blocked"]
"""`inapplicable`: the plugin gave a reason why it cannot work on the graph; `blocked`: a required cell failed."""

FAILURES = frozenset({"failed", "timeout", "out-of-memory", "killed", "blocked"})


@dataclass(frozen=True)
class Row:
    """The outcome of one cell, complete enough to be understood on another machine years later.

    Attributes:
        key: the cell's key.
        kind: split, publish, embed, attack or utility.
        dataset, defense, evaluator: names; `*_params` are canonical JSON, `*_label` as a person would type it.
        status, reason: how it ended, and why if not well.
        metrics: finite numbers by name.
        wall_seconds: the plugin's own work; for an attack on an embedding, the embedding's time included.
        peak_host_bytes: growth of resident memory above `baseline_host_bytes` during that work.
        artifacts: SHA-256 of the stored arrays, by role.
        digests: of dataset, split and published graph.
        provenance: versions, hardware, threads, device, time of day.
        log: the last lines that the plugin printed, if it failed.
        requires: keys of the cells that this one built on.
    """

    key: str
    kind: str
    dataset: str
    dataset_params: str
    dataset_label: str
    seed: int
    defense: str = ""
    defense_params: str = "{}"
    defense_label: str = ""
    evaluator: str = ""
    evaluator_params: str = "{}"
    evaluator_label: str = ""
    status: Status = "ok"
    reason: str = ""
    metrics: dict[str, float] = field(default_factory=dict)
    wall_seconds: float | None = None
    peak_host_bytes: int | None = None
    baseline_host_bytes: int | None = None
    peak_gpu_bytes: int | None = None
    peak_gpu_reserved_bytes: int | None = None
    artifacts: dict[str, str] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    log: str = ""
    requires: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Canonical JSON; NaN is not JSON and is refused."""
        return json.dumps(asdict(self), sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Row":
        """Inverse of `to_json`; unknown or missing fields are an error."""
        document = json.loads(text)
        if not isinstance(document, dict):
            raise TypeError("a row is a JSON object")
        unknown = set(document) - {f.name for f in fields(cls)}
        if unknown:
            raise ValueError(f"unknown fields {sorted(unknown)}")
        document["requires"] = tuple(document.get("requires", ()))
        return cls(**document)
