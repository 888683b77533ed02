"""What is measured: kernels, steps of PPGSL, every attack and defense there is, and what the harness adds.

The same list serves the gate (`ppgsl-bench perf measure`) and pytest-benchmark (`tox -e perf`). Attacks and defenses
come from the registries: a new plugin is measured without a line here.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import torch

from ppgsl_bench import attacks, defenses
from ppgsl_bench.datasets import Sources
from ppgsl_bench.datasets import registry as datasets
from ppgsl_bench.defenses.ppgsl import PPGSL, GraphLearner, candidate_pairs
from ppgsl_bench.defenses.surrogate import SurrogateAttacker
from ppgsl_bench.execute import Settings, Silent, execute, failures
from ppgsl_bench.learned_adjacency import CandidateLinks, LearnedAdjacency
from ppgsl_bench.link_loss import draw_non_links
from ppgsl_bench.message_passing import input_features, normalised_adjacency
from ppgsl_bench.neighbourhoods import resource_allocation
from ppgsl_bench.plan import Cell, choose, plan
from ppgsl_bench.processes import Limits
from ppgsl_bench.rows import Row
from ppgsl_bench.seeds import generator
from ppgsl_bench.split import Split, make_split
from ppgsl_bench.store import Results
from ppgsl_bench.subgraphs import enclosing_subgraphs
from ppgsl_bench.walks import random_walks

Work = Callable[[], Mapping[str, int] | None]
"""One call of what is measured; it may return counters of its own."""
Prepare = Callable[[Split, ExitStack], Work]
"""Everything that is not to be measured: from a split to the work. What must be closed goes on the stack."""

# Kernels run on an Erdős–Rényi graph of the paper's mean degree, plugins on a small social network with features.
KERNEL_NODES = 2000
MEAN_DEGREE = 10.0
PLUGIN_NODES = 100

WIDTH = 64
WALK_LENGTH = 40
SUBGRAPHS_PER_NODE = 0.05
ROWS = 20

# Plugins that train for seconds do the same for a shorter while; quality is judged at their defaults.
SHORTENED: Mapping[str, Mapping[str, object]] = {
    **{name: {"epochs": 40} for name in ("gae-cos", "gae-had", "gae-ip", "gae-masked", "gae-svc")},
    **{name: {"walks_per_node": 2} for name in ("n2v-cos", "n2v-had", "n2v-svc")},
    "seal": {"epochs": 1},
    "ppgsl": {"learner_steps": 50},
    "ppne": {"flips": 0.1},
}
# Plugins whose cost is promised to grow like the graph, and that are fast enough to be tried on thousands of nodes.
GROWING_PLUGINS = ("attack/aa", "attack/katz", "defense/dice", "defense/random", "defense/rw-lp")


@dataclass(frozen=True)
class Benchmark:
    """Something that is measured.

    Attributes:
        name: `kind/what`.
        prepare: makes the work from a split.
        data: the dataset that it usually runs on, as `--dataset` takes it.
        grows: whether it is also run on Erdős–Rényi graphs of several sizes.
        processor_only: whether only time on the processor counts, since the rest is the disk's.
        refusal: why it cannot run, from a plugin that says so.
    """

    name: str
    prepare: Prepare
    data: tuple[str, int] = ("er", KERNEL_NODES)
    grows: bool = False
    processor_only: bool = False
    refusal: str | None = None

    def work(self, stack: ExitStack, split: Split | None = None) -> Work:
        """The work on a given split, or on the usual one."""
        return self.prepare(split or fixed_split(*self.data), stack)


def benchmarks() -> list[Benchmark]:
    """All of them, in the order in which they run."""
    kernels = [Benchmark(f"kernel/{name}", prepare, grows=True) for name, prepare in KERNELS.items()]
    steps = [Benchmark(f"ppgsl/{name}", prepare, grows=True) for name, prepare in STEPS.items()]
    harness = [Benchmark(f"harness/{name}", prepare, processor_only=True) for name, prepare in HARNESS.items()]
    return [*kernels, *steps, *_attacks(), *_defenses(), *harness]


@cache
def fixed_split(dataset: str, nodes: int) -> Split:
    """The same split of the same generated graph every time."""
    given: dict[str, object] = {"n": nodes, "degree": MEAN_DEGREE} if dataset == "er" else {"n": nodes}
    return make_split(datasets.get(dataset).create(**given).load(Sources(offline=True)), 0)


def _neighbours(split: Split, _: ExitStack) -> Work:
    return lambda: _done(resource_allocation(split.visible, split.visible.edges))


def _walks(p: float, q: float) -> Prepare:
    def prepare(split: Split, _: ExitStack) -> Work:
        starts = np.arange(split.visible.num_nodes)
        return lambda: _done(random_walks(split.visible, starts, WALK_LENGTH, generator("perf"), p=p, q=q))

    return prepare


def _subgraphs(split: Split, _: ExitStack) -> Work:
    pairs = split.visible.edges[: round(SUBGRAPHS_PER_NODE * split.visible.num_nodes)]
    return lambda: _done(enclosing_subgraphs(split.visible, pairs, hops=2, max_nodes_per_hop=100, seed=0))


def _non_links(split: Split, _: ExitStack) -> Work:
    return lambda: _done(draw_non_links(split.visible, split.visible.num_edges, generator("perf")))


def _message_passing(split: Split, _: ExitStack) -> Work:
    adjacency = normalised_adjacency(split.visible)
    vectors = _vectors(split).requires_grad_()
    return lambda: _done(torch.autograd.grad((adjacency @ vectors).sum(), vectors))


def _learned_gradient(split: Split, _: ExitStack) -> Work:
    graph = split.visible
    pairs = candidate_pairs(graph, split.sensitive, 1, generator("perf", "candidates"))
    candidates = CandidateLinks(pairs, graph.num_nodes)
    weights = torch.full((len(pairs),), 0.5, requires_grad=True)
    vectors = _vectors(split)

    def work() -> None:
        adjacency = LearnedAdjacency(candidates, weights, "gcn")
        torch.autograd.grad((adjacency @ vectors).square().sum(), weights)

    return work


def _surrogate_update(split: Split, _: ExitStack) -> Work:
    learner, attacker = _ppgsl(split)
    links = learner.links(attacker.aggregation)
    return lambda: attacker.train(links, 1)


def _learner_step(split: Split, _: ExitStack) -> Work:
    learner, attacker = _ppgsl(split)
    attacker.train(learner.links(attacker.aggregation), 1)
    rate = PPGSL().learner_rate
    return lambda: _done(learner.step(attacker, rate))


def _store_rows(_: Split, stack: ExitStack) -> Work:
    results = _results(stack)
    metrics = {f"metric{i}": i / 7 for i in range(30)}

    def work() -> None:
        for i in range(ROWS):
            results.put(Row(str(i), "attack", "karate", "{}", "karate", 0, metrics=metrics))

    return work


def _store_graph(split: Split, stack: ExitStack) -> Work:
    objects = _results(stack).objects
    names = iter(range(10**9))
    # What is stored already is not written again, so each time it is another graph.
    return lambda: _done(objects.put_graph(replace(split.visible, name=f"graph {next(names)}")))


def _resume(_: Split, stack: ExitStack) -> Work:
    """A run in which everything is done already: it must not compute anything again."""
    results = _results(stack)
    choice = choose(
        datasets=["karate"], defenses=["none", "random"], attacks=["cn", "aa", "ra"], utilities=[], seeds=[0, 1]
    )
    cells = plan(choice, Sources(offline=True))
    settings = Settings(limits=Limits(seconds=120))
    execute(cells, results, settings)
    if failed := failures(results.rows()):
        raise RuntimeError(f"a cell of the run to be resumed failed: {failed[0].reason}")

    def work() -> Mapping[str, int]:
        again = _Started()
        execute(cells, results, settings, again)
        return {"recomputed": again.count}

    return work


class _Started(Silent):
    """Counts the cells that a run starts."""

    def __init__(self) -> None:
        self.count = 0

    def started(self, cell: Cell) -> None:  # noqa: ARG002
        """One more."""
        self.count += 1


KERNELS: Mapping[str, Prepare] = {
    "neighbours": _neighbours,
    "walks": _walks(1.0, 1.0),
    "biased-walks": _walks(0.5, 2.0),
    "subgraphs": _subgraphs,
    "non-links": _non_links,
    "message-passing": _message_passing,
    "learned-gradient": _learned_gradient,
}
STEPS: Mapping[str, Prepare] = {"surrogate-update": _surrogate_update, "learner-step": _learner_step}
HARNESS: Mapping[str, Prepare] = {"store-rows": _store_rows, "store-graph": _store_graph, "resume": _resume}


def _attacks() -> Iterator[Benchmark]:
    for name in attacks.registry:
        attack = attacks.registry.get(name).create(**SHORTENED.get(name, {}))
        yield _of_plugin(f"attack/{name}", _scoring(attack), attack.why_not)


def _defenses() -> Iterator[Benchmark]:
    for name in defenses.registry:
        defense = defenses.registry.get(name).create(**SHORTENED.get(name, {}))
        yield _of_plugin(f"defense/{name}", _publishing(defense), defense.why_not)


def _of_plugin(name: str, prepare: Prepare, why_not: Callable[..., str | None]) -> Benchmark:
    data = ("synthetic", PLUGIN_NODES)
    refusal = why_not(fixed_split(*data).visible)
    return Benchmark(name, prepare, data, grows=name in GROWING_PLUGINS, refusal=refusal)


def _scoring(attack: attacks.Attack) -> Prepare:
    def prepare(split: Split, _: ExitStack) -> Work:
        pairs = split.queries().pairs
        # A graph that is new each time has none of what the last call may have left in its caches.
        return lambda: _done(attack.score(split.visible.without_labels(), pairs, generator("perf", attack.name)))

    return prepare


def _publishing(defense: defenses.Defense) -> Prepare:
    def prepare(split: Split, _: ExitStack) -> Work:
        sensitive = split.sensitive if defense.uses_sensitive else split.sensitive[:0]
        return lambda: _done(defense.publish(replace(split.visible), sensitive, generator("perf", defense.name)))

    return prepare


def _done(_: object) -> None:
    """Work whose result is of no interest."""


def _vectors(split: Split) -> torch.Tensor:
    return torch.from_numpy(generator("perf", "vectors").random((split.visible.num_nodes, WIDTH), dtype=np.float32))


def _ppgsl(split: Split) -> tuple[GraphLearner, SurrogateAttacker]:
    """A learner and a surrogate as `ppgsl` sets them up."""
    defense, rng = PPGSL(), generator("perf", "ppgsl")
    pairs = candidate_pairs(split.visible, split.sensitive, defense.k, rng)
    attacker = SurrogateAttacker(
        defense.encoder,
        defense.head,
        input_features(split.visible),
        rng,
        rate=defense.surrogate_rate,
        tolerance=defense.tolerance,
    )
    return GraphLearner(split.visible, split.sensitive, pairs, alpha=defense.alpha), attacker


def _results(stack: ExitStack) -> Results:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    return stack.enter_context(Results(Path(folder)).writing())
