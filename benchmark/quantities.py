"""Durations, sizes and seeds as people write them."""

import math
import re

from ppgsl_bench.errors import UserError

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
# More are a slip of the finger, and a list of them would fill the memory.
_MOST_SEEDS = 1_000_000
_LARGEST = 2.0**63
_BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def parse_duration(text: str) -> float:
    """`90s`, `10m`, `2h`, `1.5h`; a bare number is seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip())
    if not match or not 0 < float(match[1]) < math.inf:
        raise UserError(f"{text!r} is not a duration; write 90s, 10m or 2h")
    return float(match[1]) * _SECONDS[match[2] or "s"]


def parse_size(text: str) -> int:
    """`4G`, `512M`; a bare number is bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not match or not 0 < float(match[1]) < _LARGEST:
        raise UserError(f"{text!r} is not a size; write 512M or 4G")
    return int(float(match[1]) * _BYTES[match[2].upper()])


def parse_seeds(text: str) -> list[int]:
    """`5` means the seeds 0 to 4; `3,7` and `2,` mean those very seeds."""
    try:
        listed = [int(part) for part in text.split(",") if part.strip()]
        seeds = listed if "," in text else list(range(min(*listed, _MOST_SEEDS + 1)))
    except (TypeError, ValueError):
        seeds = []
    if not 0 < len(seeds) <= _MOST_SEEDS or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise UserError(f"--seeds {text!r}: give how many (5 means seeds 0 to 4), or a list of different ones (0,3,)")
    return seeds


def format_duration(seconds: float) -> str:
    """Short and readable: `3 ms`, `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 0.1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"


def format_bytes(count: float) -> str:
    """`512 B`, `3.4 MiB`, `1.2 GiB`."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
