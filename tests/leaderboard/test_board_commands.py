"""The commands of the board, on an application of their own."""

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace

import pytest
import typer
from leaderboard_rows import board, failed, publish_row, split_row
from typer.testing import CliRunner

from ppgsl_bench.errors import UserError
from ppgsl_bench.leaderboard.commands import add_commands
from ppgsl_bench.leaderboard.measurements import Measurements
from ppgsl_bench.leaderboard.packed import pack
from ppgsl_bench.leaderboard.ranking import rank
from ppgsl_bench.leaderboard.tables import ranking_text
from ppgsl_bench.store import Results

ROWS = board()


@pytest.fixture
def run():
    app = typer.Typer()
    add_commands(app)

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(app, [str(a) for a in arguments])
        if isinstance(result.exception, UserError):
            raise result.exception
        assert result.exit_code == code, (result.output, result.exception)
        return result.output

    return invoke


@pytest.fixture
def packed(tmp_path):
    pack(ROWS, tmp_path / "rows.jsonl.gz")
    return tmp_path / "rows.jsonl.gz"


def test_the_table_names_view_seeds_and_every_competitor(run, packed):
    output = run("leaderboard", "--results", packed)
    assert "Ranked by attack at 95 % utility; attack: worst; utility: link-prediction; one, two; 3 seeds" in output
    for name in ("soft", "hard", "none", "features only", "100 %"):
        assert name in output
    assert "charged" not in output


def test_charged_cells_are_listed_below_the_table(run, tmp_path):
    index = next(i for i, r in enumerate(ROWS) if r.defense == "soft" and r.kind == "attack")
    pack(failed(ROWS, index), tmp_path / "r.jsonl.gz")
    output = run("leaderboard", "--results", tmp_path / "r.jsonl.gz")
    assert "charged as undefended:\n  soft: 1 timeout" in output
    assert " 98 %" in output


def test_all_formats_say_the_same(run, packed):
    arguments = ("leaderboard", "--results", packed, "--dataset", "one", "--attack", "gae-cos", "--sort", "hypervolume")
    records = json.loads(run(*arguments, "--format", "json"))
    assert records == json.loads(run(*arguments, "--json"))
    expected = rank(Measurements(ROWS), ["one"], "gae-cos", summary="hypervolume")
    assert [r["defense"] for r in records] == [s.label for s in expected.standings]
    for document, standing in zip(records, expected.standings, strict=True):
        assert document["hypervolume"] == pytest.approx(standing.estimates["hypervolume"].value, abs=1e-4)
        assert document["rank"] == (None if standing.is_reference else standing.place["hypervolume"].rank)
    lines = list(csv.DictReader(io.StringIO(run(*arguments, "--format", "csv"))))
    assert [float(line["strength"]) for line in lines] == [r["strength"] for r in records]
    markdown = run(*arguments, "--format", "markdown").splitlines()
    assert len(markdown) == 2 + len(records)
    assert all(line.startswith("|") and line.endswith("|") for line in markdown)
    latex = run(*arguments, "--format", "latex")
    assert latex.count(r"\\") == 1 + len(records)
    assert r"95 \% utility" in latex


def test_orders_that_are_no_ranking_keep_the_ranks_of_the_default(run, packed):
    records = json.loads(run("leaderboard", "--results", packed, "--sort", "defense", "--json"))
    assert [r["defense"] for r in records] == ["hard", "soft", "none", "features only"]
    by_strength = json.loads(run("leaderboard", "--results", packed, "--json"))
    assert {r["defense"]: r["rank"] for r in records} == {r["defense"]: r["rank"] for r in by_strength}


def test_with_one_seed_the_table_says_that_there_are_no_intervals(run, tmp_path):
    pack(board(seeds=1), tmp_path / "r.jsonl.gz")
    output = run("leaderboard", "--results", tmp_path / "r.jsonl.gz")
    assert "no intervals" in output
    assert "[" not in output


def test_hostile_names_cannot_break_out_of_markdown_or_latex():
    evil = "a|b`*<x>_\\\n{c}&%$#"
    rows = [
        replace(r, defense=evil, defense_label=f"{evil}[a=1]") if r.defense == "soft" else r for r in board(seeds=2)
    ]
    ranking = rank(Measurements(rows))
    markdown = ranking_text(ranking, "markdown").splitlines()
    assert len({line.replace("\\\\", "").replace("\\|", "").count("|") for line in markdown}) == 1
    assert r"\<x\>" in "\n".join(markdown)
    latex = ranking_text(ranking, "latex")
    assert r"\{c\}\&\%\$\#" in latex
    assert latex.count("\n") == 4 + len(ranking.standings) + 2


