"""Message passing along links whose weights are learned: the product and its gradient with respect to each weight.

The pattern of candidate links is fixed, so that its CSR form is built once and only values change. With w the weights,
A(w) the symmetric matrix they fill and d_i = c + Σ_j w_ij,

    P(w) = diag(l) (A(w) + c I) diag(r),

    GCN:             c = 1,  l = r = d^-1/2          (`normalised_adjacency` with weights)
    mean neighbour:  c = 0,  l = 1 / max(d, 1), r = 1     (`mean_adjacency` with weights)

For out = P M and G = ∂L/∂out, write a_e = G_u·M_v and b_e = G_v·M_u for the candidate e = (u, v). Then

    ∂L/∂w_e = l_u r_v a_e + l_v r_u b_e + q_u + q_v,
    q_i = ∂L/∂d_i = (l'_i/l_i) Σ_j P_ij G_i·M_j + (r'_i/r_i) Σ_j P_ji G_j·M_i.

All of it follows from the scalars a_e, b_e and G_i·M_i: a sampled dense-dense product over the pattern. No array
with a row for each candidate and a column for each hidden unit is ever made.
"""

from typing import Any, Literal

import numpy as np
import torch
from numba import njit
from torch import Tensor

from ppgsl_bench.device import current_device
from ppgsl_bench.message_passing import csr_product, even_shares, run_in_threads, usable_threads
from ppgsl_bench.pairs import Pairs

Aggregation = Literal["gcn", "mean"]

# Candidates whose ends are gathered at a time where there is no kernel: 2 · 4 · 2^16 · 128 floats are 268 MB.
_CHUNK = 65_536


class CandidateLinks:
    """The pairs that may be linked, as a fixed CSR pattern.

    Args:
        pairs: shape [C, 2], sorted, u < v, unique.
        num_nodes: number of nodes N.
    """

    def __init__(self, pairs: Pairs, num_nodes: int) -> None:
        device = current_device()
        self.num_nodes = num_nodes
        self.pairs = pairs
        indptr, indices, slot = _pattern(np.ascontiguousarray(pairs), num_nodes)
        self.indptr = torch.from_numpy(indptr).to(device)
        self.indices = torch.from_numpy(indices).to(device)
        # Entry p of the CSR arrays carries weight slot[p]; slot C is the loop.
        self.slot = torch.from_numpy(slot).to(device)
        self.row = torch.repeat_interleave(
            torch.arange(num_nodes, dtype=torch.int32), torch.from_numpy(np.diff(indptr))
        ).to(device)
        self.ends = torch.from_numpy(np.ascontiguousarray(pairs.T.astype(np.int32))).to(device)

    def __len__(self) -> int:
        return len(self.pairs)


@njit(cache=True)
def _pattern(pairs, num_nodes):  # type: ignore[no-untyped-def]
    """CSR rows with sorted columns, the loop included, from sorted pairs."""
    count = len(pairs)
    indptr = np.zeros(num_nodes + 1, dtype=np.int32)
    for k in range(count):
        indptr[pairs[k, 0] + 1] += 1
        indptr[pairs[k, 1] + 1] += 1
    for i in range(num_nodes):
        indptr[i + 1] += indptr[i] + 1
    place = indptr[:-1].copy()
    indices = np.empty(2 * count + num_nodes, dtype=np.int32)
    slot = np.empty(2 * count + num_nodes, dtype=np.int32)
    # Pairs are sorted by (u, v): the smaller neighbours of a node come first, then the node itself, then the larger.
    for k in range(count):
        v = pairs[k, 1]
        indices[place[v]], slot[place[v]] = pairs[k, 0], k
        place[v] += 1
    for i in range(num_nodes):
        indices[place[i]], slot[place[i]] = i, count
        place[i] += 1
    for k in range(count):
        u = pairs[k, 0]
        indices[place[u]], slot[place[u]] = pairs[k, 1], k
        place[u] += 1
    return indptr, indices, slot


class LearnedAdjacency:
    """P(w) at one value of w; `adjacency @ h` is differentiable in w and in h.

    Args:
        candidates: the pattern.
        weights: w, one a candidate, shape [C].
        aggregation: which of the two forms of P.
    """

    def __init__(self, candidates: CandidateLinks, weights: Tensor, aggregation: Aggregation) -> None:
        self.candidates = candidates
        self.weights = weights
        self.aggregation = aggregation
        loop = 1.0 if aggregation == "gcn" else 0.0
        with torch.no_grad():
            entries = torch.cat([weights, weights.new_tensor([loop])])[candidates.slot]
            shape = (candidates.num_nodes, candidates.num_nodes)
            ones = entries.new_ones(candidates.num_nodes, 1)
            self.degrees = csr_product(candidates.indptr, candidates.indices, entries, ones, shape)[:, 0]
            if aggregation == "gcn":
                self.left = self.right = self.degrees.rsqrt()
            else:
                self.left, self.right = 1 / self.degrees.clamp(min=1), torch.ones_like(self.degrees)
            self.loops = loop * self.left * self.right
            self.values = entries.mul_(self.left[candidates.row]).mul_(self.right[candidates.indices])

    def __matmul__(self, h: Tensor) -> Tensor:
        product: Tensor = _LearnedProduct.apply(self, self.weights, h)  # type: ignore[no-untyped-call]
        return product

    def multiply(self, h: Tensor) -> Tensor:
        """P h, unknown to autograd."""
        c = self.candidates
        return csr_product(c.indptr, c.indices, self.values, h, (c.num_nodes, c.num_nodes))

    def multiply_transposed(self, h: Tensor) -> Tensor:
        """P^T h: the pattern is symmetric, so only the two scales change places."""
        if self.aggregation == "gcn":
            return self.multiply(h)
        c = self.candidates
        scale = (self.right[c.row] * self.left[c.indices]) / (self.left[c.row] * self.right[c.indices])
        return csr_product(c.indptr, c.indices, self.values * scale, h, (c.num_nodes, c.num_nodes))

    def weight_gradient(self, grad: Tensor, h: Tensor) -> Tensor:
        """∂L/∂w for out = P h and grad = ∂L/∂out; the formula stands at the head of this module."""
        u, v = self.candidates.ends
        there, back, own = sampled_products(grad, h, self.candidates.ends)
        there *= self.left[u] * self.right[v]
        back *= self.left[v] * self.right[u]
        rows, columns = weighted_sums(self.weights.detach(), there, back, self.candidates.ends, len(h))
        rows += self.loops * own
        if self.aggregation == "gcn":
            columns += self.loops * own
            slope = -(rows + columns) / (2 * self.degrees)
        else:
            slope = torch.where(self.degrees > 1, -rows / self.degrees, 0)
        return there.add_(back).add_(slope[u]).add_(slope[v])


