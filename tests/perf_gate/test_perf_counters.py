"""Counters are exact: what was allocated and touched is what is counted, whatever made it."""

import sys
from types import ModuleType

import numpy as np
import pytest
import torch

from ppgsl_bench import neighbourhoods
from ppgsl_bench.neighbourhoods import common_neighbour_scores
from ppgsl_bench.perf.counters import counted

MEGABYTE = 2**20
# Python objects that the counting itself makes.
NOISE = 20_000


def block(megabytes):
    return np.ones(megabytes * MEGABYTE // 8)


def tensor(megabytes):
    return torch.ones(megabytes * MEGABYTE // 4)


@pytest.mark.parametrize("make", [block, tensor])
def test_the_peak_is_what_is_held_at_once(make):
    def one_after_the_other():
        for _ in range(3):
            make(4)

    def together():
        return [make(4) for _ in range(3)]

    assert counted(one_after_the_other)[1].peak_bytes == pytest.approx(4 * MEGABYTE, abs=NOISE)
    assert counted(together)[1].peak_bytes == pytest.approx(12 * MEGABYTE, abs=NOISE)


def test_arrays_and_tensors_share_one_peak():
    def work():
        held = [tensor(2)]
        block(5)
        held[0] = block(1)
        tensor(4)

    # 2 + 5 at one time, 1 + 4 at another.
    assert counted(work)[1].peak_bytes == pytest.approx(7 * MEGABYTE, abs=NOISE)


def test_a_view_is_no_allocation_and_an_operation_in_place_touches_again():
    given = tensor(1)

    def work():
        given.view(-1, 2)[1:].add_(1)

    count = counted(work)[1]
    assert count.peak_bytes < NOISE
    views = 2 * given.numel() + 2 * (given.numel() - 2)
    assert views >= count.touched >= given.numel() - 2


def test_tensors_that_the_backward_pass_needs_are_held():
    x = torch.ones(MEGABYTE // 4, requires_grad=True)

    def work():
        y = x.exp().exp()  # each exp keeps its result
        torch.autograd.grad(y.sum(), x)

    with_gradient = counted(work)[1].peak_bytes
    with torch.no_grad():
        without = counted(lambda: float(x.exp().exp().sum()))[1].peak_bytes
    assert without == pytest.approx(2 * MEGABYTE, abs=NOISE)
    assert with_gradient >= 3 * MEGABYTE


def test_kernels_count_what_they_are_handed(random_graph):
    graph = random_graph(200, 600)
    weight = np.ones(graph.num_nodes)
    adjacency = graph.adjacency
    common_neighbour_scores(graph, graph.edges, weight)

    def times(passes):
        def work():
            for _ in range(passes):
                common_neighbour_scores(graph, graph.edges, weight)

        return counted(work)[1].touched

    a_pass = adjacency.indptr.size + adjacency.indices.size + graph.edges.size + graph.num_nodes
    assert times(2) == 2 * a_pass
    assert times(3) == 3 * a_pass


def test_kernels_are_put_back(random_graph):
    before = neighbourhoods._summed_over_common
    with pytest.raises(ZeroDivisionError):
        counted(lambda: 1 / 0)
    assert neighbourhoods._summed_over_common is before


def test_a_kernel_may_be_compiled_while_others_are_counted():
    """One kernel calls another, and is compiled for the first time while a counter stands in the other's place."""
    module = ModuleType("ppgsl_bench_kernels_of_a_test")
    source = (
        "from numba import njit\n"
        "@njit\ndef inner(x):\n    return x * 2\n"
        "@njit\ndef outer(x):\n    return inner(x) + 1\n"
    )
    exec(source, module.__dict__)
    sys.modules[module.__name__] = module
    try:
        result, count = counted(lambda: module.outer(np.zeros(1000)))
    finally:
        del sys.modules[module.__name__]
    assert result.tolist() == [1.0] * 1000
    assert count.touched == 1000
    assert count.peak_bytes >= 8000
