"""What model calls cost and what the provider's cache spared, as arithmetic and as a fold of the log.

The fold sums a session's calls by the model that was asked, with why the cache missed what it could have known.
"""

import time
from collections.abc import Mapping

import msgspec
from msgspec import Struct, field

from codewhale.lib.patterns import lazy
from codewhale.models.dialects.base import Price
from codewhale.protocol.events import (
    BudgetChanged,
    ChildClosed,
    Event,
    HeaderPinned,
    ModelChanged,
    RequestSent,
    SessionOpened,
    TurnStarted,
    UsageReported,
)
from codewhale.protocol.ops import Limits
from codewhale.protocol.stream import Usage

_MILLION = 1_000_000
_KEPT = 20
_COUNTS = ("calls", "input", "output", "reasoning", "hit", "miss", "told", "expected", "unpriced", "estimated")
_HOURS = lazy(r"(\d\d):(\d\d)-(\d\d):(\d\d)")


def rate_at(price: Price, at: float) -> float:
    """The share of a price that is asked at a time (seconds since the epoch): 1 at peak hours, and where there are
    none."""
    hours = _HOURS().findall(price.peak)
    if not hours:
        return 1.0
    when = time.gmtime(at)
    first, _, last = price.peak.partition(" ")[0].partition("-")
    days = range(int(first), int(last or first) + 1) if first.isdigit() and (last or first).isdigit() else range(8)
    minute = when.tm_hour * 60 + when.tm_min
    spans = ((int(a) * 60 + int(b), int(c) * 60 + int(d)) for a, b, c, d in hours)
    peak = when.tm_wday + 1 in days and any(start <= minute < end for start, end in spans)
    return 1.0 if peak else price.off_peak


def cost_of(price: Price, usage: Usage, at: float) -> float:
    """What a call that ended at this time cost, in the price's currency."""
    long = 0 < price.long_from < usage.input
    prompt = (usage.input - usage.cache_hit) * price.miss + usage.cache_hit * price.hit
    prompt *= price.long_input if long else 1.0
    answer = usage.output * price.output * (price.long_output if long else 1.0)
    return (prompt + answer) * rate_at(price, at) / _MILLION


def saved_by(price: Price, usage: Usage, at: float) -> float:
    """What the prompt would have cost more without the provider's cache."""
    uncached = Usage(input=usage.input, output=usage.output)
    return cost_of(price, uncached, at) - cost_of(price, usage, at)


def priced(usage: Usage, price: Price | None, at: float) -> Usage:
    """A provider's count with its cost, where that is known and the provider has not said it."""
    if price is None or usage.cost is not None:
        return usage
    return msgspec.structs.replace(usage, cost=cost_of(price, usage, at), currency=price.currency)


def worst_case(price: Price, prompt: int, answer: int) -> float:
    """The most that a call of these sizes may cost: nothing cached, at peak hours."""
    long = 0 < price.long_from < prompt
    most = prompt * price.miss * (price.long_input if long else 1.0)
    return (most + answer * price.output * (price.long_output if long else 1.0)) / _MILLION


def affordable(price: Price, prompt: int, money: float) -> int | None:
    """The longest answer, in tokens, that `money` pays for behind a prompt; None when answers cost nothing."""
    long = 0 < price.long_from < prompt
    each = price.output * (price.long_output if long else 1.0)
    if each <= 0:
        return None
    return int((money - worst_case(price, prompt, 0)) * _MILLION / each) - 1  # fractions do not add up exactly


class Misses(Struct):
    """Calls whose cache hits fell short for one cause, and the prompt tokens that they paid in full."""

    calls: int = 0
    tokens: int = 0


