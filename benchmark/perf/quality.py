"""How well every attack does against every defense on one small graph: a faster but weaker one must not go unnoticed.

The graph and the split are fixed. What may differ between two versions of equal worth is the random numbers that a
plugin happens to draw, so the spread that counts is the one over random streams, not over splits. Streams differ from
one (defense, attack) to the next, so that their values are independent.
"""

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import torch

from ppgsl_bench import attacks, defenses
from ppgsl_bench.attacks import EmbeddingAttack
from ppgsl_bench.defenses import Publication
from ppgsl_bench.graph import Graph
from ppgsl_bench.metrics import attack_metrics
from ppgsl_bench.perf.baseline import SEPARATOR, Quality
from ppgsl_bench.perf.benchmarks import fixed_split
from ppgsl_bench.registry import load_plugin_file
from ppgsl_bench.seeds import generator
from ppgsl_bench.split import Split

GRAPH = ("synthetic", 100)
# Stand where an attack's name would: what a defense does to the links.
LINKS_KEPT, LINKS_ADDED = "links kept", "links added"


def quality(streams: int, jobs: int, plugin_files: Sequence[Path] = ()) -> Quality:
    """AUC of every (defense, attack), and shares of links kept and added by every defense, a value a stream."""
    todo = list(product(defenses.registry.names(), range(streams)))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=_prepare_process, initargs=(tuple(plugin_files),)) as pool:
        found = list(pool.map(of_defense, *zip(*todo, strict=True)))
    names = sorted({name for metrics in found for name in metrics})
    return {name: tuple(metrics[name] for metrics in found if name in metrics) for name in names}


def of_defense(name: str, stream: int) -> dict[str, float]:
    """Everything about one defense with one stream of random numbers; nothing if it refuses the graph."""
    split = fixed_split(*GRAPH)
    defense = defenses.registry.get(name).create()
    if defense.why_not(split.visible):
        return {}
    sensitive = split.sensitive if defense.uses_sensitive else split.sensitive[:0]
    outcome = defense.publish(split.visible, sensitive, generator("perf", "publish", name, stream))
    published = outcome.graph if isinstance(outcome, Publication) else outcome
    links = split.visible.num_edges
    kept = int(published.has_edges(split.visible.edges).sum())
    values = {LINKS_KEPT: kept / links, LINKS_ADDED: (published.num_edges - kept) / links}
    values |= dict(_aucs(split, published.without_labels(), f"{name} {stream}"))
    return {f"{name}{SEPARATOR}{what}": value for what, value in values.items()}


def _aucs(split: Split, published: Graph, stream: str) -> Iterator[tuple[str, float]]:
    """Attacks on one encoder share its vectors, as they do in a run."""
    queries = split.queries()
    embeddings: dict[str, attacks.Embedding] = {}
    for name in attacks.registry:
        attack = attacks.registry.get(name).create()
        if attack.why_not(published):
            continue
        rng = generator("perf", "attack", name, stream)
        if isinstance(attack, EmbeddingAttack):
            encoder = attack.encoder
            key = encoder.identity() + encoder.canonical
            if key not in embeddings:
                embeddings[key] = encoder.embed(published, generator("perf", "embed", encoder.name, stream))
            scores = attack.score_embedding(embeddings[key], published, queries.pairs, rng)
        else:
            scores = attack.score(published, queries.pairs, rng)
        yield name, attack_metrics(scores, queries.group)["auc"]


def _prepare_process(plugin_files: Sequence[Path]) -> None:
    torch.set_num_threads(1)
    for path in plugin_files:
        load_plugin_file(path)
