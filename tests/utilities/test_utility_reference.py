"""Utility of undefended Cora, mean over five splits; the bounds were set before the tasks were written."""

import numpy as np
import pytest

from ppgsl_bench.datasets import Sources
from ppgsl_bench.datasets import registry as datasets
from ppgsl_bench.seeds import generator
from ppgsl_bench.split import make_split
from ppgsl_bench.utilities import registry


@pytest.mark.dataset
@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "metric", "least", "floor", "most"),
    [
        ("link-prediction", "auc", 0.88, "floor_auc", 0.83),
        ("node-classification", "micro_f1", 0.84, "floor_micro_f1", 0.76),
    ],
)
def test_undefended_cora(task, metric, least, floor, most, datasets_dir, tmp_path):
    graph = datasets.get("cora")().load(Sources((datasets_dir,), tmp_path, offline=True))
    results = []
    for seed in range(5):
        split = make_split(graph, seed)
        results.append(registry.get(task)().evaluate(split.visible, split, generator("reference", task, seed)))
    assert np.mean([r[metric] for r in results]) >= least
    assert np.mean([r[floor] for r in results]) <= most
