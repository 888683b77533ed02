"""A submission is built by hand from real arrays: graphs, splits and scores are stored as a run stores them."""

import zipfile
from dataclasses import replace

import numpy as np
import pytest
from leaderboard_rows import row

from ppgsl_bench.errors import UserError
from ppgsl_bench.leaderboard.packed import pack, unpack
from ppgsl_bench.leaderboard.submission import Known, Submission, check, known_digests, opened, write
from ppgsl_bench.metrics import attack_metrics
from ppgsl_bench.split import make_split
from ppgsl_bench.store import Results


def split_rows(graph, seed, objects):
    split = make_split(graph, seed)
    artifacts = objects.put_graph(split.visible)
    artifacts["split"] = objects.put(split.arrays())
    digests = {"dataset": graph.digest, "split": split.digest}
    return split, row(
        "split", "toy", seed, metrics={"nodes": 60.0, "links": 400.0}, artifacts=artifacts, digests=digests
    )


def publish(split, defense, objects, digests, *, thinned):
    graph = split.visible.with_edges(split.visible.edges[thinned:])
    kept = graph.num_edges
    metrics = {"links": kept, "links_kept": kept, "links_removed": thinned, "links_added": 0, "sensitive_published": 0}
    return row(
        "publish",
        "toy",
        split.seed,
        defense,
        metrics={name: float(value) for name, value in metrics.items()},
        artifacts=objects.put_graph(graph),
        digests={**digests, "published": graph.digest},
    )


def attack(split, publication, name, objects):
    queries, visible = split.queries(), split.visible
    scores = np.random.default_rng(split.seed).normal(size=len(queries.group)) - (queries.group > 0)
    labels = visible.y[queries.pairs]
    return row(
        "attack",
        "toy",
        split.seed,
        publication.defense_label,
        name,
        attack_metrics(scores, queries.group, degrees=visible.degrees[queries.pairs], communities=labels),
        artifacts={"scores": objects.put({"scores": scores})},
        digests=publication.digests,
    )


@pytest.fixture
def folder(tmp_path, random_graph):
    """A sound results folder: two seeds, an undefended and a defended graph, two attacks and a utility task."""
    graph = random_graph(60, 400, features=4, classes=3)
    with Results(tmp_path / "results").writing() as store:
        for seed in range(2):
            split, made = split_rows(graph, seed, store.objects)
            rows = [made]
            for defense, thinned in (("none", 0), ("thin[a=1]", 50)):
                publication = publish(split, defense, store.objects, made.digests, thinned=thinned)
                rows += [publication, *(attack(split, publication, name, store.objects) for name in ("cn", "ra"))]
                metrics = {"auc": 0.7, "floor_auc": 0.6}
                rows.append(
                    row("utility", "toy", seed, defense, "link-prediction", metrics, digests=publication.digests)
                )
            for one in rows:
                store.put(one)
    return tmp_path / "results"


@pytest.fixture
def known(folder):
    with Results(folder) as store:
        return known_digests(store.rows())


def changed(folder, choose, **fields):
    """The folder with the chosen rows changed, as a submission."""
    results = Results(folder)
    rows = [replace(r, **fields) if choose(r) else r for r in results.rows()]
    return Submission(rows, results.objects)


def is_thin_attack(r):
    return r.kind == "attack" and r.defense == "thin" and r.evaluator == "cn" and r.seed == 1


def reasons(submission, known):
    return [refusal.reason for refusal in check(submission, known).refusals]


def test_a_sound_folder_is_taken_and_its_metrics_are_recomputed(folder, known):
    with opened(folder) as submission:
        report = check(submission, known)
    assert report.refusals == []
    assert (report.rows, report.recomputed, report.on_trust) == (18, 12, 4)


