"""Where raw files come from, and the proof that they are the right ones.

A raw file is looked for in the user's data folders, then in the cache, and is downloaded into the cache last. Wherever
it was found, its SHA-256 is compared with the pinned one, and callers get the very bytes that were hashed: nothing is
parsed, let alone unpickled, that was not verified first.
"""

import hashlib
import os
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, TypeAlias

from ppgsl_bench.errors import UserError

if TYPE_CHECKING:
    from ppgsl_bench.datasets import Dataset

DATA_VARIABLE = "PPGSL_BENCH_DATA"

# The largest pinned member is some 15 MB; what unpacks to more than this is not the archive that it claims to be.
_LARGEST_MEMBER = 256 * 2**20

_HOW_TO_PROVIDE = f"put them, at these paths, below a folder given with --data-dir or {DATA_VARIABLE}"


class MissingRawFileError(UserError):
    """A raw file that is in none of the places and cannot be downloaded."""


class ChecksumError(UserError):
    """A raw file that is not the one pinned: truncated, tampered with, or another edition."""


def default_cache_dir() -> Path:
    """The user's cache folder for downloaded datasets."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("ppgsl-bench")) / "datasets"


@dataclass(frozen=True)
class Sources:
    """Where raw files may be taken from.

    Attributes:
        data_dirs: folders in the layout of PyG's raw files, searched first.
        cache_dir: where downloads are kept.
        offline: never touch the network.
    """

    data_dirs: tuple[Path, ...] = ()
    cache_dir: Path = field(default_factory=default_cache_dir)
    offline: bool = False

    @classmethod
    def from_environment(cls, data_dirs: Iterable[Path] = (), *, offline: bool = False) -> "Sources":
        """The given folders, then those that PPGSL_BENCH_DATA names (separated as in PATH)."""
        named = (Path(part) for part in os.environ.get(DATA_VARIABLE, "").split(os.pathsep) if part)
        return cls(data_dirs=(*data_dirs, *named), offline=offline)


@dataclass(frozen=True)
class RawFile:
    """A raw file and its pinned checksum.

    Attributes:
        path: place below a data folder or the cache, e.g. `Cora/raw/ind.cora.x`.
        sha256: of the whole file; None for an archive, which may be packed anew with the same members.
        members: of an archive, SHA-256 by file name (folders inside the archive do not matter).
        url: where it can be downloaded; None if it cannot.
    """

    path: str
    sha256: str | None = None
    members: Mapping[str, str] = field(default_factory=dict)
    url: str | None = None

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return PurePosixPath(self.path).name

    @property
    def pins(self) -> dict[str, str]:
        """SHA-256 by name: of the file itself, or of the members of an archive."""
        return dict(self.members) if self.sha256 is None else {self.name: self.sha256}

    def verified(self, data: bytes, where: Path) -> dict[str, bytes]:
        """The file's bytes (of an archive, its pinned members' bytes) by name, each checked against its pin."""
        contents = {self.name: data} if self.sha256 is not None else self._unpacked(data, where)
        for name, expected in self.pins.items():
            actual = hashlib.sha256(contents[name]).hexdigest()
            if actual != expected:
                inside = "" if name == self.name else f", member {name}"
                raise ChecksumError(
                    f"{where}{inside} is not the pinned file ({len(contents[name])} bytes; truncated, altered or "
                    f"another edition): expected SHA-256 {expected}, found {actual}; delete or replace it"
                )
        return contents

    def _unpacked(self, data: bytes, where: Path) -> dict[str, bytes]:
        contents: dict[str, bytes] = {}
        try:
            with zipfile.ZipFile(BytesIO(data)) as archive:
                for info in archive.infolist():
                    name = PurePosixPath(info.filename).name
                    if name in self.members and info.file_size <= _LARGEST_MEMBER:
                        contents[name] = archive.read(info)
        except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            raise ChecksumError(
                f"{where} is no intact ZIP archive ({len(data)} bytes; {error}); delete or replace it"
            ) from error
        absent = [name for name in self.members if name not in contents]
        if absent:
            raise ChecksumError(f"{where} lacks the members {', '.join(absent)}; delete or replace it")
        return contents


Layout: TypeAlias = tuple[RawFile, ...]

Described: TypeAlias = "Dataset | type[Dataset]"


def find(file: RawFile, sources: Sources) -> Path | None:
    """Where the file lies: the data folders in their order, then the cache; None if it is absent."""
    for folder in (*sources.data_dirs, sources.cache_dir):
        path = folder / file.path
        if path.is_file():
            return path
    return None


def read_raw(dataset: Described, sources: Sources) -> dict[str, bytes]:
    """Verified contents by file name of the first layout that can be had; downloads what is absent unless offline."""
    contents: dict[str, bytes] = {}
    for file in _chosen_layout(dataset, sources):
        path = find(file, sources) or _download(file, sources)
        contents |= file.verified(path.read_bytes(), path)
    return contents


def fetch(dataset: Described, sources: Sources) -> list[Path]:
    """Make sure that the raw files are here, downloading what is absent; returns where they are, verified.

    A dataset without pinned files has nothing to fetch.
    """
    if not dataset.layouts:
        return []
    read_raw(dataset, sources)
    found = (find(file, sources) for file in _chosen_layout(dataset, sources))
    return [path for path in found if path is not None]


def fingerprint_of(dataset: Described, sources: Sources) -> str:
    """SHA-256 over the names and digests of the raw files that `read_raw` would give.

    Files that are here are verified; for those still to be downloaded the pin stands: planning downloads nothing.
    """
    pins: dict[str, str] = {}
    for file in _chosen_layout(dataset, sources):
        path = find(file, sources)
        if path is not None:
            file.verified(path.read_bytes(), path)
        pins |= file.pins
    return hashlib.sha256(repr(sorted(pins.items())).encode()).hexdigest()


def _chosen_layout(dataset: Described, sources: Sources) -> Layout:
    for layout in dataset.layouts:
        if all(find(file, sources) for file in layout):
            return layout
    for layout in dataset.layouts:
        if not sources.offline and all(file.url or find(file, sources) for file in layout):
            return layout
    raise MissingRawFileError(_absence(dataset, sources))


def _absence(dataset: Described, sources: Sources) -> str:
    sought = " or else ".join(
        ", ".join(file.path for file in layout if find(file, sources) is None) for layout in dataset.layouts
    )
    places = [f"{folder}{'' if folder.is_dir() else ' (no such folder)'}" for folder in sources.data_dirs]
    places.append(f"{sources.cache_dir} (cache)")
    can_download = any(all(file.url for file in layout) for layout in dataset.layouts)
    if can_download:
        remedy = f"{_HOW_TO_PROVIDE}, or allow the download by leaving out --offline"
    else:
        remedy = f"no download is offered for this dataset: {_HOW_TO_PROVIDE}. Origin: {dataset.origin}"
    return f"dataset {dataset.name}: no {sought} in {', '.join(places)}; {remedy}"


def _download(file: RawFile, sources: Sources) -> Path:
    """Into the cache, under the final name only once verified."""
    import pooch

    target = sources.cache_dir / file.path
    pin = None if file.sha256 is None else f"sha256:{file.sha256}"
    try:
        fetched = Path(pooch.retrieve(file.url, known_hash=pin, fname=f"{file.name}.part", path=target.parent))
        try:
            file.verified(fetched.read_bytes(), fetched)
            fetched.replace(target)
        finally:
            fetched.unlink(missing_ok=True)
    except (OSError, ValueError, ChecksumError) as error:
        raise UserError(
            f"downloading {file.url} failed: {error}; fetch {file.path} by other means and {_HOW_TO_PROVIDE}"
        ) from error
    return target


Place: TypeAlias = Literal["data dir", "cache", "absent"]


@dataclass(frozen=True)
class FileStatus:
    """Whether one raw file is here.

    Attributes:
        path: relative to a data folder.
        place: in which kind of place it was found.
        found: the full path, None if absent.
        intact: whether it has the pinned checksum, None if absent.
        pins: SHA-256 by name, of the file or of an archive's members.
        url: where it can be downloaded, None if it cannot.
    """

    path: str
    place: Place
    found: Path | None
    intact: bool | None
    pins: Mapping[str, str]
    url: str | None


@dataclass(frozen=True)
class DatasetStatus:
    """What `ppgsl-bench datasets` says of a dataset.

    Attributes:
        name: what users type.
        summary: one line.
        origin, licence: notes for people.
        files: the raw files of all layouts; empty for generated graphs and for files that a parameter names.
        ready: it can be loaded without the network.
        downloadable: the raw files can be downloaded.
    """

    name: str
    summary: str
    origin: str
    licence: str
    files: tuple[FileStatus, ...]
    ready: bool
    downloadable: bool


def status(name: str, sources: Sources) -> DatasetStatus:
    """Where the raw files of a dataset are, whether they are intact, and where they come from."""
    from ppgsl_bench.datasets import registry

    dataset = registry.get(name)
    by_layout = [[_file_status(file, sources) for file in layout] for layout in dataset.layouts]
    return DatasetStatus(
        name=name,
        summary=dataset.summary(),
        origin=dataset.origin,
        licence=dataset.licence,
        files=tuple(file for layout in by_layout for file in layout),
        ready=not by_layout or any(all(file.intact for file in layout) for layout in by_layout),
        downloadable=any(all(file.url for file in layout) for layout in by_layout),
    )


def _file_status(file: RawFile, sources: Sources) -> FileStatus:
    path = find(file, sources)
    intact = None
    place: Place = "absent"
    if path is not None:
        place = "cache" if path == sources.cache_dir / file.path else "data dir"
        try:
            file.verified(path.read_bytes(), path)
            intact = True
        except ChecksumError:
            intact = False
    return FileStatus(file.path, place, path, intact, file.pins, file.url)
