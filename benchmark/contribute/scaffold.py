"""The files that a new defense or attack starts from: a method that works, its test, and a page about it."""

import keyword
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from string import Template

from ppgsl_bench.contribute.verdicts import Kind
from ppgsl_bench.errors import UserError

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_FOLDERS: dict[Kind, str] = {"defense": "defenses", "attack": "attacks"}

_DEFENSE = '''"""$title: say what it does in a sentence.

Authors, "Title of the paper", venue and year.
"""

import numpy as np

from ppgsl_bench.defenses import Defense, Field, register
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs


@register("$name", version=1)
class $cls(Defense):
    """Drop each link with a given probability."""

    rate: float = Field(0.3, ge=0, le=1, help="probability that a link is dropped; larger is more private")

    # True if the method needs to know which links are sensitive; `sensitive` is empty otherwise.
    uses_sensitive = False
    # From weakest to strongest: the points of the trade-off curve.
    sweep = tuple({"rate": rate} for rate in (0.1, 0.2, 0.3, 0.5, 0.7))

    def publish(self, graph: Graph, sensitive: Pairs, rng: np.random.Generator) -> Graph:  # noqa: ARG002
        """Keep each link with probability 1 - rate."""
        keep = rng.random(graph.num_edges) >= self.rate
        weights = None if graph.weights is None else graph.weights[keep]
        return graph.with_edges(graph.edges[keep], weights=weights)
'''

_ATTACK = '''"""$title: say what it looks at in a sentence.

Authors, "Title of the paper", venue and year.
"""

import numpy as np

from ppgsl_bench.attacks import Attack, Field, Scores, register
from ppgsl_bench.graph import Graph
from ppgsl_bench.neighbourhoods import common_neighbour_scores
from ppgsl_bench.pairs import Pairs


@register("$name", version=1)
class $cls(Attack):
    """Count common neighbours, popular ones less."""

    exponent: float = Field(0.5, ge=0, le=2, help="how much less a neighbour of many counts; 0 counts all alike")

    def score(self, published: Graph, pairs: Pairs, rng: np.random.Generator) -> Scores:  # noqa: ARG002
        """Σ over common neighbours z of d_z^-exponent."""
        weight = np.maximum(published.degrees, 1) ** -self.exponent
        return common_neighbour_scores(published, pairs, weight)
'''

_DEFENSE_TEST = '''"""$cls keeps the rules of the benchmark, and does what its paper says."""

import numpy as np
$imports


def test_it_keeps_the_rules():
    report = check_plugin($cls)
    assert report.conforms, str(report)


def test_a_higher_rate_keeps_fewer_links():
    ring = Graph.from_pairs(100, [(u, (u + 1) % 100) for u in range(100)])
    nothing = np.empty((0, 2), dtype=np.int64)
    kept = [$cls(rate=rate).publish(ring, nothing, np.random.default_rng(0)).num_edges for rate in (0, 0.5, 1)]
    assert kept[0] == 100 > kept[1] > kept[2] == 0
'''

_ATTACK_TEST = '''"""$cls keeps the rules of the benchmark, and does what its paper says."""

import numpy as np
$imports


def test_it_keeps_the_rules():
    report = check_plugin($cls)
    assert report.conforms, str(report)


def test_exponent_zero_counts_common_neighbours():
    square = Graph.from_pairs(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    scores = $cls(exponent=0).score(square, np.array([[0, 2], [0, 1]]), np.random.default_rng(0))
    assert scores.tolist() == [2, 0]
'''

_PAGE = """# $title

One paragraph: the idea, and whom it protects from what (an attack: what it looks at).

Authors, *Title of the paper*, venue and year.

## Method

The formula, with the names of the parameters.

## What differs from the paper

Every choice that the paper leaves open, or that is made otherwise here, and why.
"""

_README = (
    _PAGE
    + """
## Use

```sh
python -m pip install .
ppgsl-bench check $name
ppgsl-bench compare $name --quick
```
"""
)

_PYPROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "$distribution"
version = "0.1.0"
description = "$title, $article $kind for ppgsl-bench"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["ppgsl-bench"]

[project.optional-dependencies]
test = ["pytest"]

[project.entry-points."ppgsl_bench.$folder"]
$name = "$module:$cls"

