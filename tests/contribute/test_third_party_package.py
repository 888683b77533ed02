"""The example package is installed as a stranger's would be, and takes part."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
COMMAND = str(Path(sys.executable).parent / "ppgsl-bench")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Environment variables with which Python finds the installed example."""
    target = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source") / "package"
    # Building leaves files behind: in a copy, not in the repository.
    shutil.copytree(EXAMPLES / "ppgsl-bench-hub-shield", source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    result = subprocess.run([*pip, "--target", str(target), str(source)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return {**os.environ, "PYTHONPATH": str(target)}


def ppgsl_bench(*arguments, cwd, environment):
    command = [COMMAND, *arguments]
    result = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_it_is_listed_run_and_checked(tmp_path, environment):
    listed = ppgsl_bench("list", "defenses", cwd=tmp_path, environment=environment)
    assert "from the package ppgsl-bench-hub-shield" in listed
    plan = ["--attack", "cn", "--utility", "structure", "--dataset", "karate"]
    table = ppgsl_bench("run", "--defense", "hub-shield[rate=0.4],none", *plan, cwd=tmp_path, environment=environment)
    assert "hub-shield[rate=0.4]" in table
    (report,) = json.loads(ppgsl_bench("check", "hub-shield", "--json", cwd=tmp_path, environment=environment))
    assert report["conforms"]


def test_its_own_tests_pass(environment, tmp_path):
    tests = EXAMPLES / "ppgsl-bench-hub-shield" / "tests"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tests)]
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert result.returncode == 0, result.stdout + result.stderr
