"""Times that can be compared: without the wait for a processor, and as multiples of a fixed piece of work.

A shared machine moves a time in two ways. It takes the processor away for a while: that is subtracted, since the kernel
keeps count of it (/proc/thread-self/schedstat). And it makes the processor slower for a while, by heat or by
neighbours in its caches: a reference kernel is therefore timed right before and right after each sample, and what is
stored is the ratio. A ratio also carries over, roughly, to other machines.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

Work = Callable[[], object]

# Raise it whenever `Reference` does something else: ratios to different references are not compared.
REFERENCE_VERSION = 1
# A sample takes at least this long, so that the clock's own cost does not count.
_SAMPLE_SECONDS = 0.02
_MOST_CALLS = 1000
_SLOW_SECONDS = 0.1
# The reference runs for this share of a sample on either side of it, within limits.
_REFERENCE_SHARE = 0.05
_REFERENCE_CALLS = (3, 30)

_SCHEDSTAT = Path("/proc/thread-self/schedstat")


class Reference:
    """Gathers rows, sorts and takes exponentials: memory and arithmetic in a mix like that of the kernels here."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self._rows = rng.random((4096, 32), dtype=np.float32)
        self._chosen = rng.integers(4096, size=20_000)
        self._values = rng.random(30_000)

    def __call__(self) -> float:
        """The work, some milliseconds of it."""
        gathered = self._rows[self._chosen].sum(axis=1)
        return float(np.sort(self._values)[0] + np.exp(self._values).sum() + gathered.sum())


class Stopwatch:
    """Seconds that some work takes.

    Args:
        processor_only: count time on the processor alone, for work that waits for a disk.
    """

    def __init__(self, *, processor_only: bool = False) -> None:
        self._processor_only = processor_only

    def __call__(self, work: Work, calls: int = 1) -> float:
        """Time of one of so many calls, less the time in which the system let others run."""
        start = self._now()
        for _ in range(calls):
            work()
        return (self._now() - start) / calls

    def _now(self) -> float:
        if self._processor_only:
            return time.process_time()
        while True:
            before, now, after = _kept_waiting(), time.perf_counter(), _kept_waiting()
            if before == after:
                return now - before
            # Others ran between the readings, so that they do not belong together.


def interleaved_ratios(work: Work, stopwatch: Stopwatch, rounds: int, slow_rounds: int) -> tuple[list[float], float]:
    """Times of `work` over the reference's, one a round, and the median time in seconds.

    Work of which one call is longer than `_SLOW_SECONDS` is timed `slow_rounds` times only.
    """
    reference = Reference()
    reference()
    unit = min(stopwatch(reference) for _ in range(5))
    once = stopwatch(work)
    calls = min(math.ceil(_SAMPLE_SECONDS / max(once, 1e-9)), _MOST_CALLS)
    fewest, most = _REFERENCE_CALLS
    beside = min(max(round(_REFERENCE_SHARE * once * calls / unit), fewest), most)
    ratios, seconds = [], []
    for _ in range(rounds if once < _SLOW_SECONDS else slow_rounds):
        before = stopwatch(reference, beside)
        seconds.append(stopwatch(work, calls))
        after = stopwatch(reference, beside)
        ratios.append(2 * seconds[-1] / (before + after))
    return ratios, float(np.median(seconds))


def _kept_waiting() -> float:
    """Seconds that this thread was ready to run and did not, so far; 0 where the system does not tell."""
    try:
        return int(_SCHEDSTAT.read_text(encoding="ascii").split()[1]) / 1e9
    except OSError:
        return 0.0
