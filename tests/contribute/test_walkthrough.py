"""The walkthrough runs from top to bottom."""

import os
import subprocess
import sys
from pathlib import Path

WALKTHROUGH = Path(__file__).parents[2] / "examples" / "walkthrough.py"


def test_it_runs(tmp_path):
    result = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", str(WALKTHROUGH)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "77 characters" in result.stdout
    assert "0 of 59 checks failed" in result.stdout
