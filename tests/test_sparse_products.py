import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from ppgsl_bench import message_passing
from ppgsl_bench.message_passing import SparseMatrix
from ppgsl_bench.sparse_products import LANES, ONCE, TWICE, add_transposed_columns, multiply_row, multiply_rows

# Each path through the blocks: narrower than one, one, two, four of them, and what is left over.
WIDTHS = [1, 3, LANES - 1, LANES, LANES + 1, 2 * LANES, 3 * LANES + 5, 4 * LANES, 7 * LANES, 8 * LANES + 9]


def plain_product(indptr, indices, values, dense, out):
    out[:] = 0
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            for c in range(dense.shape[1]):
                out[i, c] += values[p] * dense[indices[p], c]


# Without leave to contract, multiplication and addition are rounded each for itself.
PLAIN = {ONCE: njit(fastmath={"contract"})(plain_product), TWICE: njit(plain_product)}


def sparse(rows, columns, seed, dtype=np.float32):
    """A third of the entries is there, and a third of these is zero, as dropout leaves them."""
    rng = np.random.default_rng(seed)
    matrix = sp.random_array((rows, columns), density=1 / 3, format="csr", dtype=dtype, rng=rng)
    matrix.data *= rng.choice([-1, 0, 1], size=matrix.nnz).astype(dtype)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return matrix


def plainly(matrix, dense, roundings=ONCE):
    out = np.empty((matrix.shape[0], dense.shape[1]), dense.dtype)
    PLAIN[roundings](matrix.indptr, matrix.indices, matrix.data, dense, out)
    return out


@given(
    rows=st.integers(1, 12),
    columns=st.integers(1, 12),
    width=st.sampled_from(WIDTHS),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**32 - 1),
)
def test_products_have_the_bits_of_the_plain_loop(rows, columns, width, dtype, seed):
    matrix = sparse(rows, columns, seed, dtype)
    rng = np.random.default_rng(seed)
    dense = rng.standard_normal((columns, width)).astype(dtype)
    # What is not to be written stands just beyond each end.
    out = np.full((rows + 2, width), np.nan, dtype)
    multiply_rows(0, rows, matrix.indptr, matrix.indices, matrix.data, dense, out[1:-1])
    np.testing.assert_array_equal(out[1:-1], plainly(matrix, dense))
    assert np.isnan(out[[0, -1]]).all()

    dense = rng.standard_normal((rows, width)).astype(dtype)
    out = np.zeros((columns + 2, width), dtype)
    first = min(LANES, width - 1)
    add_transposed_columns(first, width, matrix.indptr, matrix.indices, matrix.data, dense, out[1:-1])
    assert not out[:, :first].any()
    add_transposed_columns(0, first, matrix.indptr, matrix.indices, matrix.data, dense, out[1:-1])
    np.testing.assert_array_equal(out[1:-1], plainly(sp.csr_array(matrix.T), dense))
    assert not out[[0, -1]].any()


@given(width=st.sampled_from(WIDTHS), roundings=st.sampled_from([ONCE, TWICE]), seed=st.integers(0, 2**32 - 1))
def test_rows_are_rounded_as_asked(width, roundings, seed):
    matrix = sparse(7, 40, seed)
    dense = np.random.default_rng(seed).standard_normal((40, width), dtype=np.float32)
    out = np.empty((7, width), np.float32)
    for i in range(7):
        multiply_row(matrix.indices, matrix.data, matrix.indptr[i], matrix.indptr[i + 1], dense, out, i, roundings)
    np.testing.assert_array_equal(out, plainly(matrix, dense, roundings))


def test_one_rounding_more_would_be_noticed():
    matrix = sparse(9, 400, 0)
    matrix.data *= np.float32(1 / 3)
    dense = np.random.default_rng(0).standard_normal((400, LANES), dtype=np.float32)
    assert (plainly(matrix, dense, ONCE) != plainly(matrix, dense, TWICE)).any()


def test_another_order_of_the_entries_would_be_noticed():
    matrix = sparse(9, 400, 0)
    dense = np.random.default_rng(0).standard_normal((400, LANES), dtype=np.float32)
    backwards = sp.csr_array(matrix[:, ::-1])
    backwards.sort_indices()
    assert (plainly(matrix, dense) != plainly(backwards, dense[::-1].copy())).any()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("threads", [1, 2, 3, 9])
def test_products_of_the_transpose_are_the_same_by_columns_and_by_rows(monkeypatch, width, threads):
    """Tall matrices are multiplied by columns where each thread has some, all others by rows."""
    matrix = SparseMatrix(sparse(50, 11, 1))
    dense = torch.from_numpy(np.random.default_rng(1).standard_normal((50, width), dtype=np.float32))
    expected = torch.from_numpy(plainly(sp.csr_array(sparse(50, 11, 1).T), dense.numpy()))
    monkeypatch.setattr(message_passing, "usable_threads", lambda work: threads)
    assert torch.equal(matrix.multiply_transposed(dense), expected)
    assert torch.equal(matrix.with_values(2 * matrix.values).multiply_transposed(dense), 2 * expected)
