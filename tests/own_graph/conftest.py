import gc
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ppgsl_bench.cli import app
from ppgsl_bench.errors import UserError
from ppgsl_bench.processes import Outcome

THINNING = '''"""A defense whose knob does what it says: the fewer links, the less there is to see."""

import numpy as np

from ppgsl_bench.defenses import Defense, Field, register


@register("thinning", version=1)
class Thinning(Defense):
    """Publish a share of the links."""

    keep: float = Field(0.5, ge=0, le=1, help="share of links that stay")

    sweep = tuple({"keep": keep} for keep in (0.9, 0.7, 0.5, 0.3, 0.1, 0.0))

    def publish(self, graph, sensitive, rng):
        order = np.sort(rng.permutation(graph.num_edges)[: round(self.keep * graph.num_edges)])
        weights = None if graph.weights is None else graph.weights[order]
        return graph.with_edges(graph.edges[order], weights=weights)
'''


class InThisProcess:
    """Runs cells one after the other where the test is, which spares a process each."""

    capacity = 1

    def __init__(self, work, *_):
        self.work = work
        self.ended = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __len__(self):
        return len(self.ended)

    def start(self, token, request):
        message = dict(self.work(request))
        self.ended.append((token, Outcome(message.pop("status"), message.pop("reason", ""), message)))

    def wait(self, seconds=None):
        ended, self.ended = self.ended, []
        return ended


@pytest.fixture
def in_this_process(monkeypatch):
    import ppgsl_bench.cell  # noqa: F401 - what the fork server loads

    # Before each cell is timed, garbage is collected; the libraries' objects need not be walked each time.
    gc.freeze()
    monkeypatch.setattr("ppgsl_bench.execute.CellProcesses", InThisProcess)
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def thinning(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("plugin") / "thinning.py"
    path.write_text(THINNING)
    return path


def friend_links(people=60):
    """A ring on which everybody knows the three next ones, with names that are no numbers."""
    return [(f"person{i:02d}", f"person{(i + k) % people:02d}") for i in range(people) for k in (1, 2, 3)]


@pytest.fixture
def friends(tmp_path):
    """An edge list with string ids, and some of its links as sensitive pairs, reversed."""
    links = friend_links()
    (tmp_path / "friends.csv").write_text("source,target\n" + "".join(f"{u},{v}\n" for u, v in links))
    (tmp_path / "secret.csv").write_text("".join(f"{v},{u}\n" for u, v in links[::9]))
    return tmp_path


@pytest.fixture
def bench_command(tmp_path, monkeypatch):
    """The command line, called in this process with the test's folder as the current one."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments, code=0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            result = CliRunner().invoke(app, [str(a) for a in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return call


@pytest.fixture
def refusal(bench_command):
    """The message with which a command refuses its input."""

    def message(*arguments):
        with pytest.raises(UserError) as caught:
            bench_command(*arguments)
        return str(caught.value)

    return message
