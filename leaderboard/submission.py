"""Rows from outside: are they what this board can compare, and do their numbers follow from their scores?

Checked without running anything: the schema, the protocol version, the digests of dataset and split against those of
the board's own rows, and, where stored arrays come along, the metrics themselves. The answers to the attack's pairs are
not taken from the submission: its split must hash to the known digest, and the answers are derived from it. What this
cannot show is that the scores are those of the named attack on the published graph; for that, run the cell again.
"""

import json
import math
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench import PROTOCOL_VERSION
from ppgsl_bench.errors import UserError
from ppgsl_bench.leaderboard.measurements import UNDEFENDED, UTILITIES
from ppgsl_bench.leaderboard.packed import SUFFIX, checked, pack, unpack
from ppgsl_bench.metrics import attack_metrics, strength
from ppgsl_bench.rows import Row
from ppgsl_bench.split import Split
from ppgsl_bench.store import DamagedObjectError, Objects, Results

# Packed metrics keep five digits; a smaller difference changes nothing on the board.
TOLERANCE = 2e-5

KINDS = frozenset({"split", "publish", "embed", "attack", "utility"})
_ROWS_MEMBER = f"rows{SUFFIX}"
_VERIFIED_ROLES = {"split": ("graph", "features", "split"), "publish": ("graph", "features"), "attack": ("scores",)}
# Scores of some thousand attacks on the largest graph; more than this is not a submission but a mistake.
_MAX_ARCHIVE_BYTES = 8 * 2**30


@dataclass(frozen=True)
class Refusal:
    """Why a row cannot be taken."""

    row: str
    reason: str


@dataclass
class Report:
    """What a check found.

    Attributes:
        rows: how many were checked.
        recomputed: sound attack and publish rows whose metrics were computed again from stored arrays.
        on_trust: sound rows whose metrics cannot be: utility tasks, and attacks that came without scores.
        refusals: empty for a sound submission.
    """

    rows: int = 0
    recomputed: int = 0
    on_trust: int = 0
    refusals: list[Refusal] = field(default_factory=list)


@dataclass(frozen=True)
class Submission:
    """Rows and, where they come along, the stored arrays."""

    rows: Sequence[Row]
    objects: Objects | None
    damaged: Sequence[str] = ()


@dataclass
class Known:
    """The digest of a dataset, and of its splits by seed."""

    dataset: str
    splits: dict[int, str] = field(default_factory=dict)


def known_digests(rows: Iterable[Row]) -> dict[str, Known]:
    """What the board's rows were measured on, by label of the dataset."""
    known: dict[str, Known] = {}
    for row in rows:
        if row.status == "ok" and {"dataset", "split"} <= set(row.digests):
            entry = known.setdefault(row.dataset_label, Known(row.digests["dataset"]))
            entry.splits.setdefault(row.seed, row.digests["split"])
    return known


@contextmanager
def opened(place: Path) -> Iterator[Submission]:
    """A results folder, a packed file, or an archive of rows and scores."""
    if place.is_dir():
        if not (place / "rows.sqlite").exists():
            raise UserError(f"{place}: not a results folder, there is no rows.sqlite in it")
        with Results(place) as results:
            rows = results.rows()
            yield Submission(rows, results.objects, tuple(results.notices))
    elif place.is_file() and place.name.endswith(SUFFIX):
        yield Submission(unpack(place), None)
    elif place.is_file() and place.suffix == ".zip":
        with tempfile.TemporaryDirectory() as folder:
            _extract(place, Path(folder))
            yield Submission(unpack(Path(folder) / _ROWS_MEMBER), Objects(Path(folder) / "objects"))
    else:
        raise UserError(f"{place}: expected a results folder, a file that ends in {SUFFIX}, or a .zip of both")


def write(submission: Submission, path: Path, source: str) -> int:
    """Pack a submission: rows alone as `.jsonl.gz`, or with what it takes to recompute the metrics as `.zip`."""
    if path.name.endswith(SUFFIX):
        return pack(submission.rows, path, source)
    if path.suffix != ".zip" or submission.objects is None:
        raise UserError(f"{path}: a submission is a file that ends in {SUFFIX}, or in .zip if it is made from a folder")
    digests = {row.artifacts[role] for row in submission.rows for role in _stored_roles(row)}
    with tempfile.TemporaryDirectory() as folder:
        rows_file = Path(folder) / _ROWS_MEMBER
        count = pack(submission.rows, rows_file, source, artifacts=True)
        partial = path.with_name(f".{path.name}.partial")
        try:
            with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.write(rows_file, _ROWS_MEMBER)
                for digest in sorted(digests):
                    archive.write(submission.objects.path(digest), _member(digest))
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    return count


