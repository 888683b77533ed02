"""What a piece of work allocates and touches, counted rather than timed: the same on a busy machine as on an idle one.

peak_bytes
    The most memory held at a time by Python objects and NumPy arrays (tracemalloc), torch tensors (each storage that an
    operation makes, until it is freed) and arrays that compiled kernels return. Scratch space inside a kernel or
    inside a torch operation is not seen; the resident memory that growth is measured by does see it.
touched
    Elements of all arrays handed to compiled kernels plus elements of all tensors that torch operations make: links
    and nodes visited, once for each pass over them. Work done twice shows as twice the number.
"""

import gc
import sys
import tracemalloc
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
import torch
from numba.core.dispatcher import Dispatcher
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

T = TypeVar("T")


@dataclass(frozen=True)
class Count:
    """The counters of one piece of work."""

    peak_bytes: int
    touched: int

    def named(self) -> dict[str, int]:
        """By name."""
        return {"peak_bytes": self.peak_bytes, "touched": self.touched}


def counted(work: Callable[[], T]) -> tuple[T, Count]:
    """Run `work` once and count. It runs several times slower than otherwise."""
    _load_dispatch()
    gc.collect()
    tally = _Tally()
    tracemalloc.start()
    try:
        with _counted_kernels(tally), _TorchOperations(tally):
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            result = work()
            tally.look()
    finally:
        tracemalloc.stop()
    return result, Count(tally.peak - before, tally.touched)


@cache
def _load_dispatch() -> None:
    """The first operation that torch dispatches to Python imports tens of megabytes of modules."""
    with _TorchOperations(_Tally()):
        torch.ones(1)


class _Tally:
    """Bytes that tracemalloc does not see, and the peak of those together with the ones that it does."""

    def __init__(self) -> None:
        self.touched = 0
        self.peak = 0
        self._held = 0

    def look(self) -> None:
        """Take note of the peak since the last look; what is held besides has not changed since."""
        if not tracemalloc.is_tracing():
            return
        self.peak = max(self.peak, tracemalloc.get_traced_memory()[1] + self._held)
        tracemalloc.reset_peak()

    def hold(self, owner: object, size: int) -> None:
        """Count `size` bytes for as long as `owner` lives."""
        self.look()
        self._held += size
        weakref.finalize(owner, self._release, size).atexit = False

    def _release(self, size: int) -> None:
        self.look()
        self._held -= size


class _TorchOperations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operation that torch carries out, those of the backward pass included."""

    def __init__(self, tally: _Tally) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tally = tally
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = {_address(leaf) for leaf in tree_leaves((args, kwargs or {})) if isinstance(leaf, torch.Tensor)}
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided:
                self._tally.touched += leaf.numel()
                storage = leaf.untyped_storage()
                if _address(leaf) not in given and storage not in self._known:
                    self._known.add(storage)
                    self._tally.hold(storage, storage.nbytes())
        return result


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.layout == torch.strided else 0


class _CountedKernel:
    """Stands in for a compiled kernel, also where another kernel that is being compiled refers to it."""

    def __init__(self, kernel: Any, tally: _Tally) -> None:
        self._kernel = kernel
        self._tally = tally
        self._numba_type_ = kernel._numba_type_

    def __call__(self, *args: Any) -> Any:
        self._tally.touched += sum(arg.size for arg in args if isinstance(arg, np.ndarray))
        result = self._kernel(*args)
        for made in result if isinstance(result, tuple) else (result,):
            if isinstance(made, np.ndarray) and not any(made is arg for arg in args):
                self._tally.hold(made, made.nbytes)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)


@contextmanager
def _counted_kernels(tally: _Tally) -> Iterator[None]:
    """Replace the kernels of all loaded modules of this package and of plugin files, for a while."""
    found = [
        (module, name, kernel)
        for key, module in list(sys.modules.items())
        if key.startswith("ppgsl_bench")
        for name, kernel in vars(module).items()
        if isinstance(kernel, Dispatcher)
    ]
    for module, name, kernel in found:
        setattr(module, name, _CountedKernel(kernel, tally))
    try:
        yield
    finally:
        for module, name, kernel in found:
            setattr(module, name, kernel)
