"""The network that SEAL classifies subgraphs with: DGCNN.

Zhang, Cui, Neumann and Chen, "An End-to-End Deep Learning Architecture for Graph Classification", AAAI 2018, with the
sizes of SEAL's authors. On a CPU everything up to sort pooling is one pass over a subgraph at a time, forward and
backward, so that a subgraph's vectors stay in the nearest caches; elsewhere it is made of torch's operations.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import conv1d, embedding, max_pool1d

from ppgsl_bench.message_passing import SparseMatrix, glorot
from ppgsl_bench.subgraphs import Subgraphs

# Widths of the network of the SEAL paper: three graph convolutions of HIDDEN columns and one of a single column.
HIDDEN = 32
FEWEST_POOLED = 10
_VECTOR = 3 * HIDDEN + 1
_CHANNELS = (16, 32)
_KERNEL = 5
_DENSE = 128
_DROPOUT = 0.5

# tanh as an odd polynomial over an even one (the coefficients of Eigen's float32 tanh): within 3e-7, and 1 from the
# bound on. Arithmetic alone becomes vector instructions, as a call of the C library does not.
_TANH_BOUND = np.float32(7.9)
_TOP = tuple(
    np.float32(c)
    for c in (
        4.89352455891786e-03,
        6.37261928875436e-04,
        1.48572235717979e-05,
        5.12229709037114e-08,
        -8.60467152213735e-11,
        2.00018790482477e-13,
        -2.76076847742355e-16,
    )
)
_BOTTOM = tuple(
    np.float32(c) for c in (4.89352518554385e-03, 2.26843463243900e-03, 1.18534705686654e-04, 1.19825839466702e-06)
)


class DGCNN(nn.Module):
    """One number a subgraph: graph convolutions, the nodes in order of their last one, then a 1-D convolutional net.

    Args:
        num_labels: labels 0 … num_labels - 1 are told apart; larger ones count as the largest.
        pooled: number of nodes that sort pooling keeps of each subgraph, at least FEWEST_POOLED.
        generator: source of the initial weights and of dropout.
    """

    def __init__(self, num_labels: int, pooled: int, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator
        self.pooled = pooled
        sizes = ((num_labels, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 1))
        self.convolutions = nn.ParameterList([glorot(rows, columns, generator) for rows, columns in sizes])
        first, second = _CHANNELS
        self.node_weight = glorot(_VECTOR, first, generator)
        self.node_bias = nn.Parameter(torch.zeros(first))
        self.window_weight = nn.Parameter(
            glorot(second, first * _KERNEL, generator).detach().view(second, first, _KERNEL)
        )
        self.window_bias = nn.Parameter(torch.zeros(second))
        flat = second * (pooled // 2 - _KERNEL + 1)
        self.dense_weight = glorot(flat, _DENSE, generator)
        self.dense_bias = nn.Parameter(torch.zeros(_DENSE))
        self.out_weight = glorot(_DENSE, 1, generator)
        self.out_bias = nn.Parameter(torch.zeros(1))

    def forward(self, subgraphs: Subgraphs) -> Tensor:
        """Logits, shape [P]."""
        sort = sorted_nodes if self.node_weight.device.type == "cpu" else torch_sorted_nodes
        pooled = sort(subgraphs, self.pooled, self.node_weight, list(self.convolutions))
        # The bias comes after pooling, since nodes that pad a small subgraph get it too.
        h = torch.relu(pooled + self.node_bias).transpose(1, 2)
        h = torch.relu(conv1d(max_pool1d(h, 2), self.window_weight, self.window_bias))
        h = torch.relu(h.flatten(1) @ self.dense_weight + self.dense_bias)
        if self.training:
            h = h * (torch.rand(h.shape, generator=self.generator, device=h.device) >= _DROPOUT) / (1 - _DROPOUT)
        return (h @ self.out_weight + self.out_bias).squeeze(1)


def torch_sorted_nodes(
    subgraphs: Subgraphs, pooled: int, node_weight: Tensor, convolutions: Sequence[Tensor]
) -> Tensor:
    """What DGCNN knows of the first `pooled` nodes of each subgraph, shape [P, pooled, 16]; missing nodes are zero.

    Each convolution is tanh(D^-1 (A + I) H W); the first H is the one-hot label, whose product is a look-up. Nodes are
    in order of the last convolution's single column, largest first. The 1-D convolution that follows looks at one node
    at a time: it is a product of all convolutions side by side with `node_weight`, which may as well come first.
    """
    size = len(subgraphs.labels)
    ones = np.ones(len(subgraphs.indices), dtype=np.float32)
    adjacency = SparseMatrix(
        sp.csr_array((ones, subgraphs.indices, subgraphs.indptr), shape=(size, size)), symmetric=True
    )
    device = node_weight.device
    share = 1 / torch.from_numpy(1 + np.diff(subgraphs.indptr)).to(device, torch.float32)[:, None]
    labels = torch.from_numpy(subgraphs.labels).to(device).clamp(max=len(convolutions[0]) - 1)
    outputs: list[Tensor] = []
    for i, weight in enumerate(convolutions):
        h = embedding(labels, weight) if i == 0 else outputs[-1] @ weight
        outputs.append(torch.tanh(share * (adjacency @ h + h)))
    part = torch.from_numpy(np.repeat(np.arange(len(subgraphs.sizes)), subgraphs.sizes)).to(device)
    order = outputs[-1].detach().squeeze(1).sort(descending=True, stable=True).indices
    order = order[part[order].sort(stable=True).indices]
    place = torch.arange(size, device=device) - torch.from_numpy(subgraphs.offsets).to(device)[part]
    kept = place < pooled
    vectors = torch.cat(outputs, dim=1) @ node_weight
    found = vectors.new_zeros(len(subgraphs.sizes), pooled, node_weight.shape[1])
    return found.index_put((part[kept], place[kept]), vectors[order[kept]])


def sorted_nodes(subgraphs: Subgraphs, pooled: int, node_weight: Tensor, convolutions: Sequence[Tensor]) -> Tensor:
    """The same by compiled kernels, on a CPU."""
    found: Tensor = _SortedNodes.apply(subgraphs, pooled, node_weight, *convolutions)  # type: ignore[no-untyped-call]
    return found


class _SortedNodes(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, subgraphs: Subgraphs, pooled: int, *weights: Tensor) -> Tensor:
        size, num_parts = len(subgraphs.labels), len(subgraphs.sizes)
        node_weight, *convolutions = (weight.detach().contiguous().numpy() for weight in weights)
        labels = np.minimum(subgraphs.labels, len(convolutions[0]) - 1)
        share = (1 / (1 + np.diff(subgraphs.indptr))).astype(np.float32)
        outputs = np.empty((3, size, HIDDEN), np.float32)
        keys = np.empty(size, np.float32)
        order = np.full((num_parts, pooled), -1, np.int32)
        found = np.zeros((num_parts, pooled, _CHANNELS[0]), np.float32)
        ctx.constants = (subgraphs.offsets, subgraphs.indptr, subgraphs.indices, labels, share)
        ctx.learned = (outputs, keys, order)
        ctx.save_for_backward(*weights)
        _forward(*ctx.constants, node_weight, *convolutions, *ctx.learned, found)
        return torch.from_numpy(found)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        weights = [weight.detach().contiguous().numpy() for weight in ctx.saved_tensors]
        found: list[NDArray[np.float32]] = [np.zeros_like(weight) for weight in weights]
        _backward(*ctx.constants, *weights, *ctx.learned, grads[0].contiguous().numpy(), *found)
        return None, None, *(torch.from_numpy(grad) for grad in found)


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _forward(  # type: ignore[no-untyped-def] # pragma: no cover
    offsets, indptr, indices, labels, share, node_weight, w0, w1, w2, w3, outputs, keys, order, found
):
    largest = np.max(offsets[1:] - offsets[:-1])
    products = np.empty((largest, HIDDEN), np.float32)
    vectors = np.empty((largest, _CHANNELS[0]), np.float32)
    more = np.empty_like(vectors)
    for p in range(len(offsets) - 1):
        low, high, rows, columns, shares = _part(offsets, indptr, indices, share, p)
        size = high - low
        h = products[:size]
        for i in range(size):
            for c in range(HIDDEN):
                h[i, c] = w0[labels[low + i], c]
        _convolve(rows, columns, low, shares, h, outputs[0, low:high])
        np.dot(outputs[0, low:high], w1, h)
        _convolve(rows, columns, low, shares, h, outputs[1, low:high])
        np.dot(outputs[1, low:high], w2, h)
        _convolve(rows, columns, low, shares, h, outputs[2, low:high])
        last = np.dot(outputs[2, low:high], w3)[:, 0]
        for i in range(size):
            keys[low + i] = _tanh(shares[i] * _looped_sum(rows, columns, low, last, i))
        np.dot(outputs[0, low:high], node_weight[:HIDDEN], vectors[:size])
        for layer in range(1, 3):
            np.dot(outputs[layer, low:high], node_weight[layer * HIDDEN : (layer + 1) * HIDDEN], more[:size])
            vectors[:size] += more[:size]
        # Where keys are the same, nodes stay in the order of the subgraph.
        ranked = np.argsort(-keys[low:high], kind="mergesort")
        for r in range(min(size, order.shape[1])):
            i = ranked[r]
            order[p, r] = i
            for c in range(_CHANNELS[0]):
                found[p, r, c] = vectors[i, c] + keys[low + i] * node_weight[3 * HIDDEN, c]


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _backward(  # type: ignore[no-untyped-def] # pragma: no cover
    offsets,
    indptr,
    indices,
    labels,
    share,
    node_weight,
    w0,  # noqa: ARG001
    w1,
    w2,
    w3,
    outputs,
    keys,
    order,
    grads,
    node_grad,
    grad0,
    grad1,
    grad2,
    grad3,
):
    """Add up the gradients, given those of what `_forward` found."""
    largest = np.max(offsets[1:] - offsets[:-1])
    vectors = np.empty((largest, _CHANNELS[0]), np.float32)
    key_slopes = np.empty(largest, np.float32)
    # Gradients of a layer's output that come from pooling, and those that come from the layer above.
    direct = np.empty((largest, HIDDEN), np.float32)
    above = np.empty_like(direct)
    # Gradient of a layer's products H W.
    product = np.empty_like(direct)
    node_share = np.empty((HIDDEN, _CHANNELS[0]), np.float32)
    hidden_share = np.empty((HIDDEN, HIDDEN), np.float32)
    for p in range(len(offsets) - 1):
        low, high, rows, columns, shares = _part(offsets, indptr, indices, share, p)
        size = high - low
        g = vectors[:size]
        _unsort(order[p], grads[p], g)
        _key_slopes(keys[low:high], shares, node_weight[3 * HIDDEN], g, key_slopes, node_grad[3 * HIDDEN])
        for i in range(size):
            total = _looped_sum(rows, columns, low, key_slopes, i)
            for c in range(HIDDEN):
                grad3[c, 0] += total * outputs[2, low + i, c]
                above[i, c] = total * w3[c, 0]
        for layer in range(2, -1, -1):
            h = outputs[layer, low:high]
            np.dot(h.T, g, node_share)
            node_grad[layer * HIDDEN : (layer + 1) * HIDDEN] += node_share
            np.dot(g, node_weight[layer * HIDDEN : (layer + 1) * HIDDEN].T, direct[:size])
            _slopes(h, shares, above, direct)
            _add_neighbours(rows, columns, low, direct[:size], product[:size])
            if layer == 2:
                np.dot(product[:size], w2.T, above[:size])
                np.dot(outputs[1, low:high].T, product[:size], hidden_share)
                grad2 += hidden_share
            elif layer == 1:
                np.dot(product[:size], w1.T, above[:size])
                np.dot(outputs[0, low:high].T, product[:size], hidden_share)
                grad1 += hidden_share
        for i in range(size):
            for c in range(HIDDEN):
                grad0[labels[low + i], c] += product[i, c]


@njit(cache=True)
def _part(offsets, indptr, indices, share, p):  # type: ignore[no-untyped-def] # pragma: no cover
    """Bounds of part p among all nodes; of its nodes the row starts, the neighbours and 1 / (degree + 1)."""
    low, high = offsets[p], offsets[p + 1]
    rows = indptr[low : high + 1]
    return low, high, rows, indices[rows[0] : rows[-1]], share[low:high]


@njit(cache=True, fastmath={"contract"}, error_model="numpy", inline="always")
def _tanh(x):  # type: ignore[no-untyped-def] # pragma: no cover
    y = min(max(x, -_TANH_BOUND), _TANH_BOUND)
    q = y * y
    top = _TOP[0] + q * (_TOP[1] + q * (_TOP[2] + q * (_TOP[3] + q * (_TOP[4] + q * (_TOP[5] + q * _TOP[6])))))
    return y * top / (_BOTTOM[0] + q * (_BOTTOM[1] + q * (_BOTTOM[2] + q * _BOTTOM[3])))


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _convolve(rows, columns, low, shares, h, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """tanh(D^-1 (A + I) h) of one part, whose first node is `low`."""
    _add_neighbours(rows, columns, low, h, out)
    for i in range(len(h)):
        for c in range(HIDDEN):
            out[i, c] = _tanh(shares[i] * out[i, c])


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _slopes(h, shares, above, direct):  # type: ignore[no-untyped-def] # pragma: no cover
    """Turn the gradient of a layer's output h = tanh(D^-1 s), the sum of two, into that of s; it replaces `direct`."""
    for i in range(len(h)):
        for c in range(HIDDEN):
            direct[i, c] = (direct[i, c] + above[i, c]) * (1 - h[i, c] * h[i, c]) * shares[i]


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _key_slopes(keys, shares, weight, grads, slopes, weight_grad):  # type: ignore[no-untyped-def] # pragma: no cover
    """The same for the last layer's single column, of which only pooling makes use."""
    for i in range(len(keys)):
        slope = np.float32(0)
        for c in range(_CHANNELS[0]):
            weight_grad[c] += keys[i] * grads[i, c]
            slope += grads[i, c] * weight[c]
        slopes[i] = slope * (1 - keys[i] * keys[i]) * shares[i]


