"""Training node vectors on links: cross-entropy of inner products against sampled unlinked pairs.

The loss of graph autoencoders (Kipf and Welling, "Variational Graph Auto-Encoders", 2016) and, with one negative a
link, of unsupervised GraphSAGE (Hamilton, Ying and Leskovec, NeurIPS 2017).
"""

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.nn.functional import softplus

from ppgsl_bench.graph import Graph
from ppgsl_bench.message_passing import even_shares, run_in_threads, usable_threads
from ppgsl_bench.pairs import Pairs, pairs_at, ranks_outside

# Above this density too many draws would hit a link: numbering the non-links is faster then.
_DENSE = 0.25


def draw_non_links(graph: Graph, count: int, rng: np.random.Generator) -> Pairs:
    """Independent uniform draws among the unlinked pairs, shape [count, 2], u < v; a pair may come twice.

    Empty if all pairs are linked.
    """
    if graph.num_non_edges == 0:
        return np.empty((0, 2), dtype=np.int64)
    if graph.num_edges > _DENSE * graph.num_non_edges:
        return pairs_at(ranks_outside(graph.ranks, rng.integers(graph.num_non_edges, size=count)), graph.num_nodes)
    pairs = np.empty((count, 2), dtype=np.int64)
    pending = np.arange(count)
    while len(pending):
        draws = rng.integers(graph.num_nodes, size=(len(pending), 2))
        pending = pending[_rejected(draws, pending, pairs, graph.adjacency.indptr, graph.adjacency.indices)]
    return pairs


def link_loss(vectors: Tensor, links: Pairs, non_links: Pairs) -> Tensor:
    """-mean log σ(z_u·z_v) over links - mean log σ(-z_u·z_v) over non-links; an empty set adds nothing."""
    loss = vectors.new_zeros(())
    for pairs, sign in ((links, -1), (non_links, 1)):
        if len(pairs):
            loss = loss + softplus(sign * inner_products(vectors, pairs)).mean()
    return loss


def inner_products(vectors: Tensor, pairs: Pairs) -> Tensor:
    """z_u · z_v for each pair, shape [P]. On a CPU no P×d matrix is made."""
    if vectors.device.type == "cpu":
        products: Tensor = _InnerProducts.apply(vectors, pairs)  # type: ignore[no-untyped-call]
        return products
    u, v = torch.from_numpy(np.ascontiguousarray(pairs.T)).to(vectors.device)
    return (vectors[u] * vectors[v]).sum(dim=1)


class _InnerProducts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, pairs: Pairs) -> Tensor:
        ctx.save_for_backward(vectors)
        ctx.pairs = pairs
        out = torch.empty(len(pairs), dtype=vectors.dtype)
        bounds = even_shares(len(pairs), usable_threads(len(pairs) * vectors.shape[1]))
        run_in_threads(_multiply_pairs, bounds, vectors.detach().contiguous().numpy(), pairs, out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (vectors,) = ctx.saved_tensors
        grad = torch.zeros_like(vectors, memory_format=torch.contiguous_format)
        bounds = even_shares(len(vectors), usable_threads(len(ctx.pairs) * vectors.shape[1]))
        ends, slopes = vectors.detach().contiguous().numpy(), grads[0].contiguous().numpy()
        run_in_threads(_add_to_ends, bounds, ends, ctx.pairs, slopes, grad.numpy())
        return grad, None


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _multiply_pairs(first, last, z, pairs, out):  # type: ignore[no-untyped-def]
    width = z.shape[1]
    for k in range(first, last):
        u, v = pairs[k, 0], pairs[k, 1]
        total = z.dtype.type(0)
        for c in range(width):
            total += z[u, c] * z[v, c]
        out[k] = total


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_to_ends(first, last, z, pairs, slopes, grad):  # type: ignore[no-untyped-def]
    """Add slope · z_v to row u and slope · z_u to row v, for the rows from `first` to `last`.

    Each thread reads all pairs but owns its rows, so that sums do not depend on the number of threads.
    """
    width = z.shape[1]
    for k in range(len(pairs)):
        u, v, slope = pairs[k, 0], pairs[k, 1], slopes[k]
        if first <= u < last:
            for c in range(width):
                grad[u, c] += slope * z[v, c]
        if first <= v < last:
            for c in range(width):
                grad[v, c] += slope * z[u, c]


@njit(cache=True, nogil=True)
def _rejected(draws, positions, pairs, indptr, indices):  # type: ignore[no-untyped-def]
    """Write the draws that are unlinked pairs to their positions; which draws are not."""
    rejected = np.zeros(len(draws), dtype=np.bool_)
    for k in range(len(draws)):
        u, v = min(draws[k, 0], draws[k, 1]), max(draws[k, 0], draws[k, 1])
        low, high = indptr[u], indptr[u + 1]
        while low < high:
            middle = (low + high) // 2
            if indices[middle] < v:
                low = middle + 1
            else:
                high = middle
        if u == v or (low < indptr[u + 1] and indices[low] == v):
            rejected[k] = True
        else:
            pairs[positions[k], 0] = u
            pairs[positions[k], 1] = v
    return rejected
