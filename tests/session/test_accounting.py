"""What calls cost, and sums over them."""

import calendar

import pytest

from codewhale.models.dialects.base import Price
from codewhale.protocol.events import BudgetChanged, ChildClosed, ModelChanged, RequestSent, TurnStarted, UsageReported
from codewhale.protocol.ops import Limits
from codewhale.protocol.stream import Usage
from codewhale.session.accounting import Accounts, Totals, affordable, cost_of, priced, rate_at, saved_by, worst_case

PLAIN = Price(2.0, 0.5, 8.0)
PEAKED = Price(2.0, 0.5, 8.0, peak="1-5 01:00-04:00 06:00-10:00", off_peak=0.5)


def at(day: int, hour: int, minute: int = 0) -> float:
    """A time of November 2026; the 2nd is a Monday."""
    return calendar.timegm((2026, 11, day, hour, minute, 0))


def test_hits_misses_and_answers_have_each_their_price() -> None:
    usage = Usage(input=1_000_000, output=100_000, cache_hit=900_000, cache_miss=100_000)
    assert cost_of(PLAIN, usage, 0) == pytest.approx(0.2 + 0.45 + 0.8)
    assert saved_by(PLAIN, usage, 0) == pytest.approx(0.9 * 1.5)
    assert cost_of(PLAIN, Usage(input=1_000_000), 0) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("day", "hour", "minute", "share"),
    [(2, 1, 0, 1.0), (2, 3, 59, 1.0), (2, 4, 0, 0.5), (2, 6, 30, 1.0), (6, 9, 0, 1.0), (7, 9, 0, 0.5), (8, 1, 0, 0.5)],
)
def test_peak_hours_are_of_their_days(day: int, hour: int, minute: int, share: float) -> None:
    assert rate_at(PEAKED, at(day, hour, minute)) == share


@pytest.mark.parametrize("peak", ["", "always", "1-5", "x-y 01:00-02:00"])
def test_hours_that_cannot_be_read_ask_no_less_by_mistake(peak: str) -> None:
    assert rate_at(Price(1, 1, 1, peak=peak, off_peak=0.5), at(7, 1, 30)) == 1.0


def test_a_long_prompt_costs_more_from_its_first_token() -> None:
    price = Price(2.0, 0.5, 8.0, long_from=100, long_input=2.0, long_output=1.5)
    assert cost_of(price, Usage(input=100, output=10), 0) == pytest.approx((200 + 80) / 1e6)
    assert cost_of(price, Usage(input=101, output=10), 0) == pytest.approx((404 + 120) / 1e6)


