import random
import statistics
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from leaderboard_rows import ATTACKS, attack_row, board, failed, point_rows, publish_row, row, split_row, utility_row

from ppgsl_bench.errors import UserError
from ppgsl_bench.leaderboard.costs import cost_of, growth
from ppgsl_bench.leaderboard.measurements import PAPER_ATTACKS, Measurements
from ppgsl_bench.leaderboard.points import points_of
from ppgsl_bench.leaderboard.ranking import SUMMARIES, rank

ROWS = board()
VIEWS = [("worst", "link-prediction"), ("gae-cos", "node-classification"), ("worst-paper", "link-prediction")]


def standing(ranking, label):
    return next(s for s in ranking.standings if s.label == label)


def recomputed(rows, attacks, utility, metric, dataset, defense):
    """The summaries of one defense on one dataset, from rows, in a few plain lines."""
    found = {(r.seed, r.defense_label, r.evaluator_label): r.metrics for r in rows if r.dataset_label == dataset}
    labels = sorted({label for _, label, _ in found if label.startswith(f"{defense}[")})
    seeds = sorted({seed for seed, _, _ in found})
    lists = {"strength": [], "kept-0.55": [], "kept-0.60": [], "kept-0.70": [], "hypervolume": []}
    for seed in seeds:
        full = found[seed, "none", utility][metric]
        points = []
        for label in [*labels, "none"]:
            aucs = [found[seed, label, attack]["auc"] for attack in attacks]
            points.append((found[seed, label, utility][metric] / full, max(max(a, 1 - a) for a in aucs)))
        lists["strength"].append(min(a for u, a in points if u >= 0.95))
        for limit in (0.55, 0.60, 0.70):
            lists[f"kept-{limit:.2f}"].append(min(1, max([u for u, a in points if a <= limit], default=0)))
        steps = np.linspace(0, 1, 2001)[:-1] + 1 / 4000
        lists["hypervolume"].append(np.mean([max([2 * (1 - a) for u, a in points if u > s], default=0) for s in steps]))
    return {name: statistics.fmean(values) for name, values in lists.items()}


@pytest.mark.parametrize(
    ("view", "attacks"),
    [("worst", ("cn", "gae-cos", "feature-cos")), ("worst-paper", ("cn", "gae-cos")), ("gae-cos", ("gae-cos",))],
)
@pytest.mark.parametrize(("utility", "metric"), [("link-prediction", "auc"), ("node-classification", "micro_f1")])
def test_every_summary_equals_a_plain_recomputation(view, attacks, utility, metric):
    measurements = Measurements(ROWS)
    for defense in ("soft", "hard"):
        per_dataset = [recomputed(ROWS, attacks, utility, metric, d, defense) for d in ("one", "two")]
        for datasets, expected in ((["one"], per_dataset[:1]), (["two"], per_dataset[1:]), ([], per_dataset)):
            found = standing(rank(measurements, datasets, view, utility), defense)
            for name, estimate in found.estimates.items():
                tolerance = 1e-3 if name == "hypervolume" else 1e-12
                assert estimate.value == pytest.approx(statistics.fmean(e[name] for e in expected), abs=tolerance)


def test_ranks_follow_the_values():
    for name, measure in SUMMARIES.items():
        ranked = [s for s in rank(Measurements(ROWS), summary=name).standings if not s.is_reference]
        values = [s.estimates[name].value for s in ranked]
        assert values == sorted(values, reverse=measure.higher_is_better)
        for s, value in zip(ranked, values, strict=True):
            better = [v for v in values if (v > value if measure.higher_is_better else v < value)]
            assert s.place[name].rank == 1 + len(better)


def test_the_order_of_rows_does_not_matter():
    expected = rank(Measurements(ROWS))
    for seed in range(3):
        shuffled = random.Random(seed).sample(ROWS, len(ROWS))
        assert rank(Measurements(shuffled)) == expected


