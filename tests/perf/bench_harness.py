"""What the harness itself costs: cells of an attack that does nothing, rows, listing."""

import subprocess
import sys
from pathlib import Path

import pytest

from ppgsl_bench.datasets import Sources
from ppgsl_bench.execute import Settings, execute
from ppgsl_bench.plan import choose, plan
from ppgsl_bench.processes import Limits
from ppgsl_bench.registry import load_plugin_file
from ppgsl_bench.rows import Row
from ppgsl_bench.store import Results

NOOP = Path(__file__).parents[1] / "plugins" / "noop.py"
CELLS = 1000


def test_overhead_of_a_cell(benchmark, tmp_path):
    """1,000 cells on karate, one after the other; the promise is at most 0.15 s a cell."""
    load_plugin_file(NOOP)
    attacks = [f"noop[index={i}]" for i in range(CELLS)]
    choice = choose(datasets=["karate"], defenses=["none"], attacks=attacks, utilities=[], seeds=[0])
    cells = plan(choice, Sources(offline=True))
    settings = Settings(jobs=1, limits=Limits(60, 2**32), plugin_files=(NOOP,))
    with Results(tmp_path).writing() as results:
        execute(cells[:2], results, settings)
        benchmark.pedantic(execute, args=(cells, results, settings), rounds=1)
    benchmark.extra_info["seconds_a_cell"] = benchmark.stats.stats.mean / CELLS


def test_storing_a_row(benchmark, tmp_path):
    keys = iter(range(10**9))
    metrics = {f"metric{i}": 0.5 for i in range(30)}
    with Results(tmp_path).writing() as results:
        benchmark(lambda: results.put(Row(f"{next(keys)}", "attack", "karate", "{}", "karate", 0, metrics=metrics)))


@pytest.mark.parametrize("kind", ["defenses", "attacks"])
def test_listing(benchmark, kind):
    """The promise is under 0.5 s, start of Python included."""
    command = [str(Path(sys.executable).parent / "ppgsl-bench"), "list", kind]
    benchmark.pedantic(subprocess.run, args=(command,), kwargs={"check": True, "capture_output": True}, rounds=5)