def check(submission: Submission, known: Mapping[str, Known]) -> Report:
    """Check every row; all that is wrong is reported, not the first alone."""
    report = Report(rows=len(submission.rows))
    report.refusals += [Refusal("", text) for text in submission.damaged]
    if not any(row.defense not in {"", UNDEFENDED} for row in submission.rows):
        report.refusals.append(Refusal("", f"no row of a defense other than {UNDEFENDED!r}"))
    evidence = _Evidence(submission, known)
    published = {_publication(row): row for row in submission.rows if row.kind == "publish"}
    seen: set[str] = set()
    for row in submission.rows:
        reasons = [*_problems(row, known), *_mismatches(row, published)]
        if row.key in seen:
            reasons.append("the key occurs twice")
        seen.add(row.key)
        if not reasons and row.status == "ok" and row.kind in {"publish", "attack", "utility"}:
            recomputed = evidence.recomputed(row)
            if isinstance(recomputed, str):
                reasons.append(recomputed)
            elif recomputed is None:
                report.on_trust += 1
            else:
                report.recomputed += 1
                reasons += _differences(row.metrics, recomputed)
            reasons += _impossible_metrics(row)
        report.refusals += [Refusal(_described(row), reason) for reason in reasons]
    return report


def _problems(row: Row, known: Mapping[str, Known]) -> Iterator[str]:
    """What is wrong with a row by itself, and against the board."""
    try:
        checked(json.loads(row.to_json()))
    except ValueError as error:
        yield f"schema: {error}"
        return
    yield from _inconsistencies(row)
    protocol = row.provenance.get("protocol")
    if protocol != PROTOCOL_VERSION:
        yield f"protocol version {protocol!r}; this board compares rows of version {PROTOCOL_VERSION}"
    board = known.get(row.dataset_label)
    if board is None:
        yield f"the dataset {row.dataset_label!r} is not on this board; known: {', '.join(known) or 'none'}"
        return
    if row.digests.get("dataset", board.dataset if row.status != "ok" else "") != board.dataset:
        found = _short(row.digests, "dataset")
        yield f"unknown dataset: digest {found} for {row.dataset_label}, known: {board.dataset[:12]}…"
    split = board.splits.get(row.seed)
    if split is None:
        seeds = ", ".join(map(str, sorted(board.splits)))
        yield f"unknown split: seed {row.seed} of {row.dataset_label}; known seeds: {seeds}"
    elif row.digests.get("split", split if row.status != "ok" else "") != split:
        yield f"unknown split: digest {_short(row.digests, 'split')} for seed {row.seed}, known: {split[:12]}…"


def _inconsistencies(row: Row) -> Iterator[str]:
    if row.kind not in KINDS:
        yield f"schema: kind {row.kind!r}; expected one of {', '.join(sorted(KINDS))}"
    if row.seed < 0:
        yield f"schema: seed {row.seed}; expected 0 or more"
    for role in ("dataset", "defense", "evaluator"):
        name, label, params = (getattr(row, role + suffix) for suffix in ("", "_label", "_params"))
        if label != name and not label.startswith(f"{name}["):
            yield f"schema: {role}_label {label!r} does not begin with the name {name!r}"
        if not _is_json_object(params):
            yield f"schema: {role}_params is not a JSON object"
    for name in ("wall_seconds", "peak_host_bytes", "peak_gpu_bytes", "peak_gpu_reserved_bytes"):
        value = getattr(row, name)
        if value is not None and value < 0:
            yield f"schema: {name} is {value}; expected 0 or more"


def _impossible_metrics(row: Row) -> Iterator[str]:
    """Numbers that no scores can give."""
    headline = {"attack": "auc", "utility": UTILITIES[row.evaluator].metric if row.evaluator in UTILITIES else None}
    wanted = headline.get(row.kind)
    if wanted is not None and wanted not in row.metrics:
        yield f"the metric {wanted!r} is missing"
    if row.kind != "attack":
        return
    outside = [name for name, value in row.metrics.items() if not 0 <= value <= 1]
    if outside:
        yield f"metric {outside[0]} is {row.metrics[outside[0]]:g}; expected a number from 0 to 1"
    for name, value in row.metrics.items():
        if name == "auc" or (name.startswith("auc_") and not name.startswith("auc_se")):
            folded = name.replace("auc", "strength", 1)
            claimed, right = row.metrics.get(folded, math.nan), strength(value)
            if not abs(claimed - right) <= TOLERANCE:
                yield f"metric {folded} is {claimed:g}; {name} {value:g} gives {right:g}"


def _mismatches(row: Row, published: Mapping[tuple[str, int, str], Row]) -> Iterator[str]:
    """An evaluation must be of the graph that the submission's own publication made."""
    if row.kind not in {"attack", "utility"} or row.status != "ok":
        return
    publication = published.get(_publication(row))
    if publication is None:
        yield "the publish row that it builds on is not in the submission"
    elif publication.digests.get("published") != row.digests.get("published"):
        yield "the digest of the published graph differs from that of the publish row"


