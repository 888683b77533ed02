import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppgsl_bench.defenses.budget import PrivacyBudget


@given(st.floats(1e-6, 100), st.lists(st.floats(0.01, 0.2), max_size=4))
def test_the_parts_add_up_to_exactly_epsilon(epsilon, shares):
    budget = PrivacyBudget(epsilon)
    for step, share in enumerate(shares):
        assert budget.spend(share, f"step {step}") == pytest.approx(share * epsilon)
    budget.spend_rest("last")
    assert budget.remaining == 0
    assert sum(budget.ledger.values()) == pytest.approx(epsilon)


def test_overspending_is_refused_and_not_booked():
    budget = PrivacyBudget(1.0)
    budget.spend(0.75, "first")
    with pytest.raises(ValueError, match=r"'second' would spend 0.5 of a budget of 1 of which 0.25 is left"):
        budget.spend(0.5, "second")
    assert budget.ledger == {"first": 0.75}
    budget.spend_rest("third")
    with pytest.raises(ValueError, match="0 is left"):
        budget.spend(1e-12, "fourth")
    with pytest.raises(ValueError, match="0 is left"):
        budget.spend_rest("fifth")


def test_nothing_is_paid_for_twice_by_mistake():
    budget = PrivacyBudget(1.0)
    budget.spend(0.1, "count")
    with pytest.raises(ValueError, match="paid for already"):
        budget.spend(0.1, "count")


@pytest.mark.parametrize("share", [0.0, -0.5])
def test_free_queries_are_refused(share):
    with pytest.raises(ValueError, match="would spend"):
        PrivacyBudget(1.0).spend(share, "free")
