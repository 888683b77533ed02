"""Everything that the gate measures, under pytest-benchmark: kernels, steps of PPGSL, attacks, defenses, the store."""

from contextlib import ExitStack

import pytest

from ppgsl_bench.perf.benchmarks import benchmarks


@pytest.mark.parametrize("item", [pytest.param(item, id=item.name) for item in benchmarks()])
def test_benchmark(benchmark, item):
    if item.refusal is not None:
        pytest.skip(item.refusal)
    with ExitStack() as stack:
        work = item.work(stack)
        work()
        benchmark(work)
