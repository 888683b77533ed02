"""Every `ppgsl-bench …` command in README, CONTRIBUTING and docs is executed, in the order of the page.

Each page has a folder of its own, with the few files that pages take for granted (`TAKEN_FOR_GRANTED`). What would take
too long, or needs what a test cannot have, is on an explicit list with the reason; of those the options are parsed, and
a `run` is planned with `--dry-run`.
"""

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import pytest
import typer.main
from forgetting import forgetting_plugin_files
from typer.testing import CliRunner

from ppgsl_bench.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAM = "ppgsl-bench"

NOT_EXECUTED = {
    r"run .*--suite (paper|scale)": "takes hours",
    r"run .*--dataset (cora|citeseer|polblogs|lastfm-asia|pubmed|deezer-europe|ogb:)": "trains on real graphs",
    r"run .*--defense '?all": "takes minutes",
    r"run .*--attack (paper|all)": "takes minutes",
    r"run (?!.*--attack)": "runs every attack, which takes minutes",
    r"run .*(--scheduler|--shard)": "needs other machines",
    r"protect (?!.*--defense)": "trains ppgsl, the default, which takes minutes",
    r"protect .*--defense '?(auto|ppgsl|ppne|.*,)": "trains, or tries many defenses, which takes minutes",
    r"(protect|audit) (?!.*--attack)": "runs nine attacks of every kind, which takes minutes",
    r"compare ": "takes minutes",
    r"reproduce ": "takes minutes to hours",
    r"perf ": "takes minutes, and measures this machine",
    r"datasets fetch": "downloads",
    r"submit-check": "the board knows no split of the small graph that the results are of",
    r"(leaderboard|plot) .*--dataset": "names a graph that the results at hand are not of",
    r"show ": "names a row that differs from machine to machine",
    r"merge ": "needs results of other machines",
}
# Without rows in the package there is nothing to show.
NEEDS_SHIPPED_ROWS = r"(leaderboard|plot)( (?!.*--results)|$)|.*--with-shipped"

# Programs whose lines are not this test's business.
OTHER_PROGRAMS = {"python", "pip", "tox", "git", "export", "docker", "dask", "ssh", "rsync", "make", "curl", "open"}
# Programs by which pages make or show small files.
FILE_PROGRAMS = {"awk", "cat", "cp", "echo", "head", "ls", "mkdir", "printf", "tail"}

_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)")

TAKEN_FOR_GRANTED = {
    "my-graph.csv": "".join(f"{u},{v}\n" for u in range(20) for v in range(u + 1, 20) if (u * v) % 3 == 1),
    "my_defense.py": '''"""A user's own."""

from ppgsl_bench.defenses import Defense, Field, register


@register("my-defense", version=1)
class MyDefense(Defense):
    """Drop links."""

    rate: float = Field(0.5, ge=0, le=1, help="share")
    sweep = ({"rate": 0.1}, {"rate": 0.5})

    def publish(self, graph, sensitive, rng):
        return graph.with_edges(graph.edges[rng.random(graph.num_edges) >= self.rate])
''',
}


@dataclass(frozen=True)
class Line:
    """A logical line of a block, heredoc included."""

    text: str
    number: int

    @property
    def commands(self):
        """The words of each command that is joined to others by &&, without comments."""
        text = self.text.partition("\n")[0] if _HEREDOC.search(self.text) else self.text
        lexer = shlex.shlex(text, posix=True, punctuation_chars="&")
        lexer.whitespace_split = True
        commands = [[]]
        for word in lexer:
            if word == "&&":
                commands.append([])
            else:
                commands[-1].append(word)
        return [_before_redirection(words) for words in commands if words]


def _has_open_quote(text):
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return True
    return False


def _before_redirection(words):
    ends = [i for i, word in enumerate(words) if word in {">", ">>", "|"}]
    return words[: ends[0]] if ends else words


def lines_of(page):
    """The logical lines of the sh blocks of a page."""
    found, inside, pending, end = [], False, None, None
    for number, raw in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if raw.strip().startswith("```"):
            inside = not inside and raw.strip() == "```sh"
            continue
        if not inside:
            continue
        if pending is not None:
            continued = not end and pending.text.endswith("\\")
            text = pending.text[:-1] + " " + raw.strip() if continued else f"{pending.text}\n{raw}"
            pending = Line(text, pending.number)
        else:
            pending = Line(raw, number)
            heredoc = _HEREDOC.search(raw)
            end = heredoc[1] if heredoc else None
        if raw.strip() != end if end else pending.text.endswith("\\") or _has_open_quote(pending.text):
            continue
        if pending.text.strip() and not pending.text.lstrip().startswith("#"):
            found.append(pending)
        pending, end = None, None
    return found


