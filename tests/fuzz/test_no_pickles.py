"""No file that a user can hand in is unpickled or run; the whole source is searched, as syntax."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("attacks", "benchmark", "defenses", "leaderboard")

# Functions that run what they read, by module.
DANGEROUS = {
    **{module: {"load", "loads", "Unpickler"} for module in ("pickle", "_pickle", "dill", "cloudpickle")},
    "marshal": {"load", "loads"},
    "shelve": {"open"},
    "joblib": {"load"},
    "torch": {"load"},
    "pandas": {"read_pickle"},
    "pd": {"read_pickle"},
    "yaml": {"load", "unsafe_load", "full_load"},
    "builtins": {"eval", "exec"},
}
ALLOWED = {
    # Raw files whose checksums are pinned, by an unpickler that knows arrays and lists only.
    ("benchmark/datasets/planetoid.py", "pickle.Unpickler"),
    # A copy of an object that was pickled in the line itself.
    ("benchmark/contribute/declaration_checks.py", "pickle.loads"),
}


def dangers(source):
    """Names of dangerous functions that a source mentions, and calls of numpy.load that do not refuse pickles."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in DANGEROUS.get(node.value.id, ()):
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names} & DANGEROUS.get(node.module or "", set())
            yield from (f"{node.module}.{name}" for name in sorted(names))
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in DANGEROUS["builtins"]:
                yield node.func.id
            called = ast.unparse(node.func)
            refuses = any(
                k.arg == "allow_pickle" and isinstance(k.value, ast.Constant) and k.value.value is False
                for k in node.keywords
            )
            if called in {"np.load", "numpy.load"} and not refuses:
                yield f"{called} without allow_pickle=False"


def test_the_source_unpickles_nothing():
    found = {
        (path.relative_to(ROOT).as_posix(), danger)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        for danger in dangers(path.read_text(encoding="utf-8"))
    }
    assert found <= ALLOWED


@pytest.mark.parametrize(
    "source",
    [
        "import pickle\npickle.loads(data)",
        "from pickle import load",
        "torch.load(path)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=flag)",
        "eval(text)",
        "pd.read_pickle(path)",
    ],
)
def test_the_search_finds_what_it_looks_for(source):
    assert list(dangers(source))


def test_the_search_is_content_with_what_is_safe():
    assert list(dangers("np.load(path, allow_pickle=False)\nmodel.eval()\njson.loads(text)")) == []
