"""An attack that needs more memory than there is, as long as a certain file exists."""

from pathlib import Path

import numpy as np

from ppgsl_bench.attacks import Attack, Field, register


@register("hungry", version=1)
class Hungry(Attack):
    """Score every pair zero, in a crowded machine after allocating without end."""

    crowded: str = Field("", help="the file")

    def score(self, published, pairs, rng):
        hoard = []
        while Path(self.crowded).exists():
            hoard.append(np.ones(2**21))
        return np.zeros(len(pairs))