@pytest.mark.parametrize("metric", ["auc", "tpr_at_1pct_fpr", "risk_worst_decile", "average_precision_hard"])
def test_a_tampered_metric_is_refused_with_what_the_scores_give(folder, known, metric):
    with Results(folder) as store:
        honest = next(r for r in store.rows() if is_thin_attack(r)).metrics
    submission = changed(folder, is_thin_attack, metrics={**honest, metric: honest[metric] - 0.001})
    found = check(submission, known).refusals
    assert any(f"metric {metric} is" in refusal.reason for refusal in found)
    assert all("thin[a=1] · cn" in refusal.row for refusal in found)


def test_metrics_tampered_consistently_are_refused_too(folder, known):
    """AUC and strength agree, as a forger would take care of; only the scores tell."""
    with Results(folder) as store:
        honest = next(r for r in store.rows() if is_thin_attack(r)).metrics
    forged = {**honest, "auc": 0.52, "strength": 0.52}
    found = reasons(changed(folder, is_thin_attack, metrics=forged), known)
    assert sorted(found) == [
        f"metric auc is 0.52; the stored scores give {honest['auc']:g}",
        f"metric strength is 0.52; the stored scores give {honest['strength']:g}",
    ]


def test_scores_forged_together_with_their_metrics_need_another_split(folder, known, random_graph):
    """Answers come from the known split, so that a split made to fit the scores does not help."""
    other = random_graph(60, 400, seed=5, features=4, classes=3)
    with Results(folder).writing() as store:
        split, made = split_rows(other, 1, store.objects)
        forged = [
            replace(r, artifacts=made.artifacts) if r.kind == "split" and r.seed == 1 else r for r in store.rows()
        ]
        found = reasons(Submission(forged, store.objects), known)
    assert split.digest != known["toy"].splits[1]
    assert found
    assert all("not those of the known split" in reason for reason in found)


def test_an_unknown_split_is_refused(folder, known):
    digests = {"dataset": known["toy"].dataset, "split": "0" * 64}
    submission = changed(folder, lambda r: r.kind == "split" and r.seed == 0, digests=digests)
    assert any("unknown split: digest 000000000000…" in reason for reason in reasons(submission, known))
    fewer = {"toy": Known(known["toy"].dataset, {0: known["toy"].splits[0]})}
    with opened(folder) as whole:
        assert any("unknown split: seed 1 of toy; known seeds: 0" in reason for reason in reasons(whole, fewer))


def test_an_unknown_dataset_is_refused(folder, known):
    with opened(folder) as submission:
        assert any("'toy' is not on this board" in reason for reason in reasons(submission, {}))
        other = {"toy": Known("f" * 64, known["toy"].splits)}
        assert any("unknown dataset: digest" in reason for reason in reasons(submission, other))


@pytest.mark.parametrize("protocol", [0, 2, None, "1"])
def test_a_row_of_another_protocol_version_is_refused(folder, known, protocol):
    with Results(folder) as store:
        origin = store.rows()[0].provenance
    submission = changed(folder, is_thin_attack, provenance={**origin, "protocol": protocol})
    (reason,) = reasons(submission, known)
    assert f"protocol version {protocol!r}; this board compares rows of version 1" in reason


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"status": "fine"}, "schema: status"),
        ({"seed": "1"}, "schema: seed"),
        ({"kind": "guess"}, "schema: kind"),
        ({"defense_label": "other[a=1]"}, "does not begin with the name"),
        ({"evaluator_params": "[1]"}, "not a JSON object"),
        ({"wall_seconds": -1.0}, "wall_seconds is -1.0"),
        ({"metrics": {"strength": 0.5}}, "'auc' is missing"),
        ({"metrics": {"auc": 1.2, "strength": 1.2}}, "expected a number from 0 to 1"),
        ({"metrics": {"auc": 0.3, "strength": 0.3}}, "strength is 0.3; auc 0.3 gives 0.7"),
        ({"artifacts": {}}, "cannot be used"),
        ({"artifacts": {"scores": "0" * 64}}, "the file is missing"),
    ],
)
def test_a_row_that_cannot_be_right_is_refused(folder, known, fields, message):
    assert any(message in reason for reason in reasons(changed(folder, is_thin_attack, **fields), known))


