"""Graphs of the Open Graph Benchmark (Hu et al., NeurIPS 2020).

OGB's own loader keeps what it has read as a pickle and reads that back with a bare `torch.load`, which torch ≥ 2.6
refuses and which would run whatever the file says; and importing `ogb` asks PyPI for its newest version, even offline.
So the raw files, CSV or NumPy archives without pickles, are read here. Of the package `ogb` only the table of
names and addresses is used, as a file, and only for a download.
"""

import csv
import difflib
import hashlib
import shutil
import tempfile
import zipfile
import zlib
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.datasets import Dataset, Field, Sources, register
from ppgsl_bench.datasets.sources import DATA_VARIABLE, MissingRawFileError
from ppgsl_bench.errors import GraphError, UnknownNameError, UserError
from ppgsl_bench.graph import Graph

_TABLES = {"ogbn": "nodeproppred", "ogbl": "linkproppred"}
# Files that only a graph with several kinds of nodes has.
_HETEROGENEOUS = ("edge_index_dict.npz", "triplet-type-list.csv.gz")


@register("ogb", version=1, extra="ogb")
class OpenGraphBenchmark(Dataset):
    """A node or link property graph of the Open Graph Benchmark, e.g. ogb[dataset=ogbn-arxiv].

    Links lose their direction and attributes. Labels are kept where there is one class a node. The link property graphs
    hold the training links only, as OGB ships them.
    """

    dataset: str = Field("", pattern=r"^ogb[nl]-[A-Za-z0-9-]+$", help="OGB's name, ogbn-… or ogbl-…")

    origin = (
        "Hu et al., Open Graph Benchmark, NeurIPS 2020. OGB publishes no checksums: a download is what OGB serves that "
        "day, and results carry the digest of the raw files"
    )
    licence = "differs between the graphs, see ogb.stanford.edu"

    def fingerprint(self, sources: Sources) -> str:
        """SHA-256 over the raw files, which are downloaded first if they are absent."""
        sha = hashlib.sha256()
        for path in sorted(self._raw_dir(sources).iterdir()):
            if path.is_file():
                with path.open("rb") as file:
                    sha.update(f"{path.name}:{hashlib.file_digest(file, 'sha256').hexdigest()};".encode())
        return sha.hexdigest()

    def load(self, sources: Sources) -> Graph:
        """Read the raw files, in whichever of OGB's two formats they are."""
        raw = self._raw_dir(sources)
        if any((raw / name).exists() for name in _HETEROGENEOUS):
            raise GraphError(f"{self.dataset} has several kinds of nodes; only graphs with one kind are supported")
        try:
            arrays = _read_binary(raw) if (raw / "data.npz").exists() else _read_csv(raw)
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
            raise GraphError(f"{raw}: not a complete raw folder of OGB: {type(error).__name__}: {error}") from error
        num_nodes = arrays["num_nodes"].ravel()
        if len(num_nodes) != 1:
            raise GraphError(f"{raw}: holds {len(num_nodes)} graphs; expected one")
        return Graph.from_pairs(
            int(num_nodes[0]),
            arrays["edge_index"].T,
            x=arrays.get("node_feat"),
            y=_classes(arrays.get("labels")),
            name=self.label,
            loops="drop",
            duplicates="merge",
        )

    def _raw_dir(self, sources: Sources) -> Path:
        """OGB's folder `ogbn_arxiv/raw`, below a data folder or below its subfolder `ogb`; else the cache's copy."""
        folder = self.dataset.replace("-", "_")
        cached = sources.cache_dir / "ogb" / folder / "raw"
        places = [base / folder / "raw" for data in sources.data_dirs for base in (data, data / "ogb")]
        for path in (*places, cached):
            if path.is_dir():
                return path
        if sources.offline:
            sought = ", ".join(map(str, (*places, cached)))
            raise MissingRawFileError(
                f"dataset {self.label}: none of these folders is there: {sought}; put OGB's folder {folder} below one "
                f"given with --data-dir or {DATA_VARIABLE}, or allow the download by leaving out --offline"
            )
        return _download(_address(self.dataset), cached)