def test_the_worst_case_is_never_less_than_the_cost() -> None:
    for price in (PLAIN, PEAKED, Price(1, 0.1, 3, long_from=500, long_input=2, long_output=2)):
        for prompt in (1, 499, 500, 501, 9_999):
            usage = Usage(input=prompt, output=77, cache_hit=prompt // 2)
            assert worst_case(price, prompt, 77) >= cost_of(price, usage, at(2, 2)) - 1e-15
            money = worst_case(price, prompt, 0) + 0.01
            longest = affordable(price, prompt, money)
            assert longest is not None and worst_case(price, prompt, longest) <= money
    assert affordable(Price(0, 0, 0), 10, 0.0) is None


def test_a_providers_own_cost_stands() -> None:
    assert priced(Usage(input=10, cost=5.0), PLAIN, 0).cost == 5.0
    assert priced(Usage(input=10), None, 0).cost is None
    found = priced(Usage(input=1_000_000), Price(3, 3, 3, "CNY"), 0)
    assert (found.cost, found.currency) == (3.0, "CNY")


def call(number: int, usage: Usage, expected: int = 0, cause: str = "", saved: float | None = None) -> list[object]:
    """The events of one model call."""
    return [RequestSent(number, 100, "0", 1), UsageReported(number, usage, expected, cause, saved)]


def test_sums_are_by_model_by_turn_and_by_cause() -> None:
    accounts = Accounts()
    events = [
        ModelChanged("p", "a"),
        TurnStarted(1),
        *call(1, Usage(100, 10, 0, 100, cost=1.0), 0, "cold"),
        *call(2, Usage(200, 10, 90, 110, cost=1.0), 100, "", 0.5),
        TurnStarted(2),
        ModelChanged("p", "b"),
        *call(3, Usage(300, 10, 0, 0)),
        BudgetChanged(Limits(turns=4)),
    ]
    for event in events:
        accounts.apply(event)  # type: ignore[arg-type]
    total = accounts.total
    assert (total.calls, total.input, total.hit, total.told, total.unpriced) == (3, 600, 90, 300, 1)
    assert (total.hit_rate, total.expected_rate) == (0.3, pytest.approx(1 / 3))
    assert (total.misses["cold"].calls, total.misses["cold"].tokens) == (1, 100)
    assert {key: sums.calls for key, sums in accounts.by_model.items()} == {("p", "a"): 2, ("p", "b"): 1}
    assert (accounts.turns, accounts.turn.input, accounts.limits.turns) == (2, 300, 4)
    assert total.as_usage()["cost"] is None
    assert accounts.by_model["p", "a"].as_usage()["cost"] == 2.0
    assert (total.cost, total.saved) == ({"USD": 2.0}, {"USD": 0.5})


def test_what_came_on_top_is_a_difference_and_merging_takes_it_back() -> None:
    before, after = Totals(), Totals()
    first, second = Usage(10, 1, 5, 5, cost=0.25), Usage(20, 2, 0, 20, cost=0.5)
    before.add(UsageReported(1, first))
    for usage in (first, second):
        after.add(UsageReported(1, usage))
    more = after.since(before)
    assert more.as_usage() == {
        "input": 20, "output": 2, "cache_hit": 0, "cache_miss": 20, "cost": 0.5, "currency": "USD",
    }  # fmt: skip
    before.merge(more)
    assert before == after


def test_a_free_model_costs_nothing_and_not_the_unknown() -> None:
    sums = Totals()
    assert sums.as_usage()["cost"] is None
    sums.add(UsageReported(1, Usage(10, 1, cost=0.0)))
    assert sums.as_usage()["cost"] == 0.0
    assert sums.since(Totals()).as_usage()["cost"] == 0.0


def test_an_affordable_answer_is_paid_for_to_the_last_fraction() -> None:
    price, limit, spent, prompt = Price(1.32, 0.01, 3.96), 0.05, 0.013318520000000007, 1_188
    assert spent + worst_case(price, prompt, 8_867) > limit  # by a rounding error, and no more
    assert affordable(price, prompt, limit - spent) == 8_866


def test_what_children_use_counts_with_their_owners_once() -> None:
    accounts = Accounts()

    def closed(child: str, calls: int, tokens: int) -> ChildClosed:
        return ChildClosed(child, "completed", calls=calls, usage=Usage(tokens, 1, cost=tokens / 1000))

    for event in (TurnStarted(1), UsageReported(1, Usage(100, 10, cost=0.1)), closed("a", 2, 200), TurnStarted(2)):
        accounts.apply(event)
    accounts.apply(UsageReported(2, Usage(100, 10, cost=0.1)))
    accounts.apply(closed("a", 5, 500))  # woken: an end tells of the whole life
    accounts.apply(closed("b", 1, 50))
    own, whole = accounts.total, accounts.with_children({})
    assert (own.calls, own.input) == (2, 200)
    assert (whole.calls, whole.input, round(whole.cost["USD"], 6)) == (8, 750, 0.75)
    assert accounts.with_children({}, turn=True).input == 100 + 300 + 50
    # One that still runs has used more than its last end says.
    assert accounts.with_children({"b": Totals.of(3, Usage(90))}).input == 790
