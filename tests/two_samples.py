"""Do two series of random draws have the same law? p-values that hold whatever depends on what within one draw."""

import numpy as np
from scipy import stats


def same_frequencies_p(first, second):
    """Bits of shape [draws, columns] each: the smallest p-value of all columns, times their number (Bonferroni)."""
    draws = len(first)
    a, b = first.sum(axis=0), second.sum(axis=0)
    share = (a + b) / (2 * draws)
    used = (share > 0) & (share < 1)
    if not used.any():
        return 1.0
    z = (a - b)[used] / np.sqrt(2 * draws * share * (1 - share))[used]
    return min(1.0, 2 * stats.norm.sf(np.abs(z).max()) * used.sum())


def same_histogram_p(first, second, fewest=20):
    """Hashable outcomes, one a draw: chi-square test of homogeneity, outcomes seen fewer times than that pooled."""
    outcomes = sorted(set(first) | set(second))
    number = {outcome: column for column, outcome in enumerate(outcomes)}
    table = np.array([np.bincount([number[o] for o in s], minlength=len(outcomes)) for s in (first, second)])
    rare = table.sum(axis=0) < fewest
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    return stats.chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0
