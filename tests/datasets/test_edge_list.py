import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from ppgsl_bench.datasets.edge_list import EdgeList, canonical_order, read_edge_list
from ppgsl_bench.errors import GraphError


@pytest.fixture
def read(tmp_path):
    """Writes the text to a file and reads it."""

    def write_and_read(text: str | bytes, name: str = "links.csv") -> EdgeList:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_edge_list(path)

    return write_and_read


def named(edges: EdgeList) -> list[tuple[str, str]]:
    return [(edges.ids[u], edges.ids[v]) for u, v in edges.pairs]


# Anything but line ends, NUL and lone surrogates, and not blank at either end.
odd_names = st.text(
    st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"]), min_size=1, max_size=12
).filter(lambda name: name.strip(" \t") == name)
plain_names = st.sampled_from(
    ["1", "01", "1.0", "-7", "10", "9", "NA", "nan", "None", "null", "#1", "Ω é", "a b", "x,y"]
)


@st.composite
def weighted_links(draw) -> list[tuple[str, str, float]]:
    names = draw(st.lists(odd_names | plain_names, min_size=2, max_size=8, unique=True))
    pairs = [(u, v) for i, u in enumerate(names) for v in names[:i]]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    weights = draw(st.lists(st.floats(2**-20, 2**20, width=32), min_size=len(chosen), max_size=len(chosen)))
    flips = draw(st.lists(st.booleans(), min_size=len(chosen), max_size=len(chosen)))
    return [(v, u, w) if flip else (u, v, w) for (u, v), w, flip in zip(chosen, weights, flips, strict=True)]


@given(
    links=weighted_links(), has_weights=st.booleans(), kind=st.sampled_from([(",", "csv"), (";", "csv"), ("\t", "tsv")])
)
def test_what_is_written_is_read(tmp_path_factory, links, has_weights, kind):
    separator, suffix = kind
    path = tmp_path_factory.mktemp("links") / f"links.{suffix}"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=separator, quoting=csv.QUOTE_ALL)
        writer.writerow(["source", "target", "weight"][: 2 + has_weights])
        writer.writerows(link[: 2 + has_weights] for link in links)
    edges = read_edge_list(path)
    assert named(edges) == [(u, v) for u, v, _ in links]
    assert sorted(edges.ids) == sorted({name for u, v, _ in links for name in (u, v)})
    if has_weights:
        assert edges.weights.tolist() == [w for *_, w in links]
    else:
        assert edges.weights is None
    assert edges.lines.tolist() == list(range(2, len(links) + 2))


@given(links=weighted_links(), data=st.data())
def test_the_order_of_lines_and_ends_does_not_matter_to_the_nodes(tmp_path_factory, links, data):
    folder = tmp_path_factory.mktemp("links")
    shuffled = [(v, u, w) for u, v, w in data.draw(st.permutations(links))]
    read = []
    for name, rows in (("one", links), ("two", shuffled)):
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("source", "target"), *(row[:2] for row in rows)])
        read.append(read_edge_list(folder / f"{name}.csv"))
    assert read[0].ids == read[1].ids
    assert {frozenset(pair) for pair in named(read[0])} == {frozenset(pair) for pair in named(read[1])}


