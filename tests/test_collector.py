"""The collector rests while rows are worked on, and only then."""

import gc
from contextlib import nullcontext

import pytest

from ppgsl_bench.collector import collector_paused


@pytest.fixture(autouse=True)
def _as_before():
    yield
    gc.enable()


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_the_collector_rests_and_is_then_as_it_was(before, fails):
    (gc.enable if before else gc.disable)()

    @collector_paused()
    def work():
        assert not gc.isenabled()
        if fails:
            raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no") if fails else nullcontext():
            work()
        assert gc.isenabled() == before
