import hashlib
import socket
import subprocess
import sys
import types
import zipfile
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from ppgsl_bench.datasets import Dataset, Layout, RawFile, Sources, registry
from ppgsl_bench.datasets.sources import (
    ChecksumError,
    MissingRawFileError,
    fetch,
    find,
    fingerprint_of,
    read_raw,
    status,
)
from ppgsl_bench.errors import UserError

CONTENT = b"0 1\n1 2\n"
PIN = hashlib.sha256(CONTENT).hexdigest()


class Toy(Dataset):
    name: ClassVar[str] = "toy"
    origin = "made up"
    layouts: ClassVar[tuple[Layout, ...]] = (
        (RawFile("Toy/raw/toy.txt", PIN),),
        (RawFile("Toy/raw/toy.zip", members={"toy.txt": PIN}, url="https://example.org/toy.zip"),),
    )


def put(folder: Path, relative: str, content: bytes) -> Path:
    path = folder / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def put_zip(folder: Path, relative: str, **members: bytes) -> Path:
    path = put(folder, relative, b"")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"some folder/{name.replace('_', '.')}", content)
    return path


@pytest.fixture
def sources(tmp_path) -> Sources:
    return Sources((tmp_path / "one", tmp_path / "two"), tmp_path / "cache", offline=True)


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("touched the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setitem(sys.modules, "pooch", None)


@pytest.fixture
def served(monkeypatch):
    """A stand-in for pooch that serves what the test puts in, and notes what was asked for."""
    contents: dict[str, bytes] = {}
    asked: list[tuple[str, str | None]] = []

    def retrieve(url, known_hash, fname, path):
        asked.append((url, known_hash))
        if url not in contents:
            raise OSError("503 Service Unavailable")
        return str(put(Path(path), fname, contents[url]))

    monkeypatch.setitem(sys.modules, "pooch", types.SimpleNamespace(retrieve=retrieve))
    return types.SimpleNamespace(contents=contents, asked=asked)


class TestSearch:
    def test_data_folders_come_in_order_then_the_cache(self, sources):
        file = Toy.layouts[0][0]
        assert find(file, sources) is None
        for folder in (sources.cache_dir, sources.data_dirs[1], sources.data_dirs[0]):
            put(folder, file.path, CONTENT)
            assert find(file, sources) == folder / file.path

    def test_the_second_layout_serves_when_the_first_is_absent(self, sources):
        put_zip(sources.cache_dir, "Toy/raw/toy.zip", toy_txt=CONTENT, other_txt=b"ignored")
        assert read_raw(Toy, sources) == {"toy.txt": CONTENT}

    def test_environment_variable_follows_the_given_folders(self, monkeypatch, tmp_path):
        monkeypatch.setenv("PPGSL_BENCH_DATA", str(tmp_path / "b"))
        assert Sources.from_environment([tmp_path / "a"]).data_dirs == (tmp_path / "a", tmp_path / "b")
        monkeypatch.setenv("PPGSL_BENCH_DATA", "")
        assert Sources.from_environment().data_dirs == ()

    def test_absent_and_offline_names_files_and_places(self, sources, no_network):
        sources.data_dirs[1].mkdir()
        for act in (read_raw, fetch, fingerprint_of):
            with pytest.raises(MissingRawFileError) as caught:
                act(Toy, sources)
            message = str(caught.value)
            for part in ("toy", "Toy/raw/toy.txt", "Toy/raw/toy.zip", *map(str, sources.data_dirs), "no such folder"):
                assert part in message
            assert str(sources.cache_dir) in message
            assert "--offline" in message
        assert not sources.cache_dir.exists()

    @pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed", "polblogs", "lastfm-asia", "deezer-europe"])
    def test_real_datasets_offline_without_files(self, name, sources, no_network):
        dataset = registry.get(name)()
        for act in (dataset.load, dataset.fingerprint):
            with pytest.raises(MissingRawFileError, match="/raw/"):
                act(sources)

    def test_no_download_is_offered_for_polblogs(self, tmp_path, no_network):
        with pytest.raises(
            MissingRawFileError, match=r"no download is offered.*adjacency|adjacency.*no download"
        ) as caught:
            registry.get("polblogs")().load(Sources((), tmp_path, offline=False))
        assert "labels.tsv" in str(caught.value)
        assert "--data-dir" in str(caught.value)


class TestVerification:
    @pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b"\n", b""], ids=["truncated", "longer", "empty"])
    def test_wrong_file_is_refused_wherever_it_lies(self, sources, content):
        for folder in (sources.cache_dir, sources.data_dirs[0]):
            path = put(folder, "Toy/raw/toy.txt", content)
            for act in (read_raw, fingerprint_of, fetch):
                with pytest.raises(ChecksumError) as caught:
                    act(Toy, sources)
                for part in (str(path), PIN, hashlib.sha256(content).hexdigest()):
                    assert part in str(caught.value)

    def test_truncated_archive(self, sources):
        path = put_zip(sources.cache_dir, "Toy/raw/toy.zip", toy_txt=CONTENT)
        path.write_bytes(path.read_bytes()[:-10])
        with pytest.raises(ChecksumError, match="no intact ZIP archive"):
            read_raw(Toy, sources)

    def test_altered_and_absent_members(self, sources):
        put_zip(sources.cache_dir, "Toy/raw/toy.zip", toy_txt=b"other")
        with pytest.raises(ChecksumError, match=f"member toy.txt.*{PIN}"):
            read_raw(Toy, sources)
        put_zip(sources.cache_dir, "Toy/raw/toy.zip", readme_txt=b"other")
        with pytest.raises(ChecksumError, match=r"lacks the members toy\.txt"):
            read_raw(Toy, sources)

    def test_a_member_that_unpacks_beyond_all_bounds_is_not_unpacked(self, sources, monkeypatch):
        monkeypatch.setattr("ppgsl_bench.datasets.sources._LARGEST_MEMBER", 1000)
        put_zip(sources.cache_dir, "Toy/raw/toy.zip", toy_txt=bytes(10**6))
        monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("unpacked"))
        with pytest.raises(ChecksumError, match="lacks"):
            read_raw(Toy, sources)

    def test_fingerprint_follows_the_content_not_the_place_nor_the_packing(self, sources):
        put(sources.cache_dir, "Toy/raw/toy.txt", CONTENT)
        plain = fingerprint_of(Toy, sources)
        put(sources.data_dirs[0], "Toy/raw/toy.txt", CONTENT)
        assert fingerprint_of(Toy, sources) == plain


