"""Products of a CSR matrix, or of its transpose, with a dense matrix, for CPUs.

Each number of a product is a sum over entries of the sparse matrix in the order in which they stand: whatever the
blocks of columns and the number of threads, the bits are those of the plain loop. Compilers keep that loop's sums in
memory, since for all they know the arrays overlap. Here they stay in registers.
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
# Two choices are made by the length of a tuple, which the compiler knows.
# How many times LANES columns a pass over a row's entries covers:
_ONE, _TWO, _FOUR = (0,), (0, 0), (0, 0, 0, 0)
# How often a term is rounded; once where multiplication and addition are fused, twice as in SciPy's products:
ONCE, TWICE = (0,), (0, 0)


class _Block:
    """Code for some columns of two dense matrices and the entries low … high - 1 of a sparse one."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        indices, values, low, high, dense, out, row, column, registers, roundings = range(10)
        self.context, self.builder = context, builder
        self.indices, self.values, self.dense, self.out = (
            context.make_array(signature.args[k])(context, builder, arguments[k]) for k in (indices, values, dense, out)
        )
        self.low, self.high, self.row, self.column = (
            context.cast(builder, arguments[k], signature.args[k], types.intp) for k in (low, high, row, column)
        )
        self.registers = len(signature.args[registers])
        self.fused = len(signature.args[roundings]) == len(ONCE)
        self.given, number = signature.args[values].dtype, signature.args[dense].dtype
        self.number, self.bytes = number, number.bitwidth // 8
        self.vector = ir.VectorType(context.get_value_type(number), LANES)

    def pointers(self, matrix: Any, row: Any) -> list[Any]:
        """Where the block's columns stand in a row, a pointer to each vector of LANES."""
        builder = self.builder
        width = cgutils.unpack_tuple(builder, matrix.shape)[1]
        first = builder.add(builder.mul(row, width), self.column)
        places = (builder.add(first, ir.Constant(first.type, k * LANES)) for k in range(self.registers))
        return [builder.bitcast(builder.gep(matrix.data, [place]), self.vector.as_pointer()) for place in places]

    def add_product(self, value: Any, factor: Any, total: Any) -> Any:
        """LANES times value · factor + total."""
        return _sum(self.builder, f"v{LANES}f{8 * self.bytes}", value, factor, total, fused=self.fused)

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


def _sum(builder: Any, name: str, value: Any, factor: Any, total: Any, *, fused: bool) -> Any:
    """Code for value · factor + total; `name` is what LLVM calls the type of all three."""
    if not fused:
        return builder.fadd(builder.fmul(value, factor), total)
    kind = ir.FunctionType(total.type, [total.type] * 3)
    multiply_add = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.{name}")
    return builder.call(multiply_add, [value, factor, total])


def _generate_gather(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Row `row` of `out` becomes the sum of the rows of `dense` that the entries name, times their values."""
    block = _Block(context, builder, signature, arguments)
    zero = ir.Constant(block.vector, [0.0] * LANES)
    sums = [cgutils.alloca_once_value(builder, zero) for _ in range(block.registers)]
    with block.entries() as (at, value):
        for total, pointer in zip(sums, block.pointers(block.dense, at), strict=True):
            builder.store(block.add_product(value, block.load(pointer), builder.load(total)), total)
    for total, pointer in zip(sums, block.pointers(block.out, block.row), strict=True):
        block.store(builder.load(total), pointer)
    return context.get_dummy_value()


def _generate_scatter(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Row `row` of `dense` times an entry's value is added to the row of `out` that the entry names, entry by entry."""
    block = _Block(context, builder, signature, arguments)
    terms = [block.load(pointer) for pointer in block.pointers(block.dense, block.row)]
    with block.entries() as (at, value):
        for term, pointer in zip(terms, block.pointers(block.out, at), strict=True):
            block.store(block.add_product(value, term, block.load(pointer)), pointer)
    return context.get_dummy_value()


@intrinsic
def _add_product(typing_context: Any, value: Any, factor: Any, total: Any, roundings: Any) -> Any:  # noqa: ARG001
    """Value · factor + total as a number of the total's type, rounded ONCE or TWICE."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        terms = (context.cast(builder, arguments[k], signature.args[k], total) for k in range(3))
        return _sum(builder, f"f{total.bitwidth}", *terms, fused=len(roundings) == len(ONCE))

    return total(value, factor, total, roundings), generate


@intrinsic
def _gather(typing_context, indices, values, low, high, dense, out, row, column, registers, roundings):  # type: ignore[no-untyped-def]  # noqa: ARG001
    arguments = (indices, values, low, high, dense, out, row, column, registers, roundings)
    return types.void(*arguments), _generate_gather


@intrinsic
def _scatter(typing_context, indices, values, low, high, dense, out, row, column, registers, roundings):  # type: ignore[no-untyped-def]  # noqa: ARG001
    arguments = (indices, values, low, high, dense, out, row, column, registers, roundings)
    return types.void(*arguments), _generate_scatter


@njit(cache=True, nogil=True)
def multiply_rows(first, last, indptr, indices, values, dense, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Rows first … last - 1 of the product of the CSR matrix and `dense`; entries that are zero are passed over."""
    for i in range(first, last):
        multiply_row(indices, values, indptr[i], indptr[i + 1], dense, out, i, ONCE)


@njit(cache=True, nogil=True)
def multiply_row(indices, values, low, high, dense, out, i, roundings):  # type: ignore[no-untyped-def] # pragma: no cover
    """Row i of a product, made of the entries low … high - 1; the terms are rounded ONCE or TWICE."""
    width = dense.shape[1]
    if width < LANES:
        out[i] = 0
        for p in range(low, high):
            value = values[p]
            if value != 0:
                j = indices[p]
                for c in range(width):
                    out[i, c] = _add_product(value, dense[j, c], out[i, c], roundings)
        return
    column = 0
    while column + 4 * LANES <= width:
        _gather(indices, values, low, high, dense, out, i, column, _FOUR, roundings)
        column += 4 * LANES
    while column + 2 * LANES <= width:
        _gather(indices, values, low, high, dense, out, i, column, _TWO, roundings)
        column += 2 * LANES
    while column < width:
        # The last block may share columns with the one before, which get the same sums again.
        _gather(indices, values, low, high, dense, out, i, min(column, width - LANES), _ONE, roundings)
        column += LANES


@njit(cache=True, nogil=True)
def add_transposed_columns(first, last, indptr, indices, values, dense, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add to `out` columns first … last - 1 of the product of the CSR matrix's transpose and `dense`."""
    for i in range(len(indptr) - 1):
        low, high = indptr[i], indptr[i + 1]
        column = first
        while column + 4 * LANES <= last:
            _scatter(indices, values, low, high, dense, out, i, column, _FOUR, ONCE)
            column += 4 * LANES
        while column + 2 * LANES <= last:
            _scatter(indices, values, low, high, dense, out, i, column, _TWO, ONCE)
            column += 2 * LANES
        while column + LANES <= last:
            _scatter(indices, values, low, high, dense, out, i, column, _ONE, ONCE)
            column += LANES
        for p in range(low, high if column < last else low):
            value = values[p]
            if value != 0:
                j = indices[p]
                for c in range(column, last):
                    out[j, c] = _add_product(value, dense[i, c], out[j, c], ONCE)
