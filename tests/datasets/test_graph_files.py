import hashlib
import pickle

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

from ppgsl_bench.datasets import Sources, registry
from ppgsl_bench.datasets.files import SUFFIXES, read_graph_file
from ppgsl_bench.errors import GraphError, UserError
from ppgsl_bench.graph import Graph


@given(graph=graphs(min_edges=1), suffix=st.sampled_from([".graphml", ".gml"]), has_weights=st.booleans())
def test_networkx_files(tmp_path_factory, graph, suffix, has_weights):
    source = nx.Graph()
    source.add_nodes_from(f"node {i:02d} é" for i in range(graph.num_nodes))
    names = list(source)
    for i, (u, v) in enumerate(graph.edges):
        source.add_edge(names[v], names[u], **({"weight": i + 0.5} if has_weights else {"note": "x"}))
    path = tmp_path_factory.mktemp("graph") / f"graph{suffix}"
    (nx.write_graphml if suffix == ".graphml" else nx.write_gml)(source, path)
    read, ids = read_graph_file(path)
    assert ids == names
    assert np.array_equal(read.edges, graph.edges)
    assert read.num_nodes == graph.num_nodes
    if has_weights:
        assert np.array_equal(read.weights, np.arange(graph.num_edges) + 0.5)
    else:
        assert read.weights is None


@given(graph=graphs(), parts=st.sets(st.sampled_from(["weights", "dense", "sparse", "y"])))
def test_npz_files(tmp_path_factory, graph, parts):
    n = graph.num_nodes
    dense = np.arange(3 * n, dtype=np.float32).reshape(n, 3) % 5
    sparse = sp.csr_array(dense)
    arrays = {"edges": graph.edges[::-1, ::-1], "num_nodes": n}
    if "weights" in parts:
        arrays["weights"] = np.arange(graph.num_edges, 0, -1) + 0.5
    if "y" in parts:
        arrays["y"] = np.arange(n) % 3
    if "sparse" in parts:
        arrays |= {"x_data": sparse.data, "x_indices": sparse.indices}
        arrays |= {"x_indptr": sparse.indptr, "x_shape": sparse.shape}
    elif "dense" in parts:
        arrays["x"] = dense
    path = tmp_path_factory.mktemp("graph") / "graph.npz"
    np.savez(path, **arrays)
    read, ids = read_graph_file(path)
    expected = Graph(
        num_nodes=n,
        edges=graph.edges,
        weights=np.arange(graph.num_edges) + 1.5 if "weights" in parts else None,
        x=sparse if "sparse" in parts else dense if "dense" in parts else None,
        y=np.arange(n) % 3 if "y" in parts else None,
    )
    assert read.digest == expected.digest
    assert ids == [str(i) for i in range(n)]


class TestNetworkxRefusals:
    def write(self, path, source):
        (nx.write_graphml if path.suffix == ".graphml" else nx.write_gml)(source, path)
        return path

    @pytest.mark.parametrize("suffix", [".graphml", ".gml"])
    @pytest.mark.parametrize(
        ("links", "kind", "message"),
        [
            ([("a", "a")], nx.Graph, r"self-loops: link 1 \(a\)"),
            ([("a", "b"), ("b", "a")], nx.DiGraph, r"twice.*link 2 \(b, a\) repeats link 1"),
            ([("a", "b"), ("a", "b")], nx.MultiGraph, "twice"),
            ([], nx.Graph, "no links"),
            ([("a", "b", {"weight": -1.0})], nx.Graph, "not finite and positive"),
            ([("a", "b", {"weight": 1}), ("b", "c", {})], nx.Graph, "these have none: link"),
            ([("a", "b", {"weight": "heavy"})], nx.Graph, "not numbers: link 1 'heavy'"),
        ],
    )
    def test_links(self, tmp_path, suffix, links, kind, message):
        source = kind()
        source.add_node("a")
        source.add_edges_from(links)
        path = self.write(tmp_path / f"graph{suffix}", source)
        with pytest.raises(GraphError, match=message) as caught:
            read_graph_file(path)
        assert str(path) in str(caught.value)

    def test_one_direction_of_a_directed_graph_is_read(self, tmp_path):
        path = self.write(tmp_path / "graph.graphml", nx.DiGraph([("b", "a"), ("b", "c")]))
        graph, ids = read_graph_file(path)
        assert [(ids[u], ids[v]) for u, v in graph.edges] == [("a", "b"), ("b", "c")]

    def test_gml_without_labels(self, tmp_path):
        path = tmp_path / "graph.gml"
        path.write_text("graph [ node [ id 10 ] node [ id 9 ] node [ id 1 ] edge [ source 10 target 9 ] ]")
        graph, ids = read_graph_file(path)
        assert ids == ["1", "9", "10"]
        assert graph.edges.tolist() == [[1, 2]]

    @pytest.mark.parametrize("suffix", [".graphml", ".gml"])
    @pytest.mark.parametrize(
        "content", [b"", b"a,b\n", b"\x89PNG\x00\xff", b"<graphml></graphml>", b"graph [ node [ id"]
    )
    def test_other_content(self, tmp_path, suffix, content):
        path = tmp_path / f"graph{suffix}"
        path.write_bytes(content)
        with pytest.raises(GraphError, match=f"not a readable {suffix[1:]} file"):
            read_graph_file(path)

    def test_gml_with_a_node_that_has_two_ids(self, tmp_path):
        path = tmp_path / "graph.gml"
        path.write_text("graph [ node [ id 1 id 2 ] node [ id 3 ] edge [ source 1 target 3 ] ]")
        with pytest.raises(GraphError, match="not a readable gml file"):
            read_graph_file(path)


