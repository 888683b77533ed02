"""Every experiment, from its plan to its pages, on rows made up for exactly the cells that it plans."""

import json
from functools import cache

import numpy as np
import pytest

from ppgsl_bench.datasets import Sources
from ppgsl_bench.datasets import registry as datasets
from ppgsl_bench.errors import UserError
from ppgsl_bench.execute import Settings
from ppgsl_bench.reproduce import NAMES
from ppgsl_bench.reproduce.evidence import Evidence
from ppgsl_bench.reproduce.pages import Page, write
from ppgsl_bench.reproduce.running import Wish, cells_of, command, experiment_named, scope_of
from ppgsl_bench.reproduce.verdicts import OUTCOMES
from ppgsl_bench.rows import Row
from ppgsl_bench.split import make_split
from ppgsl_bench.store import Objects

SOURCES = Sources(offline=True)
UTILITY_METRICS = {"link-prediction": "auc", "node-classification": "micro_f1"}
LARGEST_PICTURE = 60_000


@cache
def _split(name, params, seed):
    return make_split(datasets.get(name).create(**json.loads(params)).load(SOURCES), seed)


def _power(defense, given):
    """How strongly a setting acts, from 0 to 1."""
    if defense == "ppgsl":
        return 1 / (1 + 20 * given["alpha"]) * min(1.0, 0.6 + 0.4 * given["k"])
    return 0.5 if defense != "none" else 0.0


class World:
    """Rows as they would be if the paper were right, or if it were wrong."""

    def __init__(self, objects, paper_is_right):
        self.objects = objects
        self.right = paper_is_right

    def row(self, cell):
        parts = {}
        for role in ("dataset", "defense", "evaluator"):
            ref = getattr(cell, role)
            if ref is not None:
                parts |= {role: ref.name, f"{role}_params": ref.params, f"{role}_label": ref.label}
        facts = getattr(self, f"_{cell.kind}")(cell)
        return Row(key=cell.key, kind=cell.kind, seed=cell.seed, **{"wall_seconds": 1.0, **parts, **facts})

    def _split(self, cell):
        split = _split(cell.dataset.name, cell.dataset.params, cell.seed)
        hidden = len(split.sensitive)
        links = split.visible.num_edges + hidden + len(split.test_links)
        artifacts = {**self.objects.put_graph(split.visible), "split": self.objects.put(split.arrays())}
        metrics = {"nodes": float(split.visible.num_nodes), "links": float(links), "features": 200.0}
        return {"metrics": metrics, "artifacts": artifacts}

    def _publish(self, cell):
        given, nodes = cell.defense.given, _split(cell.dataset.name, cell.dataset.params, 0).visible.num_nodes
        changed = 40 * _power(cell.defense.name, given) * (1 if self.right else 0.01)
        facts = {
            "metrics": {"links_kept": 100 - changed, "links_removed": changed, "links_added": changed},
            "peak_host_bytes": int(1e4 * (nodes if self.right else nodes**2) * (50 if self._is_full(given) else 1)),
        }
        if cell.defense.name == "ppgsl":
            facts |= self._training(given, nodes)
        return facts

    def _is_full(self, given):
        return given.get("structure") == "full" and self.right

    def _training(self, given, nodes):
        steps, mu = given["learner_steps"], given["mu"]
        retrained = np.arange(steps) % mu == 0
        unit = 1e-5 * (nodes if self.right else nodes**1.8)
        seconds = np.cumsum(unit + retrained * given["surrogate_updates"] * unit * (2 if self.right else 0))
        # If the paper is right, losses fall, faster with a smaller mu, and jump when the surrogate is renewed.
        fall = np.exp(-np.arange(steps) / (0.05 * steps * (1 + mu / 10)))
        if not self.right or given["protocol"] == "adv":
            fall = fall[::-1] if not self.right else np.ones(steps)
        jump = np.where(retrained & (np.arange(steps) > 0), 0.2 if self.right else -0.02, 0.0)
        trace = {
            "seconds": seconds,
            "privacy_loss": 1 + fall + jump,
            "utility_loss": np.zeros(steps),
            "surrogate_loss": np.ones(steps),
            "surrogate_updates": np.arange(1, steps + 1) * (8 if given["protocol"] == "adv" else 2),
        }
        return {"artifacts": {"trace": self.objects.put(trace)}, "wall_seconds": float(seconds[-1])}

    def _embed(self, cell):
        split = _split(cell.dataset.name, cell.dataset.params, cell.seed)
        rng = np.random.default_rng(0)
        vectors = rng.standard_normal((split.visible.num_nodes, 8))
        if self.right:
            vectors = vectors + split.visible.adjacency @ vectors
        return {"artifacts": {"embedding": self.objects.put({"embedding": vectors.astype(np.float32)})}}

    def _attack(self, cell):
        power = _power(cell.defense.name, cell.defense.given) * (1 if self.right else -0.1)
        if cell.defense.given.get("protocol") == "adv":
            power *= 0.7 if self.right else 1.5
        if self.right and "learner_steps" in cell.defense.given:
            power *= min(1.0, 0.5 + cell.defense.given["learner_steps"] / 120)
        noise = 1e-4 * np.sin(cell.seed + len(cell.defense.label))
        return {"metrics": {"auc": 0.9 - 0.4 * power + noise}}

    def _utility(self, cell):
        power = _power(cell.defense.name, cell.defense.given)
        steps = cell.defense.given.get("learner_steps", 0)
        drift = (0.001 if self.right else -0.001) * steps
        if cell.defense.given.get("protocol") == "adv":
            drift -= 0.05 if self.right else -0.05
        loss = 0.1 if self.right and cell.defense.name == "ppgsl" else 0.4
        noise = 1e-4 * np.cos(cell.seed + len(cell.defense.label))
        return {"metrics": {UTILITY_METRICS[cell.evaluator.name]: 0.8 * (1 - loss * power) + drift + noise}}


