"""Similarity of the rows of a matrix: of node features, or of node vectors."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ppgsl_bench.graph import Features
from ppgsl_bench.pairs import Pairs

# Rows are gathered for this many values at a time: 32 MB of float64 an end.
_VALUES_AT_ONCE = 1 << 22


def row_cosines(x: Features, pairs: Pairs) -> NDArray[np.float64]:
    """Cosine of the two rows of `x` (dense or CSR, shape [N, F]) that each pair names; 0 where a row is all zero."""
    if sp.issparse(x):
        x = sp.csr_array(x, dtype=np.float64)
        norm = np.sqrt(x.power(2).sum(axis=1))
    else:
        norm = np.sqrt(np.einsum("nf,nf->n", x, x, dtype=np.float64))
    scale = np.divide(1.0, norm, out=np.zeros(len(norm)), where=norm > 0)
    scores = np.empty(len(pairs))
    step = max(1, _VALUES_AT_ONCE // x.shape[1])
    for start in range(0, len(pairs), step):
        u, v = pairs[start : start + step].T
        first, second = x[u], x[v]
        dot = (
            first.multiply(second).sum(axis=1) if sp.issparse(x) else np.einsum("pf,pf->p", first, second, dtype=float)
        )
        # The factors of the ends are multiplied first, so that (u, v) and (v, u) agree to the last bit.
        scores[start : start + step] = dot * (scale[u] * scale[v])
    return scores