class Totals(Struct):
    """Sums over model calls, in tokens. `told` counts the prompt tokens of calls whose provider tells of its cache,
    `expected` those that should have come from it; `unpriced` calls have no known cost, `estimated` ones were stopped
    before their provider counted. Money is by currency."""

    calls: int = 0
    input: int = 0
    output: int = 0
    reasoning: int = 0
    hit: int = 0
    miss: int = 0
    told: int = 0
    expected: int = 0
    unpriced: int = 0
    estimated: int = 0
    cost: dict[str, float] = field(default_factory=dict)
    saved: dict[str, float] = field(default_factory=dict)
    misses: dict[str, Misses] = field(default_factory=dict)

    def add(self, report: UsageReported) -> None:
        """Count one call."""
        usage = report.usage
        self.calls += 1
        self.estimated += report.estimated
        self.input += usage.input
        self.output += usage.output
        self.reasoning += usage.reasoning
        self.hit += usage.cache_hit
        self.miss += usage.cache_miss
        if _tells_cache(usage):
            self.told += usage.input
            self.expected += min(report.expected_hit, usage.input)
        if usage.cost is None:
            self.unpriced += 1
        else:
            self.cost[usage.currency] = self.cost.get(usage.currency, 0.0) + usage.cost
        if report.saved:
            self.saved[usage.currency] = self.saved.get(usage.currency, 0.0) + report.saved
        if report.cause:
            why = self.misses.setdefault(report.cause, Misses())
            why.calls += 1
            why.tokens += usage.input - usage.cache_hit

    def copy(self) -> "Totals":
        misses = {cause: msgspec.structs.replace(count) for cause, count in self.misses.items()}
        return msgspec.structs.replace(self, cost=self.cost.copy(), saved=self.saved.copy(), misses=misses)

    def merge(self, other: "Totals") -> None:
        """Add other sums to these."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for mine, theirs in ((self.cost, other.cost), (self.saved, other.saved)):
            for currency, amount in theirs.items():
                mine[currency] = mine.get(currency, 0.0) + amount
        for cause, count in other.misses.items():
            why = self.misses.setdefault(cause, Misses())
            why.calls += count.calls
            why.tokens += count.tokens

    def as_one(self) -> Usage:
        """The sums as one count, in their first currency."""
        currency, cost = next(iter(self.cost.items()), ("USD", None))
        return Usage(self.input, self.output, self.hit, self.miss, self.reasoning, cost, currency)

    @classmethod
    def of(cls, calls: int, usage: Usage) -> "Totals":
        """The sums of so many calls that are known as one count."""
        sums = cls()
        sums.add(UsageReported(0, usage))
        sums.calls, sums.unpriced = calls, sums.unpriced * calls
        return sums

    def since(self, before: "Totals") -> "Totals":
        """What came on top of earlier sums of the same calls."""
        more = Totals()
        for name in _COUNTS:
            setattr(more, name, getattr(self, name) - getattr(before, name))
        for mine, now, then in ((more.cost, self.cost, before.cost), (more.saved, self.saved, before.saved)):
            mine.update({key: amount - then.get(key, 0.0) for key, amount in now.items() if amount != then.get(key)})
        return more

    @property
    def hit_rate(self) -> float | None:
        """The share of prompt tokens that came from the cache; None where no provider told."""
        return self.hit / self.told if self.told else None

    @property
    def expected_rate(self) -> float | None:
        """The share that should have; None where no provider told."""
        return self.expected / self.told if self.told else None

    def as_object(self) -> dict[str, object]:
        """The sums with the rates that follow from them, as JSON holds them; a rate is None where nobody told."""
        found: dict[str, object] = msgspec.to_builtins(self)
        rates = {"hit_rate": self.hit_rate, "expected_rate": self.expected_rate}
        return found | {name: None if rate is None else round(rate, 4) for name, rate in rates.items()}

    def as_usage(self) -> dict[str, object]:
        """The `usage` object that programs are printed. A cost is given when that of every call is known, in one
        currency; `estimated` stands there where a call was stopped before its provider counted."""
        known = self.calls > 0 and not self.unpriced and len(self.cost) <= 1
        currency = next(iter(self.cost), "USD")
        return {
            "input": self.input,
            "output": self.output,
            "cache_hit": self.hit,
            "cache_miss": self.miss,
            "cost": round(self.cost.get(currency, 0.0), 12) if known else None,
            "currency": currency,
            **({"estimated": True} if self.estimated else {}),
        }


def _tells_cache(usage: Usage) -> bool:
    """Whether a provider's count says what came from its cache."""
    return usage.cache_hit > 0 or usage.cache_miss > 0


class AccountedCall(Struct, frozen=True):
    """A model call as its log tells it. `prefix` is the share of its bytes that the cache should have known."""

    request: int
    provider: str
    model: str
    purpose: str = ""
    bytes: int = 0
    prefix: int = 0
    usage: Usage = Usage()
    expected: int = 0
    cause: str = ""


class Accounts(Struct):
    """The running sums of a session. `apply` is the only way it changes. `last` holds the latest calls; `turn` is the
    sum of the turn at hand; `limits` bound the session's whole life. Of `children` the sums are kept apart, by session,
    and beside them what they came to before the turn."""

    total: Totals = field(default_factory=Totals)
    turn: Totals = field(default_factory=Totals)
    children: dict[str, Totals] = field(default_factory=dict)
    before_turn: dict[str, Totals] = field(default_factory=dict)
    by_model: dict[tuple[str, str], Totals] = field(default_factory=dict)
    last: list[AccountedCall] = field(default_factory=list)
    turns: int = 0
    limits: Limits = Limits()
    _route: tuple[str, str] = ("", "")
    _open: dict[int, AccountedCall] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        """Add one event."""
        match event:
            case SessionOpened() | ModelChanged() | HeaderPinned():
                self._route = (event.provider, event.model)
            case TurnStarted():
                self.turns, self.turn, self.before_turn = self.turns + 1, Totals(), dict(self.children)
            case ChildClosed(child=child, calls=calls, usage=usage) if calls:
                self.children[child] = Totals.of(calls, usage)
            case RequestSent():
                provider, model = self._route
                call = AccountedCall(
                    event.request, provider, event.model or model, event.purpose, event.bytes, event.expected_hit
                )
                self._open[event.request] = call
                if len(self._open) > _KEPT:
                    del self._open[next(iter(self._open))]
            case UsageReported():
                self._count(event)
            case BudgetChanged(limits=limits):
                self.limits = limits

    def with_children(self, live: Mapping[str, Totals], *, turn: bool = False) -> Totals:
        """The sums with those of the children, of which `live` are more recent; of the `turn` alone."""
        sums = (self.turn if turn else self.total).copy()
        for child, totals in {**self.children, **live}.items():
            former = self.before_turn.get(child)
            sums.merge(totals.since(former) if turn and former is not None else totals)
        return sums

    def _count(self, report: UsageReported) -> None:
        sent = self._open.pop(report.request, None) or AccountedCall(report.request, *self._route)
        self.total.add(report)
        self.turn.add(report)
        self.by_model.setdefault((sent.provider, sent.model), Totals()).add(report)
        call = AccountedCall(
            sent.request, sent.provider, sent.model, sent.purpose, sent.bytes, sent.prefix,
            report.usage, report.expected_hit, report.cause,
        )  # fmt: skip
        self.last = [*self.last[-_KEPT + 1 :], call]