class TestNpzRefusals:
    def test_an_archive_of_a_newer_format(self, tmp_path):
        path = tmp_path / "graph.npz"
        np.savez(path, edges=[[0, 1]])
        content = bytearray(path.read_bytes())
        # The version needed to extract, in the archive's directory.
        content[content.index(b"PK\x01\x02") + 6] = 99
        path.write_bytes(content)
        with pytest.raises(GraphError, match=r"not a readable \.npz archive"):
            read_graph_file(path)

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"links": [[0, 1]]}, "has the arrays links; expected edges"),
            ({"edges": [[0, 1]], "features": [1]}, "has the arrays edges, features; expected edges"),
            ({"edges": [[0, 1], [1, 1]]}, r"self-loops: row 1 \(1, 1\)"),
            ({"edges": [[0, 1], [1, 0]]}, r"duplicate links: row 1 \(1, 0\)"),
            ({"edges": [[0, 5]], "num_nodes": 3}, r"outside 0 … 2: row 0 \(0, 5\)"),
            ({"edges": [[0, -1]]}, r"outside"),
            ({"edges": [[0.0, 1.0]]}, "expected integers"),
            ({"edges": [["a", "b"]]}, "expected integers"),
            ({"edges": [[0, 1, 2]]}, "shape"),
            ({"edges": [[0, 1]], "num_nodes": [2, 3]}, "num_nodes"),
            ({"edges": [[0, 1]], "weights": [np.nan]}, "not finite and positive"),
            ({"edges": [[0, 1]], "x": [[1.0], [np.inf]]}, "NaN or infinite: row 1"),
            ({"edges": [[0, 1]], "y": [0, 1, 2]}, "labels have shape"),
            ({"edges": [[0, 1]], "x_data": [1.0]}, "need all of"),
            (
                {"edges": [[0, 1]], "x_data": [1.0], "x_indices": [7], "x_indptr": [0, 1, 1], "x_shape": [2, 3]},
                "do not make a CSR matrix",
            ),
        ],
    )
    def test_content(self, tmp_path, arrays, message):
        path = tmp_path / "graph.npz"
        np.savez(path, **{key: np.array(value) for key, value in arrays.items()})
        with pytest.raises(GraphError, match=message) as caught:
            read_graph_file(path)
        assert str(path) in str(caught.value)

    def test_pickled_objects_are_not_loaded(self, tmp_path):
        path = tmp_path / "graph.npz"
        np.savez(path, edges=np.array([[0, 1]]), y=np.array([{}, {}], dtype=object))
        with pytest.raises(GraphError, match="plain arrays"):
            read_graph_file(path)
        path.write_bytes(pickle.dumps({"edges": [[0, 1]]}))
        with pytest.raises(GraphError, match="plain arrays"):
            read_graph_file(path)

    def test_truncated(self, tmp_path, rng):
        path = tmp_path / "graph.npz"
        np.savez(path, edges=rng.permutation(2000).reshape(-1, 2))
        for cut in (0, 1, 10, 1000, path.stat().st_size - 5):
            short = tmp_path / f"short{cut}.npz"
            short.write_bytes(path.read_bytes()[:cut])
            with pytest.raises(GraphError, match="not a readable"):
                read_graph_file(short)

    def test_plain_npy_is_refused(self, tmp_path):
        with (tmp_path / "graph.npz").open("wb") as file:
            np.save(file, np.array([[0, 1]]))
        with pytest.raises(GraphError, match="not a readable"):
            read_graph_file(tmp_path / "graph.npz")


class TestPaths:
    def test_missing_folder_and_ending(self, tmp_path):
        with pytest.raises(UserError, match=r"nowhere\.csv: no such file"):
            read_graph_file(tmp_path / "nowhere.csv")
        with pytest.raises(UserError, match="not a file"):
            read_graph_file(tmp_path)
        (tmp_path / "links.xlsx").write_bytes(b"PK")
        with pytest.raises(UserError, match=r"unknown ending '\.xlsx'; expected one of .*\.csv") as caught:
            read_graph_file(tmp_path / "links.xlsx")
        assert all(suffix in str(caught.value) for suffix in SUFFIXES)


class TestDataset:
    def test_load_and_fingerprint(self, tmp_path):
        path = tmp_path / "links.csv"
        path.write_text("a,b\nb,c\n")
        dataset = registry.get("file").create(path=str(path))
        sources = Sources((), tmp_path, offline=True)
        graph = dataset.load(sources)
        assert (graph.num_nodes, graph.num_edges) == (3, 2)
        assert graph.name == dataset.label == f"file[path={path}]"
        assert dataset.fingerprint(sources) == hashlib.sha256(path.read_bytes()).hexdigest()
        path.write_text("a,b\nb,d\n")
        assert dataset.fingerprint(sources) != graph.digest
        assert dataset.fingerprint(sources) == hashlib.sha256(b"a,b\nb,d\n").hexdigest()

    def test_home_is_expanded(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / "links.csv").write_text("a,b\n")
        assert registry.get("file").create(path="~/links.csv").load(Sources((), tmp_path)).num_edges == 1

    def test_a_path_is_needed_and_must_exist(self, tmp_path):
        with pytest.raises(UserError, match="path"):
            registry.get("file").create()
        dataset = registry.get("file").create(path=str(tmp_path / "gone.csv"))
        for act in (dataset.load, dataset.fingerprint):
            with pytest.raises(UserError, match="no such file"):
                act(Sources((), tmp_path))


@pytest.mark.dataset
def test_a_real_edge_list(datasets_dir):
    path = datasets_dir / "extra" / "ego-facebook" / "facebook_combined.txt"
    graph, ids = read_graph_file(path)
    assert (graph.num_nodes, graph.num_edges) == (4039, 88234)
    assert ids == [str(i) for i in range(4039)]
