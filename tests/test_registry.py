import importlib
import json
import subprocess
import sys

import pytest

from ppgsl_bench import attacks, datasets, defenses, utilities
from ppgsl_bench.defenses import Defense
from ppgsl_bench.errors import UnknownNameError, UserError
from ppgsl_bench.registry import Registry, load_plugin_file

KINDS = [attacks, datasets, defenses, utilities]


@pytest.mark.parametrize("package", KINDS, ids=lambda p: p.__name__.rpartition(".")[2])
def test_reading_the_syntax_finds_exactly_what_importing_registers(package):
    listed = Registry(package.registry.kind, package.__name__).names()
    built_in = [name for name in listed if package.registry.entry(name).source.startswith("ppgsl_bench.")]
    assert built_in
    for name in built_in:
        cls = package.registry.get(name)
        assert cls.name == name
        assert cls.version >= 1
        assert cls.summary() == package.registry.entry(name).summary
        assert 0 < len(cls.summary()) <= 100
        assert importlib.import_module(package.registry.entry(name).source)


@pytest.mark.parametrize("package", KINDS, ids=lambda p: p.__name__.rpartition(".")[2])
def test_every_parameter_is_documented(package):
    for name in package.registry.names():
        for parameter in package.registry.get(name).parameters():
            assert parameter.help, f"{name}: {parameter.name} has no help text"


@pytest.mark.parametrize("kind", ["defenses", "attacks", "utilities", "datasets", "suites"])
def test_listing_imports_no_heavy_library(kind):
    code = (
        f"import sys; sys.argv = ['ppgsl-bench', 'list', '{kind}', '--json']\n"
        "from ppgsl_bench.cli import app\n"
        "app(standalone_mode=False)\n"
        "print({m for m in ('torch', 'numpy', 'scipy', 'numba', 'pandas') if m in sys.modules} or 'light')"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.rstrip().endswith("light")
    assert len(json.loads(output[: output.rindex("]") + 1])) >= 3


def test_a_near_miss_is_suggested():
    with pytest.raises(UnknownNameError, match=r"no defense 'edgerandd'; did you mean 'edgerand'"):
        defenses.registry.get("edgerandd")
    with pytest.raises(UnknownNameError, match=r"known: .*edgerand"):
        defenses.registry.get("xyzzy")


def test_a_name_is_given_once():
    registry: Registry[Defense] = Registry("defense", "ppgsl_bench.defenses")

    class Mine(Defense):
        """Mine."""

    with pytest.raises(UserError, match=r"'none' of .* is taken already, by ppgsl_bench.defenses.none"):
        registry.register("none", version=1)(Mine)
    registry.register("mine", version=1)(Mine)

    class Other(Defense):
        """Other."""

    with pytest.raises(UserError, match="taken already"):
        registry.register("mine", version=1)(Other)


def test_tags_select():
    assert {"cn", "aa", "ra"} <= set(attacks.registry.names("paper")) < set(attacks.registry.names())


def make_package(tmp_path, monkeypatch, body, entry):
    (tmp_path / "thirdparty.py").write_text(body)
    info = tmp_path / "thirdparty-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: thirdparty\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[ppgsl_bench.defenses]\n{entry}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "thirdparty", raising=False)
    return Registry("defense", "ppgsl_bench.defenses")


THIRD_PARTY = '''
from ppgsl_bench.defenses import Defense

class Theirs(Defense):
    """Publishes nothing new."""
    version = 3
    def publish(self, graph, sensitive, rng):
        return graph
'''


def test_third_parties_join_through_entry_points(tmp_path, monkeypatch):
    registry = make_package(tmp_path, monkeypatch, THIRD_PARTY, "theirs = thirdparty:Theirs")
    assert "theirs" in registry
    assert "thirdparty" not in sys.modules
    cls = registry.get("theirs")
    assert (cls.name, cls.version) == ("theirs", 3)


def test_a_broken_third_party_breaks_only_itself(tmp_path, monkeypatch):
    registry = make_package(tmp_path, monkeypatch, "import no_such_module", "theirs = thirdparty:Theirs")
    assert {"theirs", "none"} <= set(registry.names())
    with pytest.raises(UserError, match=r"'theirs' cannot be imported .*no_such_module"):
        registry.get("theirs")


def test_an_entry_point_cannot_take_a_built_in_name(tmp_path, monkeypatch):
    registry = make_package(tmp_path, monkeypatch, THIRD_PARTY, "none = thirdparty:Theirs")
    with pytest.warns(UserWarning, match="'none' of thirdparty is ignored"):
        assert registry.entry("none").source == "ppgsl_bench.defenses.none"


def test_an_absent_extra_comes_with_the_command_that_installs_it(monkeypatch):
    registry = Registry("dataset", "ppgsl_bench.datasets")
    assert registry.entry("ogb").extra == "ogb"
    monkeypatch.setitem(sys.modules, "ogb", None)
    monkeypatch.delitem(sys.modules, "ppgsl_bench.datasets.ogb", raising=False)
    module = registry.entry("ogb").target
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=r"pip install 'ppgsl-bench\[ogb\]'"):
        registry.get("ogb")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("absent.py", None, "no such file"),
        ("broken.py", "def f(:", "importing it failed with SyntaxError"),
        ("raises.py", "1 / 0", "importing it failed with ZeroDivisionError"),
        ("text.txt", "hello", "must end in .py"),
    ],
)
def test_a_plugin_file_that_cannot_be_loaded_is_named(tmp_path, name, text, message):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=message) as error:
        load_plugin_file(path)
    assert name in str(error.value)


def test_editing_a_plugin_file_changes_its_identity(tmp_path):
    body = (
        "from ppgsl_bench.defenses import Defense, registry\n"
        "class D(Defense):\n"
        '    """Does nothing."""\n'
        '    name = "edited"\n'
        "    def publish(self, graph, sensitive, rng):\n"
        "        return graph\n"
    )
    identities = set()
    for text in (body, body + "# changed\n"):
        path = tmp_path / "edited.py"
        path.write_text(text)
        digest = load_plugin_file(path)
        identities.add(sys.modules[f"ppgsl_bench_plugin_{digest[:16]}"].D.identity())
    assert len(identities) == 2
