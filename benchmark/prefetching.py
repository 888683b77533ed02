"""Asking the processor for memory before it is needed, from within compiled kernels."""

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

# Bytes that come into a cache at once, on every processor of note.
CACHE_LINE = 64

# Arguments of llvm.prefetch: for reading, to be kept in the nearest cache, data rather than instructions.
_READ, _NEAREST, _DATA = 0, 3, 1


@intrinsic
def _prefetch_address(typing_context: Any, address: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        pointer_type = cgutils.voidptr_t
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer_type, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        pointer = builder.inttoptr(arguments[0], pointer_type)
        builder.call(function, [pointer, *(ir.Constant(flag, value) for value in (_READ, _NEAREST, _DATA))])
        return context.get_dummy_value()

    return types.void(types.uintp), generate


@njit(cache=True, inline="always")
def prefetch(rows, i):  # type: ignore[no-untyped-def] # pragma: no cover
    """Ask for row i of a contiguous array, which goes on being valid or invalid as it was: this is but a hint."""
    width = rows.strides[0]
    start = rows.ctypes.data + i * width
    for offset in range(0, width, CACHE_LINE):
        _prefetch_address(start + offset)


@njit(cache=True)
def prefetch_rows(rows, chosen):  # type: ignore[no-untyped-def] # pragma: no cover
    """Ask for the chosen rows."""
    for i in chosen:
        prefetch(rows, i)