def test_the_undefended_graph_and_features_alone_stand_in_every_table():
    for attack, utility in VIEWS:
        ranking = rank(Measurements(ROWS), (), attack, utility)
        assert [s.label for s in ranking.standings if s.is_reference] == ["none", "features only"]
        none = standing(ranking, "none").estimates["strength"].value
        assert all(s.estimates["strength"].value <= none for s in ranking.standings)


def test_on_a_graph_without_features_the_floor_is_chance():
    rows = [
        replace(r, status="inapplicable", metrics={}) if r.evaluator == "feature-cos" else r
        for r in board(datasets=("d",))
    ]
    ranking = rank(Measurements(rows))
    features = standing(ranking, "features only")
    assert features.estimates["kept-0.55"].value == pytest.approx(0.6 / 0.88, abs=0.03)
    assert standing(ranking, "soft").coverage == 1.0


def test_a_defense_that_fails_everywhere_counts_as_undefended():
    rows = [replace(r, status="failed", metrics={}) if r.defense == "soft" else r for r in ROWS]
    ranking = rank(Measurements(rows))
    soft = standing(ranking, "soft")
    assert {n: e.value for n, e in soft.estimates.items()} == {
        n: e.value for n, e in standing(ranking, "none").estimates.items()
    }
    assert soft.coverage == 0
    assert soft.problems == {"failed": soft.cells}


@settings(max_examples=100)
@given(
    data=st.data(),
    view=st.sampled_from(VIEWS),
    salt=st.integers(0, 5),
    noise=st.sampled_from([0.0, 0.02, 0.2]),
    missing=st.booleans(),
)
def test_a_failed_cell_lowers_coverage_and_never_improves_anything(data, view, salt, noise, missing):
    """Whatever the cell: attack, utility task or publication with all that builds on it, failed or never run."""
    rows = board(datasets=("d",), defenses=("soft", "hard", "third"), settings=3, noise=noise, salt=salt)
    cells = [i for i, r in enumerate(rows) if r.defense == "hard" and r.kind in {"attack", "utility", "publish"}]
    chosen = {data.draw(st.sampled_from(cells))}
    if rows[min(chosen)].kind == "publish":
        where = rows[min(chosen)]
        chosen = {i for i in cells if (rows[i].seed, rows[i].defense_label) == (where.seed, where.defense_label)}
    broken = rows
    for i in chosen:
        broken = failed(broken, i, "out-of-memory")
    if missing:
        broken = [r for i, r in enumerate(broken) if i not in chosen]
    before, after = (standing(rank(Measurements(r), (), *view), "hard") for r in (rows, broken))
    for name, measure in SUMMARIES.items():
        worse = before.estimates[name].value - after.estimates[name].value
        assert (worse if measure.higher_is_better else -worse) >= -1e-12
        old, new = before.place[name], after.place[name]
        assert new.rank >= old.rank
        assert new.best >= old.best
        assert new.group >= old.group
    attacks = {"worst": ATTACKS, "worst-paper": PAPER_ATTACKS}.get(view[0], (view[0],))
    concerned = {rows[i].evaluator for i in chosen} & {view[1], *attacks}
    assert before.coverage == 1
    assert (after.coverage < 1) == bool(concerned)


def test_an_attack_stronger_than_on_the_undefended_graph_cannot_be_hidden_by_failing_it():
    """`edge-presence` says nothing about an undefended graph, and everything about a careless defense."""
    rows = []
    for seed in range(2):
        rows += point_rows("d", seed, "none", {"cn": 0.8, "edge-presence": 0.5}, {"link-prediction": 0.9})
        rows += point_rows("d", seed, "careless", {"cn": 0.6, "edge-presence": 0.75}, {"link-prediction": 0.89})
    exposed = standing(rank(Measurements(rows)), "careless").estimates["strength"].value
    hidden = [r for r in rows if (r.defense, r.evaluator) != ("careless", "edge-presence")]
    assert exposed == 0.75
    assert standing(rank(Measurements(hidden)), "careless").estimates["strength"].value == 0.8