def test_results_folders_are_read_too(run, tmp_path, packed):
    with Results(tmp_path / "results").writing() as store:
        for row in ROWS:
            store.put(row)
    folder = json.loads(run("leaderboard", "--results", tmp_path / "results", "--json"))
    file = json.loads(run("leaderboard", "--results", packed, "--json"))
    assert [r["defense"] for r in folder] == [r["defense"] for r in file]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["leaderboard", "--sort", "beauty"], "--sort 'beauty': choose from strength"),
        (["leaderboard", "--format", "docx"], "--format 'docx': choose from table"),
        (["leaderboard", "--dataset", "nowhere"], "no results for the dataset 'nowhere'"),
        (["leaderboard", "--attack", "gae"], "no results for the attack 'gae'"),
        (["leaderboard", "--utility", "joy"], "no results for the utility task 'joy'"),
        (["plot", "pie", "-o", "x.pdf"], "`plot pie`: choose from tradeoff, heatmap, scaling"),
        (["plot", "tradeoff", "-o", "x.docx"], "cannot draw to '.docx'"),
    ],
)
def test_wrong_options_say_what_is_right(run, packed, arguments, message):
    with pytest.raises(UserError) as raised:
        run(*arguments, "--results", packed)
    assert message in str(raised.value)


def test_without_sizes_there_is_nothing_to_scale_against(run, tmp_path):
    pack([r for r in ROWS if r.kind != "split"], tmp_path / "r.jsonl.gz")
    with pytest.raises(UserError, match="run `ppgsl-bench run --suite scale`"):
        run("plot", "scaling", "-o", "x.pdf", "--results", tmp_path / "r.jsonl.gz")


def test_figures_are_drawn_in_every_format(run, tmp_path):
    rows = [*ROWS, *(split_row(f"er[n={n}]", 0, nodes=n) for n in (1000, 10000))]
    rows += [publish_row(f"er[n={n}]", 0, d) for n in (1000, 10000) for d in ("soft", "hard")]
    rows = [replace(r, defense_label=r.defense_label.replace("soft", "$x^")) for r in rows]
    pack(rows, tmp_path / "r.jsonl.gz")
    beginnings = {"pdf": b"%PDF", "png": b"\x89PNG", "svg": b"<?xml"}
    for what in ("tradeoff", "heatmap", "scaling"):
        for suffix, beginning in beginnings.items():
            path = tmp_path / f"{what}.{suffix}"
            run("plot", what, "-o", path, "--results", tmp_path / "r.jsonl.gz")
            assert path.read_bytes().startswith(beginning)
        first = (tmp_path / f"{what}.svg").read_bytes()
        run("plot", what, "-o", tmp_path / "again.svg", "--results", tmp_path / "r.jsonl.gz")
        assert (tmp_path / "again.svg").read_bytes() == first


def test_a_page_is_written(run, packed, tmp_path):
    output = run("leaderboard", "--results", packed, "--html", tmp_path / "board.html")
    assert "needs no network" in output
    assert (tmp_path / "board.html").stat().st_size < 3_000_000
    with pytest.raises(UserError, match="cannot write"):
        run("leaderboard", "--results", packed, "--html", tmp_path / "nowhere" / "board.html")
    pack([r for r in ROWS if r.defense != "none"], tmp_path / "r.jsonl.gz")
    with pytest.raises(UserError, match="on the undefended graph"):
        run("leaderboard", "--results", tmp_path / "r.jsonl.gz", "--html", tmp_path / "board.html")


def test_a_submission_is_checked_and_packed(run, packed, tmp_path):
    theirs = [r for r in ROWS if r.defense in {"", "none", "soft"}]
    pack(theirs, tmp_path / "theirs.jsonl.gz")
    output = run("submit-check", tmp_path / "theirs.jsonl.gz", "--results", packed)
    assert "all rows can be taken" in output
    with pytest.raises(UserError, match="needs --source"):
        run("submit-check", tmp_path / "theirs.jsonl.gz", "--results", packed, "-o", tmp_path / "out.jsonl.gz")
    run(
        *("submit-check", tmp_path / "theirs.jsonl.gz", "--results", packed),
        *("-o", tmp_path / "out.jsonl.gz", "--source", "A. Author"),
    )
    merged = run("leaderboard", "--results", packed, "--results", tmp_path / "out.jsonl.gz")
    assert "soft (A. Author)" in merged


def test_a_refused_submission_ends_with_code_one_and_reasons(run, packed, tmp_path):
    tampered = [replace(r, metrics={**r.metrics, "auc": 0.5}) if r.evaluator == "cn" else r for r in ROWS]
    pack(tampered, tmp_path / "t.jsonl.gz")
    output = run("submit-check", tmp_path / "t.jsonl.gz", "--results", packed, code=1)
    assert "auc 0.5 gives 0.5" in " ".join(output.split())
    report = json.loads(run("submit-check", tmp_path / "t.jsonl.gz", "--results", packed, "--json", code=1))
    assert report["refusals"]


def test_the_command_module_is_light():
    program = (
        "import sys\nimport ppgsl_bench.leaderboard.commands\n"
        "print(sorted({'numpy', 'pandas', 'matplotlib', 'scipy', 'pydantic'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
