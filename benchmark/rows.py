"""A row: what a cell left behind."""

import json
import math
from dataclasses import dataclass, field, fields
from types import NoneType
from typing import Any, Literal, get_args

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
        # The fields as they are: `asdict` copies each number of a row, which was most of what storing one cost.
        return json.dumps(vars(self), sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Row":
        """Inverse of `to_json`; unknown or missing fields, and values of another type, are an error."""
        document = _DECODER.decode(text)
        if not isinstance(document, dict):
            raise TypeError("a row is a JSON object")
        for name, value in document.items():
            if name not in _TYPES:
                raise ValueError(f"unknown field {name!r}")
            if type(value) not in _TYPES[name]:
                raise TypeError(f"{name} is {value!r:.40}, not {' or '.join(t.__name__ for t in _TYPES[name])}")
        document["requires"] = tuple(document.get("requires", ()))
        row = cls(**document)
        row._refuse_wrong_content()
        return row

    def _refuse_wrong_content(self) -> None:
        if self.status not in _STATUSES:
            raise ValueError(f"unknown status {self.status!r}")
        for name, value in self.metrics.items():
            if type(value) not in _NUMBER or not _is_finite(value):
                raise ValueError(f"the metric {name} is {value!r:.40}, not a finite number")
        shown = (self.provenance.get(name, "") for name in ("source", "finished", "plugin"))
        texts = (*self.artifacts.values(), *self.digests.values(), *self.requires, *shown)
        if not all(type(text) is str for text in texts):
            raise TypeError("a digest, a key or a name in the provenance is not a text")


_NUMBER = (float, int)
_TYPES: dict[str, tuple[type, ...]] = {
    "seed": (int,),
    "wall_seconds": (float, int, NoneType),
    **dict.fromkeys(("metrics", "artifacts", "digests", "provenance"), (dict,)),
    "requires": (list,),
}
_BYTES_FIELDS = ("peak_host_bytes", "baseline_host_bytes", "peak_gpu_bytes", "peak_gpu_reserved_bytes")
_TYPES |= dict.fromkeys(_BYTES_FIELDS, (int, NoneType))
_TYPES |= {f.name: (str,) for f in fields(Row) if f.name not in _TYPES}
_STATUSES = frozenset(get_args(Status))


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number that JSON knows")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