def test_privacy_is_sign_agnostic():
    rows = [r for seed in range(2) for r in point_rows("d", seed, "none", {"cn": 0.8}, {"link-prediction": 0.9})]
    rows += [r for seed in range(2) for r in point_rows("d", seed, "anti", {"cn": 0.1}, {"link-prediction": 0.9})]
    assert standing(rank(Measurements(rows)), "anti").estimates["strength"].value == 0.8
    (point,) = points_of(Measurements(rows).grids["d"], Measurements(rows).entries[0], "cn", "link-prediction")
    assert point.strength.mean == pytest.approx(0.9)
    assert point.dominated


def test_with_one_seed_there_are_values_and_ranks_but_no_intervals():
    ranking = rank(Measurements(board(seeds=1)))
    for s in ranking.standings:
        assert all(e.low is None and e.high is None for e in s.estimates.values())
        assert all(p.best is None and p.group is None for p in s.place.values())
    assert [s.place["strength"].rank for s in ranking.standings if not s.is_reference] == [1, 2]


def test_a_setting_seen_on_one_dataset_counts_on_all():
    rows = [r for r in ROWS if not (r.dataset_label == "two" and r.defense_label == "soft[power=1]")]
    soft = standing(rank(Measurements(rows), ["two"]), "soft")
    assert soft.coverage == 0.75
    assert set(soft.problems) == {"missing"}


def test_an_attack_that_failed_on_the_undefended_graph_counts_for_nobody():
    index = next(i for i, r in enumerate(ROWS) if r.defense == "none" and r.evaluator == "cn" and r.dataset == "one")
    ranking = rank(Measurements(failed(ROWS, index)), ["one"], "cn")
    assert ranking.seeds == {"one": 2}
    assert standing(ranking, "soft").coverage == 1


def test_the_worst_of_few_attacks_is_not_averaged_with_the_worst_of_many():
    """One seed has two attacks, two more have the weaker one alone."""
    rows = []
    for seed, attacks in enumerate([{"cn": 0.6, "aa": 0.8}, {"cn": 0.6}, {"cn": 0.6}]):
        for defense in ("none", "soft"):
            rows += point_rows("d", seed, defense, attacks, {"link-prediction": 0.9})
    worst, alone = rank(Measurements(rows)), rank(Measurements(rows), attack="cn")
    assert worst.seeds == {"d": 1}
    assert standing(worst, "soft").estimates["strength"].value == 0.8
    assert alone.seeds == {"d": 3}


def test_attacks_without_an_undefended_value_are_named():
    ranking = rank(Measurements(ROWS), ["one"], "worst-paper")
    assert ranking.unmeasured == [f"{name} on one (0 of 3 seeds)" for name in PAPER_ATTACKS if name not in ATTACKS]
    assert rank(Measurements(ROWS)).unmeasured == []
    absent = [replace(r, status="inapplicable", metrics={}) if r.evaluator == "feature-cos" else r for r in ROWS]
    assert rank(Measurements(absent)).unmeasured == []


def test_of_two_rows_of_one_cell_the_sound_and_newer_one_counts():
    old = attack_row("d", 0, "soft", "cn", 0.9)
    newer = replace(old, metrics={"auc": 0.6}, provenance={**old.provenance, "finished": "2027-01-01"}, key="1")
    newest_failed = replace(newer, status="failed", provenance={**old.provenance, "finished": "2028-01-01"}, key="2")
    rest = [*point_rows("d", 0, "none", {"cn": 0.95}, {"link-prediction": 0.9})]
    rest.append(utility_row("d", 0, "soft", "link-prediction", 0.9))
    for rows in ([old, newer, newest_failed], [newest_failed, newer, old]):
        assert standing(rank(Measurements([*rows, *rest])), "soft").estimates["strength"].value == 0.6


