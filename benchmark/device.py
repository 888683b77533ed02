"""Where torch code runs, and torch generators that follow from NumPy ones.

The device belongs to the machine, not to the experiment: it is set once a process by the harness and is part of a row's
provenance, never of its identity.
"""

import re
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np

from ppgsl_bench.errors import UserError

if TYPE_CHECKING:
    import torch

_device: ContextVar[str] = ContextVar("ppgsl_bench_device", default="cpu")


def resolve_device(name: str) -> str:
    """The device that `cpu`, `cuda`, `cuda:1` … or `auto` (a GPU if there is one) means on this machine."""
    import torch

    available = torch.cuda.is_available()
    if name == "auto":
        return "cuda" if available else "cpu"
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise UserError(f"--device {name}: expected cpu, cuda, cuda:N or auto")
    if name != "cpu" and not available:
        raise UserError(f"--device {name}: torch {torch.__version__} sees no GPU here; use --device cpu or auto")
    return name


def use_device(name: str) -> None:
    """Make this the device of the process."""
    _device.set(resolve_device(name))


def current_device() -> "torch.device":
    """The device that plugins should put their tensors on."""
    import torch

    return torch.device(_device.get())


def torch_generator(rng: np.random.Generator) -> "torch.Generator":
    """A torch generator on the current device, seeded by one draw from `rng`."""
    import torch

    return torch.Generator(device=current_device()).manual_seed(int(rng.integers(2**63 - 1)))
