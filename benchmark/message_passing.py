"""Message passing on sparse graphs: the products, features and encoders that attacks, defenses and utilities share.

The adjacency of a graph is brought into CSR form once; every layer is then a product of that matrix with dense node
vectors. On a CPU the products are numba kernels over int32 CSR rows, one thread for each that torch may use; elsewhere
they are torch's own sparse products. The backward pass multiplies by the transpose, which for the symmetric normalised
adjacency is the matrix itself.

Encoders: GCN (Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks", ICLR 2017) and
GraphSAGE with mean aggregation (Hamilton, Ying and Leskovec, "Inductive Representation Learning on Large Graphs",
NeurIPS 2017).
"""

import math
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ppgsl_bench.device import current_device
from ppgsl_bench.graph import Graph
from ppgsl_bench.sparse_products import LANES, add_transposed_columns, multiply_rows

# Below this many multiply-adds (about a millisecond of work) starting threads costs more than it saves.
_WORTH_THREADS = 8_000_000


class Matrix(Protocol):
    """Anything that multiplies dense node vectors, differentiably."""

    def __matmul__(self, dense: Tensor, /) -> Tensor: ...


class SparseMatrix:
    """A constant CSR matrix on the current device; `matrix @ dense` is differentiable in `dense`.

    Args:
        matrix: any shape; values become float32 (float64 stays), indices int32.
        symmetric: whether the matrix equals its transpose, so that the backward pass needs no second one.
    """

    def __init__(self, matrix: sp.csr_array, *, symmetric: bool = False) -> None:
        device = current_device()
        dtype = np.float64 if matrix.dtype == np.float64 else np.float32
        self.shape: tuple[int, int] = matrix.shape
        self.symmetric = symmetric
        self.indptr = torch.from_numpy(matrix.indptr.astype(np.int32)).to(device)
        self.indices = torch.from_numpy(matrix.indices.astype(np.int32)).to(device)
        self.values = torch.from_numpy(matrix.data.astype(dtype)).to(device)
        self._aggregated: tuple[Tensor, Tensor] | None = None

    def __matmul__(self, dense: Tensor) -> Tensor:
        product: Tensor = _Product.apply(self, dense)  # type: ignore[no-untyped-call]
        return product

    def aggregated(self, dense: Tensor) -> Tensor:
        """`matrix @ dense` for a constant `dense`, computed once and kept for as long as the same tensor comes."""
        if self._aggregated is None or self._aggregated[0] is not dense:
            self._aggregated = (dense, self.multiply(dense))
        return self._aggregated[1]

    def multiply(self, dense: Tensor) -> Tensor:
        """The product itself, unknown to autograd."""
        return csr_product(self.indptr, self.indices, self.values, dense, self.shape)

    def multiply_transposed(self, dense: Tensor) -> Tensor:
        """The product of the transpose."""
        if self.symmetric:
            return self.multiply(dense)
        if self.values.device.type == "cpu" and self.shape[1] < self.shape[0]:
            threads = usable_threads(len(self.values) * dense.shape[1])
            # Threads share the columns here. If some had none to work on, the rows of the transpose are better shared.
            if threads <= max(1, dense.shape[1] // LANES):
                return self._scattered(dense, threads)
        indptr, indices, _ = self._transposed
        return csr_product(indptr, indices, self._transposed_values, dense, self.shape[::-1])

    def _scattered(self, dense: Tensor, threads: int) -> Tensor:
        """The product of the transpose, without making it: the few rows of the result stay in a near cache."""
        out = torch.zeros(self.shape[1], dense.shape[1], dtype=dense.dtype)
        run_in_threads(
            add_transposed_columns,
            [*(LANES * share for share in even_shares(dense.shape[1] // LANES, threads)[:-1]), dense.shape[1]],
            self.indptr.numpy(),
            self.indices.numpy(),
            self.values.detach().numpy(),
            dense.detach().contiguous().numpy(),
            out.numpy(),
        )
        return out

    def with_values(self, values: Tensor) -> "SparseMatrix":
        """The same pattern with other values, in the same order."""
        other = copy(self)
        other.values, other.symmetric, other._aggregated = values, False, None
        other.__dict__["_transposed"] = self._transposed
        other.__dict__.pop("_transposed_values", None)
        return other

    @cached_property
    def _transposed(self) -> tuple[Tensor, Tensor, Tensor]:
        """CSR of the transpose and where each of its entries stands in this matrix."""
        position = np.arange(len(self.values), dtype=np.int64)
        pattern = sp.csr_array((position, self.indices.cpu().numpy(), self.indptr.cpu().numpy()), shape=self.shape)
        flipped = pattern.T.tocsr()
        parts = (flipped.indptr.astype(np.int32), flipped.indices.astype(np.int32), flipped.data)
        indptr, indices, order = (torch.from_numpy(part).to(self.values.device) for part in parts)
        return indptr, indices, order

    @cached_property
    def _transposed_values(self) -> Tensor:
        return self.values[self._transposed[2]]


class OneHot:
    """Features of a graph that has none: one column a node, so that `features @ weight` is `weight` itself."""

    def __init__(self, num_nodes: int, scale: Tensor | None = None) -> None:
        self.shape: tuple[int, int] = (num_nodes, num_nodes)
        self.scale = scale

    def __matmul__(self, weight: Tensor) -> Tensor:
        return weight if self.scale is None else self.scale[:, None] * weight


class RememberedProducts:
    """Features for weights that no longer change, such as a trained encoder's: each product is computed once."""

    def __init__(self, features: "Features") -> None:
        self.shape: tuple[int, ...] = features.shape
        self._features = features
        self._products: list[tuple[Tensor, Tensor]] = []

    def __matmul__(self, weight: Tensor) -> Tensor:
        for known, product in self._products:
            if known is weight:
                return product
        with torch.no_grad():
            self._products.append((weight, self._features @ weight))
        return self._products[-1][1]


Features: TypeAlias = Tensor | SparseMatrix | OneHot | RememberedProducts


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: SparseMatrix, dense: Tensor) -> Tensor:
        ctx.matrix = matrix
        return matrix.multiply(dense)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor]:
        return None, ctx.matrix.multiply_transposed(grads[0])


def csr_product(indptr: Tensor, indices: Tensor, values: Tensor, dense: Tensor, shape: tuple[int, int]) -> Tensor:
    """CSR matrix times dense matrix, shapes [R, C] and [C, d]; entries that are zero cost next to nothing."""
    if dense.device.type != "cpu":
        return torch_csr_product(indptr, indices, values, dense, shape)
    out = torch.empty(shape[0], dense.shape[1], dtype=dense.dtype)
    rows = indptr.numpy()
    run_in_threads(
        multiply_rows,
        row_shares(rows, usable_threads(len(values) * dense.shape[1])),
        rows,
        indices.numpy(),
        values.detach().numpy(),
        dense.detach().contiguous().numpy(),
        out.numpy(),
    )
    return out


def torch_csr_product(indptr: Tensor, indices: Tensor, values: Tensor, dense: Tensor, shape: tuple[int, int]) -> Tensor:
    """The same by torch's sparse product, for other devices."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        return torch.sparse_csr_tensor(indptr, indices, values, shape, check_invariants=False) @ dense


def usable_threads(work: int) -> int:
    """How many threads to use for so many multiply-adds."""
    return torch.get_num_threads() if work > _WORTH_THREADS else 1


def even_shares(count: int, threads: int) -> list[int]:
    """Bounds of consecutive ranges of equal length, one a thread."""
    return [count * t // threads for t in range(threads + 1)]


def row_shares(indptr: NDArray[np.int32], threads: int) -> list[int]:
    """Bounds of consecutive row ranges with equal shares of the entries, one range a thread."""
    inner = [int(np.searchsorted(indptr, share)) for share in even_shares(int(indptr[-1]), threads)[1:-1]]
    return [0, *inner, len(indptr) - 1]


def run_in_threads(kernel: Callable[..., None], bounds: Sequence[int], *arrays: object) -> None:
    """`kernel(first, last, *arrays)` for each range between `bounds`, side by side.

    The kernels release the GIL. Threads are started for the call, not kept: a pool would not survive a fork.
    """
    if len(bounds) == 2:
        kernel(bounds[0], bounds[1], *arrays)
        return
    with ThreadPoolExecutor(len(bounds) - 1) as pool:
        for done in [pool.submit(kernel, a, b, *arrays) for a, b in pairwise(bounds)]:
            done.result()


def normalised_adjacency(graph: Graph) -> SparseMatrix:
    """D^-1/2 (A + I) D^-1/2 with D the row sums of A + I; weights count."""
    looped = (graph.adjacency + sp.eye_array(graph.num_nodes, dtype=np.float32, format="csr")).tocsr()
    scale = 1 / np.sqrt(looped.sum(axis=1, dtype=np.float64))
    looped.data = (looped.data * scale[looped.indices] * np.repeat(scale, np.diff(looped.indptr))).astype(np.float32)
    return SparseMatrix(looped, symmetric=True)


def mean_adjacency(graph: Graph) -> SparseMatrix:
    """Row i is Σ_j w_ij h_j / max(Σ_j w_ij, 1): the mean over neighbours; an isolated node gets zero.

    The bound of 1 never acts on an unweighted graph; with weights below 1 it keeps the mean continuous as they vanish.
    """
    adjacency = graph.adjacency.copy()
    share = 1 / np.maximum(adjacency.sum(axis=1, dtype=np.float64), 1)
    adjacency.data = (adjacency.data * np.repeat(share, np.diff(adjacency.indptr))).astype(np.float32)
    return SparseMatrix(adjacency)


def input_features(graph: Graph) -> Features:
    """A graph's features as a network's input.

    One rule for all: each row is divided by the sum of its absolute values, as is usual for bags of words; signs, zeros
    and sparsity stay, all-zero rows stay zero, and no node's input depends on another node. A graph without
    features gets one-hot ones.
    """
    x = graph.x
    if x is None:
        return OneHot(graph.num_nodes)
    sums = np.asarray(abs(x).sum(axis=1, dtype=np.float64)).ravel()
    scale = (1 / np.where(sums > 0, sums, 1)).astype(np.float32)
    if isinstance(x, np.ndarray):
        return torch.from_numpy(x * scale[:, None]).to(current_device())
    scaled = x.copy()
    scaled.data = scaled.data * np.repeat(scale, np.diff(scaled.indptr))
    return SparseMatrix(scaled)


def glorot(rows: int, columns: int, generator: torch.Generator) -> nn.Parameter:
    """A weight matrix, uniform in ±sqrt(6 / (rows + columns)) (Glorot and Bengio, AISTATS 2010)."""
    bound = math.sqrt(6 / (rows + columns))
    uniform = torch.rand(rows, columns, generator=generator, device=generator.device)
    return nn.Parameter((2 * uniform - 1) * bound)


class _UnitRows(torch.autograd.Function):
    """ẑ = z / |z| with the gradient (G - (G·ẑ) ẑ) / |z|; a zero row stays zero and passes no gradient on."""

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        norm = torch.linalg.vector_norm(z, dim=1, keepdim=True)
        inverse = torch.where(norm > 0, 1 / norm, 0)
        unit = z * inverse
        ctx.save_for_backward(unit, inverse)
        return unit

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        unit, inverse = ctx.saved_tensors
        along = (grads[0] * unit).sum(dim=1, keepdim=True)
        return torch.addcmul(grads[0], unit, along, value=-1).mul_(inverse)


def unit_rows(z: Tensor) -> Tensor:
    """Rows scaled to length 1, shape [N, d]; inner products of the result are cosines.

    `torch.nn.functional.normalize` would multiply the gradient of a zero row by 10^12. Such rows occur: a node with
    neither links nor features starts at the output bias, which starts at zero.
    """
    rows: Tensor = _UnitRows.apply(z)  # type: ignore[no-untyped-call]
    return rows


class Encoder(nn.Module):
    """Node vectors from an adjacency and features: layers with ReLU between them.

    Args:
        num_features: width of the input, `features.shape[1]`.
        widths: output width of each layer.
        generator: source of the initial weights and of dropout; its device is the module's.
        dropout: share of each layer's input entries zeroed while training.
    """

    def __init__(
        self, num_features: int, widths: Sequence[int], generator: torch.Generator, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.generator = generator
        self.dropout = dropout
        sizes = list(zip([num_features, *widths[:-1]], widths, strict=True))
        self.weights = nn.ParameterList([glorot(rows, columns, generator) for rows, columns in sizes])
        self.biases = nn.ParameterList([nn.Parameter(torch.zeros(w, device=generator.device)) for w in widths])

    def forward(self, adjacency: Matrix, features: Features) -> Tensor:
        """Node vectors, shape [N, widths[-1]]."""
        inputs = self._dropped(features)
        h = self.layer(0, adjacency, inputs, constant=inputs is features)
        for i in range(1, len(self.weights)):
            h = self.layer(i, adjacency, self._dropped(h.relu_()))
        return h

    def layer(self, i: int, adjacency: Matrix, h: Features, *, constant: bool = False) -> Tensor:
        """Output of the i-th layer before the non-linearity; `constant` if `h` is the same in every epoch."""
        raise NotImplementedError

    def _dropped(self, h: Features) -> Features:
        if not self.training or self.dropout == 0 or isinstance(h, RememberedProducts):
            return h
        if isinstance(h, OneHot):
            return OneHot(h.shape[0], self._mask(torch.empty(h.shape[0], device=self.generator.device)))
        if isinstance(h, SparseMatrix):
            return h.with_values(self._mask(h.values).mul_(h.values))
        return h * self._mask(h) if h.requires_grad else self._mask(h).mul_(h)

    def _mask(self, like: Tensor) -> Tensor:
        # In place: as many numbers as a graph has features are slow to make room for.
        kept = torch.rand(like.shape, generator=self.generator, device=like.device).ge_(self.dropout)
        return kept.div_(1 - self.dropout)


class GCN(Encoder):
    """H' = Â H W + b, with Â from `normalised_adjacency`."""

    def layer(self, i: int, adjacency: Matrix, h: Features, *, constant: bool = False) -> Tensor:  # noqa: D102
        return _propagated(adjacency, h, self.weights[i], constant).add_(self.biases[i])


class GraphSAGE(Encoder):
    """H' = M H W + H R + b, with M from `mean_adjacency`."""

    def __init__(
        self, num_features: int, widths: Sequence[int], generator: torch.Generator, *, dropout: float = 0.0
    ) -> None:
        super().__init__(num_features, widths, generator, dropout=dropout)
        self.roots = nn.ParameterList([glorot(w.shape[0], w.shape[1], generator) for w in self.weights])

    def layer(self, i: int, adjacency: Matrix, h: Features, *, constant: bool = False) -> Tensor:  # noqa: D102
        return _propagated(adjacency, h, self.weights[i], constant).add_(h @ self.roots[i]).add_(self.biases[i])


def _propagated(adjacency: Matrix, h: Features, weight: Tensor, constant: bool) -> Tensor:
    """The product adjacency · h · weight in the cheaper order.

    In general adjacency (h weight), which is narrow. Constant dense features on a constant adjacency are aggregated
    once instead, which leaves one dense product an epoch. Sparse features stay as they are: aggregated they would have
    more entries than adjacency and features together.
    """
    if constant and isinstance(adjacency, SparseMatrix) and isinstance(h, Tensor):
        return adjacency.aggregated(h) @ weight
    return adjacency @ (h @ weight)
