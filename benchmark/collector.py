"""Python's garbage collector, which walks all objects that there are whenever many new ones have been made."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """For work on tens of thousands of rows that leaves no garbage: the collector's part grows faster than theirs."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