class _Evidence:
    """Stored arrays, and metrics computed from them."""

    def __init__(self, submission: Submission, known: Mapping[str, Known]) -> None:
        self.objects = submission.objects
        self.known = known
        self.split_rows = {(r.dataset_label, r.seed): r for r in submission.rows if r.kind == "split"}
        self.splits: dict[tuple[str, int], Split | str] = {}

    def recomputed(self, row: Row) -> Mapping[str, float] | str | None:
        """Metrics, or why they cannot be computed although they should, or None if nothing is there to compute from."""
        if self.objects is None or row.kind == "utility":
            return None
        split = self._split(row.dataset_label, row.seed, self.objects)
        if isinstance(split, str):
            return split
        metrics = _attack_metrics if row.kind == "attack" else _publish_metrics
        try:
            return metrics(row, split, self.objects)
        except (DamagedObjectError, KeyError, ValueError, UserError) as error:
            return f"its stored arrays cannot be used: {error}"

    def _split(self, dataset: str, seed: int, objects: Objects) -> Split | str:
        """The split of a dataset and seed, proven to be the known one, or why it is not."""
        where = (dataset, seed)
        if where not in self.splits:
            self.splits[where] = self._proven_split(where, objects)
        return self.splits[where]

    def _proven_split(self, where: tuple[str, int], objects: Objects) -> Split | str:
        row = self.split_rows.get(where)
        if row is None:
            return f"the split row of {where[0]}, seed {where[1]}, is not in the submission"
        try:
            visible = objects.get_graph(row.artifacts)
            split = Split.from_arrays(visible, objects.get(row.artifacts["split"]), where[1])
        except (DamagedObjectError, KeyError, ValueError, TypeError, UserError) as error:
            return f"the stored split of {where[0]}, seed {where[1]}, cannot be used: {error}"
        if split.digest != self.known[where[0]].splits[where[1]]:
            return f"unknown split: the stored arrays of {where[0]}, seed {where[1]}, are not those of the known split"
        return split


def _attack_metrics(row: Row, split: Split, objects: Objects) -> Mapping[str, float]:
    scores: NDArray[Any] = objects.get(row.artifacts["scores"])["scores"]
    queries, visible = split.queries(), split.visible
    communities = None if visible.y is None else visible.y[queries.pairs]
    return attack_metrics(scores, queries.group, degrees=visible.degrees[queries.pairs], communities=communities)


def _publish_metrics(row: Row, split: Split, objects: Objects) -> Mapping[str, float]:
    published = objects.get_graph(row.artifacts)
    if published.digest != row.digests.get("published"):
        raise ValueError("the stored graph does not have the digest of the published graph")
    kept = int(published.has_edges(split.visible.edges).sum())
    # A guarantee is a claim of the defense, not a property of one published graph.
    promised = {name: row.metrics[name] for name in ("epsilon",) if name in row.metrics}
    return {
        "links": published.num_edges,
        "links_kept": kept,
        "links_removed": split.visible.num_edges - kept,
        "links_added": published.num_edges - kept,
        "sensitive_published": int(published.has_edges(split.sensitive).sum()),
        **promised,
    }


def _differences(claimed: Mapping[str, float], recomputed: Mapping[str, float]) -> Iterator[str]:
    for name in sorted({*claimed, *recomputed}):
        ours, theirs = recomputed.get(name), claimed.get(name)
        if ours is None:
            yield f"metric {name} is not one that the scores give"
        elif theirs is None:
            yield f"metric {name} is missing; the scores give {ours:g}"
        elif not np.isclose(theirs, ours, rtol=TOLERANCE, atol=TOLERANCE):
            yield f"metric {name} is {theirs:g}; the stored scores give {ours:g}"


def _publication(row: Row) -> tuple[str, int, str]:
    return row.dataset_label, row.seed, row.defense_label


def _described(row: Row) -> str:
    parts = [row.kind, row.dataset_label, f"seed {row.seed}", row.defense_label, row.evaluator_label]
    return f"{row.key[:10]} ({' · '.join(part for part in parts if part)})"


def _short(digests: Mapping[str, str], name: str) -> str:
    return f"{digests[name][:12]}…" if name in digests else "none"


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _stored_roles(row: Row) -> Iterator[str]:
    return (role for role in _VERIFIED_ROLES.get(row.kind, ()) if role in row.artifacts)


def _member(digest: str) -> str:
    return f"objects/{digest[:2]}/{digest}.npz"


def _extract(archive_path: Path, folder: Path) -> None:
    """Take out what a submission consists of; anything else in the archive is refused."""
    try:
        with zipfile.ZipFile(archive_path) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > _MAX_ARCHIVE_BYTES:
                raise UserError(f"{archive_path}: unpacks to more than {_MAX_ARCHIVE_BYTES >> 30} GiB")
            for member in members:
                digest = Path(member.filename).stem
                if member.filename != _ROWS_MEMBER and not (
                    len(digest) == 64 and set(digest) <= set("0123456789abcdef") and member.filename == _member(digest)
                ):
                    raise UserError(f"{archive_path}: {member.filename!r} is not part of a submission")
                archive.extract(member, folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        # Cut off, damaged, encrypted, or packed by a method that this Python does not know.
        raise UserError(f"{archive_path}: not a readable archive ({error})") from error
    if not (folder / _ROWS_MEMBER).exists():
        raise UserError(f"{archive_path}: there is no {_ROWS_MEMBER} in it")