class TestDownload:
    def online(self, sources: Sources) -> Sources:
        return Sources(sources.data_dirs, sources.cache_dir, offline=False)

    def test_into_the_cache_and_only_once(self, sources, served, tmp_path):
        packed = put_zip(tmp_path, "packed.zip", toy_txt=CONTENT).read_bytes()
        served.contents["https://example.org/toy.zip"] = packed
        before = fingerprint_of(Toy, self.online(sources))
        assert served.asked == []
        assert fetch(Toy, self.online(sources)) == [sources.cache_dir / "Toy/raw/toy.zip"]
        assert read_raw(Toy, sources) == {"toy.txt": CONTENT}
        assert fingerprint_of(Toy, sources) == before
        assert len(served.asked) == 1
        assert [p.name for p in (sources.cache_dir / "Toy/raw").iterdir()] == ["toy.zip"]

    def test_a_wrong_download_leaves_nothing_behind(self, sources, served):
        served.contents["https://example.org/toy.zip"] = b"<html>gone</html>"
        with pytest.raises(UserError, match=r"downloading https://example\.org/toy\.zip failed.*--data-dir"):
            read_raw(Toy, self.online(sources))
        assert list((sources.cache_dir / "Toy/raw").iterdir()) == []

    def test_an_unreachable_host_is_a_clear_error(self, sources, served):
        with pytest.raises(UserError, match="503 Service Unavailable"):
            read_raw(Toy, self.online(sources))

    def test_planetoid_downloads_are_pinned(self, sources, served):
        with pytest.raises(UserError, match="kimiyoung/planetoid"):
            registry.get("cora")().load(self.online(sources))
        ((url, pin),) = served.asked
        assert url.startswith("https://raw.githubusercontent.com/kimiyoung/planetoid/master/data/ind.cora.")
        assert pin == f"sha256:{registry.get('cora').layouts[0][0].sha256}"

    def test_a_file_at_hand_is_not_downloaded(self, sources, served):
        put(sources.data_dirs[0], "Toy/raw/toy.txt", CONTENT)
        assert read_raw(Toy, self.online(sources)) == {"toy.txt": CONTENT}
        assert served.asked == []


