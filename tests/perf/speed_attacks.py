"""How fast the attacks' kernels are, each as a ratio to a plain reference that computes the same.

    python tests/perf/speed_attacks.py [--dataset deezer-europe] [--markdown FILE]

A row of the table is a function that returns a `Comparison`; add one and name it in `COMPARISONS`. Each function
checks first that the two sides agree, which also compiles the kernels, and times them then, one thread each. PecanPy
takes part if it is installed (`pip install --no-deps pecanpy nptyping numba_progress`); gensim is in the extra `perf`.
"""

import argparse
import importlib.util
import platform
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np
import torch
from scipy.sparse.csgraph import shortest_path
from tabulate import tabulate
from torch_geometric.nn import GCNConv
from torch_geometric.utils import k_hop_subgraph, to_scipy_sparse_matrix

from ppgsl_bench.attacks.neighbours import AdamicAdar
from ppgsl_bench.datasets import Sources, registry
from ppgsl_bench.graph import Graph
from ppgsl_bench.link_loss import draw_non_links, link_loss
from ppgsl_bench.message_passing import GCN, input_features, normalised_adjacency
from ppgsl_bench.pairs import Pairs
from ppgsl_bench.split import make_split
from ppgsl_bench.subgraphs import enclosing_subgraphs
from ppgsl_bench.walks import random_walks, shuffled_starts, skip_gram

HOPS = 2
# PyG's function knows no limit, so none is set on either side.
UNLIMITED = 2**31 - 1
BATCH = 100
# Subgraphs are timed on this many pairs on our side, and on a tenth of them on PyG's.
SUBGRAPHS = 2000
WALKS, WALK_LENGTH = 10, 80

INTRODUCTION = """# Speed of the attacks' kernels

Each line compares a kernel of this suite with a reference that computes the same, in one run of
`python tests/perf/speed_attacks.py` ({machine}). Times are the shortest of several repeats. The networkx walker
takes one walk from each node and PyG's subgraphs are made for a tenth of the pairs; their times are scaled up.

"""


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


def uniform_walks(graph: Graph, pairs: Pairs) -> Comparison:
    """Walks of 80 nodes, ten from each node on our side, one from each on that of a walker on a networkx graph."""
    twin = nx.empty_graph(graph.num_nodes)
    twin.add_edges_from(graph.edges.tolist())
    draw = random.Random(0)

    def reference() -> None:
        for start in twin:
            here, walk = start, [start]
            while len(walk) < WALK_LENGTH and len(twin[here]):
                here = draw.choice(list(twin[here]))
                walk.append(here)

    ours = _our_walks(graph, 1.0, 1.0)
    ours()
    theirs = WALKS * least_seconds(reference, 1)
    return Comparison(f"{WALKS} uniform walks a node", "networkx walker", least_seconds(ours, 3), theirs, aim=20)


