"""Running one cell, in whatever process this is.

A cell sees what its stage may see and nothing else: an oblivious defense never has the sensitive pairs in memory, and
an attack has the published graph and unlabelled pairs; the answers are read only after the plugin has returned.
"""

import errno
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch  # noqa: F401 - loaded by the fork server, so that no cell waits for it

from ppgsl_bench import attacks, datasets, defenses, utilities
from ppgsl_bench.attacks import EmbeddingAttack
from ppgsl_bench.datasets import Sources
from ppgsl_bench.defenses import Publication
from ppgsl_bench.device import use_device
from ppgsl_bench.discretion import place_of, without_numbers
from ppgsl_bench.errors import UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.measure import Measurement, measured
from ppgsl_bench.metrics import attack_metrics
from ppgsl_bench.pairs import Pairs
from ppgsl_bench.plan import Cell, PluginRef, split_key
from ppgsl_bench.processes import failure
from ppgsl_bench.registry import load_plugin_file
from ppgsl_bench.seeds import generator
from ppgsl_bench.split import Split, make_split
from ppgsl_bench.store import DamagedObjectError, Objects
from ppgsl_bench.warm_up import TinyCase

Message = dict[str, Any]
Artifacts = Mapping[str, str]


@dataclass(frozen=True)
class Inputs:
    """What a cell's process needs to know beside the cell.

    Attributes:
        objects: folder of stored arrays.
        sources: where datasets come from.
        plugin_files: files that register plugins.
        device: where torch code runs.
        artifacts: digests of what the required cells stored, by kind of cell.
        digests: digests that the required cells reported (dataset, split, published graph).
        is_confidential: whether the graph is somebody's secret: what goes wrong is then told without numbers.
    """

    objects: str
    sources: Mapping[str, Any]
    plugin_files: tuple[str, ...]
    device: str
    artifacts: Mapping[str, Artifacts]
    digests: Mapping[str, str]
    is_confidential: bool = False


def request_for(cell: Cell, inputs: Inputs) -> Message:
    """A cell and its inputs as plain data, to be sent to another process."""
    return {"cell": asdict(cell), "inputs": asdict(inputs)}


def run_request(request: Message) -> Message:
    """Run the cell of a request: what a cell's process does."""
    document = dict(request["cell"])
    refs = {
        role: PluginRef(**document[role]) if document[role] else None for role in ("dataset", "defense", "evaluator")
    }
    cell = Cell(**{**document, **refs, "requires": tuple(document["requires"])})
    inputs = Inputs(**request["inputs"])
    return _run_confidentially(cell, inputs) if inputs.is_confidential else run_cell(cell, inputs)


def _run_confidentially(cell: Cell, inputs: Inputs) -> Message:
    """As `run_cell`, but what a plugin says of the graph is told without numbers, wherever the row may end up."""
    try:
        message = run_cell(cell, inputs)
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises becomes a row
        told = failure(error)
        return {**told, "reason": f"{without_numbers(told['reason'])} ({place_of(error)})"}
    if message["status"] == "inapplicable" and not _is_built_in(cell):
        message["reason"] = without_numbers(message["reason"])
    return message


def _is_built_in(cell: Cell) -> bool:
    """Whether the cell's plugin is the suite's own: the reasons that those give are of sizes, never of nodes."""
    if cell.evaluator is None:
        return defenses.registry.built_in_module(_needed(cell.defense).name) is not None
    registry = utilities.registry if cell.kind == "utility" else attacks.registry
    return registry.built_in_module(cell.evaluator.name) is not None


def run_cell(cell: Cell, inputs: Inputs) -> Message:
    """Run a cell; the result is a message for its row."""
    for path in inputs.plugin_files:
        load_plugin_file(Path(path))
    use_device(inputs.device)
    try:
        return _STAGES[cell.kind](cell, inputs, Objects(Path(inputs.objects)))
    except DamagedObjectError as error:
        return {"status": "damaged-input", "reason": str(error), "damaged": error.digest}
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        return {"status": "disk-full", "reason": str(error)}


