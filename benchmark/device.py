"""Where torch code runs, and torch generators that follow from NumPy ones.

The device belongs to the machine, not to the experiment: it is set once a process by the harness and is part of a row's
provenance, never of its identity.
"""

from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np

from ppgsl_bench.errors import UserError

if TYPE_CHECKING:
    import torch

_device: ContextVar[str] = ContextVar("ppgsl_bench_device", default="cpu")


def use_device(name: str) -> None:
    """Make `cpu`, `cuda`, `cuda:1` … or `auto` (the first GPU if there is one) the device of this process."""
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(f"--device {name}: torch {torch.__version__} sees no GPU here; use --device cpu or auto")
    _device.set(name)


def current_device() -> "torch.device":
    """The device that plugins should put their tensors on."""
    import torch

    return torch.device(_device.get())


def torch_generator(rng: np.random.Generator) -> "torch.Generator":
    """A torch generator on the current device, seeded by one draw from `rng`."""
    import torch

    return torch.Generator(device=current_device()).manual_seed(int(rng.integers(2**63 - 1)))
