import hashlib
import json
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from ppgsl_bench.datasets import RawFile, Sources, registry
from ppgsl_bench.datasets.feather import NUM_FEATURES, DeezerEurope, LastFMAsia, derived_features, likes_matrix

NODES, ARTISTS = 200, 300


@pytest.fixture
def small_archive(tmp_path, rng, monkeypatch):
    """An archive in SNAP's layout, and its pins in place of the real ones."""
    edges = np.unique(np.sort(rng.integers(NODES, size=(600, 2)), axis=1), axis=0)
    edges = edges[edges[:, 0] != edges[:, 1]]
    target = rng.integers(4, size=NODES)
    likes = {str(u): sorted(set(rng.integers(ARTISTS, size=rng.integers(40)).tolist())) for u in range(NODES)}
    likes["7"] = []
    order = rng.permutation(NODES)
    texts = {
        "lastfm_asia_edges.csv": "node_1,node_2\n" + "".join(f"{u},{v}\n" for u, v in edges),
        "lastfm_asia_target.csv": "id,target\n" + "".join(f"{i},{target[i]}\n" for i in order),
        "lastfm_asia_features.json": json.dumps(likes),
        "README.txt": "not read",
    }
    data_dir = tmp_path / "data"
    (data_dir / "LastFMAsia" / "raw").mkdir(parents=True)
    with zipfile.ZipFile(data_dir / "LastFMAsia" / "raw" / "lastfm_asia.zip", "w") as archive:
        for name, text in texts.items():
            archive.writestr(f"lasftm_asia/{name}", text)
    npz, (packed,) = LastFMAsia.layouts
    pins = {name: hashlib.sha256(texts[name].encode()).hexdigest() for name in packed.members}
    monkeypatch.setattr(LastFMAsia, "layouts", (npz, (RawFile(packed.path, members=pins, url=packed.url),)))
    dense = np.zeros((NODES, ARTISTS))
    for user, artists in likes.items():
        dense[int(user), artists] = 1
    return Sources((data_dir,), tmp_path / "cache", offline=True), edges, target, dense


def test_snap_archive_gives_links_labels_and_derived_features(small_archive):
    sources, edges, target, dense = small_archive
    graph = registry.get("lastfm-asia")().load(sources)
    assert np.array_equal(graph.edges, edges)
    assert np.array_equal(graph.y, target)
    assert graph.x.shape == (NODES, NUM_FEATURES)
    assert not graph.x[7].any()
    # Oracle: U·Σ of the dense decomposition; the Gram matrix does not depend on signs.
    u, s, _ = np.linalg.svd(dense, full_matrices=False)
    expected = u[:, :NUM_FEATURES] * s[:NUM_FEATURES]
    assert np.allclose(graph.x @ graph.x.T, expected @ expected.T, atol=1e-3)
    assert np.allclose(np.abs(graph.x[:, :5]), np.abs(expected[:, :5]), atol=1e-4)
    assert registry.get("lastfm-asia")().load(sources).digest == graph.digest


def test_npz_is_preferred_and_has_another_fingerprint(small_archive, monkeypatch, tmp_path):
    sources, edges, target, _ = small_archive
    dataset = registry.get("lastfm-asia")()
    from_archive = dataset.fingerprint(sources)
    path = sources.data_dirs[0] / "LastFMAsia" / "raw" / "lastfm_asia.npz"
    both = np.concatenate([edges, edges[:, ::-1]])
    np.savez(path, edges=both, features=np.empty((NODES, 0), np.float32), target=target)
    pin = hashlib.sha256(path.read_bytes()).hexdigest()
    _, archive = LastFMAsia.layouts
    monkeypatch.setattr(LastFMAsia, "layouts", ((RawFile("LastFMAsia/raw/lastfm_asia.npz", pin),), archive))
    graph = dataset.load(sources)
    assert graph.x is None
    assert np.array_equal(graph.edges, edges)
    assert dataset.fingerprint(sources) != from_archive


def test_npz_with_pickled_objects_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "DeezerEurope" / "raw" / "deezer_europe.npz"
    path.parent.mkdir(parents=True)
    np.savez(path, edges=np.array([[0, 1]]), features=np.array([[{}], [{}]], dtype=object), target=np.zeros(2))
    pin = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(DeezerEurope, "layouts", ((RawFile("DeezerEurope/raw/deezer_europe.npz", pin),),))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        registry.get("deezer-europe")().load(Sources((tmp_path,), tmp_path / "cache", offline=True))


def test_likes_are_zero_or_one():
    matrix = likes_matrix(b'{"0": [2, 2, 0], "2": [1]}', num_nodes=4)
    assert np.array_equal(matrix.toarray(), [[1, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 0]])


def test_derived_features_do_not_depend_on_the_order_of_artists(rng):
    likes = sp.csr_array((rng.random((150, 140)) < 0.2).astype(float))
    one, other = derived_features(likes), derived_features(likes[:, rng.permutation(140)])
    assert np.allclose(one, other, atol=1e-4)


@pytest.mark.dataset
def test_pinned_target_files_of_snap_say_what_the_npz_files_say(datasets_dir):
    """The labels, written as SNAP writes them, have the pinned checksum: both layouts hold the same labels."""
    for dataset, folder in ((LastFMAsia, "LastFMAsia"), (DeezerEurope, "DeezerEurope")):
        with np.load(datasets_dir / folder / "raw" / f"{dataset.stem}.npz", allow_pickle=False) as arrays:
            text = "id,target\n" + "".join(f"{i},{label}\n" for i, label in enumerate(arrays["target"]))
        pin = dataset.layouts[1][0].members[f"{dataset.stem}_target.csv"]
        assert hashlib.sha256(text.encode()).hexdigest() == pin


@pytest.mark.dataset
def test_polblogs_keeps_all_nodes(datasets_dir, tmp_path):
    graph = registry.get("polblogs")().load(Sources((datasets_dir,), tmp_path, offline=True))
    assert (graph.degrees == 0).sum() == 266
    assert np.bincount(graph.y).tolist() == [758, 732]


@pytest.mark.dataset
def test_deezer_features_are_the_pinned_ones(datasets_dir, tmp_path):
    graph = registry.get("deezer-europe")().load(Sources((datasets_dir,), tmp_path, offline=True))
    with np.load(datasets_dir / "DeezerEurope" / "raw" / "deezer_europe.npz", allow_pickle=False) as arrays:
        assert np.array_equal(graph.x, arrays["features"])
    assert (~graph.x.any(axis=1)).sum() == 6159
    assert (graph.degrees > 0).all()
