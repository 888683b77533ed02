"""LastFM and Deezer users (Rozemberczki and Sarkar, "Characteristic Functions on Graphs", CIKM 2020).

Two layouts are read. The first is the `.npz` file of PyG's dataset classes, whose host is gone: the pinned copies have
the real links and labels, features derived anew (Deezer) or none at all (LastFM). The second is the archive of the SNAP
collection, with the lists of liked artists, from which the 128 features are derived here. Links play no part in them.
"""

import json
from io import BytesIO
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ppgsl_bench.datasets import Dataset, Layout, RawFile, Sources, register
from ppgsl_bench.datasets.sources import fingerprint_of, read_raw
from ppgsl_bench.graph import Graph

# As many as in the files that PyG used to download.
NUM_FEATURES = 128

_LICENCE = "MIT (benedekrozemberczki/datasets)"
_PAPER = "Rozemberczki and Sarkar, Characteristic Functions on Graphs, CIKM 2020; collected in March 2020"


def _layouts(folder: str, stem: str, *, npz: str, edges: str, target: str, features: str) -> tuple[Layout, ...]:
    members = {f"{stem}_edges.csv": edges, f"{stem}_target.csv": target, f"{stem}_features.json": features}
    archive = RawFile(f"{folder}/raw/{stem}.zip", members=members, url=f"https://snap.stanford.edu/data/{stem}.zip")
    return (RawFile(f"{folder}/raw/{stem}.npz", npz),), (archive,)


class FeatherGraph(Dataset):
    """Base of the two networks."""

    stem: ClassVar[str]

    def fingerprint(self, sources: Sources) -> str:
        """Digest of the `.npz` file, or of the members of the SNAP archive."""
        return fingerprint_of(self, sources)

    def load(self, sources: Sources) -> Graph:
        """Read whichever layout is there."""
        raw = read_raw(self, sources)
        stem = self.stem
        if f"{stem}.npz" in raw:
            with np.load(BytesIO(raw[f"{stem}.npz"]), allow_pickle=False) as arrays:
                pairs, x, y = arrays["edges"], arrays["features"], arrays["target"]
        else:
            pairs = np.loadtxt(BytesIO(raw[f"{stem}_edges.csv"]), dtype=np.int64, delimiter=",", skiprows=1)
            ids, targets = np.loadtxt(BytesIO(raw[f"{stem}_target.csv"]), dtype=np.int64, delimiter=",", skiprows=1).T
            y = targets[np.argsort(ids)]
            x = derived_features(likes_matrix(raw[f"{stem}_features.json"], num_nodes=len(y)))
        features = x if x.shape[1] else None
        return Graph.from_pairs(len(y), pairs, x=features, y=y, name=self.label, loops="drop", duplicates="merge")


def likes_matrix(text: bytes, num_nodes: int) -> sp.csr_array:
    """The 0/1 matrix users × artists of a JSON object that lists the artists liked by each user."""
    likes: dict[str, list[int]] = json.loads(text)
    rows = np.repeat(np.array([int(user) for user in likes]), [len(artists) for artists in likes.values()])
    columns = np.array([artist for artists in likes.values() for artist in artists], dtype=np.int64)
    matrix = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(num_nodes, int(columns.max()) + 1))
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def derived_features(likes: sp.csr_array) -> NDArray[np.float32]:
    """The leading left singular vectors times their singular values, U·Σ; neither centred nor scaled.

    The recipe (exact Lanczos iteration, signs fixed by scikit-learn) is that of the pinned Deezer features.
    """
    from sklearn.decomposition import TruncatedSVD

    svd = TruncatedSVD(n_components=NUM_FEATURES, algorithm="arpack", tol=0.0, random_state=0)
    features: NDArray[np.float32] = svd.fit(likes).transform(likes).astype(np.float32)
    return features


@register("lastfm-asia", version=1, tags=("paper",))
class LastFMAsia(FeatherGraph):
    """7,624 LastFM users in Asia, 27,806 friendships, 18 countries; features only from SNAP."""

    stem = "lastfm_asia"
    origin = (
        f"{_PAPER}. The pinned .npz has no features: the graph counts as featureless; SNAP's archive has liked "
        "artists, reduced here to 128 columns by truncated SVD"
    )
    licence = _LICENCE
    layouts = _layouts(
        "LastFMAsia",
        "lastfm_asia",
        npz="47c7663bbd0981162b39e2ebfa82b058277a6d6018db8162d89876db2da3b9b0",
        edges="548eacff61bff564ab5007831fa4a7a30e1a3956075ffd24e43310ed33555842",
        target="91f19215f6eca8321feec038bd32900cf13fd4f7e041a9976cf202807c72ac16",
        features="93fe84c96ffa9f0081ab37085979641062393895925de6c344df0f829c8ed2e7",
    )


@register("deezer-europe", version=1, tags=("paper",))
class DeezerEurope(FeatherGraph):
    """28,281 Deezer users in Europe, 92,752 friendships; 128 derived features, 2 classes."""

    stem = "deezer_europe"
    origin = (
        f"{_PAPER}. The 128 features are a truncated SVD of the liked artists, since the file that PyG used to "
        "download is gone: accuracies of papers that used it compare approximately only"
    )
    licence = _LICENCE
    layouts = _layouts(
        "DeezerEurope",
        "deezer_europe",
        npz="b553ff79f00014074773b15ac7be884849e0e99d50de554e0f65da98fcfec14d",
        edges="a4aabf57e3eb20d40d5df7c7d15142b20656d9ca8f77a083106c1ee81226e530",
        target="9d5c5736e1d55361e9caa5ae4f96ea5f40c3a70a8cfaad332defac9d84c6b2c6",
        features="8d2526372b903f45bf0d1bf6df33416769b99cbb38ba89cdac54848a3143b2db",
    )