def _split(cell: Cell, inputs: Inputs, objects: Objects) -> Message:
    dataset = datasets.registry.get(cell.dataset.name).create(**cell.dataset.given)
    given = inputs.sources
    sources = Sources(
        tuple(Path(p) for p in given["data_dirs"]), Path(given["cache_dir"]), offline=bool(given["offline"])
    )
    graph, cost = measured(lambda: dataset.load(sources))
    if split_key(dataset, cell.seed, sources) != cell.key:
        raise UserError(
            f"the files of {cell.dataset.label} have changed since the run began; give the same command again"
        )
    split = make_split(graph, cell.seed)
    queries = split.queries()
    artifacts = objects.put_graph(split.visible)
    artifacts["sensitive"] = objects.put({"pairs": split.sensitive})
    artifacts["queries"] = objects.put({"pairs": queries.pairs})
    artifacts["answers"] = objects.put({"group": queries.group})
    artifacts["split"] = objects.put(split.arrays())
    return {
        **_done(cost, {"nodes": graph.num_nodes, "links": graph.num_edges, "features": _width(graph)}),
        "artifacts": artifacts,
        "digests": {"dataset": graph.digest, "split": split.digest},
    }


def _publish(cell: Cell, inputs: Inputs, objects: Objects) -> Message:
    ref = _needed(cell.defense)
    defense = defenses.registry.get(ref.name).create(**ref.given)
    visible = objects.get_graph(inputs.artifacts["split"])
    if reason := defense.why_not(visible):
        return {"status": "inapplicable", "reason": reason}
    sensitive: Pairs = np.empty((0, 2), dtype=np.int64)
    if defense.uses_sensitive:
        sensitive = objects.get(inputs.artifacts["split"]["sensitive"])["pairs"]
    tiny = TinyCase(visible)
    tiny_sensitive = tiny.pairs if defense.uses_sensitive else tiny.pairs[:0]
    tiny.warm(lambda: defense.briefly().publish(tiny.graph.without_edges(tiny.pairs), tiny_sensitive, tiny.rng))
    # Settings of one defense share their noise, so that a curve shows the setting and not the luck of the draw.
    rng = generator("publish", ref.name, inputs.digests["split"])
    outcome, cost = measured(lambda: defense.publish(visible, sensitive, rng))
    publication = outcome if isinstance(outcome, Publication) else Publication(outcome)
    published = _checked_graph(publication.graph, visible, ref.name)
    hidden = objects.get(inputs.artifacts["split"]["sensitive"])["pairs"]
    kept = int(published.has_edges(visible.edges).sum())
    metrics: dict[str, float] = {
        "links": published.num_edges,
        "links_kept": kept,
        "links_removed": visible.num_edges - kept,
        "links_added": published.num_edges - kept,
        "sensitive_published": int(published.has_edges(hidden).sum()),
    }
    guarantee = defense.guarantee
    if guarantee is not None:
        metrics["epsilon"] = guarantee.epsilon
    artifacts = objects.put_graph(published)
    if publication.trace:
        artifacts["trace"] = objects.put({name: np.asarray(values) for name, values in publication.trace.items()})
    return {**_done(cost, metrics), "artifacts": artifacts, "digests": {"published": published.digest}}


def _embed(cell: Cell, inputs: Inputs, objects: Objects) -> Message:
    ref = _needed(cell.evaluator)
    attack_class = attacks.registry.get(ref.name)
    if not issubclass(attack_class, EmbeddingAttack):
        raise TypeError(f"{ref.name} has no encoder")
    encoder = attack_class.encoder_class.create(**ref.given)
    published = objects.get_graph(inputs.artifacts["publish"]).without_labels()
    if reason := encoder.why_not(published):
        return {"status": "inapplicable", "reason": reason}
    tiny = TinyCase(published)
    tiny.warm(lambda: encoder.briefly().embed(tiny.graph, tiny.rng))
    rng = generator("embed", encoder.name, inputs.digests["split"])
    embedding, cost = measured(lambda: encoder.embed(published, rng))
    embedding = np.asarray(embedding, dtype=np.float32)
    if embedding.ndim != 2 or len(embedding) != published.num_nodes:
        raise UserError(f"the encoder {encoder.name} returned shape {embedding.shape} for {published.num_nodes} nodes")
    _refuse_not_finite(embedding, f"the encoder {encoder.name} returned")
    return {**_done(cost, {}), "artifacts": {"embedding": objects.put({"embedding": embedding})}}


