"""Hypothesis strategies for graphs: stars, isolated nodes, several components, complete, empty."""

import numpy as np
from hypothesis import strategies as st

from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import num_pairs, pairs_at


@st.composite
def graphs(draw: st.DrawFn, min_nodes: int = 2, max_nodes: int = 14, min_edges: int = 0) -> Graph:
    n = draw(st.integers(min_nodes, max_nodes))
    shape = draw(st.sampled_from(["random", "star", "complete", "empty", "two components", "path"]))
    if shape == "star":
        edges = [(0, v) for v in range(1, n)]
    elif shape == "complete":
        edges = [(u, v) for u in range(n) for v in range(u + 1, n)]
    elif shape == "two components":
        half = n // 2
        edges = [(u, v) for u in range(n) for v in range(u + 1, n) if (u < half) == (v < half)]
    elif shape == "path":
        edges = [(u, u + 1) for u in range(n - 1)]
    elif shape == "empty":
        edges = []
    else:
        chosen = draw(st.sets(st.integers(0, num_pairs(n) - 1)))
        edges = pairs_at(np.array(sorted(chosen), dtype=np.int64), n).tolist()
    if len(edges) < min_edges:
        edges = [(u, v) for u in range(n) for v in range(u + 1, n)]
    return Graph.from_pairs(n, np.array(edges, dtype=np.int64).reshape(-1, 2))
