"""A published file is in the format of the original, has its ids, and holds nothing but the graph."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

from ppgsl_bench.datasets.edge_list import Layout
from ppgsl_bench.datasets.files import EDGE_LIST_SUFFIXES, read_tidied
from ppgsl_bench.errors import UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.own_graph.writing import refuse_other_format, write_graph

AWKWARD = [
    "plain",
    "two words",
    "com,ma",
    "semi;colon",
    "#hash",
    'qu"ote',
    "é",
    "007",
    "tab\there",
    "x\\y",
    "'",
    "&lt;",
]


@given(
    graph=graphs(min_edges=1, max_nodes=12),
    suffix=st.sampled_from([*EDGE_LIST_SUFFIXES, ".graphml", ".gml"]),
    separator=st.sampled_from(",;\t "),
    titled=st.booleans(),
    weighted=st.booleans(),
    data=st.data(),
)
def test_what_is_written_is_read(tmp_path_factory, graph, suffix, separator, titled, weighted, data):
    ids = sorted(data.draw(st.permutations(AWKWARD))[: graph.num_nodes])
    if suffix == ".tsv":
        separator = "\t"
    elif suffix == ".csv" and separator == " ":
        separator = ","
    if separator == " ":
        # White space of any kind separates columns there.
        ids = [name.replace("\t", "_") for name in ids]
    ids = sorted(ids)
    weights = (np.arange(graph.num_edges) + 0.1).astype(np.float32) if weighted else None
    written = Graph(num_nodes=graph.num_nodes, edges=graph.edges, weights=weights)
    path = tmp_path_factory.mktemp("graph") / f"graph{suffix}"
    write_graph(path, written, ids, Layout(separator, ("source", "target", "weight") if titled else None))
    content = read_tidied(path)
    linked = np.unique(graph.edges)
    expected_ids = [ids[i] for i in linked] if suffix in EDGE_LIST_SUFFIXES else ids
    assert content.ids == expected_ids
    names = [(content.ids[u], content.ids[v]) for u, v in content.graph.edges]
    assert names == [(ids[u], ids[v]) for u, v in graph.edges]
    if weighted:
        assert np.array_equal(content.graph.weights, weights)
    else:
        assert content.graph.weights is None


@given(graph=graphs(min_edges=1), parts=st.sets(st.sampled_from(["weights", "dense", "sparse", "y"])))
def test_npz(tmp_path_factory, graph, parts):
    n = graph.num_nodes
    dense = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
    whole = Graph(
        num_nodes=n,
        edges=graph.edges,
        weights=np.arange(graph.num_edges) + 0.5 if "weights" in parts else None,
        x=sp.csr_array(dense) if "sparse" in parts else dense if "dense" in parts else None,
        y=np.arange(n) % 2 if "y" in parts else None,
    )
    path = tmp_path_factory.mktemp("graph") / "graph.npz"
    write_graph(path, whole, [])
    assert read_tidied(path).graph.digest == whole.digest


def test_the_layout_of_the_original_is_kept(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("when;TO;From;w\n2020;b;a;2\n2021;c;b;0.5\n")
    content = read_tidied(source)
    write_graph(tmp_path / "out.csv", content.graph, content.ids, content.layout)
    assert (tmp_path / "out.csv").read_text() == "From;TO;w\na;b;2\nb;c;0.5\n"
    assert [note for note in content.notes if "not read: when" in note]


def test_untidy_files_are_read_with_notes(tmp_path):
    text = tmp_path / "in.csv"
    text.write_text("a,b\nb,a\nc,c\na,c\n")
    content = read_tidied(text)
    assert content.graph.edges.tolist() == [[0, 1], [0, 2]]
    assert [note.split(": ")[1][:10] for note in content.notes] == ["dropped 1 ", "dropped 1 "]
    np.savez(tmp_path / "in.npz", edges=np.array([[0, 1], [1, 0], [2, 2], [1, 2]]))
    assert read_tidied(tmp_path / "in.npz").graph.num_edges == 2
    assert len(read_tidied(tmp_path / "in.npz").notes) == 2
    directed = nx.DiGraph([("a", "b"), ("b", "a"), ("c", "c")])
    directed.nodes["a"]["age"] = 3
    nx.write_graphml(directed, tmp_path / "in.graphml")
    content = read_tidied(tmp_path / "in.graphml")
    assert content.graph.num_edges == 1
    assert "age" in content.notes[-1]


def test_a_title_that_is_read_as_a_link_is_pointed_out(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("person_a,person_b\nann,bob\nbob,cid\n")
    assert "line 1" in read_tidied(path).notes[0]
    path.write_text("ann,bob\nbob,cid\n")
    assert not read_tidied(path).notes


def test_another_format_or_the_same_file_is_refused(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("a,b\n")
    refuse_other_format(source, tmp_path / "out.txt")
    with pytest.raises(UserError, match=r"end its name in \.csv, not \.gml"):
        refuse_other_format(source, tmp_path / "out.gml")
    with pytest.raises(UserError, match="original graph"):
        refuse_other_format(source, source)
