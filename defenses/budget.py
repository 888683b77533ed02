"""A differential-privacy budget that cannot be overspent."""

from fractions import Fraction


class PrivacyBudget:
    """Adds up what the steps of a mechanism spend, by sequential composition (Dwork & Roth 2014, theorem 3.14).

    Queries on disjoint sets of links compose in parallel and are one purchase. Sums are exact, so that a test can ask
    for exactly ε.
    """

    def __init__(self, epsilon: float) -> None:
        self._total = Fraction(epsilon)
        self._spent: dict[str, Fraction] = {}

    @property
    def remaining(self) -> Fraction:
        """What is left of ε."""
        return self._total - sum(self._spent.values(), Fraction(0))

    @property
    def ledger(self) -> dict[str, float]:
        """What was spent on what, in order."""
        return {purpose: float(epsilon) for purpose, epsilon in self._spent.items()}

    def spend(self, share: float, purpose: str) -> float:
        """Take a share of the *whole* budget for one step and return it as that step's ε."""
        return self._take(self._total * Fraction(share), purpose)

    def spend_rest(self, purpose: str) -> float:
        """Take whatever is left; the last step of every mechanism."""
        return self._take(self.remaining, purpose)

    def _take(self, epsilon: Fraction, purpose: str) -> float:
        if purpose in self._spent:
            raise ValueError(f"{purpose!r} was paid for already; a second query needs a purchase of its own")
        if not 0 < epsilon <= self.remaining:
            raise ValueError(
                f"{purpose!r} would spend {float(epsilon):g} of a budget of {float(self._total):g} "
                f"of which {float(self.remaining):g} is left"
            )
        self._spent[purpose] = epsilon
        return float(epsilon)