def _attack(cell: Cell, inputs: Inputs, objects: Objects) -> Message:
    ref = _needed(cell.evaluator)
    attack = attacks.registry.get(ref.name).create(**ref.given)
    published = objects.get_graph(inputs.artifacts["publish"]).without_labels()
    if reason := attack.why_not(published):
        return {"status": "inapplicable", "reason": reason}
    pairs = objects.get(inputs.artifacts["split"]["queries"])["pairs"]
    # The same stream whatever the defense: differences between defenses are then not the attack's luck.
    rng = generator("attack", ref.name, inputs.digests["split"])
    tiny = TinyCase(published)
    if isinstance(attack, EmbeddingAttack):
        embedding = objects.get(inputs.artifacts["embed"]["embedding"])["embedding"]
        tiny_embedding = embedding[: tiny.graph.num_nodes]
        tiny.warm(lambda: attack.score_embedding(tiny_embedding, tiny.graph, tiny.pairs, tiny.rng))
        scores, cost = measured(lambda: attack.score_embedding(embedding, published, pairs, rng))
    else:
        tiny.warm(lambda: attack.briefly().score(tiny.graph, tiny.pairs, tiny.rng))
        scores, cost = measured(lambda: attack.score(published, pairs, rng))
    scores = _checked_scores(scores, len(pairs), ref.name)
    group = objects.get(inputs.artifacts["split"]["answers"])["group"]
    visible = objects.get_graph({"graph": inputs.artifacts["split"]["graph"]})
    communities = None if visible.y is None else visible.y[pairs]
    metrics = attack_metrics(scores, group, degrees=visible.degrees[pairs], communities=communities)
    return {**_done(cost, metrics), "artifacts": {"scores": objects.put({"scores": scores})}}


def _utility(cell: Cell, inputs: Inputs, objects: Objects) -> Message:
    ref = _needed(cell.evaluator)
    utility = utilities.registry.get(ref.name).create(**ref.given)
    visible = objects.get_graph(inputs.artifacts["split"])
    published = objects.get_graph(inputs.artifacts["publish"])
    if reason := utility.why_not(published):
        return {"status": "inapplicable", "reason": reason}
    split = Split.from_arrays(visible, objects.get(inputs.artifacts["split"]["split"]), cell.seed)
    tiny = TinyCase(visible)
    tiny.warm(lambda: utility.briefly().evaluate(tiny.split.visible, tiny.split, tiny.rng))
    rng = generator("utility", ref.name, inputs.digests["split"])
    metrics, cost = measured(lambda: dict(utility.evaluate(published, split, rng)))
    _refuse_not_finite(np.array(list(metrics.values()), dtype=np.float64), f"{ref.name} returned metrics")
    return _done(cost, metrics)


_STAGES: dict[str, Callable[[Cell, Inputs, Objects], Message]] = {
    "split": _split,
    "publish": _publish,
    "embed": _embed,
    "attack": _attack,
    "utility": _utility,
}


def _done(cost: Measurement, metrics: Mapping[str, float]) -> Message:
    return {"status": "ok", "metrics": {name: float(value) for name, value in metrics.items()}, **asdict(cost)}


def _needed(ref: PluginRef | None) -> PluginRef:
    if ref is None:
        raise ValueError("the cell names no plugin for its stage")
    return ref


def _width(graph: Graph) -> int:
    return 0 if graph.x is None else int(graph.x.shape[1])


def _checked_graph(published: object, visible: Graph, name: str) -> Graph:
    if not isinstance(published, Graph):
        raise UserError(f"{name}.publish returned {type(published).__name__}; expected a Graph (see Graph.with_edges)")
    if published.num_nodes != visible.num_nodes:
        raise UserError(f"{name}.publish returned {published.num_nodes} nodes; the input has {visible.num_nodes}")
    return published


def _checked_scores(scores: object, expected: int, name: str) -> "np.ndarray[Any, np.dtype[np.float64]]":
    array = np.asarray(scores, dtype=np.float64)
    if array.shape != (expected,):
        raise UserError(f"{name}.score returned shape {array.shape} for {expected} pairs; expected one score a pair")
    _refuse_not_finite(array, f"{name}.score returned")
    return array


def _refuse_not_finite(array: "np.ndarray[Any, Any]", what: str) -> None:
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        raise UserError(f"{what} {len(bad)} values that are NaN or infinite, the first at {tuple(map(int, bad[0]))}")
