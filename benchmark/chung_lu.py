"""Random graphs of given expected degrees, in time that grows with the links drawn.

Chung & Lu, "Connected Components in Random Graphs with Given Expected Degree Sequences", 2002; sampled as in Miller &
Hagberg, "Efficient Generation of Networks with Given Expected Degrees", WAW 2011.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ppgsl_bench.pairs import Pairs


def chung_lu_pairs(weights: NDArray[np.int64], blocks: NDArray[np.int64], rng: np.random.Generator) -> Pairs:
    """Link the nodes i, j of a block with probability min(1, w_i w_j / W), W the sum of the block's weights.

    Args:
        weights: the wanted degree of each node, shape [N].
        blocks: the block of each node, shape [N]; there are no links between blocks.
        rng: the source of randomness.

    Returns:
        Distinct pairs, shape [L, 2], in no particular order or orientation.
    """
    order = np.lexsort((-weights, blocks))
    starts = np.flatnonzero(np.diff(blocks[order], prepend=-1, append=-1))
    places: Pairs = _linked_places(weights[order].astype(np.float64), starts, rng)
    return order[places]


@njit(cache=True)
def _linked_places(weights: NDArray[np.float64], starts: NDArray[np.int64], rng: np.random.Generator) -> Pairs:
    """Go through each row i of a block's triangle in leaps; weights fall within a block.

    The probability p of the place at hand bounds all that follow in the row: leap to the next success of a
    Bernoulli(p) process, and accept it with probability q/p, q being the true probability there.
    """
    found = np.empty((int(weights.sum()) // 2 + 16, 2), dtype=np.int64)
    count = 0
    for block in range(len(starts) - 1):
        end = starts[block + 1]
        total = weights[starts[block] : end].sum()
        for i in range(starts[block], end - 1):
            j = i + 1
            p = min(weights[i] * weights[j] / total, 1.0) if total > 0 else 0.0
            while j < end and p > 0:
                if p < 1:
                    leap = math.log(1 - rng.random()) / math.log1p(-p)
                    if leap >= end - j:
                        break
                    j += int(leap)
                q = min(weights[i] * weights[j] / total, 1.0)
                if rng.random() * p < q:
                    if count == len(found):
                        larger = np.empty((2 * count, 2), dtype=np.int64)
                        larger[:count] = found
                        found = larger
                    found[count, 0] = i
                    found[count, 1] = j
                    count += 1
                p = q
                j += 1
    return found[:count]
