"""A file of measurements. The one in the repository is what others are compared with; any other can take its place."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ppgsl_bench.errors import UserError

SCHEMA = 1
# What makes two machines the same for a comparison of seconds.
_HARDWARE = ("processor", "cores", "memory_bytes", "system")
_DIGITS = 4

Quality = Mapping[str, tuple[float, ...]]
"""AUC by `defense × attack`, and shares of links kept and added by defense; one value a random stream."""
SEPARATOR = " × "


@dataclass(frozen=True)
class Measurement:
    """What one benchmark cost.

    Attributes:
        ratios: times over those of the reference kernel beside them, one a round.
        seconds: median time of a call, on this machine and at that moment.
        counters: exact numbers by name, see counters.py; `resident_bytes` is exact to a few pages only.
        exponents: by name, how time and counters grow with the number of nodes.
    """

    ratios: tuple[float, ...]
    seconds: float
    counters: Mapping[str, int] = field(default_factory=dict)
    exponents: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Baseline:
    """Everything that one call of `perf measure` found.

    Attributes:
        machine: hardware, libraries and revision.
        reference: version of the reference kernel that ratios refer to.
        quick: whether growth and quality were left out.
        measurements: by benchmark.
        refusals: benchmarks that could not run, with the reason.
        quality: see `Quality`.
    """

    machine: Mapping[str, Any]
    reference: int
    quick: bool = False
    measurements: Mapping[str, Measurement] = field(default_factory=dict)
    refusals: Mapping[str, str] = field(default_factory=dict)
    quality: Quality = field(default_factory=dict)

    def same_machine(self, other: "Baseline") -> bool:
        """Whether both were measured on hardware that answers to the same description."""
        return all(self.machine.get(part) == other.machine.get(part) for part in _HARDWARE)

    def write(self, path: Path) -> None:
        """Write JSON with one line a benchmark, so that two versions can be compared by eye."""
        document = {"schema": SCHEMA, **asdict(self)}
        parts = [f"{json.dumps(name)}: {_lines(value)}" for name, value in document.items()]
        path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "Baseline":
        """Read what `write` wrote."""
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            schema = document.pop("schema")
            if schema != SCHEMA:
                raise UserError(f"{path} has schema {schema}; this version reads {SCHEMA}: measure again")
            measurements = {
                name: Measurement(**{**given, "ratios": tuple(given["ratios"])})
                for name, given in document.pop("measurements").items()
            }
            quality = {name: tuple(values) for name, values in document.pop("quality").items()}
            return cls(measurements=measurements, quality=quality, **document)
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror or error}") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UserError(f"{path} is not a file that `perf measure` wrote ({error})") from error


def read_manifest(path: Path) -> list[str]:
    """Names of the benchmarks that must not go missing, one a line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(f"cannot read the manifest {path}: {error.strerror or error}") from error
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _lines(value: Any) -> str:
    if not isinstance(value, dict) or not value:
        return json.dumps(value)
    entries = [f"  {json.dumps(name)}: {json.dumps(_rounded(entry))}" for name, entry in value.items()]
    return "{\n" + ",\n".join(entries) + "\n}"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {name: _rounded(entry) for name, entry in value.items()}
    return [_rounded(entry) for entry in value] if isinstance(value, list | tuple) else value
