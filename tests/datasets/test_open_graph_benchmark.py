import gzip
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from ppgsl_bench.datasets import Sources, registry
from ppgsl_bench.datasets.ogb import _address, _classes
from ppgsl_bench.datasets.sources import MissingRawFileError
from ppgsl_bench.errors import GraphError, UnknownNameError, UserError

NODES = 40


@pytest.fixture
def ogb(monkeypatch):
    """The package ogb, imported without its query to PyPI."""
    if "ogb" not in sys.modules:
        monkeypatch.setitem(sys.modules, "outdated", None)
    import ogb

    return ogb


@pytest.fixture
def raw_graph(rng) -> dict:
    edges = rng.integers(NODES, size=(2, 200))
    edges[:, 0] = 3  # a loop
    edges[:, 1:3] = [[0, 1], [1, 0]]  # both directions
    return {
        "edge_index": edges,
        "num_nodes": NODES,
        "node_feat": rng.random((NODES, 5)).astype(np.float32),
        "edge_feat": None,
    }


def expected_links(graph: dict) -> list[list[int]]:
    return sorted(
        [int(u), int(v)] for u, v in {tuple(sorted(pair)) for pair in graph["edge_index"].T.tolist()} if u != v
    )


@pytest.fixture
def saved(ogb, raw_graph, tmp_path, monkeypatch, rng):
    """Writes the graph with OGB's own DatasetSaver and gives the saver."""
    from ogb.io import DatasetSaver

    def save(name: str = "ogbn-small", labels: np.ndarray | None = None) -> DatasetSaver:
        saver = DatasetSaver(name, is_hetero=False, version=1, root=str(tmp_path / "submission"))
        saver.save_graph_list([raw_graph])
        if name.startswith("ogbn"):
            saver.save_target_labels(rng.integers(4, size=(NODES, 1)) if labels is None else labels)
        saver.save_split({part: np.arange(3) for part in ("train", "valid", "test")}, "random")
        mapping = tmp_path / "mapping"
        mapping.mkdir(exist_ok=True)
        (mapping / "README.md").write_text("none")
        saver.copy_mapping_dir(str(mapping))
        classification = name.startswith("ogbn")
        saver.save_task_info("multiclass classification" if classification else "link prediction", "acc", 4)
        return saver

    return save


def placed(saver, data_dir: Path, name: str) -> Sources:
    """The saver's folder where OGB's loader would look for it."""
    data_dir.mkdir(exist_ok=True)
    Path(saver.dataset_dir).rename(data_dir / name.replace("-", "_"))
    return Sources((data_dir,), data_dir / "cache", offline=True)


def dataset(name: str):
    return registry.get("ogb").create(dataset=name)


def test_node_property_graph_equals_ogbs_own_reading(saved, raw_graph, tmp_path):
    from ogb.nodeproppred import NodePropPredDataset

    saver = saved()
    theirs, labels = NodePropPredDataset("ogbn-small", meta_dict=saver.get_meta_dict())[0]
    graph = dataset("ogbn-small").load(placed(saver, tmp_path / "data", "ogbn-small"))
    assert graph.num_nodes == theirs["num_nodes"]
    assert graph.edges.tolist() == expected_links(theirs) == expected_links(raw_graph)
    assert np.array_equal(graph.x, theirs["node_feat"])
    assert np.array_equal(graph.y, labels[:, 0])
    assert graph.name == "ogb[dataset=ogbn-small]"


def test_the_pickle_that_ogb_leaves_behind_is_not_read(saved, tmp_path):
    saver = saved()
    sources = placed(saver, tmp_path / "data", "ogbn-small")
    before = dataset("ogbn-small").fingerprint(sources)
    (tmp_path / "data" / "ogbn_small" / "processed" / "data_processed").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    assert dataset("ogbn-small").load(sources).num_nodes == NODES
    assert dataset("ogbn-small").fingerprint(sources) == before


def test_link_property_graph_has_no_labels(saved, raw_graph, tmp_path):
    sources = placed(saved("ogbl-small"), tmp_path / "data", "ogbl-small")
    graph = dataset("ogbl-small").load(sources)
    assert graph.edges.tolist() == expected_links(raw_graph)
    assert graph.y is None


def test_csv_layout(raw_graph, tmp_path, rng):
    raw = tmp_path / "ogb" / "ogbn_text" / "raw"
    raw.mkdir(parents=True)
    labels = rng.integers(4, size=NODES).astype(float)
    labels[5] = np.nan

    def write(name, rows):
        text = "".join(",".join("" if np.isnan(v) else f"{v:g}" for v in row) + "\n" for row in rows)
        (raw / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))

    write("edge", raw_graph["edge_index"].T.astype(float))
    write("num-node-list", [[float(NODES)]])
    write("num-edge-list", [[200.0]])
    write("node-feat", np.round(raw_graph["node_feat"], 3))
    (raw / "node-label.csv.gz").write_bytes(
        gzip.compress("".join('""\n' if np.isnan(v) else f"{v:g}\n" for v in labels).encode())
    )
    sources = Sources((tmp_path,), tmp_path / "cache", offline=True)
    graph = dataset("ogbn-text").load(sources)
    assert graph.edges.tolist() == expected_links(raw_graph)
    assert np.allclose(graph.x, np.round(raw_graph["node_feat"], 3))
    assert graph.y[5] == -1
    assert np.array_equal(np.delete(graph.y, 5), np.delete(labels, 5))
    before = dataset("ogbn-text").fingerprint(sources)
    write("num-edge-list", [[201.0]])
    assert dataset("ogbn-text").fingerprint(sources) != before
    (raw / "edge.csv.gz").write_bytes((raw / "edge.csv.gz").read_bytes()[:-20])
    with pytest.raises(GraphError, match="not a complete raw folder"):
        dataset("ogbn-text").load(sources)


