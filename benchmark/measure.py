"""Time and memory of one call, and of nothing else."""

import ctypes
import gc
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")
# Writing this to clear_refs resets VmHWM, the peak of the resident set (proc(5)).
_RESET_PEAK = "5"


@dataclass(frozen=True)
class Measurement:
    """What a call cost.

    Attributes:
        wall_seconds: elapsed time.
        peak_host_bytes: peak resident memory above the baseline.
        baseline_host_bytes: resident memory just before the call (libraries, input).
        peak_gpu_bytes: peak memory allocated by torch on the GPU; None without one.
        peak_gpu_reserved_bytes: peak memory that torch's allocator held for it.
    """

    wall_seconds: float
    peak_host_bytes: int
    baseline_host_bytes: int
    peak_gpu_bytes: int | None
    peak_gpu_reserved_bytes: int | None


def measured(work: Callable[[], T]) -> tuple[T, Measurement]:
    """Run `work` and measure it."""
    gc.collect()
    _return_free_memory()
    baseline = _reset_peak()
    _reset_gpu_peak()
    start = time.perf_counter()
    result = work()
    _wait_for_gpu()
    seconds = time.perf_counter() - start
    return result, Measurement(seconds, max(_peak() - baseline, 0), baseline, *_gpu_peaks())


def _return_free_memory() -> None:
    # Memory that malloc kept from loading the input would hide as much of the plugin's own allocation.
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def _reset_peak() -> int:
    try:
        _CLEAR_REFS.write_text(_RESET_PEAK)
    except OSError:
        return _peak()  # another system, or a kernel that forbids it: growth of the peak is all that can be told
    return _status_bytes("VmRSS")


def _peak() -> int:
    if _STATUS.exists():
        return _status_bytes("VmHWM")
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _status_bytes(name: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{_STATUS} has no {name}")


def _gpu_in_use() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized()


def _reset_gpu_peak() -> None:
    if _gpu_in_use():
        sys.modules["torch"].cuda.reset_peak_memory_stats()


def _wait_for_gpu() -> None:
    if _gpu_in_use():
        sys.modules["torch"].cuda.synchronize()


def _gpu_peaks() -> tuple[int | None, int | None]:
    if not _gpu_in_use():
        return None, None
    cuda = sys.modules["torch"].cuda
    return int(cuda.max_memory_allocated()), int(cuda.max_memory_reserved())
