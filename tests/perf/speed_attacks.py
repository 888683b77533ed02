"""How fast the attacks' kernels are, each as a ratio to a plain reference that computes the same.

    python tests/perf/speed_attacks.py [--dataset deezer-europe]

A row of the table is a function that returns a `Comparison`; add one and name it in `COMPARISONS`. Each function
checks first that the two sides agree, which also compiles the kernels, and times them then, one thread each.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import networkx as nx
import numpy as np
import torch
from scipy.sparse.csgraph import shortest_path
from torch_geometric.utils import k_hop_subgraph, to_scipy_sparse_matrix

from ppgsl_bench.attacks.neighbours import AdamicAdar
from ppgsl_bench.datasets import Sources, registry
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs
from ppgsl_bench.split import make_split
from ppgsl_bench.subgraphs import enclosing_subgraphs

HOPS = 2
# PyG's function knows no limit, so none is set on either side.
UNLIMITED = 2**31 - 1
BATCH = 100
# Subgraphs are timed on this many pairs on our side, and on a tenth of them on PyG's.
SUBGRAPHS = 2000


@dataclass(frozen=True)
class Comparison:
    what: str
    reference: str
    seconds: float
    reference_seconds: float
    aim: float

    @property
    def ratio(self) -> float:
        return self.reference_seconds / self.seconds


def least_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """The shortest of several runs: what the work costs when nothing else is in the way."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def adamic_adar(graph: Graph, pairs: Pairs) -> Comparison:
    twin = nx.empty_graph(graph.num_nodes)
    twin.add_edges_from(graph.edges.tolist())
    listed = pairs.tolist()
    rng = np.random.default_rng(0)

    def ours() -> np.ndarray:
        return AdamicAdar().score(graph, pairs, rng)

    def reference() -> list[float]:
        return [value for _, _, value in nx.adamic_adar_index(twin, listed)]

    np.testing.assert_allclose(ours(), reference(), rtol=1e-9)
    return Comparison(
        f"Adamic–Adar, {len(pairs)} pairs", "networkx", least_seconds(ours), least_seconds(reference, 2), aim=50
    )


def labelled_subgraphs(graph: Graph, pairs: Pairs) -> Comparison:
    both = np.concatenate([graph.edges, graph.edges[:, ::-1]])
    edge_index = torch.from_numpy(np.ascontiguousarray(both.T))
    pairs = np.sort(pairs[:SUBGRAPHS], axis=1)
    few = pairs[: max(1, len(pairs) // 10)]

    def ours(asked: Pairs) -> list[np.ndarray]:
        labels = []
        for start in range(0, len(asked), BATCH):
            batch = asked[start : start + BATCH]
            found = enclosing_subgraphs(graph, batch, hops=HOPS, max_nodes_per_hop=UNLIMITED, seed=0)
            labels += np.split(found.labels, found.offsets[1:-1])
        return labels

    def reference(asked: Pairs) -> list[np.ndarray]:
        return [_labels_by_pyg(u, v, edge_index, graph.num_nodes) for u, v in asked.tolist()]

    for mine, theirs in zip(ours(few[:50]), reference(few[:50]), strict=True):
        np.testing.assert_array_equal(np.sort(mine), np.sort(theirs))
    return Comparison(
        f"labelled {HOPS}-hop subgraphs, {len(pairs)} pairs",
        "PyG k_hop_subgraph",
        least_seconds(lambda: ours(pairs)),
        least_seconds(lambda: reference(few), 1) / len(few) * len(pairs),
        aim=10,
    )


def _labels_by_pyg(u: int, v: int, edge_index: torch.Tensor, num_nodes: int) -> np.ndarray:
    """Double-radius labels from PyG's subgraph and scipy's shortest paths, with each end removed in turn."""
    nodes, links, ends, _ = k_hop_subgraph([u, v], HOPS, edge_index, relabel_nodes=True, num_nodes=num_nodes)
    s, t = ends.tolist()
    own = ((links[0] == s) & (links[1] == t)) | ((links[0] == t) & (links[1] == s))
    adjacency = to_scipy_sparse_matrix(links[:, ~own], num_nodes=len(nodes)).tocsr()
    x = _distances_without(adjacency, s, t)
    y = _distances_without(adjacency, t, s)
    with np.errstate(invalid="ignore"):
        total = x + y
        labels = 1 + np.minimum(x, y) + (total // 2) * (total // 2 + total % 2 - 1)
    labels[[s, t]] = 1
    return np.nan_to_num(np.where(np.isinf(total), 0, labels)).astype(np.int64)


def _distances_without(adjacency, source: int, removed: int) -> np.ndarray:
    others = np.delete(np.arange(adjacency.shape[0]), removed)
    found = shortest_path(
        adjacency[others][:, others], directed=False, unweighted=True, indices=source - (source > removed)
    )
    return np.insert(found, removed, 0)


COMPARISONS: list[Callable[[Graph, Pairs], Comparison]] = [adamic_adar, labelled_subgraphs]


def main() -> None:
    parser = argparse.ArgumentParser(description="Times of the attacks' kernels against plain references")
    parser.add_argument("--dataset", default="synthetic", choices=registry.names())
    options = parser.parse_args()
    torch.set_num_threads(1)
    split = make_split(registry.get(options.dataset)().load(Sources.from_environment()), 0)
    pairs = split.queries().pairs
    print(f"{split.visible}\n{'':44}{'reference':>20}{'ours ms':>10}{'theirs ms':>11}{'ratio':>8}{'aim':>6}")
    for compare in COMPARISONS:
        c = compare(split.visible, pairs)
        print(
            f"{c.what:44}{c.reference:>20}{1e3 * c.seconds:10.2f}{1e3 * c.reference_seconds:11.1f}"
            f"{c.ratio:7.0f}×{c.aim:5.0f}×"
        )


if __name__ == "__main__":
    main()