class TestStatus:
    def test_absent(self, sources):
        cora = status("cora", sources)
        assert len(cora.files) == 8
        assert {f.place for f in cora.files} == {"absent"}
        assert not cora.ready
        assert cora.downloadable
        assert "Sen et al." in cora.origin
        assert "MIT" in cora.licence
        assert not status("polblogs", sources).downloadable

    def test_data_dir_cache_and_damage(self, sources, monkeypatch):
        monkeypatch.setattr(registry, "get", lambda _name: Toy)
        put(sources.cache_dir, "Toy/raw/toy.txt", CONTENT[:-1])
        put_zip(sources.data_dirs[1], "Toy/raw/toy.zip", toy_txt=CONTENT)
        toy = status("toy", sources)
        assert [(f.place, f.intact) for f in toy.files] == [("cache", False), ("data dir", True)]
        assert toy.files[1].found == sources.data_dirs[1] / "Toy/raw/toy.zip"
        assert dict(toy.files[1].pins) == {"toy.txt": PIN}
        assert toy.ready

    @pytest.mark.parametrize("name", ["er", "synthetic", "karate", "lesmis", "file", "ogb"])
    def test_datasets_without_pinned_files(self, name, sources):
        assert status(name, sources).files == ()
        assert fetch(registry.get(name), sources) == []
        assert status(name, sources).origin

    def test_every_pin_is_a_sha256(self):
        for name in registry.names():
            for layout in registry.get(name).layouts:
                for file in layout:
                    assert file.pins
                    assert all(len(pin) == 64 and int(pin, 16) >= 0 for pin in file.pins.values())


HEAVY = ("torch", "pandas", "networkx", "sklearn", "pooch", "ogb", "requests")


def run_python(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_listing_and_status_import_nothing_heavy():
    code = f"""
import sys
from ppgsl_bench.datasets import registry, Sources
from ppgsl_bench.datasets.sources import status
names = registry.names()
for name in names: status(name, Sources(offline=True)); registry.entry(name).summary
print(','.join(names), [m for m in {HEAVY} if m in sys.modules])
"""
    expected = "citeseer,cora,deezer-europe,er,file,karate,lastfm-asia,lesmis,ogb,polblogs,pubmed,synthetic"
    assert run_python(code) == f"{expected} []"


@pytest.mark.dataset
def test_fingerprints_and_real_graphs_need_none_of_the_heavy_modules(datasets_dir):
    code = f"""
import sys
from pathlib import Path
from ppgsl_bench.datasets import registry, Sources
sources = Sources((Path({str(datasets_dir)!r}),), Path('nowhere'), offline=True)
for name in ('cora', 'polblogs', 'lastfm-asia', 'deezer-europe'):
    registry.get(name)().fingerprint(sources); registry.get(name)().load(sources)
print([m for m in {HEAVY} if m in sys.modules])
"""
    assert run_python(code) == "[]"


def test_summaries_fit_one_line():
    for name in registry.names():
        assert 0 < len(registry.entry(name).summary) <= 90, name


COUNTS = {
    "cora": (2708, 5278, 1433, 7, 49216),
    "citeseer": (3327, 4552, 3703, 6, 105165),
    "pubmed": (19717, 44324, 500, 3, 988031),
    "polblogs": (1490, 16715, 0, 2, 0),
    "lastfm-asia": (7624, 27806, 0, 18, 0),
    "deezer-europe": (28281, 92752, 128, 2, None),
}

# SHA-256 of links and labels: the same numbers on every machine, or results cannot be compared.
CONTENT_DIGESTS = {
    "cora": "a21d4ef1d6441dc323ae749009d77cf993838a125eb7c9aa65411a66ee0bb33b",
    "citeseer": "9e254fa628124be98ba339aef759de71f704e5e290f854febfb8977bd3923f09",
    "pubmed": "6d51d595c4f21a4f2bc353a25c9885dda28f5e50cc3cd41cb52e68bf63803516",
    "polblogs": "6a2d5400ef0c80e60058909c3917b05591cf148f6699c61eba220ae4def91d1b",
    "lastfm-asia": "c8388fb56013ff5a6ee5cce21334c5ca7b5c2c7767fd2f411afc8383336288e0",
    "deezer-europe": "4f2cf8d821db96417c711e9b8121f1a4056b5f3c367a339149b72b182c2e35e5",
}


def content_digest(graph) -> str:
    sha = hashlib.sha256(graph.edges.astype("<i8").tobytes())
    sha.update(graph.y.astype("<i8").tobytes())
    return sha.hexdigest()


@pytest.mark.dataset
@pytest.mark.parametrize("name", COUNTS)
def test_real_graphs(name, datasets_dir, tmp_path, no_network):
    sources = Sources((datasets_dir,), tmp_path, offline=True)
    dataset = registry.get(name)()
    graph = dataset.load(sources)
    nodes, links, features, classes, nonzero = COUNTS[name]
    assert (graph.num_nodes, graph.num_edges) == (nodes, links)
    assert (0 if graph.x is None else graph.x.shape[1]) == features
    assert np.array_equal(np.unique(graph.y), np.arange(classes))
    if nonzero:
        assert graph.x.nnz == nonzero
    assert graph.name == name
    assert dataset.fingerprint(sources) == dataset.fingerprint(sources)
    assert dataset.load(sources).digest == graph.digest
    assert content_digest(graph) == CONTENT_DIGESTS[name]
    assert status(name, sources).ready
    assert list(tmp_path.iterdir()) == []
