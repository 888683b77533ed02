"""How the similarity of DeepWalk vectors changes with each link, in closed form.

DeepWalk factorises Z = log max( vol(A)/(T b) · (P + P² + … + P^T) D⁻¹, 0.001 ) ≈ X Yᵀ with P = D⁻¹A, window T and b
negative samples (Qiu et al., "Network Embedding as Matrix Factorization", WSDM 2018). With Y and D held constant, a
function of X is differentiated through Z to the entries of A (Sun et al., "Data Poisoning Attack against Unsupervised
Node Embedding Methods", 2018; Han et al., "Privacy-Preserving Network Embedding Against Private Link Inference
Attacks", IEEE TDSC 2024). Only the rows of Z that belong to the ends of supervised pairs matter, so that sparse
products with some rows of P^s replace the powers of a dense matrix; the result is the same.
"""

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from ppgsl_bench.pairs import Pairs
from ppgsl_bench.sparse_products import TWICE, multiply_row

Floats = NDArray[np.float64]
Values = NDArray[np.floating]

# Entries of the matrix inside the logarithm are raised to this floor, as in the implementation of Han et al.
FLOOR = 1e-3

# Directions of Y whose squared singular value is below this share of the largest are noise, not signal.
_NEGLIGIBLE = 1e-10

# Memory for the powers of P restricted to a chunk of rows, and for their counterparts on the way back.
_CHUNK_BYTES = 256 * 2**20
# More rows at once would save nothing, fewer would waste the vector units.
_MOST_ROWS, _FEWEST_ROWS = 64, 4


def cosines(vectors: NDArray[np.floating], pairs: Pairs) -> Floats:
    """Cosine similarity of each pair of rows; 0 if one of them is a zero vector."""
    unit, _ = _normalised(vectors)
    return _paired_rows(unit, pairs)


def vector_gradient(
    vectors: NDArray[np.floating], pairs: Pairs, signs: NDArray[np.floating]
) -> tuple[NDArray[np.int64], Floats]:
    """Gradient of O = Σ sign(u, v) · cos(x_u, x_v): the nodes that have one, shape [q], and their rows, [q, d].

    ∂cos(x_u, x_v)/∂x_u = (x̂_v − cos(x_u, x_v) x̂_u) / |x_u|.
    """
    unit, norms = _normalised(vectors)
    cosine = _paired_rows(unit, pairs)
    nodes, position = np.unique(pairs, return_inverse=True)
    position = position.reshape(pairs.shape)
    gradient = np.zeros((len(nodes), vectors.shape[1]))
    for here, there in ((0, 1), (1, 0)):
        u, v = pairs[:, here], pairs[:, there]
        steps = (unit[v] - cosine[:, None] * unit[u]) * (signs / norms[u])[:, None]
        np.add.at(gradient, position[:, here], steps)
    return nodes, gradient


def link_gradient(
    adjacency: sp.csr_array,
    output: NDArray[np.floating],
    nodes: NDArray[np.int64],
    gradient: Floats,
    links: Pairs,
    *,
    window: int,
    negative: int,
    dtype: type[np.floating] = np.float32,
) -> Floats:
    """∂O/∂A of each of the given links or pairs, averaged over A_uv and A_vu, D held constant; shape [len(links)].

    With G = ∂O/∂X (YᵀY)⁻¹ Yᵀ (the rows of ∂O/∂Z), R_s the rows of P^s at `nodes`, S = R_1 + … + R_T, H = G / S where Z
    is above its floor, and C_j = H (I + Pᵀ + … + (Pᵀ)^j):

        ∂O/∂P_ab = Σ_{s=0}^{T-1} R_s[:, a] · C_{T-1-s}[:, b],    ∂O/∂A_ab = ∂O/∂P_ab / d_a.

    Time is O(q T (entries of A + links)); memory is bounded by working on some of the q rows at a time.

    Args:
        adjacency: symmetric, shape [N, N], every row with a positive sum.
        output: output vectors Y of the skip-gram model, shape [N, d].
        nodes: those whose vectors O depends on, shape [q].
        gradient: ∂O/∂x for each of them, shape [q, d].
        links: what to differentiate by, shape [P, 2]; they need not be entries of `adjacency`.
        window: the window T.
        negative: number b of negative samples.
        dtype: of the arithmetic; sums over rows are kept in float64.
    """
    num_nodes = adjacency.shape[0]
    degrees = np.asarray(adjacency.sum(axis=1), dtype=np.float64).ravel()
    forward = (adjacency * (1 / degrees)).tocsr().astype(dtype)
    backward = forward.T.tocsr()
    inverse_degree = (1 / degrees).astype(dtype)
    # Z_uv is above its floor where S_uv exceeds this, v by v.
    least = (FLOOR * window * negative / degrees.sum() * degrees).astype(dtype)[:, None]
    towards_z = (_inverse_gram(output) @ output.astype(np.float64).T).T.astype(dtype)
    result = np.zeros(len(links))
    chunk = min(_rows_at_once(num_nodes, window, np.dtype(dtype).itemsize), max(len(nodes), 1))
    buffers = np.empty((2, num_nodes * window * chunk), dtype=dtype)
    for start in range(0, len(nodes), chunk):
        rows = nodes[start : start + chunk]
        reach, response = buffers[:, : num_nodes * window * len(rows)].reshape(2, num_nodes, window, len(rows))
        total = _spread(forward, inverse_degree, rows, reach)
        by_z = towards_z @ gradient[start : start + chunk].T.astype(dtype)
        _pull(backward, np.divide(by_z, total, out=np.zeros_like(total), where=total > least), response)
        _add_paired_products(reach.reshape(num_nodes, -1), response.reshape(num_nodes, -1), links, result)
    return result / 2


