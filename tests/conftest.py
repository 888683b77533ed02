import os
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import num_pairs, pairs_at, sample_distinct

# Real raw files: beside the repository, or wherever PPGSL_BENCH_DATA says.
DATASETS = Path(os.environ.get("PPGSL_BENCH_DATA") or Path(__file__).parents[2] / "shared" / "datasets")

# Whatever starts the tests in the background may have them ignore Ctrl-C, which some tests are about.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "ppgsl", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ppgsl")


@pytest.fixture(scope="session")
def datasets_dir() -> Path:
    """The folder of real datasets; the test is skipped, with this reason, where there is none."""
    if not DATASETS.is_dir():
        pytest.skip("no real datasets: ../shared/datasets is absent and PPGSL_BENCH_DATA is not set")
    return DATASETS


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20250101)


@pytest.fixture(scope="session")
def random_graph():
    """Maker of Erdős–Rényi graphs with a given number of links, with optional dense features and labels."""

    def make(num_nodes: int, num_edges: int, seed: int = 0, features: int = 0, classes: int = 0) -> Graph:
        rng = np.random.default_rng(seed)
        edges = pairs_at(sample_distinct(num_pairs(num_nodes), num_edges, rng), num_nodes)
        return Graph.from_pairs(
            num_nodes,
            edges,
            x=rng.standard_normal((num_nodes, features)).astype(np.float32) if features else None,
            y=rng.integers(classes, size=num_nodes) if classes else None,
            name="random",
        )

    return make