def test_a_submission_stands_beside_with_its_source():
    theirs = [replace(r, provenance={**r.provenance, "source": "A. Author"}) for r in ROWS if r.defense == "soft"]
    ranking = rank(Measurements([*ROWS, *theirs]))
    ours, other = standing(ranking, "soft"), standing(ranking, "soft (A. Author)")
    assert other.source == "A. Author"
    assert other.estimates == ours.estimates
    assert other.place["strength"].rank == ours.place["strength"].rank


def test_wrong_names_are_errors_that_say_what_is_right():
    measurements = Measurements(ROWS)
    for arguments, text in (
        ((["nowhere"],), "there are results for one, two"),
        (((), "gae"), "cn, gae-cos"),
        (((), "cn", "structure"), "link-prediction"),
        (((), "cn", "link-prediction", "beauty"), "hypervolume"),
    ):
        with pytest.raises(UserError, match=text):
            rank(measurements, *arguments)


def test_dominated_points_are_marked():
    rows = [*point_rows("d", 0, "none", {"cn": 0.9}, {"link-prediction": 0.9})]
    for label, auc, value in (
        ("x[a=1]", 0.7, 0.8),
        ("x[a=2]", 0.75, 0.7),
        ("x[a=3]", 0.6, 0.5),
        ("x[a=10]", 0.95, 0.9),
    ):
        rows += point_rows("d", 0, label, {"cn": auc}, {"link-prediction": value})
    measurements = Measurements(rows)
    points = points_of(measurements.grids["d"], measurements.entries[0], "cn", "link-prediction")
    assert [(p.setting, p.dominated) for p in points] == [
        ("x[a=1]", False),
        ("x[a=2]", True),
        ("x[a=3]", False),
        ("x[a=10]", True),
    ]


def test_costs_are_medians_of_time_and_maxima_of_memory():
    rows = [
        publish_row("d", seed, "x", wall_seconds=float(t), peak_host_bytes=b, peak_gpu_bytes=g)
        for seed, (t, b, g) in enumerate([(1, 10, None), (9, 30, 5), (2, 20, None)])
    ]
    rows.append(publish_row("d", 3, "x", status="timeout"))
    cost = cost_of(rows, ["d"])
    assert (cost.seconds, cost.host_bytes, cost.gpu_bytes, cost.runs, cost.failed) == (2, 30, 5, 4, 1)
    assert cost_of(rows, ["elsewhere"]).seconds is None


def test_growth_tells_generated_graphs_and_failures():
    rows = [split_row("er[n=1000]", 0, nodes=1000), split_row("er[n=10000]", 0, nodes=10000), split_row("d", 0)]
    rows += [publish_row(d, 0, "x") for d in ("er[n=1000]", "d")]
    rows += [publish_row("er[n=10000]", 0, "x", status="out-of-memory"), row("publish", "d", 0, "none")]
    found = {g.dataset: (g.nodes, g.status, g.generated) for g in growth(rows)}
    assert found == {
        "er[n=1000]": (1000, "ok", True),
        "er[n=10000]": (10000, "out-of-memory", True),
        "d": (1000, "ok", False),
    }


def test_generated_graphs_for_scaling_are_not_ranked():
    rows = [*ROWS, *point_rows("er[n=1000]", 0, "none", {"cn": 0.5}, {"link-prediction": 0.5})]
    assert Measurements(rows).datasets == ["one", "two"]


def test_the_board_loads_neither_torch_nor_the_runner():
    program = (
        "import importlib, pkgutil, sys\n"
        "import ppgsl_bench.leaderboard as board\n"
        "names = [m.name for m in pkgutil.iter_modules(board.__path__)]\n"
        "assert {'ranking', 'commands', 'figures'} <= set(names)\n"
        "for name in names:\n"
        "    importlib.import_module(f'{board.__name__}.{name}')\n"
        "runner = ('execute', 'cell', 'plan', 'processes', 'attacks', 'defenses')\n"
        "unwanted = {'torch', 'torch_geometric', *(f'ppgsl_bench.{m}' for m in runner)}\n"
        "print(sorted(unwanted & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