def _read_binary(raw: Path) -> dict[str, NDArray[Any]]:
    """`data.npz` and `node-label.npz`; object arrays, which would be pickles, are refused."""
    with np.load(raw / "data.npz", allow_pickle=False) as archive:
        arrays = {"edge_index": archive["edge_index"], "num_nodes": archive["num_nodes_list"]}
        if "node_feat" in archive.files:
            arrays["node_feat"] = archive["node_feat"]
    if (raw / "node-label.npz").exists():
        with np.load(raw / "node-label.npz", allow_pickle=False) as archive:
            arrays["labels"] = archive["node_label"]
    return arrays


def _read_csv(raw: Path) -> dict[str, NDArray[Any]]:
    import pandas as pd

    def table(name: str) -> NDArray[Any]:
        return pd.read_csv(raw / f"{name}.csv.gz", header=None).to_numpy()

    arrays = {"edge_index": table("edge").T, "num_nodes": table("num-node-list")}
    for name, key in (("node-feat", "node_feat"), ("node-label", "labels")):
        if (raw / f"{name}.csv.gz").exists():
            arrays[key] = table(name)
    return arrays


def _classes(labels: NDArray[Any] | None) -> NDArray[np.int64] | None:
    """One whole number a node, -1 where it is unknown; None for several tasks or a regression."""
    if labels is None or labels.ndim != 2 or labels.shape[1] != 1:
        return None
    values = labels[:, 0].astype(np.float64)
    known = np.isfinite(values)
    if (values[known] != np.round(values[known])).any() or (values[known] < 0).any():
        return None
    return np.where(known, values, -1).astype(np.int64)


def _address(dataset: str) -> str:
    """Where OGB serves the dataset, from the table in its package, which is read but not imported."""
    spec = find_spec("ogb")
    if spec is None or not spec.submodule_search_locations:
        raise UserError(f"downloading {dataset} needs the package ogb; install it with: pip install 'ppgsl-bench[ogb]'")
    table = Path(spec.submodule_search_locations[0]) / _TABLES[dataset[:4]] / "master.csv"
    with table.open(encoding="utf-8", newline="") as file:
        rows = {row[0]: row[1:] for row in csv.reader(file)}
    names = rows[""]
    if dataset not in names:
        close = difflib.get_close_matches(dataset, names, n=3, cutoff=0.5) or names
        raise UnknownNameError(f"OGB has no graph {dataset!r}; did you mean {' or '.join(map(repr, close))}?")
    if rows["is hetero"][names.index(dataset)] == "True":
        raise GraphError(f"{dataset} has several kinds of nodes; only graphs with one kind are supported")
    return rows["url"][names.index(dataset)].replace("http://", "https://", 1)


def _download(url: str, raw: Path) -> Path:
    """Fetch OGB's archive and keep its folder `raw`, which appears only when complete."""
    import pooch

    raw.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=raw.parent) as temporary:
            archive = pooch.retrieve(url, known_hash=None, fname="archive.zip", path=temporary)
            _unpacked_raw(Path(archive)).rename(raw)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise UserError(f"downloading {url} failed: {error}") from error
    return raw


def _unpacked_raw(archive: Path) -> Path:
    """The files of the archive's folder `raw`, in a new folder beside it; by name only: no path leads elsewhere."""
    folder = archive.with_name("raw")
    folder.mkdir()
    with zipfile.ZipFile(archive) as members:
        for info in members.infolist():
            member = PurePosixPath(info.filename)
            if member.parent.name == "raw" and not info.is_dir():
                with members.open(info) as source, (folder / member.name).open("wb") as target:
                    shutil.copyfileobj(source, target)
    if not any(folder.iterdir()):
        raise ValueError("the archive has no folder raw")
    return folder