def concluded(name, objects, paper_is_right, seeds="3"):
    experiment = experiment_named(name)
    scope = scope_of(experiment, Wish(quick=True, seeds=seeds))
    cells = cells_of(experiment, scope, Settings(sources=SOURCES))
    world = World(objects, paper_is_right)
    evidence = Evidence([world.row(cell) for cell in cells], objects, SOURCES)
    return experiment, scope, evidence, experiment.conclude(evidence, scope)


@pytest.fixture
def objects(tmp_path):
    return Objects(tmp_path / "objects")


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_goes_from_plan_to_pages(name, objects, tmp_path):
    experiment, scope, evidence, result = concluded(name, objects, True)
    assert result.table.lines
    assert all(len(line) == len(result.table.columns) for line in result.table.lines)
    assert all(verdict.outcome in OUTCOMES for verdict in result.verdicts)
    page = Page(
        command(experiment, Wish(quick=True)), scope.labels, scope.seeds, True, evidence.machine(), ["a | b"], (3, 9)
    )
    files = write(experiment, result, page, tmp_path / "out")
    assert all(path.stat().st_size > 0 for path in files)
    assert (tmp_path / "out" / f"{name}.png").stat().st_size < LARGEST_PICTURE
    text = (tmp_path / "out" / f"{name}.md").read_text("utf-8")
    assert all(verdict.statement in text for verdict in result.verdicts)
    assert "small version" in text
    assert "3 of 9 cells" in text
    assert f"({name}.md)" in (tmp_path / "out" / "index.md").read_text("utf-8")


@pytest.mark.parametrize("name", [n for n in NAMES if n not in {"table1", "table2"}])
def test_verdicts_follow_the_numbers(name, objects):
    """The same rules on a world where the paper is right and on one where it is wrong."""
    *_, right = concluded(name, objects, True)
    *_, wrong = concluded(name, objects, False)
    assert right.verdicts
    before, after = ({v.statement: v.outcome for v in result.verdicts} for result in (right, wrong))
    better = [s for s in before if before[s] == "confirmed" and after.get(s) != "confirmed"]
    assert sum(outcome == "confirmed" for outcome in before.values()) > len(before) / 2, before
    assert better, (before, after)
    assert not [s for s in before if after.get(s) == "confirmed" and before[s] == "not confirmed"]
    assert "not confirmed" in after.values()


@pytest.mark.parametrize("name", NAMES)
def test_failed_cells_make_no_verdict(name, objects):
    """Only splits and the undefended graph are there: nothing may be confirmed, nothing may break."""
    experiment, scope, evidence, _ = concluded(name, objects, True, seeds="1")
    rows = [row for row in evidence.rows if row.kind == "split" or row.defense == "none"]
    result = experiment.conclude(Evidence(rows, objects, SOURCES), scope)
    if name not in {"table1", "table2"}:
        assert not [v for v in result.verdicts if v.outcome == "confirmed"], result.verdicts


def test_one_seed_confirms_no_direction(objects):
    *_, result = concluded("protocols", objects, True, seeds="1")
    outcomes = {verdict.statement: verdict.outcome for verdict in result.verdicts}
    assert next(outcome for s, outcome in outcomes.items() if "better trade-off" in s) == "partly"


def test_the_whole_version_reuses_the_cells_of_the_board():
    """`ppgsl` at the prices of its sweep is the same cell whoever asks for it."""
    settings = Settings(sources=SOURCES)
    wish = Wish(datasets=["synthetic"], seeds="1")
    keys = {
        name: {cell.key for cell in cells_of(experiment_named(name), scope_of(experiment_named(name), wish), settings)}
        for name in ("tradeoff", "alpha", "sensitivity", "protocols")
    }
    assert keys["alpha"] <= keys["tradeoff"]
    assert len(keys["sensitivity"] & keys["tradeoff"]) > 10
    assert len(keys["protocols"] & keys["tradeoff"]) > 5


def test_scalability_takes_only_its_own_graphs():
    with pytest.raises(UserError, match="not 'karate'"):
        scope_of(experiment_named("scalability"), Wish(datasets=["karate"]))


def test_an_unknown_name_is_an_error_that_lists_the_right_ones():
    with pytest.raises(UserError, match="table1, table2"):
        experiment_named("table3")


def test_the_command_on_the_page_makes_the_page():
    wish = Wish(datasets=["er[n=100]", "er[n=200]"], seeds="2", quick=True)
    made = command(experiment_named("scalability"), wish)
    assert made == "ppgsl-bench reproduce scalability --quick --dataset 'er[n=100],er[n=200]' --seeds 2"