[tool.setuptools]
py-modules = ["$module"]
"""


@dataclass(frozen=True)
class Scaffold:
    """Files to write, and what to do then.

    Attributes:
        files: text by path; the first is the one to fill in.
        next_steps: commands, one a line.
    """

    files: dict[Path, str]
    next_steps: list[str]

    def write(self) -> None:
        """Write them all, or none if one is there already."""
        taken = [path for path in self.files if path.exists()]
        if taken:
            raise UserError(f"{taken[0]} exists already; choose another name, or move it away")
        for path, text in self.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def scaffold(kind: str, name: str, folder: Path, *, package: bool) -> Scaffold:
    """What `ppgsl-bench new KIND NAME` writes: into the checkout around `folder`, or as a package inside it."""
    if kind not in _FOLDERS:
        raise UserError(f"cannot start a {kind!r}; choose `new defense NAME` or `new attack NAME`")
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UserError(f"the name {name!r} should be lower-case words joined by hyphens, such as thin-out")
    root = checkout_around(folder)
    if root is None or package:
        return _stand_alone(kind, name, folder)
    return _in_checkout(kind, name, root, folder)


def checkout_around(folder: Path) -> Path | None:
    """The root of the checkout of ppgsl-bench that a folder lies in."""
    for place in (folder, *folder.parents):
        project = place / "pyproject.toml"
        if project.is_file() and (place / "defenses").is_dir():
            try:
                found = tomllib.loads(project.read_text(encoding="utf-8"))
            except tomllib.TOMLDecodeError:
                continue
            if found.get("project", {}).get("name") == "ppgsl-bench":
                return place
    return None


def _in_checkout(kind: Kind, name: str, root: Path, here: Path) -> Scaffold:
    folder, file = _FOLDERS[kind], name.replace("-", "_")
    words = _words(kind, name, f"ppgsl_bench.{folder}.{file}")
    # Here the package's own imports form a block of their own; elsewhere they are a third party's.
    words["imports"] = "\n" + words["imports"]
    source, test = root / folder / f"{file}.py", root / "tests" / folder / f"test_{file}.py"
    sources = {
        source: _DEFENSE if kind == "defense" else _ATTACK,
        test: _DEFENSE_TEST if kind == "defense" else _ATTACK_TEST,
        root / "docs" / "methods" / f"{name}.md": _PAGE,
    }
    # By path: the name is known only where the checkout itself is installed (`pip install -e`).
    target = os.path.relpath(source, here)
    steps = [
        f"ppgsl-bench check {target}",
        f"ppgsl-bench compare {target} --quick",
        f"python -m pytest {os.path.relpath(test, here)}",
    ]
    return Scaffold({path: Template(text).substitute(words) for path, text in sources.items()}, steps)


def _stand_alone(kind: Kind, name: str, folder: Path) -> Scaffold:
    # A module called after the method alone could take the place of somebody else's, `random` say.
    module = f"ppgsl_bench_{name.replace('-', '_')}"
    words = _words(kind, name, module)
    place = folder / words["distribution"]
    sources = {
        place / f"{module}.py": _DEFENSE if kind == "defense" else _ATTACK,
        place / "tests" / f"test_{name.replace('-', '_')}.py": _DEFENSE_TEST if kind == "defense" else _ATTACK_TEST,
        place / "README.md": _README,
        place / "pyproject.toml": _PYPROJECT,
    }
    target = f"{words['distribution']}/{module}.py"
    steps = [
        f"ppgsl-bench check {target}",
        f"ppgsl-bench compare {target} --quick",
        f"python -m pip install -e '{words['distribution']}[test]'",
        f"python -m pytest {words['distribution']}",
    ]
    return Scaffold({path: Template(text).substitute(words) for path, text in sources.items()}, steps)


def _words(kind: Kind, name: str, module: str) -> dict[str, str]:
    cls = "".join(part.capitalize() for part in name.split("-"))
    imports = [
        f"from {module} import {cls}",
        "from ppgsl_bench.contribute.checking import check_plugin",
        "from ppgsl_bench.graph import Graph",
    ]
    return {
        "kind": kind,
        "article": "an" if kind == "attack" else "a",
        "folder": _FOLDERS[kind],
        "name": name,
        "title": name.replace("-", " ").capitalize(),
        "cls": cls,
        "imports": "\n".join(sorted(imports)),
        "module": module,
        "distribution": f"ppgsl-bench-{name}",
    }
