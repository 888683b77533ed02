"""Whatever a user hands in: an answer or one clear error, nothing written beside it, and never a traceback."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parent))

from readers import READERS, check_submission
from samples import NASTY, samples

from ppgsl_bench.cli import main
from ppgsl_bench.datasets.files import read_graph_file
from ppgsl_bench.errors import UserError
from ppgsl_bench.store import Results


@st.composite
def damaged(draw, valid):
    """Valid input after some changes: bytes flipped, pieces taken out, doubled, or replaced by something nasty."""
    content = bytearray(draw(st.sampled_from(valid)))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.sampled_from([0, 1, 2, 8, 64])))
        change = draw(st.sampled_from(["nasty", "cut", "double", "bytes", "rest"]))
        piece = {
            "nasty": lambda: draw(st.sampled_from(NASTY)),
            "cut": lambda: b"",
            "double": lambda s=start, e=end: bytes(content[s:e]) * 2,
            "bytes": lambda: draw(st.binary(max_size=8)),
            "rest": lambda: b"",
        }[change]()
        content[start : len(content) if change == "rest" else end] = piece
    return bytes(content)


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=40)
@given(data=st.data())
def test_a_reader_answers_or_refuses(name, data):
    content = data.draw(st.one_of(st.binary(max_size=60), damaged(samples()[name]), damaged(samples()[name])))
    READERS[name](content)


@pytest.mark.parametrize("name", READERS)
def test_valid_input_is_read(name):
    for content in samples()[name]:
        READERS[name](content)


def test_an_archive_that_is_shorter_than_it_says_is_refused(tmp_path):
    content = bytearray(samples()["archive"][0])
    directory = content.index(b"PK\x01\x02")
    for field in (20, 24):  # the compressed and the plain size of its first member
        content[directory + field : directory + field + 4] = (10**6).to_bytes(4, "little")
    (tmp_path / "theirs.zip").write_bytes(content)
    with pytest.raises(UserError, match="not a readable archive"):
        check_submission(tmp_path / "theirs.zip")


NODES = "node [ id 0 label 0 ] node [ id 1 label 1 ]"
EDGE = "edge [ source 0 target 1 ]"


@pytest.mark.parametrize(
    "content",
    [
        f"graph [ {NODES} node [ id 1 label 2 ] {EDGE} ]",
        f"graph [ {NODES} node [ id 2 id 2 label 2 ] {EDGE} ]",
        f"graph [ {NODES} node 5 {EDGE} ]",
        f"graph [ {NODES} edge 6 ]",
        "graph 5",
        f"graph [ {NODES} {EDGE} " + "deep [ " * 2000,
    ],
    ids=["id of two nodes", "id given twice", "node without brackets", "edge without brackets", "no graph", "deep"],
)
def test_a_gml_file_that_networkx_stumbles_over_is_refused(tmp_path, content):
    (tmp_path / "graph.gml").write_text(content)
    with pytest.raises(UserError, match="not a readable gml file"):
        read_graph_file(tmp_path / "graph.gml")


# Of the central directory of a ZIP archive: where a member's entry says which version it needs, and its flags.
VERSION, FLAGS = 6, 8


@pytest.mark.parametrize(("field", "value", "said"), [(VERSION, 99, "zip file version 9.9"), (FLAGS, 1, "encrypted")])
def test_an_npz_file_that_python_cannot_unpack_is_refused(tmp_path, field, value, said):
    content = bytearray(samples()["graph.npz"][0])
    content[content.index(b"PK\x01\x02") + field] = value
    (tmp_path / "graph.npz").write_bytes(content)
    with pytest.raises(UserError, match=f"not a readable .npz archive.*{said}"):
        read_graph_file(tmp_path / "graph.npz")


def test_an_npz_file_whose_compressed_bytes_are_damaged_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "graph.npz", edges=np.arange(200).reshape(100, 2))
    content = bytearray((tmp_path / "graph.npz").read_bytes())
    begin = content.index(b"edges.npy") + 40
    content[begin : begin + 40] = b"\xff" * 40
    (tmp_path / "graph.npz").write_bytes(content)
    with pytest.raises(UserError, match=r"not a readable .npz archive.*while decompressing"):
        read_graph_file(tmp_path / "graph.npz")


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "content", [b"", b"[" * 200_000, b"{" * 200_000, b"9" * 50_000, b"\x00" * 5000, b"a," * 20_000]
)
def test_large_and_deep_input_is_no_hang(name, content):
    READERS[name](content)


@pytest.mark.parametrize(
    "arguments",
    [
        ["export", "{long}.csv", "--results", "{folder}"],
        ["leaderboard", "--results", "{long}"],
        ["submit-check", "{long}.zip"],
        ["run", "--suite", "{long}.toml"],
        ["run", "--dataset", "{long}.csv"],
        ["run", "--plugin", "{long}.py"],
        ["merge", "{long}", "--results", "{folder}"],
    ],
    ids=" ".join,
)
def test_a_name_that_the_system_refuses_is_one_line(arguments, tmp_path, monkeypatch, capsys):
    with Results(tmp_path).writing() as results:
        results.delete([])
    given = [text.format(long=tmp_path / ("x" * 300), folder=tmp_path) for text in arguments]
    monkeypatch.setattr(sys, "argv", ["ppgsl-bench", *given])
    with pytest.raises(SystemExit) as ending:
        main()
    assert ending.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