# Mostly of characters that mean something to the reader.
@given(st.text(st.sampled_from('ab1,;\t "\n\r#') | st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_is_read_or_refused_with_a_reason(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("links") / "links.csv"
    path.write_text(text, encoding="utf-8", newline="")
    try:
        edges = read_edge_list(path)
    except GraphError as error:
        message = str(error)
        event("refused")
    else:
        message = f"{path}: read"
        event("read")
        assert len(edges.pairs) == len(edges.lines) > 0
        assert (edges.pairs[:, 0] != edges.pairs[:, 1]).all()
    assert message.startswith(f"{path}: ")


class TestLayouts:
    def test_plain(self, read):
        edges = read("a,b\nb,c\n")
        assert edges.ids == ["a", "b", "c"]
        assert edges.pairs.tolist() == [[0, 1], [1, 2]]
        assert edges.weights is None
        assert edges.lines.tolist() == [1, 2]

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("x.csv", "a,b\nb,c d"),
            ("x.csv", "a;b\nb;c d"),
            ("x.csv", "a\tb\nb\tc d"),
            ("x.csv", "a, b\r\nb , c d\r\n"),
            ("x.csv", "a,b\rb,c d\r"),
            ("x.csv", b'\xef\xbb\xbf"a","b"\n"b","c d"'),
            ("x.tsv", "a\tb\nb\tc d"),
            ("x.TXT", "a\tb\nb\tc d"),
            ("x.txt", 'a b\n  b   "c d"  \n'),
            ("x.edges", 'a b\nb\t"c d"\n'),
            ("x.edgelist", "a,b\nb,c d"),
            ("x.csv", "\n\n# source,target\n  # more\na,b\n\n#\n   \nb,c d\n\n"),
            ("x.csv", "source,target\na,b\nb,c d"),
            ("x.csv", "# made by hand\nFrom , TO\na,b\nb,c d"),
            ("x.csv", "time,target,source\n9,a,b\n8,b,c d"),
        ],
    )
    def test_separators_comments_headers(self, read, name, text):
        edges = read(text, name)
        assert edges.ids == ["a", "b", "c d"]
        assert {frozenset(pair) for pair in named(edges)} == {frozenset("ab"), frozenset({"b", "c d"})}

    def test_weights_by_position_and_by_name(self, read):
        assert read("a,b,2\nb,c,0.5").weights.tolist() == [2, 0.5]
        assert read("weight,source,note,target\n2,a,x,b\n1e3,b,,c").weights.tolist() == [2, 1000]
        assert read("a b 2\nb c 0.5", "x.txt").weights.tolist() == [2, 0.5]

    def test_a_hash_within_a_name_starts_no_comment(self, read):
        assert named(read("a#1,b#2\n")) == [("a#1", "b#2")]

    def test_numbers_are_names(self, read):
        assert read("10,9\n9,100\n").ids == ["9", "10", "100"]
        assert read("10,9\n9,010\n").ids == ["010", "10", "9"]
        assert read("1,1.0\n").ids == ["1", "1.0"]

    def test_unknown_titles_above_numbers_are_a_header(self, read):
        edges = read("person_a,person_b,strength\n1,2,3\n2,3,4")
        assert edges.ids == ["1", "2", "3"]
        assert edges.weights.tolist() == [3, 4]
        assert edges.lines.tolist() == [2, 3]
        # With names below, the first line may as well be a link.
        assert read("ann,bob\ncid,dan").ids == ["ann", "bob", "cid", "dan"]
        assert read("ann,bob").ids == ["ann", "bob"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a,b\nc\nd,e\nf,g,h\n", r"malformed.*line 2 'c'; line 4 'f,g,h'$"),
            ("a,b\nc\n", r"line 2 'c'$"),
            ("a,b\n,c\n", r"line 2 ',c'$"),
            ("a,b\n\n,\n", r"line 3 ','$"),
            ('a,b\n" ",c\n', r"line 2 '\" \",c'$"),
            ('a,b\n"c,d\ne,f\n', "line 2 '\"c,d'; line 3|line 2 '\"c,d'$"),
            ('a,b\n"c\nd",e\n', "line 2 '\"c'$"),
            ("x,y\n" + "bad\n" * 9, r"line 6 'bad' and 4 more$"),
            ("# c\na,b\nb,c\n\nb,a\n", r"twice.*line 5 \(b, a\) repeats line 2$"),
            ("a,b\na,c\na,b\nb,a\n", r"line 3 \(a, b\) repeats line 1; line 4 \(b, a\) repeats line 1$"),
            ("a,b,1\nb,a,2\n", r"line 2 \(b, a\) repeats line 1$"),
            ("source,target\na,b\nc,c\n", r"self-loops: line 3 \(c\)$"),
            ("c, c\n", r"self-loops: line 1 \(c\)$"),
            ("a,b,1\nb,c,-1\n", "not positive, finite numbers: line 2 '-1'"),
            ("a,b,nan\nb,c,1\nc,d,inf\nd,e,x\ne,f,\nf,g,0\ng,h,1e99", "line 1 'nan'; line 3 'inf'; .* and 1 more"),
            ("a,b,c,d\n", "line 1 has 4 columns: 'a,b,c,d'; expected a source"),
            ("\nab\n", "line 2 has one column: 'ab'"),
            ("source,target\n", "a header but no links"),
            ("", "the file is empty"),
            (" \n\n", "the file is empty"),
            ("# nothing\n", "no links, only comments"),
            (b"a,b\nc,\x00d\n", "a binary file: line 2 has a NUL byte; save it as text"),
            ("a,b\n".encode("utf-16"), "perhaps UTF-16"),
            ("a,b\né,d\n".encode("latin-1"), "not UTF-8 text: byte 0xe9 in line 2"),
            (b"\x89PNG\r\n\x1a\n\x00\x00", "a binary file"),
        ],
    )
    def test_message_names_file_and_lines(self, read, text, message):
        with pytest.raises(GraphError, match=message) as caught:
            read(text)
        assert "links.csv: " in str(caught.value)

    def test_long_lines_are_cut(self, read):
        with pytest.raises(GraphError) as caught:
            read("a,b\n" + "x" * 10_000 + "\n")
        assert len(str(caught.value)) < 300


def test_many_lines(tmp_path: Path, rng):
    """Vectorised reading agrees with a plain loop."""
    pairs = np.unique(np.sort(rng.integers(3000, size=(30_000, 2)), axis=1), axis=0)
    pairs = rng.permutation(pairs[pairs[:, 0] != pairs[:, 1]])
    path = tmp_path / "links.csv"
    path.write_text("".join(f"user {u},user {v}\n" for u, v in pairs))
    assert named(read_edge_list(path)) == [(f"user {u}", f"user {v}") for u, v in pairs]


def test_canonical_order():
    assert canonical_order(["10", "-3", "9", "0"]) == ["-3", "0", "9", "10"]
    assert canonical_order(["10", "9", "x"]) == ["10", "9", "x"]
