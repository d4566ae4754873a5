"""Bounds hold: what is held and used never crosses them."""

import copy
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.protocol.events import BudgetReserved
from codewhale.protocol.ops import Limits
from codewhale.protocol.stream import Usage
from codewhale.session.budget import Budget, BudgetExceeded, Room, Spent
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
        (Limits(cost=0.25), 1, 0.1, "cost limit"),
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


# ------------------------------------------------------------------ slices


def test_a_slice_takes_from_what_it_was_cut_from() -> None:
    parent = Budget(Limits(tokens=100, cost=1.0), FakeClock())
    child = parent.slice(Limits(tokens=60), "s_parent")
    held = child.reserve(1, 50, 0.5)
    assert held.parent_session == "s_parent"
    assert (parent.room(), child.room()) == (Room(50, 0.5), Room(10, 0.5))
    with pytest.raises(BudgetExceeded, match="0 of 60"):
        child.reserve(2, 20, 0.0)
    with pytest.raises(BudgetExceeded, match="0 of 100"):
        parent.reserve(2, 60, 0.0)
    child.settle(held, Usage(input=30, output=10, cost=0.25))
    assert (parent.spent.tokens, parent.spent.money, parent.spent.steps) == (40, 0.25, 1)
    assert child.room() == Room(20, 0.75)


def test_a_slice_wider_than_its_parent_is_bounded_by_the_parent() -> None:
    parent = Budget(Limits(turns=1), FakeClock())
    child = parent.slice(Limits(turns=5)).slice(Limits())
    child.settle(child.reserve(1, 1, None), None)
    with pytest.raises(BudgetExceeded, match="limit of 1 model calls"):
        child.reserve(2, 1, None)
    assert parent.spent.held_steps == 0


def test_what_is_given_back_was_never_taken() -> None:
    parent = Budget(Limits(cost=1.0), FakeClock())
    child = parent.slice(Limits())
    child.release(child.reserve(1, 10, 0.7))
    assert (parent.spent, child.spent) == (Spent(), Spent())


def test_what_was_used_before_counts_and_new_bounds_hold_from_the_next_call() -> None:
    budget = Budget(Limits(), FakeClock(), spent=Spent(steps=3, tokens=90, money=0.5))
    budget.limits = Limits(tokens=100)
    with pytest.raises(BudgetExceeded, match="90 of 100"):
        budget.reserve(4, 11, None)
    budget.limits = Limits()
    budget.reserve(4, 11, None)


def test_the_nearest_time_bound_counts() -> None:
    clock = FakeClock()
    parent = Budget(Limits(seconds=10), clock)
    child = parent.slice(Limits(seconds=30))
    clock.advance(4)
    assert child.seconds_left == 6


def test_warnings_come_once_at_80_and_once_at_95_per_cent() -> None:
    budget = Budget(Limits(tokens=100), FakeClock())
    told = []
    for number in range(1, 21):
        budget.settle(budget.reserve(number, 5, None), used(5))
        told += [(number, item.percent, item.text) for item in budget.warnings()]
    assert told == [
        (16, 80, "80% of the budget is used: 80 of 100 tokens."),
        (19, 95, "95% of the budget is used: 95 of 100 tokens."),
    ]
    budget.limits = Limits(tokens=101)
    assert [item.percent for item in budget.warnings()] == [95]


def test_a_leap_beyond_both_marks_is_told_once() -> None:
    parent = Budget(Limits(cost=1.0), FakeClock())
    child = parent.slice(Limits(turns=100))
    child.settle(child.reserve(1, 1, 0.99), Usage(cost=0.99))
    assert [item.percent for item in child.warnings()] == [95]
    assert child.warnings() == []


@pytest.mark.parametrize("seed", range(10))
def test_a_tree_never_exceeds_and_comes_back_to_nothing_held(seed: int) -> None:
    """A hundred random interleavings a seed: 1,000 in all."""
    chance = random.Random(seed)
    for _ in range(100):
        root = Budget(_limits(chance), FakeClock())
        tree = [root]
        held: list[tuple[Budget, BudgetReserved]] = []
        for step in range(chance.randrange(5, 60)):
            deed = chance.random()
            if deed < 0.15 and len(tree) < 8:
                tree.append(chance.choice(tree).slice(_limits(chance)))
            elif deed < 0.6:
                budget = chance.choice(tree)
                before = [copy.copy(one.spent) for one in tree]
                try:
                    held.append((budget, budget.reserve(step, chance.randrange(300), chance.choice([0.1, 0.3, None]))))
                except BudgetExceeded:
                    assert [one.spent for one in tree] == before
            elif held:
                budget, reserved = held.pop(chance.randrange(len(held)))
                _end(chance, budget, reserved)
            assert all(_within(one) for one in tree)
        for budget, reserved in held:
            _end(chance, budget, reserved)
        assert all(_within(one) for one in tree)
        for one in tree:
            assert (one.spent.held_steps, one.spent.held_tokens, one.spent.held_money) == (0, 0, 0.0)


def _limits(chance: random.Random) -> Limits:
    return Limits(
        turns=chance.choice([None, 3, 12]),
        tokens=chance.choice([None, 500, 3000]),
        cost=chance.choice([None, 0.7, 2.0]),
    )


def _end(chance: random.Random, budget: Budget, reserved: BudgetReserved) -> None:
    """Settle at most what is held, by a count or without one, or give it back."""
    share, money = chance.random(), reserved.money or 0.0
    match chance.randrange(3):
        case 0:
            budget.settle(reserved, Usage(input=int(reserved.tokens * share), cost=money * share))
        case 1:
            budget.settle(reserved, None)
        case _:
            budget.release(reserved)


def _within(budget: Budget) -> bool:
    """Whether nothing used and held together crosses a bound, here or above."""
    limits, spent = budget.limits, budget.spent
    return (
        (limits.turns is None or spent.steps + spent.held_steps <= limits.turns)
        and (limits.tokens is None or spent.tokens + spent.held_tokens <= limits.tokens)
        and (limits.cost is None or spent.money + spent.held_money <= limits.cost + 1e-9)
        and spent.held_tokens >= 0
    )