def test_damaged_or_pickled_archives_are_refused(saved, tmp_path):
    sources = placed(saved(), tmp_path / "data", "ogbn-small")
    path = tmp_path / "data" / "ogbn_small" / "raw" / "data.npz"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(GraphError, match="not a complete raw folder"):
        dataset("ogbn-small").load(sources)
    np.savez(path, edge_index=np.array([[{}], [{}]], dtype=object), num_nodes_list=[NODES])
    with pytest.raises(GraphError, match="allow_pickle=False"):
        dataset("ogbn-small").load(sources)


def test_graphs_with_several_kinds_of_nodes_are_refused(saved, tmp_path):
    sources = placed(saved(), tmp_path / "data", "ogbn-small")
    (tmp_path / "data" / "ogbn_small" / "raw" / "edge_index_dict.npz").touch()
    with pytest.raises(GraphError, match="several kinds of nodes"):
        dataset("ogbn-small").load(sources)
    with pytest.raises(GraphError, match="several kinds of nodes"):
        _address("ogbn-mag")


def test_offline_and_absent(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    for act in (dataset("ogbn-arxiv").load, dataset("ogbn-arxiv").fingerprint):
        with pytest.raises(MissingRawFileError, match=r"ogbn_arxiv/raw.*--data-dir"):
            act(Sources((tmp_path,), tmp_path / "cache", offline=True))
    assert list(tmp_path.iterdir()) == []


def test_download_keeps_the_raw_folder_only(saved, raw_graph, tmp_path, monkeypatch):
    saver = saved()
    saver.get_meta_dict()
    saver.zip()
    packed = Path(f"{saver.dataset_dir}.zip").read_bytes()
    asked = []

    def retrieve(url, known_hash, fname, path):
        asked.append(url)
        (Path(path) / fname).write_bytes(packed)
        return str(Path(path) / fname)

    monkeypatch.setitem(sys.modules, "pooch", types.SimpleNamespace(retrieve=retrieve))
    sources = Sources((), tmp_path / "cache", offline=False)
    graph = dataset("ogbn-arxiv").load(sources)
    assert asked == ["https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"]
    assert graph.edges.tolist() == expected_links(raw_graph)
    kept = sorted(str(p.relative_to(sources.cache_dir)) for p in sources.cache_dir.rglob("*") if p.is_file())
    assert kept == ["ogb/ogbn_arxiv/raw/data.npz", "ogb/ogbn_arxiv/raw/node-label.npz"]
    dataset("ogbn-arxiv").load(Sources((), tmp_path / "cache", offline=True))
    assert len(asked) == 1


@pytest.mark.parametrize("content", [b"<html>", b"PK\x05\x06" + bytes(18)], ids=["no archive", "empty archive"])
def test_a_broken_download_leaves_no_raw_folder(tmp_path, monkeypatch, content):
    def retrieve(url, known_hash, fname, path):
        (Path(path) / fname).write_bytes(content)
        return str(Path(path) / fname)

    monkeypatch.setitem(sys.modules, "pooch", types.SimpleNamespace(retrieve=retrieve))
    with pytest.raises(UserError, match=r"downloading https://.*arxiv\.zip failed"):
        dataset("ogbn-arxiv").load(Sources((), tmp_path, offline=False))
    assert not (tmp_path / "ogb" / "ogbn_arxiv" / "raw").exists()


def test_names(monkeypatch):
    with pytest.raises(UnknownNameError, match="did you mean 'ogbn-arxiv'"):
        _address("ogbn-arxive")
    for wrong in ("", "arxiv", "ogbn-../../etc", "ogbg-molhiv"):
        with pytest.raises(UserError, match="dataset="):
            registry.get("ogb").create(dataset=wrong)
    monkeypatch.setattr("ppgsl_bench.datasets.ogb.find_spec", lambda _name: None)
    with pytest.raises(UserError, match=r"pip install 'ppgsl-bench\[ogb\]'"):
        _address("ogbn-arxiv")


def test_loading_imports_neither_ogb_nor_torch(saved, tmp_path):
    placed(saved(), tmp_path / "data", "ogbn-small")
    code = f"""
import sys
from pathlib import Path
from ppgsl_bench.datasets import registry, Sources
sources = Sources((Path({str(tmp_path / "data")!r}),), Path('x'), offline=True)
registry.get('ogb').create(dataset='ogbn-small').load(sources)
print([m for m in ('ogb', 'torch', 'pooch') if m in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (None, None),
        ([[0], [2]], [0, 2]),
        ([[0.0], [np.nan]], [0, -1]),
        ([[0.5], [1.0]], None),
        ([[-3], [1]], None),
        ([[0, 1], [1, 1]], None),
    ],
)
def test_labels(labels, classes):
    found = _classes(None if labels is None else np.array(labels))
    assert (None if found is None else found.tolist()) == classes
