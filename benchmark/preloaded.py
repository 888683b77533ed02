"""What the fork server loads once, so that no cell pays for it."""

import gc
import sys
from importlib import import_module

import numpy as np

import ppgsl_bench.cell
from ppgsl_bench.metrics import hits_at_k

__all__ = ["ppgsl_bench"]

# Some of what libraries need they load when they are first used, which here would be in every cell again.
if "numba" in sys.modules:
    from ppgsl_bench.split_mix import mixed

    # The first call of any compiled kernel makes numba register all types and functions that it knows (0.2 s).
    mixed(np.uint64(0))
if "ppgsl_bench.message_passing" in sys.modules:
    # The first step of an optimiser imports torch's compiler, used or not (1.3 s).
    import_module("torch._dynamo")

# The first use of ogb's Evaluator imports pandas and scikit-learn's metrics (0.9 s).
hits_at_k([0, 1], [0.0, 1.0])

# Objects of the libraries live for ever. Left to the collector, each cell would walk all of them (0.1 s) and, by
# touching them, copy the pages that it shares with the server.
gc.collect()
gc.freeze()
