"""Bad input ends in a message with line numbers and what to do, before anything runs and without naming anybody."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ppgsl_bench.datasets.files import read_tidied
from ppgsl_bench.errors import UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.own_graph.naming import NamedGraph, read_sensitive
from ppgsl_bench.own_graph.node_tables import with_node_tables


@pytest.fixture
def refused(friends, refusal):
    """The message about a pairs file of the given content."""

    def message(text, graph="friends.csv", command="protect", name="secret.csv"):
        (friends / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        output = ["-o", "out" + Path(graph).suffix] if command == "protect" else []
        return refusal(command, graph, "--sensitive", name, *output)

    return message


class TestSensitivePairs:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (
                "person00,person01\nalice,person04\nperson04,carol\nalice,bob\n",
                "3 of 4 pairs name a node that friends.csv does not have: line 2 (the first name); line 3 (the second",
            ),
            (
                "person00,person01\nperson00,person30\n",
                "1 of 2 pairs are no links of friends.csv: line 2; only an existing",
            ),
            ("person00,person30\n", "no links of friends.csv: line 1"),
            (
                "Person00,Person01\n",
                "line 1 (both names); they match but for capitals; spell each name as in the graph",
            ),
            ("0,1\n", "the unknown ids are whole numbers, those of the graph other names: use the same ids in both"),
            ("", "the file is empty"),
            ("source,target\n", "a header but no links"),
            ("person00,person01\nperson02\nperson03,person04,person05\n", "malformed lines (2 of 3, 67%; expected 2"),
            (b"\x89PNG\r\n\x1a\n\x00\x00", "a binary file"),
            (b"PK\x03\x04\x14\x00", "a ZIP archive"),
            (b"\x1f\x8b\x08\x00", "compressed with gzip: unpack it first"),
            ("person00\nperson01\n", "line 1 has one column"),
            ("person00,person00\n", "no pairs"),
        ],
    )
    def test_message(self, refused, text, expected):
        message = refused(text)
        assert message.startswith("secret.csv: ")
        assert expected in message
        # Whatever is wrong with them, the pairs are confidential.
        assert not any(name in message for name in ("person", "Person", "alice", "bob", "carol"))

    def test_one_malformed_line_in_ten(self, refused):
        lines = [f"person{i:02d},person{i + 1:02d}" for i in range(50)]
        lines[4::10] = ["oops"] * 5
        assert "malformed lines (5 of 50, 10%; expected 2 columns" in refused("\n".join(lines))
        assert "line 5; line 15; line 25; line 35; line 45" in refused("\n".join(lines))

    def test_ids_of_another_type(self, refused, friends):
        (friends / "numbers.csv").write_text("".join(f"{i},{i + 1}\n" for i in range(30)))
        assert "different ids for the same nodes" in refused("n12,n13\n", "numbers.csv")
        assert "saved as decimal numbers" in refused("12.0,13.0\n", "numbers.csv")
        assert "without leading zeros" in refused("007,008\n", "numbers.csv")
        assert "are other names, those of the graph whole numbers" in refused("ann,bob\n", "numbers.csv")

    def test_ids_of_two_types_in_the_graph(self, friends):
        path = friends / "mixed.csv"
        path.write_text("source,target\n1,2\n2,3\n3,4.0\n4,1\n")
        (note,) = read_tidied(path).notes
        assert "4 ids are whole numbers (first in line 2), 1 are not (first in line 4)" in note
        path.write_text("source,target\n1,2\n2,3\nx,x\n")
        assert len(read_tidied(path).notes) == 1

    def test_a_title_and_repeated_pairs_are_understood(self, friends):
        content = NamedGraph(Graph.from_pairs(3, [(0, 1), (1, 2)]), ["a", "b", "c"], "graph.csv")
        path = friends / "pairs.csv"
        path.write_text("who,whom,why\na,b,x\nb,a,y\nb,b,z\nc,b,\n")
        found = read_sensitive(path, content)
        assert found.pairs.tolist() == [[0, 1], [1, 2]]
        assert [note.split(": ")[1] for note in found.notes] == [
            "dropped 1 pairs of a node with itself",
            "dropped 1 pairs given twice",
        ]

    def test_audit_asks_for_the_original_where_a_node_is_missing(self, refused):
        assert "name the graph as it was before" in refused("person00,nobody\n", command="audit")

    def test_every_link_sensitive(self, friends, refusal):
        message = refusal("protect", "friends.csv", "--sensitive", "friends.csv", "--defense", "random", "-o", "o.csv")
        assert "every link of the graph is sensitive" in message
        assert not (friends / "o.csv").exists()


class TestGraph:
    @pytest.mark.parametrize(
        ("name", "content", "expected"),
        [
            ("g.csv", b"\x00\x01\x02", "a binary file"),
            ("g.csv", b"", "the file is empty"),
            ("g.csv", b"a,b\n" * 1 + b"c\n", "line 2 'c'"),
            ("g.graphml", b"\x89PNG", "not a readable graphml file"),
            ("g.gml", b"a,b\n", "not a readable gml file"),
            ("g.npz", b"a,b\n", "not a readable .npz archive"),
            ("g.xlsx", b"PK", "unknown ending '.xlsx'"),
        ],
    )
    def test_message(self, friends, refusal, name, content, expected):
        (friends / name).write_bytes(content)
        output = "out" + Path(name).suffix
        message = refusal("protect", name, "--sensitive", "secret.csv", "--defense", "random", "-o", output)
        assert expected in message
        assert name in message
        assert not (friends / output).exists()

    def test_missing_files(self, friends, refusal):
        assert "no.csv: no such file" in refusal("audit", "no.csv", "--sensitive", "secret.csv")
        assert "no.csv: no such file" in refusal("audit", "friends.csv", "--sensitive", "no.csv")
        assert "no.csv: no such file" in refusal(
            "audit", "friends.csv", "--sensitive", "secret.csv", "--features", "no.csv"
        )


class TestOptions:
    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (["--target-auc", "0.4"], "--target-auc 0.4: expected a number above 0.5"),
            (["--keep-utility", "95"], "--keep-utility 95: expected a share"),
            (["--report", "report.pdf"], "unknown ending '.pdf' for a report; use one of .html, .md, .json"),
            (["--attack", "cnn"], "no attack 'cnn'; did you mean 'cn'?"),
            (["--defense", "randon"], "no defense 'randon'; did you mean 'random'"),
            (["--defense", "random[rate=0.2]", "--target-auc", "0.6"], "rate is what the search varies"),
            (["--defense", "none", "--target-auc", "0.6"], "none has no setting to search"),
            (["--timeout", "soon"], "not a duration"),
            (["-o", "out.gml"], "end its name in .csv"),
        ],
    )
    def test_message(self, friends, refusal, arguments, expected):
        base = ["protect", "friends.csv", "--sensitive", "secret.csv", "--defense", "random", "-o", "out.csv"]
        assert expected in refusal(*base, *arguments)
        assert not (friends / "out.csv").exists()


class TestNodeTables:
    NODES = NamedGraph(Graph.from_pairs(3, [(0, 1), (1, 2)]), ["a", "b", "c"], "graph.csv")

    def read(self, folder, features=None, labels=None):
        paths = []
        for name, text in (("features.csv", features), ("labels.csv", labels)):
            path = folder / name
            if text is not None:
                path.write_bytes(text if isinstance(text, bytes) else text.encode())
            paths.append(path if text is not None else None)
        return with_node_tables(self.NODES, *paths)

    @pytest.mark.parametrize("header", ["", "id,height,age\n"])
    def test_features_follow_the_ids(self, tmp_path, header):
        nodes, notes = self.read(tmp_path, header + "c,5,6\na,1,2\n# nobody\nb,3,4\nz,0,0\n")
        assert nodes.graph.x.tolist() == [[1, 2], [3, 4], [5, 6]]
        assert "ignored 1 lines of nodes" in notes[0]

    @pytest.mark.parametrize("header", ["", "id,label\n"])
    def test_labels_follow_the_ids(self, tmp_path, header):
        nodes, notes = self.read(tmp_path, labels=header + "c,red\na,blue\n")
        assert nodes.graph.y.tolist() == [0, -1, 1]
        assert "1 of 3 nodes have no label" in notes[0]

    @pytest.mark.parametrize(
        ("features", "labels", "expected"),
        [
            ("a,1\nb,2\n", None, r"1 of 3 nodes of graph.csv have no line \(c\)"),
            ("a,1\nb,x\nc,2\n", None, "not finite numbers: line 2"),
            ("a,1\nb,nan\nc,2\n", None, "not finite numbers: line 2"),
            ("a,1\nb,2,3\nc,2\n", None, r"malformed lines \(1 of 3, 33%; expected 2 columns.*line 2"),
            ("a\nb\nc\n", None, "malformed lines.*expected 2 columns"),
            ("a,1\na,2\nb,1\nc,2\n", None, "nodes that have a line already: line 2"),
            ("1,1\n2,2\n", None, "none of the 2 ids is a node of graph.csv; use the same ids"),
            ("", None, "the file is empty"),
            (b"\x00\xff", None, "a binary file"),
            (None, "a,red,x\nb,blue,y\n", "expected two columns, id and label: line 1; line 2"),
        ],
    )
    def test_refusals(self, tmp_path, features, labels, expected):
        with pytest.raises(UserError, match=expected):
            self.read(tmp_path, features, labels)

    def test_features_twice(self, tmp_path):
        graph = Graph.from_pairs(2, [(0, 1)], x=np.ones((2, 1), dtype=np.float32))
        with pytest.raises(UserError, match="features of its own"):
            with_node_tables(NamedGraph(graph, ["a", "b"], "g.npz"), tmp_path / "f.csv", None)


def test_no_traceback(friends):
    command = [str(Path(sys.executable).parent / "ppgsl-bench"), "protect", "friends.csv", "--sensitive", "bad.csv"]
    (friends / "bad.csv").write_text("person00,nobody\n")
    result = subprocess.run(
        [*command, "-o", "out.csv"], cwd=friends, capture_output=True, text=True, check=False, env=os.environ
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: bad.csv: 1 of 1 pairs names a node that friends.csv does not have: line 1")
    assert "Traceback" not in result.stderr