PAGES_WITH_COMMANDS = [page for page in PAGES if any(PROGRAM in line.text for line in lines_of(page))]


@pytest.fixture(scope="module")
def some_results(tmp_path_factory):
    """What the runs of a page that are not executed would have left behind, on a small scale."""
    folder = tmp_path_factory.mktemp("shared")
    plan = ["--dataset", "karate", "--defense", "none,random", "--attack", "cn,feature-cos", "--seeds", "2"]
    tasks = ["--utility", "link-prediction[epochs=5],structure", "--results", str(folder / "results")]
    result = CliRunner().invoke(app, ["run", *plan, *tasks], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return folder / "results"


@pytest.fixture
def prepared(tmp_path, monkeypatch, some_results, datasets_dir):
    """A folder as pages presume it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PPGSL_BENCH_DATA", str(datasets_dir))
    for name, text in TAKEN_FOR_GRANTED.items():
        (tmp_path / name).write_text(text)
    shutil.copytree(some_results, tmp_path / "results")
    # CONTRIBUTING speaks to somebody inside a checkout.
    (tmp_path / "defenses").mkdir()
    (tmp_path / "attacks").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "ppgsl-bench"\n')
    # A plugin file that another page has loaded would not be loaded again, nor register anything.
    with forgetting_plugin_files():
        yield tmp_path


@pytest.mark.dataset
@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_the_page_works(page, prepared):
    for line in lines_of(page):
        where = f"{page.relative_to(ROOT)}, line {line.number}: {line.text}"
        for words in line.commands:
            if words[0] == PROGRAM:
                execute(words[1:], where)
            elif words[0] == "cd":
                os.chdir(words[1])
            elif words[0] in FILE_PROGRAMS:
                subprocess.run(["bash", "-c", line.text], check=True, capture_output=True)
            else:
                assert words[0] in OTHER_PROGRAMS or "=" in words[0], f"an unknown program: {where}"


def execute(arguments, where):
    text = " ".join(arguments)
    listed = any(re.match(pattern, text) for pattern in NOT_EXECUTED)
    if listed or (re.match(NEEDS_SHIPPED_ROWS, text) and not shipped_rows()):
        if arguments[0] != "run":
            parse(arguments, where)
            return
        arguments = [*arguments, *(["--dry-run"] if "--dry-run" not in arguments else [])]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    problem = f"{result.exception!r}\n" if result.exception else ""
    assert result.exit_code == 0, f"{where}\n{problem}{result.output}"


def parse(arguments, where):
    """Read the options as the command line would, and run nothing."""
    command = typer.main.get_command(app)
    for depth, word in enumerate(arguments):
        inner = getattr(command, "commands", None)
        if inner is None:
            break
        assert word in inner, where
        command, rest = inner[word], arguments[depth + 1 :]
    command.make_context(arguments[0], list(rest))


def shipped_rows():
    folder = resources.files("ppgsl_bench.leaderboard") / "results"
    return folder.is_dir() and any(file.name.endswith(".jsonl.gz") for file in folder.iterdir())


def test_the_readme_and_contributing_show_commands():
    names = {page.name for page in PAGES_WITH_COMMANDS}
    assert {"README.md", "CONTRIBUTING.md", "adding-a-method.md", "leaderboard.md"} <= names


def test_lines_are_read_as_a_shell_would(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\ncat > a.csv <<'END'\na,b's\nEND\nppgsl-bench run \\\n  --defense 'a[x=1],b'  # why\n# a remark\n```\n"
        "```python\nppgsl-bench never\n```\n```sh\npython -m pip install . && ppgsl-bench list attacks > a.txt\n"
        "awk 'BEGIN {\nprint 1 }' > b.txt\n```\n"
    )
    first, second, third, fourth = lines_of(page)
    assert first.text == "cat > a.csv <<'END'\na,b's\nEND"
    assert first.commands[0][0] == "cat"
    assert second.commands == [["ppgsl-bench", "run", "--defense", "a[x=1],b"]]
    assert third.commands[1] == ["ppgsl-bench", "list", "attacks"]
    assert fourth.commands == [["awk", "BEGIN {\nprint 1 }"]]


def test_a_wrong_option_on_a_page_is_noticed():
    with pytest.raises(Exception, match="No such option"):
        parse(["compare", "random", "--quik"], "a page")
    with pytest.raises(AssertionError):
        execute(["list", "defences"], "a page")
