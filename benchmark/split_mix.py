"""SplitMix64, the random stream of compiled kernels (Steele, Lea and Flood, OOPSLA 2014).

A stream is a 64-bit state that a kernel keeps to itself: it adds `GOLDEN` and turns the state into a number.
"""

import numpy as np
from numba import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53


@njit(cache=True)
def mixed(state: np.uint64) -> np.uint64:
    """64 random bits."""
    state = (state ^ (state >> np.uint64(30))) * _MIX_1
    state = (state ^ (state >> np.uint64(27))) * _MIX_2
    return state ^ (state >> np.uint64(31))


@njit(cache=True)
def unit(state: np.uint64) -> float:
    """A uniform number of [0, 1) with 53 random bits, so that `unit(s) * n` stays below n."""
    return float(mixed(state) >> np.uint64(11)) * _TO_UNIT
