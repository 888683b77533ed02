import os
import pickle
import shutil
from collections import Counter, defaultdict

import numpy as np
import pytest
import scipy.sparse as sp

from ppgsl_bench.datasets import Sources, registry
from ppgsl_bench.datasets.planetoid import assemble, restricted_unpickle
from ppgsl_bench.datasets.sources import ChecksumError


class Bomb:
    """Unpickling this makes a folder: proof that code ran."""

    def __init__(self, target):
        self.target = str(target)

    def __reduce__(self):
        return os.mkdir, (self.target,)


@pytest.mark.dataset
@pytest.mark.parametrize(("name", "pyg_name"), [("cora", "Cora"), ("citeseer", "CiteSeer"), ("pubmed", "PubMed")])
def test_equals_pyg(name, pyg_name, datasets_dir, tmp_path):
    from torch_geometric.datasets import Planetoid

    (tmp_path / pyg_name).mkdir()
    (tmp_path / pyg_name / "raw").symlink_to(datasets_dir / pyg_name / "raw")
    theirs = Planetoid(str(tmp_path), pyg_name)[0]
    ours = registry.get(name)().load(Sources((datasets_dir,), tmp_path / "cache", offline=True))
    edge_index = theirs.edge_index.numpy()
    assert edge_index.shape[1] == 2 * ours.num_edges
    forward = edge_index[:, edge_index[0] < edge_index[1]].T
    assert np.array_equal(ours.edges, forward[np.lexsort(forward.T[::-1])])
    assert np.array_equal(ours.y, theirs.y.numpy())
    difference = ours.x - sp.csr_array(theirs.x.numpy())
    assert difference.nnz == 0 or np.abs(difference.data).max() == 0
    assert ours.x.nnz == np.count_nonzero(theirs.x.numpy())


@pytest.mark.dataset
def test_citeseer_keeps_nodes_without_features(datasets_dir, tmp_path):
    graph = registry.get("citeseer")().load(Sources((datasets_dir,), tmp_path, offline=True))
    no_features = np.flatnonzero(np.diff(graph.x.indptr) == 0)
    assert len(no_features) == 15
    assert (graph.y[no_features] == 0).all()
    assert (graph.degrees == 0).sum() == 48


def test_assemble_undoes_the_shuffle_and_fills_gaps():
    objects = {
        "allx": sp.csr_matrix([[1, 0], [0, 2]]),
        "ally": np.array([[1, 0, 0], [0, 0, 1]]),
        "tx": sp.csr_matrix([[3, 0], [4, 4]]),
        "ty": np.array([[0, 1, 0], [0, 0, 1]]),
    }
    x, y = assemble(objects, np.array([4, 2]))
    assert np.array_equal(x.toarray(), [[1, 0], [0, 2], [4, 4], [0, 0], [3, 0]])
    assert np.array_equal(y, [0, 2, 2, 0, 1])


@pytest.mark.dataset
@pytest.mark.parametrize("part", ["graph", "allx", "x", "test.index"])
def test_tampered_file_is_refused_before_anything_is_unpickled(part, datasets_dir, tmp_path):
    shutil.copytree(datasets_dir / "Cora", tmp_path / "Cora")
    target = tmp_path / "Cora" / "raw" / f"ind.cora.{part}"
    exploded = tmp_path / "exploded"
    bomb = pickle.dumps(Bomb(exploded), protocol=2)
    target.chmod(0o644)
    target.write_bytes(bomb)
    dataset = registry.get("cora")()
    sources = Sources((tmp_path,), tmp_path / "cache", offline=True)
    for act in (dataset.load, dataset.fingerprint):
        with pytest.raises(ChecksumError, match=str(target)):
            act(sources)
    assert not exploded.exists()
    pickle.loads(bomb)  # it is a live bomb
    assert exploded.exists()


@pytest.mark.dataset
def test_truncated_file_is_refused(datasets_dir, tmp_path):
    shutil.copytree(datasets_dir / "PubMed", tmp_path / "PubMed")
    target = tmp_path / "PubMed" / "raw" / "ind.pubmed.allx"
    target.chmod(0o644)
    target.write_bytes(target.read_bytes()[:-1])
    with pytest.raises(ChecksumError, match=r"7578384 bytes.*expected SHA-256 508e538e"):
        registry.get("pubmed")().load(Sources((tmp_path,), tmp_path / "cache", offline=True))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_restricted_unpickler_runs_nothing(tmp_path, protocol):
    exploded = tmp_path / "exploded"
    for payload in (Bomb(exploded), [1, {"a": Bomb(exploded)}], Counter("ab"), print, eval, os.system, np.load):
        with pytest.raises(pickle.UnpicklingError, match="may not refer to"):
            restricted_unpickle(pickle.dumps(payload, protocol=protocol))
    assert not exploded.exists()


def test_restricted_unpickler_refuses_dotted_ways_round():
    # Protocol 4 can name attributes of attributes: STACK_GLOBAL "numpy" "ndarray.__class__".
    for module, name in (("numpy", "ndarray.__class__"), ("collections", "defaultdict.fromkeys"), ("builtins", "eval")):
        data = b"\x80\x04\x8c" + bytes([len(module)]) + module.encode() + b"\x8c" + bytes([len(name)]) + name.encode()
        with pytest.raises(pickle.UnpicklingError, match="may not refer to"):
            restricted_unpickle(data + b"\x93.")


def test_restricted_unpickler_knows_what_the_files_hold():
    # As Python 2 wrote it: `list` of the module __builtin__.
    data = b"ccollections\ndefaultdict\np0\n(c__builtin__\nlist\np1\ntp2\nRp3\nI0\n(lp4\nI633\nas."
    value = restricted_unpickle(data)
    assert isinstance(value, defaultdict)
    assert value == {0: [633]}
