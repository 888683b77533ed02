"""Random streams, each named after exactly the axes that it should depend on."""

import hashlib
import json

import numpy as np


def derive_seed(*axes: str | int) -> int:
    """A 128-bit seed: the hash of the names and values of the axes."""
    digest = hashlib.sha256(json.dumps(axes, ensure_ascii=True).encode()).digest()
    return int.from_bytes(digest[:16], "big")


def generator(*axes: str | int) -> np.random.Generator:
    """The stream that belongs to these axes; nothing else draws from it."""
    return np.random.Generator(np.random.PCG64DXSM(derive_seed(*axes)))