def _paired_rows(rows: Floats, pairs: Pairs) -> Floats:
    products: Floats = np.einsum("pd,pd->p", rows[pairs[:, 0]], rows[pairs[:, 1]])
    return products


def _normalised(vectors: NDArray[np.floating]) -> tuple[Floats, Floats]:
    vectors = vectors.astype(np.float64)
    norms = np.linalg.norm(vectors, axis=1)
    norms[norms == 0] = 1
    return vectors / norms[:, None], norms


def _inverse_gram(output: NDArray[np.floating]) -> Floats:
    """(YᵀY)⁻¹, the same for every node; its pseudo-inverse if there are fewer nodes than dimensions."""
    output = output.astype(np.float64)
    return np.linalg.pinv(output.T @ output, rcond=_NEGLIGIBLE, hermitian=True)


def _rows_at_once(num_nodes: int, window: int, itemsize: int) -> int:
    fitting = _CHUNK_BYTES // (2 * window * num_nodes * itemsize)
    return int(min(max(fitting, _FEWEST_ROWS), _MOST_ROWS))


def _spread(forward: sp.csr_array, inverse_degree: Values, rows: NDArray[np.int64], reach: Values) -> Values:
    """Write R_s / d, s = 0 … T-1, to `reach` [N, T, columns]; returns S, shape [N, columns]."""
    power = np.zeros((len(reach), len(rows)), dtype=reach.dtype)
    power[rows, np.arange(len(rows))] = 1
    np.multiply(power, inverse_degree[:, None], out=reach[:, 0])
    product, total = np.empty_like(power), np.zeros_like(power)
    for step in range(1, reach.shape[1] + 1):
        _spread_once(forward.indptr, forward.indices, forward.data, power, inverse_degree, product, total, reach, step)
        power, product = product, power
    return total


def _pull(backward: sp.csr_array, pulled: Values, response: Values) -> None:
    """Write C_s, s = 0 … T-1, to `response` [N, T, columns] in reverse order; H, in `pulled`, is overwritten."""
    product, summed = np.empty_like(pulled), pulled.copy()
    response[:, -1] = summed
    for step in reversed(range(response.shape[1] - 1)):
        _pull_once(backward.indptr, backward.indices, backward.data, pulled, product, summed, response, step)
        pulled, product = product, pulled


@njit(cache=True)
def _spread_once(indptr, indices, values, power, inverse_degree, product, total, reach, step):  # type: ignore[no-untyped-def] # pragma: no cover
    """The next power into `product`, added to `total`; divided by degrees it is a step of `reach`, if one is left."""
    for i in range(len(product)):
        multiply_row(indices, values, indptr[i], indptr[i + 1], power, product, i, TWICE)
        for c in range(product.shape[1]):
            total[i, c] += product[i, c]
        if step < reach.shape[1]:
            for c in range(product.shape[1]):
                reach[i, step, c] = product[i, c] * inverse_degree[i]


@njit(cache=True)
def _pull_once(indptr, indices, values, pulled, product, summed, response, step):  # type: ignore[no-untyped-def] # pragma: no cover
    """The next step back into `product`; the sum of all so far is a step of `response`."""
    for i in range(len(product)):
        multiply_row(indices, values, indptr[i], indptr[i + 1], pulled, product, i, TWICE)
        for c in range(product.shape[1]):
            summed[i, c] += product[i, c]
            response[i, step, c] = summed[i, c]


@njit(cache=True, fastmath={"reassoc", "contract"})
def _add_paired_products(left: NDArray[np.floating], right: NDArray[np.floating], pairs: Pairs, result: Floats) -> None:
    """Add left[a] · right[b] + left[b] · right[a] to the result of each pair (a, b)."""
    width = left.shape[1]
    zero = left.dtype.type(0)
    for p in range(len(pairs)):
        a, b = pairs[p]
        product = zero
        for t in range(width):
            product += left[a, t] * right[b, t] + left[b, t] * right[a, t]
        result[p] += product
