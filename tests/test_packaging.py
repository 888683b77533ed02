import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"benchmark": "ppgsl_bench"} | {
    name: f"ppgsl_bench.{name}" for name in ("attacks", "defenses", "leaderboard")
}


def package_folders():
    for folder, package in FOLDERS.items():
        for init in sorted((ROOT / folder).rglob("__init__.py")):
            parts = init.parent.relative_to(ROOT / folder).parts
            yield ".".join([package, *parts]), init.parent


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The names inside a wheel built from the source tree."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = out.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        return set(archive.namelist())


def test_every_package_folder_is_listed():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted(name for name, _ in package_folders())


def test_every_module_and_data_file_lands_in_a_wheel_under_one_name(wheel):
    for package, folder in package_folders():
        for path in folder.iterdir():
            if path.suffix in {".py", ".toml", ".typed"}:
                assert f"{package.replace('.', '/')}/{path.name}" in wheel
    assert {name.split("/")[0] for name in wheel if ".dist-info" not in name} == {"ppgsl_bench"}


def test_constraints_pin_every_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {
        line.partition("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
    }
    wanted = [*project["dependencies"], *(d for extra in project["optional-dependencies"].values() for d in extra)]
    for requirement in wanted:
        name = requirement.partition(">=")[0].strip().lower()
        assert name in pinned, f"{name} is not in constraints.txt"
