"""The learner's loss along a training, from the trace that PPGSL leaves."""

import numpy as np
from numpy.typing import NDArray

from ppgsl_bench.reproduce.evidence import Evidence, Trace
from ppgsl_bench.split import SENSITIVE_SHARE

Floats = NDArray[np.float64]
# Beginning and end of a training are means over this share of its steps.
EDGE_SHARE = 0.1


def sensitive_pairs(evidence: Evidence, dataset: str) -> int:
    """How many links are hidden in each split of a dataset."""
    row = next(iter(evidence.sound("split", dataset).values()))
    return max(1, round(SENSITIVE_SHARE * row.metrics["links"]))


def learner_loss(trace: Trace, alpha: float, sensitive: int) -> Floats:
    """L = L_priv + (α / |E_s|) L_util before each step."""
    loss: Floats = trace["privacy_loss"] + alpha / sensitive * trace["utility_loss"]
    return loss


def fall(loss: Floats) -> float:
    """By which share of its beginning a loss has fallen at the end."""
    edge = max(1, round(EDGE_SHARE * len(loss)))
    return float(1 - loss[-edge:].mean() / loss[:edge].mean())


def settled_after(loss: Floats, within: float = 0.1) -> int:
    """The first step after which the loss stays within a share of its whole range from its final mean."""
    edge = max(1, round(EDGE_SHARE * len(loss)))
    final = loss[-edge:].mean()
    far = np.flatnonzero(np.abs(loss - final) > within * (loss.max() - loss.min()))
    return int(far[-1]) + 1 if len(far) else 0