def test_a_published_graph_must_be_the_one_that_was_attacked(folder, known):
    def is_publication(r):
        return r.kind == "publish" and r.defense == "thin" and r.seed == 0

    with Results(folder) as store:
        digests = next(r for r in store.rows() if is_publication(r)).digests
    found = reasons(changed(folder, is_publication, digests={**digests, "published": "0" * 64}), known)
    assert any("does not have the digest" in reason for reason in found)
    assert any("differs from that of the publish row" in reason for reason in found)
    missing = Submission([r for r in Results(folder).rows() if not is_publication(r)], None)
    assert any("is not in the submission" in reason for reason in reasons(missing, known))


def test_a_damaged_score_file_is_refused(folder, known):
    with Results(folder) as store:
        digest = next(r for r in store.rows() if is_thin_attack(r)).artifacts["scores"]
        path = store.objects.path(digest)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with opened(folder) as submission:
        assert any("does not match its SHA-256" in reason for reason in reasons(submission, known))


def test_a_row_changed_in_the_database_is_refused(folder, known):
    import sqlite3

    connection = sqlite3.connect(folder / "rows.sqlite")
    connection.execute("UPDATE rows SET document = replace(document, '0.7', '0.9') WHERE document LIKE '%utility%'")
    connection.commit()
    connection.close()
    with opened(folder) as submission:
        assert any("damaged row" in reason for reason in reasons(submission, known))


def test_twice_the_same_key_is_refused(folder, known):
    rows = Results(folder).rows()
    assert any("occurs twice" in reason for reason in reasons(Submission([*rows, rows[-1]], None), known))


def test_the_undefended_graph_alone_is_no_submission(folder, known):
    rows = [r for r in Results(folder).rows() if r.defense in {"", "none"}]
    assert reasons(Submission(rows, None), known) == ["no row of a defense other than 'none'"]


def test_packed_with_scores_it_can_be_checked_elsewhere(folder, known, tmp_path):
    with opened(folder) as submission:
        assert write(submission, tmp_path / "s.zip", "A. Author") == 18
    with opened(tmp_path / "s.zip") as submission:
        report = check(submission, known)
        assert {r.provenance["source"] for r in submission.rows} == {"A. Author"}
    assert (report.refusals, report.recomputed, report.on_trust) == ([], 12, 4)


def test_packed_without_scores_attacks_are_on_trust(folder, known, tmp_path):
    with opened(folder) as submission:
        write(submission, tmp_path / "s.jsonl.gz", "A. Author")
    with opened(tmp_path / "s.jsonl.gz") as submission:
        report = check(submission, known)
    assert (report.refusals, report.recomputed, report.on_trust) == ([], 0, 16)


def test_an_archive_with_anything_else_in_it_is_refused(folder, tmp_path):
    rows = tmp_path / "rows.jsonl.gz"
    pack(Results(folder).rows(), rows)
    assert unpack(rows)
    for name in ("../evil.npz", "/etc/evil", "objects/ab/evil.npz", f"objects/ff/{'a' * 64}.npz", "rows.sqlite"):
        with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
            archive.write(rows, "rows.jsonl.gz")
            archive.writestr(name, b"")
        with pytest.raises(UserError, match="is not part of a submission"), opened(tmp_path / "s.zip"):
            pass
    with zipfile.ZipFile(tmp_path / "s.zip", "w"):
        pass
    with pytest.raises(UserError, match=r"no rows\.jsonl\.gz"), opened(tmp_path / "s.zip"):
        pass
    (tmp_path / "s.zip").write_bytes(b"not a zip")
    with pytest.raises(UserError, match="not a readable archive"), opened(tmp_path / "s.zip"):
        pass
    with pytest.raises(UserError, match="expected a results folder"), opened(tmp_path / "nothing"):
        pass
