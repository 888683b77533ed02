"""The paper's tables and figures, one command each."""

NAMES = (
    "table1",
    "table2",
    "tradeoff",
    "attacks",
    "sensitivity",
    "scalability",
    "convergence",
    "protocols",
    "surrogates",
    "alpha",
)
"""The experiments; each is a module of this name here, with an `EXPERIMENT`."""
