"""Products of a CSR matrix, or of its transpose, with a dense matrix, for CPUs.

Each number of a product is a sum over entries of the sparse matrix in the order in which they stand, one fused
multiply-add a term: whatever the blocks of columns and the number of threads, the bits are those of the plain loop.
Compilers keep that loop's sums in memory, since for all they know the arrays overlap. Here they stay in registers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

# Columns that are worked on as one: the numbers in the widest register.
LANES = 16
# How many times LANES columns a pass over a row's entries covers, as tuples: the compiler knows their lengths.
_ONE, _TWO, _FOUR = (0,), (0, 0), (0, 0, 0, 0)


class _Block:
    """Code for some columns of two dense matrices and the entries low … high - 1 of a sparse one."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        indices, values, low, high, dense, out, row, column, registers = range(9)
        self.context, self.builder = context, builder
        self.indices, self.values, self.dense, self.out = (
            context.make_array(signature.args[k])(context, builder, arguments[k]) for k in (indices, values, dense, out)
        )
        self.low, self.high, self.row, self.column = (
            context.cast(builder, arguments[k], signature.args[k], types.intp) for k in (low, high, row, column)
        )
        self.registers = len(signature.args[registers])
        self.given, number = signature.args[values].dtype, signature.args[dense].dtype
        self.number, self.bytes = number, number.bitwidth // 8
        self.vector = ir.VectorType(context.get_value_type(number), LANES)
        name = f"llvm.fmuladd.v{LANES}f{number.bitwidth}"
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        self.multiply_add = cgutils.get_or_insert_function(builder.module, kind, name)

    def pointers(self, matrix: Any, row: Any) -> list[Any]:
        """Where the block's columns stand in a row, a pointer to each vector of LANES."""
        builder = self.builder
        width = cgutils.unpack_tuple(builder, matrix.shape)[1]
        first = builder.add(builder.mul(row, width), self.column)
        places = (builder.add(first, ir.Constant(first.type, k * LANES)) for k in range(self.registers))
        return [builder.bitcast(builder.gep(matrix.data, [place]), self.vector.as_pointer()) for place in places]

    def load(self, pointer: Any) -> Any:
        """LANES numbers, which need not be aligned as a vector would be."""
        return self.builder.load(pointer, align=self.bytes)

    def store(self, vector: Any, pointer: Any) -> None:
        """The reverse of `load`."""
        self.builder.store(vector, pointer, align=self.bytes)

    @contextmanager
    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Repeat what is built inside for each entry that is not zero; yields its column and LANES times its value."""
        builder = self.builder
        with cgutils.for_range(builder, self.high, start=self.low, intp=self.high.type) as loop:
            value = builder.load(builder.gep(self.values.data, [loop.index]))
            value = self.context.cast(builder, value, self.given, self.number)
            with builder.if_then(builder.fcmp_unordered("!=", value, ir.Constant(value.type, 0.0))):
                at = builder.sext(builder.load(builder.gep(self.indices.data, [loop.index])), self.row.type)
                undefined = ir.Constant(self.vector, ir.Undefined)
                first = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
                spread = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
                yield at, builder.shuffle_vector(first, undefined, spread)


def _generate_gather(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Row `row` of `out` becomes the sum of the rows of `dense` that the entries name, times their values."""
    block = _Block(context, builder, signature, arguments)
    zero = ir.Constant(block.vector, [0.0] * LANES)
    sums = [cgutils.alloca_once_value(builder, zero) for _ in range(block.registers)]
    with block.entries() as (at, value):
        for total, pointer in zip(sums, block.pointers(block.dense, at), strict=True):
            builder.store(builder.call(block.multiply_add, [value, block.load(pointer), builder.load(total)]), total)
    for total, pointer in zip(sums, block.pointers(block.out, block.row), strict=True):
        block.store(builder.load(total), pointer)
    return context.get_dummy_value()


def _generate_scatter(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Row `row` of `dense` times an entry's value is added to the row of `out` that the entry names, entry by entry."""
    block = _Block(context, builder, signature, arguments)
    terms = [block.load(pointer) for pointer in block.pointers(block.dense, block.row)]
    with block.entries() as (at, value):
        for term, pointer in zip(terms, block.pointers(block.out, at), strict=True):
            block.store(builder.call(block.multiply_add, [value, term, block.load(pointer)]), pointer)
    return context.get_dummy_value()


@intrinsic
def _gather(typing_context: Any, indices, values, low, high, dense, out, row, column, registers):  # type: ignore[no-untyped-def]  # noqa: ARG001
    return types.void(indices, values, low, high, dense, out, row, column, registers), _generate_gather


@intrinsic
def _scatter(typing_context: Any, indices, values, low, high, dense, out, row, column, registers):  # type: ignore[no-untyped-def]  # noqa: ARG001
    return types.void(indices, values, low, high, dense, out, row, column, registers), _generate_scatter


@njit(cache=True, nogil=True)
def multiply_rows(first, last, indptr, indices, values, dense, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Rows first … last - 1 of the product of the CSR matrix and `dense`; entries that are zero are passed over."""
    width = dense.shape[1]
    if width < LANES:
        _multiply_narrow_rows(first, last, indptr, indices, values, dense, out)
        return
    for i in range(first, last):
        low, high = indptr[i], indptr[i + 1]
        column = 0
        while column + 4 * LANES <= width:
            _gather(indices, values, low, high, dense, out, i, column, _FOUR)
            column += 4 * LANES
        while column + 2 * LANES <= width:
            _gather(indices, values, low, high, dense, out, i, column, _TWO)
            column += 2 * LANES
        while column < width:
            # The last block may share columns with the one before, which get the same sums again.
            _gather(indices, values, low, high, dense, out, i, min(column, width - LANES), _ONE)
            column += LANES


@njit(cache=True, nogil=True, fastmath={"contract"})
def _multiply_narrow_rows(first, last, indptr, indices, values, dense, out):  # type: ignore[no-untyped-def] # pragma: no cover
    for i in range(first, last):
        for c in range(dense.shape[1]):
            out[i, c] = 0
        for p in range(indptr[i], indptr[i + 1]):
            value = values[p]
            if value != 0:
                j = indices[p]
                for c in range(dense.shape[1]):
                    out[i, c] += value * dense[j, c]


@njit(cache=True, nogil=True, fastmath={"contract"})
def add_transposed_columns(first, last, indptr, indices, values, dense, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add to `out` columns first … last - 1 of the product of the CSR matrix's transpose and `dense`."""
    for i in range(len(indptr) - 1):
        low, high = indptr[i], indptr[i + 1]
        column = first
        while column + 4 * LANES <= last:
            _scatter(indices, values, low, high, dense, out, i, column, _FOUR)
            column += 4 * LANES
        while column + 2 * LANES <= last:
            _scatter(indices, values, low, high, dense, out, i, column, _TWO)
            column += 2 * LANES
        while column + LANES <= last:
            _scatter(indices, values, low, high, dense, out, i, column, _ONE)
            column += LANES
        for p in range(low, high if column < last else low):
            value = values[p]
            if value != 0:
                j = indices[p]
                for c in range(column, last):
                    out[j, c] += value * dense[i, c]
