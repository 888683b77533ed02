"""HubShield keeps the rules of the benchmark, and spares the links of unpopular nodes."""

import numpy as np
from ppgsl_bench_hub_shield import HubShield

from ppgsl_bench.contribute.checking import check_plugin
from ppgsl_bench.graph import Graph


def test_it_keeps_the_rules():
    report = check_plugin(HubShield)
    assert report.conforms, str(report)


def test_links_of_hubs_are_dropped_first():
    star, path = [(0, v) for v in range(1, 60)], [(v, v + 1) for v in range(60, 119)]
    graph = Graph.from_pairs(120, star + path)
    nothing = np.empty((0, 2), dtype=np.int64)
    published = HubShield(rate=0.2).publish(graph, nothing, np.random.default_rng(0))
    kept = published.edges[:, 0] == 0
    assert kept.sum() < (~kept).sum()
