"""An attack that does nothing, to measure what everything around it costs."""

import numpy as np

from ppgsl_bench.attacks import Attack, Field, register


@register("noop", version=1)
class Noop(Attack):
    """Score every pair zero."""

    index: int = Field(0, help="tells one cell from another")

    def score(self, published, pairs, rng):
        return np.zeros(len(pairs))