def biased_walks(graph: Graph, pairs: Pairs) -> Comparison | None:
    """node2vec's walks with p = 0.5 and q = 2 against PecanPy's on-the-fly mode."""
    pecanpy = _pecanpy()
    if pecanpy is None:
        return None
    walker = pecanpy.SparseOTF(p=0.5, q=2.0, workers=1, verbose=False, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.edg"
        np.savetxt(path, graph.edges, fmt="%d", delimiter="\t")
        walker.read_edg(str(path), weighted=False, directed=False)
    walker.simulate_walks(num_walks=1, walk_length=2)
    ours = _our_walks(graph, 0.5, 2.0)
    ours()
    theirs = least_seconds(lambda: walker.simulate_walks(num_walks=WALKS, walk_length=WALK_LENGTH - 1), 1)
    return Comparison(f"{WALKS} biased walks a node", "PecanPy", least_seconds(ours, 3), theirs, aim=20)


def skip_gram_vectors(graph: Graph, pairs: Pairs) -> Comparison:
    """One pass over one walk a node; gensim gets ids without gaps, since it takes positions for ids otherwise."""
    from gensim.models import Word2Vec

    rng = np.random.default_rng(0)
    walks = random_walks(graph, np.flatnonzero(graph.degrees).astype(np.int32), WALK_LENGTH, rng)
    _, compact = np.unique(walks, return_inverse=True)
    sentences = compact.reshape(walks.shape).tolist()
    counts = dict(enumerate(np.bincount(compact.ravel()).tolist()))

    def reference() -> None:
        model = Word2Vec(vector_size=128, window=10, sg=1, negative=5, min_count=1, sorted_vocab=0, workers=1, seed=0)
        model.build_vocab_from_freq(counts, corpus_count=len(sentences))
        model.train(sentences, total_examples=len(sentences), epochs=1)

    def ours() -> None:
        skip_gram(walks, graph.num_nodes, seed=0)

    ours()
    theirs = least_seconds(reference, 2)
    return Comparison("skip-gram vectors of one walk a node", "gensim", least_seconds(ours, 3), theirs, aim=2)


def _our_walks(graph: Graph, p: float, q: float) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    starts = shuffled_starts(graph.num_nodes, WALKS, rng)
    return lambda: random_walks(graph, starts, WALK_LENGTH, rng, p=p, q=q)


def _pecanpy():
    if importlib.util.find_spec("pecanpy") is None:
        return None
    # A library that it imports still uses names that NumPy 2 took away.
    aliases = {"bool8": "bool_", "object0": "object_", "int0": "intp", "uint0": "uintp", "float_": "float64"}
    aliases |= {"longfloat": "longdouble", "singlecomplex": "complex64", "complex_": "complex128"}
    aliases |= {"cfloat": "complex128", "clongfloat": "clongdouble", "longcomplex": "clongdouble", "void0": "void"}
    aliases |= {"bytes0": "bytes_", "string_": "bytes_", "str0": "str_", "unicode_": "str_"}
    for old, new in aliases.items():
        if not hasattr(np, old):
            setattr(np, old, getattr(np, new))
    from pecanpy import pecanpy

    return pecanpy


class PlainGAE(torch.nn.Module):
    """Two GCNConv layers on an `edge_index`, dense features, as in PyG's example of a graph autoencoder."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = GCNConv(width, 32), GCNConv(32, 16)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


def autoencoder_epoch(graph: Graph, pairs: Pairs) -> Comparison:
    """One training step of a graph autoencoder, 32-16, with fresh negatives."""
    rng = np.random.default_rng(0)
    features, adjacency = input_features(graph), normalised_adjacency(graph)
    ours_model = GCN(features.shape[1], [32, 16], torch.Generator().manual_seed(0))
    ours_adam = torch.optim.Adam(ours_model.parameters(), lr=0.01)
    dense = torch.eye(graph.num_nodes) if graph.x is None else features @ torch.eye(features.shape[1])
    edge_index = torch.from_numpy(np.concatenate([graph.edges, graph.edges[:, ::-1]]).T.copy())
    plain_model = PlainGAE(dense.shape[1])
    plain_adam = torch.optim.Adam(plain_model.parameters(), lr=0.01)
    for layer, weight in zip((plain_model.first, plain_model.second), ours_model.weights, strict=True):
        layer.lin.weight.data = weight.data.T.clone()
    with torch.no_grad():
        theirs_out, ours_out = plain_model(dense, edge_index), ours_model(adjacency, features)
    torch.testing.assert_close(ours_out, theirs_out, rtol=1e-3, atol=1e-4)

    def ours() -> None:
        ours_adam.zero_grad()
        non_links = draw_non_links(graph, graph.num_edges, rng)
        link_loss(ours_model(adjacency, features), graph.edges, non_links).backward()
        ours_adam.step()

    def reference() -> None:
        plain_adam.zero_grad()
        z = plain_model(dense, edge_index)
        u, v = torch.from_numpy(graph.edges.T.copy())
        a, b = torch.from_numpy(draw_non_links(graph, graph.num_edges, rng).T.copy())
        positive, negative = (z[u] * z[v]).sum(dim=1), (z[a] * z[b]).sum(dim=1)
        loss = torch.nn.functional.softplus(-positive).mean() + torch.nn.functional.softplus(negative).mean()
        loss.backward()
        plain_adam.step()

    for _ in range(3):
        ours()
        reference()
    return Comparison("one GAE epoch", "GCNConv", least_seconds(ours, 20), least_seconds(reference, 10), aim=4)


COMPARISONS: list[Callable[[Graph, Pairs], Comparison | None]] = [
    adamic_adar,
    uniform_walks,
    biased_walks,
    skip_gram_vectors,
    labelled_subgraphs,
    autoencoder_epoch,
]
HEADER = ("kernel", "reference", "ours", "theirs", "ratio", "aim")


def main() -> None:
    parser = argparse.ArgumentParser(description="Times of the attacks' kernels against plain references")
    parser.add_argument("--dataset", nargs="+", default=["synthetic"], choices=registry.names())
    parser.add_argument("--markdown", type=Path, help="also write the tables to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    parts = []
    for name in options.dataset:
        split = make_split(registry.get(name)().load(Sources.from_environment()), 0)
        found = [compare(split.visible, split.queries().pairs) for compare in COMPARISONS]
        lines = [
            (c.what, c.reference, _time(c.seconds), _time(c.reference_seconds), f"{c.ratio:.0f}×", f"{c.aim:.0f}×")
            for c in found
            if c is not None
        ]
        table = tabulate(lines, headers=HEADER, tablefmt="github", disable_numparse=True)
        parts.append(
            f"### {name}: {split.visible.num_nodes} nodes, {split.visible.num_edges} visible links\n\n{table}\n"
        )
        print(parts[-1])
    if options.markdown:
        options.markdown.write_text(INTRODUCTION.format(machine=_machine()) + "\n".join(parts), encoding="utf-8")


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _machine() -> str:
    return f"{platform.machine()}, Python {platform.python_version()}, torch {torch.__version__}, one thread"


if __name__ == "__main__":
    main()
