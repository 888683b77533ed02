from pathlib import Path

import pytest

from ppgsl_bench.datasets import Sources
from ppgsl_bench.execute import Settings, execute
from ppgsl_bench.plan import choose, plan
from ppgsl_bench.processes import Limits
from ppgsl_bench.registry import load_plugin_file
from ppgsl_bench.store import Results

MISBEHAVING = Path(__file__).parents[1] / "plugins" / "misbehaving.py"


@pytest.fixture
def run_cells(tmp_path):
    """Run cells in a results folder of the test's own; returns all rows."""
    load_plugin_file(MISBEHAVING)

    def run(
        *,
        defenses=("none",),
        attacks=("cn",),
        utilities=(),
        datasets=("karate",),
        seeds=(0,),
        folder=tmp_path / "results",
        seconds=120.0,
        memory=None,
        observer=None,
        jobs=2,
    ):
        chosen = choose(datasets=datasets, defenses=defenses, attacks=attacks, utilities=utilities, seeds=seeds)
        settings = Settings(jobs=jobs, limits=Limits(seconds, memory), plugin_files=(MISBEHAVING,))
        with Results(folder).writing() as results:
            execute(plan(chosen, Sources(offline=True)), results, settings, observer)
            return results.rows()

    return run


@pytest.fixture
def row_of():
    def find(rows, evaluator="", defense="none", kind=None):
        kind = kind or ("attack" if evaluator else "publish")
        (row,) = (r for r in rows if r.kind == kind and r.evaluator == evaluator and r.defense == defense)
        return row

    return find


class Recorder:
    """An observer that remembers what ran."""

    def __init__(self):
        self.ran = []
        self.done = None

    def planned(self, remaining, done):
        self.done = done

    def started(self, cell):
        self.ran.append(cell)

    def finished(self, cell, row):
        pass


@pytest.fixture
def recorder():
    return Recorder
