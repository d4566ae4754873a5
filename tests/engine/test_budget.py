"""Bounds hold: what is held and used never crosses them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.engine.budget import Budget, BudgetExceeded
from codewhale.protocol.events import BudgetReserved
from codewhale.protocol.ops import Limits
from codewhale.protocol.stream import Usage
from codewhale.testing import FakeClock


def used(tokens: int, cost: float | None = None) -> Usage:
    """A provider's count of this many tokens."""
    return Usage(input=tokens, cost=cost)


def test_without_limits_everything_is_allowed() -> None:
    budget = Budget(Limits(), FakeClock())
    for number in range(1, 50):
        budget.settle(budget.reserve(number, 10**9, 10.0), None)
    assert budget.seconds_left is None


@pytest.mark.parametrize(
    ("limits", "tokens", "money", "named"),
    [
        (Limits(turns=2), 1, None, "2 model calls"),
        (Limits(tokens=250), 100, None, "200 of 250"),
        (Limits(cost=0.25), 1, 0.1, "cost bound"),
    ],
)
def test_the_third_call_would_cross_the_bound(limits: Limits, tokens: int, money: float | None, named: str) -> None:
    budget = Budget(limits, FakeClock())
    for number in (1, 2):
        budget.settle(budget.reserve(number, tokens, money), used(tokens, money))
    with pytest.raises(BudgetExceeded, match=named):
        budget.reserve(3, tokens, money)


def test_the_seconds_of_a_turn_count_from_its_begin() -> None:
    clock = FakeClock()
    budget = Budget(Limits(seconds=10), clock)
    clock.advance(100)
    budget.begin()
    clock.advance(9)
    assert budget.seconds_left == 1
    budget.reserve(1, 1, None)
    clock.advance(1)
    with pytest.raises(BudgetExceeded, match="10 seconds"):
        budget.reserve(2, 1, None)


def test_a_refused_reservation_holds_nothing() -> None:
    budget = Budget(Limits(tokens=100), FakeClock())
    with pytest.raises(BudgetExceeded):
        budget.reserve(1, 101, None)
    budget.reserve(1, 100, None)


def test_the_providers_count_replaces_the_estimate_and_the_estimate_stands_without_one() -> None:
    budget = Budget(Limits(), FakeClock())
    first = budget.settle(budget.reserve(1, 500, 0.5), Usage(input=100, output=20, cost=0.25))
    assert (first.request, first.steps, first.tokens, first.money) == (1, 1, 120, 0.25)
    second = budget.settle(budget.reserve(2, 500, None), None)
    assert (second.steps, second.tokens, second.money) == (2, 620, None)


def test_what_a_failed_call_held_is_free_again() -> None:
    budget = Budget(Limits(tokens=100), FakeClock())
    budget.settle(budget.reserve(1, 100, None), used(10))
    budget.settle(budget.reserve(2, 90, None), used(0))
    budget.reserve(3, 90, None)


def test_a_childs_reservation_names_its_parent() -> None:
    budget = Budget(Limits(), FakeClock(), parent_session="parent")
    assert budget.settle(budget.reserve(1, 1, None), None).parent_session == "parent"


STEPS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 400), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=40
)


@given(STEPS, st.integers(0, 8), st.integers(0, 1500))
def test_held_and_used_never_cross_the_bounds(
    steps: list[tuple[bool, int, float, float]], turns: int, tokens: int
) -> None:
    limits = Limits(turns=turns, tokens=tokens, cost=2.0)
    budget = Budget(limits, FakeClock())
    held: list[BudgetReserved] = []
    spent = [0, 0, 0.0]
    for number, (settle, amount, money, share) in enumerate(steps, start=1):
        if settle and held:
            reserved = held.pop(0)
            taken = Usage(input=int(reserved.tokens * share), cost=(reserved.money or 0.0) * share)
            settled = budget.settle(reserved, taken)
            spent = [settled.steps, settled.tokens, settled.money or 0.0]
        else:
            try:
                held.append(budget.reserve(number, amount, money))
            except BudgetExceeded:
                continue
        assert spent[0] + len(held) <= turns
        assert spent[1] + sum(item.tokens for item in held) <= tokens
        assert spent[2] + sum(item.money or 0.0 for item in held) <= 2.0 + 1e-9