@njit(cache=True)
def _unsort(order, pooled, vectors):  # type: ignore[no-untyped-def] # pragma: no cover
    """What belongs to the pooled nodes at the places of these nodes, and zero for all others."""
    vectors[:] = 0
    for r in range(min(len(vectors), len(order))):
        for c in range(_CHANNELS[0]):
            vectors[order[r], c] = pooled[r, c]


@njit(cache=True, fastmath={"contract"}, inline="always")
def _looped_sum(rows, columns, low, values, i):  # type: ignore[no-untyped-def] # pragma: no cover
    """Row i of (A + I) values."""
    total = values[i]
    for e in range(rows[i] - rows[0], rows[i + 1] - rows[0]):
        total += values[columns[e] - low]
    return total


@njit(cache=True, fastmath={"contract"})
def _add_neighbours(rows, columns, low, h, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """(A + I) h; four neighbours at a time, to store a row less often."""
    for i in range(len(h)):
        for c in range(HIDDEN):
            out[i, c] = h[i, c]
        e, stop = rows[i] - rows[0], rows[i + 1] - rows[0]
        while e + 4 <= stop:
            j, k, m, n = columns[e] - low, columns[e + 1] - low, columns[e + 2] - low, columns[e + 3] - low
            for c in range(HIDDEN):
                out[i, c] += (h[j, c] + h[k, c]) + (h[m, c] + h[n, c])
            e += 4
        while e < stop:
            j = columns[e] - low
            for c in range(HIDDEN):
                out[i, c] += h[j, c]
            e += 1
