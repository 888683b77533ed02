"""What the fork server imports once, so that no cell pays for it."""

import gc

import ppgsl_bench.cell

__all__ = ["ppgsl_bench"]

# Objects of the libraries live for ever. Left to the collector, each cell would walk all of them (0.1 s) and, by
# touching them, copy the pages that it shares with the server.
gc.collect()
gc.freeze()
