"""Which code, which libraries, which machine: stored with every row."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from ppgsl_bench import PROTOCOL_VERSION, __version__

_LIBRARIES = ("torch", "torch-geometric", "numpy", "scipy", "scikit-learn", "numba", "networkx")


@cache
def _constant() -> dict[str, Any]:
    return {
        "ppgsl_bench": __version__,
        "protocol": PROTOCOL_VERSION,
        "revision": _revision(),
        "python": platform.python_version(),
        "libraries": {name: metadata.version(name) for name in _LIBRARIES},
        "system": platform.system(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
    }


def provenance(*, device: str, threads: int, jobs: int) -> dict[str, Any]:
    """Everything but the time of day is the same for all rows of one run."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {**_constant(), "device": device, "threads": threads, "jobs": jobs, "finished": now}


def _revision() -> str:
    folder = Path(__file__).parent
    if not (folder.parent / ".git").exists():
        return ""
    command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return result.stdout.strip()


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
