"""Structural fidelity: how far the published graph is from the visible one, without any model.

Degrees, clustering, paths, communities and spectrum, of the kind that private graph synthesis is judged by (PGB: Liu et
al., "Benchmarking Differentially Private Graph Synthesis", 2024), and which links survived. Link weights play a part in
communities and spectrum only.
"""

from collections.abc import Mapping

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from ppgsl_bench.graph import Graph
from ppgsl_bench.hops import path_lengths
from ppgsl_bench.louvain import louvain, modularity
from ppgsl_bench.neighbourhoods import common_neighbour_scores
from ppgsl_bench.pairs import contains
from ppgsl_bench.split import Split
from ppgsl_bench.utilities import Field, Utility, register

# Below this many nodes all eigenvalues are computed densely, which is exact and takes well under a second.
_SMALL = 500
# Largest residual of an eigenpair relative to its eigenvalue. The eigenvalues themselves come out about the square as
# accurate: 3e-5 on an Erdős–Rényi graph of 50,000 nodes, where they are packed closest.
_TOLERANCE = 1e-3


@register("structure", version=1)
class Structure(Utility):
    """Distances in degrees, clustering, paths, communities, spectrum and links."""

    path_sources: int = Field(64, ge=1, help="nodes from which path lengths are measured")
    eigenvalues: int = Field(16, ge=1, help="largest eigenvalues of the adjacency that are compared")

    def evaluate(self, published: Graph, split: Split, rng: np.random.Generator) -> Mapping[str, float]:
        """Distances are 0 and shares, ratio and Jaccard index 1 for the visible graph itself, except `added_share`, 0.

        - `degree_ks`: Kolmogorov–Smirnov distance of the degree distributions;
        - `mean_degree_ratio`: published over visible;
        - `clustering_difference`: of the global clustering coefficients;
        - `path_length_difference`: of the mean hops to all nodes that a sample of nodes can reach (0 if none);
        - `reachable_share_difference`: of the share of nodes that the sample can reach;
        - `modularity_difference`: of the visible graph's Louvain communities in either graph;
        - `spectral_distance`: |λ' - λ| / |λ| over the largest eigenvalues;
        - `edge_jaccard`: common links over links of either;
        - `kept_share`, `added_share`: links kept and links added over visible links.
        """
        visible = split.visible
        sources = rng.choice(visible.num_nodes, size=min(self.path_sources, visible.num_nodes), replace=False)
        communities = louvain(visible.adjacency, rng)
        hops, reached = path_lengths(visible, sources)
        published_hops, published_reached = path_lengths(published, sources)
        first_guess = rng.standard_normal(visible.num_nodes)
        spectrum = largest_eigenvalues(visible, self.eigenvalues, first_guess)
        change = largest_eigenvalues(published, self.eigenvalues, first_guess) - spectrum
        kept = int(contains(visible.ranks, published.ranks).sum())
        return {
            "degree_ks": degree_ks(visible, published),
            "mean_degree_ratio": published.num_edges / visible.num_edges,
            "clustering_difference": abs(clustering(published) - clustering(visible)),
            "path_length_difference": abs(published_hops - hops),
            "reachable_share_difference": abs(published_reached - reached),
            "modularity_difference": abs(modularity(published, communities) - modularity(visible, communities)),
            "spectral_distance": float(np.linalg.norm(change) / np.linalg.norm(spectrum)),
            "edge_jaccard": kept / (visible.num_edges + published.num_edges - kept),
            "kept_share": kept / visible.num_edges,
            "added_share": (published.num_edges - kept) / visible.num_edges,
        }


def degree_ks(first: Graph, second: Graph) -> float:
    """Largest difference between the shares of nodes of at most d links, over all d."""
    longest = int(max(first.degrees.max(), second.degrees.max())) + 1
    shares = [np.cumsum(np.bincount(g.degrees, minlength=longest)) / g.num_nodes for g in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def clustering(graph: Graph) -> float:
    """3 · triangles / paths of two links; 0 if there are no such paths."""
    wedges = int((graph.degrees * (graph.degrees - 1)).sum()) // 2
    if wedges == 0:
        return 0.0
    # A triangle is a common neighbour of the ends of each of its three links.
    closed = common_neighbour_scores(graph, graph.edges, np.ones(graph.num_nodes)).sum()
    return float(closed) / wedges


def largest_eigenvalues(graph: Graph, count: int, first_guess: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest eigenvalues of the adjacency in descending order, as many as there are nodes at the most.

    Isolated nodes add eigenvalues of zero and are left out of the computation. The iteration starts from `first_guess`,
    one number a node, which makes it reproducible.
    """
    linked = np.flatnonzero(graph.degrees)
    matrix = graph.adjacency[linked][:, linked].astype(np.float64)
    if len(linked) <= max(_SMALL, 4 * count):
        found = scipy.linalg.eigvalsh(matrix.toarray()) if len(linked) else np.empty(0)
    else:
        found = eigsh(matrix, k=count, which="LA", v0=first_guess[linked], tol=_TOLERANCE, return_eigenvectors=False)
    values: NDArray[np.float64] = np.sort(np.concatenate([found, np.zeros(graph.num_nodes - len(linked))]))
    return values[::-1][:count]