class _LearnedProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, adjacency: LearnedAdjacency, weights: Tensor, h: Tensor) -> Tensor:  # noqa: ARG004
        ctx.adjacency = adjacency
        ctx.save_for_backward(h)
        return adjacency.multiply(h)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        (h,) = ctx.saved_tensors
        grad = grads[0].contiguous()
        for_weights = ctx.adjacency.weight_gradient(grad, h.contiguous()) if ctx.needs_input_grad[1] else None
        for_h = ctx.adjacency.multiply_transposed(grad) if ctx.needs_input_grad[2] else None
        return None, for_weights, for_h


def sampled_products(grad: Tensor, h: Tensor, ends: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The products grad_u·h_v and grad_v·h_u for each candidate (u, v), and grad_i·h_i for each node i."""
    count, nodes = ends.shape[1], len(h)
    there, back, own = grad.new_empty(count), grad.new_empty(count), grad.new_empty(nodes)
    if grad.device.type == "cpu":
        threads = usable_threads(count * h.shape[1])
        arrays = (grad.detach().numpy(), h.detach().numpy())
        run_in_threads(_multiply_ends, even_shares(count, threads), ends.numpy(), *arrays, there.numpy(), back.numpy())
        run_in_threads(_multiply_own, even_shares(nodes, threads), *arrays, own.numpy())
    else:
        gather_products(grad, h, ends, there, back, own)
    return there, back, own


def gather_products(grad: Tensor, h: Tensor, ends: Tensor, there: Tensor, back: Tensor, own: Tensor) -> None:
    """The same into given arrays by gathering, a chunk of candidates at a time, for other devices."""
    for start in range(0, ends.shape[1], _CHUNK):
        part = slice(start, start + _CHUNK)
        u, v = ends[:, part]
        there[part] = (grad[u] * h[v]).sum(dim=1)
        back[part] = (grad[v] * h[u]).sum(dim=1)
    for start in range(0, len(h), _CHUNK):
        part = slice(start, start + _CHUNK)
        own[part] = (grad[part] * h[part]).sum(dim=1)


def weighted_sums(weights: Tensor, there: Tensor, back: Tensor, ends: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    """Σ_j P_ij G_i·M_j and Σ_j P_ji G_j·M_i over the candidates, for each node i; `there` and `back` hold l r G·M."""
    rows, columns = weights.new_zeros(nodes), weights.new_zeros(nodes)
    if weights.device.type == "cpu":
        _add_sums(*(array.numpy() for array in (ends, weights, there, back, rows, columns)))
    else:
        scatter_sums(weights, there, back, ends, rows, columns)
    return rows, columns


def scatter_sums(weights: Tensor, there: Tensor, back: Tensor, ends: Tensor, rows: Tensor, columns: Tensor) -> None:
    """The same added to given arrays, for other devices; unlike index_add_, index_put_ adds in a fixed order."""
    u, v = ends.long()
    for sums, first, second in ((rows, u, v), (columns, v, u)):
        sums.index_put_((first,), weights * there, accumulate=True)
        sums.index_put_((second,), weights * back, accumulate=True)


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _multiply_ends(first, last, ends, grad, h, there, back):  # type: ignore[no-untyped-def]
    width = h.shape[1]
    for k in range(first, last):
        u, v = ends[0, k], ends[1, k]
        forth, return_ = h.dtype.type(0), h.dtype.type(0)
        for c in range(width):
            forth += grad[u, c] * h[v, c]
            return_ += grad[v, c] * h[u, c]
        there[k] = forth
        back[k] = return_


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _multiply_own(first, last, grad, h, own):  # type: ignore[no-untyped-def]
    width = h.shape[1]
    for i in range(first, last):
        total = h.dtype.type(0)
        for c in range(width):
            total += grad[i, c] * h[i, c]
        own[i] = total


@njit(cache=True, nogil=True)
def _add_sums(ends, weights, there, back, rows, columns):  # type: ignore[no-untyped-def]
    for k in range(len(weights)):
        u, v = ends[0, k], ends[1, k]
        forth, return_ = weights[k] * there[k], weights[k] * back[k]
        rows[u] += forth
        columns[v] += forth
        rows[v] += return_
        columns[u] += return_
