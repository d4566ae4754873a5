"""Bounds of a run: what the next model call may take is reserved before it and settled after it.

Budgets are a tree: a slice reserves through what it was cut from, so that a session and all of its children stay
within one bound together.
"""

from collections.abc import Iterator

from msgspec import Struct

from codewhale.lib.clock import Clock
from codewhale.protocol.events import BudgetReserved, BudgetSettled
from codewhale.protocol.ops import Limits
from codewhale.protocol.stream import Usage

_WARN_AT = (95, 80)


class BudgetExceeded(Exception):
    """The next call would cross a bound; the text says which, and how it stands."""


class Spent(Struct):
    """Running totals, settled and reserved."""

    steps: int = 0
    tokens: int = 0
    money: float = 0.0
    held_steps: int = 0
    held_tokens: int = 0
    held_money: float = 0.0


class Room(Struct, frozen=True):
    """What is left for further calls, after all that is held; None is no bound."""

    tokens: int | None = None
    money: float | None = None


class Nearing(Struct, frozen=True):
    """A bound of which `percent` (80 or 95) or more is used; `text` says how it stands."""

    percent: int
    text: str


class Budget:
    """Totals of one run against its limits. `parent_session` is set for a child's slice; `spent` is what was used
    before it began."""

    def __init__(
        self,
        limits: Limits,
        clock: Clock,
        parent_session: str = "",
        *,
        parent: "Budget | None" = None,
        spent: Spent | None = None,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._session = parent_session
        self._parent = parent
        self._spent = spent or Spent()
        self._began = clock.monotonic()
        self._warned = 0

    def slice(self, limits: Limits, parent_session: str = "") -> "Budget":
        """A part of this budget with bounds of its own: whatever it takes is taken from here too."""
        return Budget(limits, self._clock, parent_session, parent=self)

    def begin(self) -> None:
        """A turn starts: its seconds count from now."""
        self._began = self._clock.monotonic()

    @property
    def limits(self) -> Limits:
        """The bounds of this budget alone."""
        return self._limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        """Bound it anew, from the next call on."""
        self._limits, self._warned = limits, 0

    @property
    def spent(self) -> Spent:
        """The totals as they stand; not to be changed."""
        return self._spent

    @property
    def life(self) -> "Budget":
        """The budget of the session's whole life, which this one is a slice of."""
        return self if self._parent is None else self._parent

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the nearest time bound; None without one."""
        left = [budget._own_seconds() for budget in self._chain()]
        return min((seconds for seconds in left if seconds is not None), default=None)

    def _own_seconds(self) -> float | None:
        if self._limits.seconds is None:
            return None
        return max(0.0, self._limits.seconds - (self._clock.monotonic() - self._began))

    @property
    def bounds_money(self) -> bool:
        """Whether a bound on money stands here or above."""
        return any(budget._limits.cost is not None for budget in self._chain())

    def room(self) -> Room:
        """What is left here and above."""
        tokens, money = [], []
        for budget in self._chain():
            limits, spent = budget._limits, budget._spent
            if limits.tokens is not None:
                tokens.append(max(0, limits.tokens - spent.tokens - spent.held_tokens))
            if limits.cost is not None:
                money.append(max(0.0, limits.cost - spent.money - spent.held_money))
        return Room(min(tokens, default=None), min(money, default=None))

    def remaining(self) -> Limits:
        """What is left of every bound, here and above: what work that goes on by itself may take."""
        turns = [
            max(0, budget._limits.turns - budget._spent.steps - budget._spent.held_steps)
            for budget in self._chain()
            if budget._limits.turns is not None
        ]
        room = self.room()
        return Limits(min(turns, default=None), room.tokens, self.seconds_left, room.money)

    def reserve(self, request: int, tokens: int, money: float | None) -> BudgetReserved:
        """Hold one step, `tokens` and `money` for a model call, here and in all that this is a slice of. Raises
        BudgetExceeded when a bound would be crossed; nothing is held then."""
        for budget in self._chain():
            budget._check(tokens, money)
        for budget in self._chain():
            budget._spent.held_steps += 1
            budget._spent.held_tokens += tokens
            budget._spent.held_money += money or 0.0
        return BudgetReserved(request, tokens, money, self._session)

    def _check(self, tokens: int, money: float | None) -> None:
        limits, spent = self._limits, self._spent
        if limits.turns is not None and spent.steps + spent.held_steps + 1 > limits.turns:
            raise BudgetExceeded(f"the limit of {limits.turns} model calls is reached")
        if limits.tokens is not None and spent.tokens + spent.held_tokens + tokens > limits.tokens:
            raise BudgetExceeded(
                f"the next call needs about {tokens} tokens; {spent.tokens} of {limits.tokens} are used"
                + (f" and {spent.held_tokens} reserved for running calls" if spent.held_tokens else "")
            )
        if limits.cost is not None and spent.money + spent.held_money + (money or 0.0) > limits.cost:
            raise BudgetExceeded(
                f"the next call would exceed the cost limit of {limits.cost:g}: it may cost {money or 0.0:.6g}, and "
                f"{spent.money:.6g} is spent"
            )
        if self._own_seconds() == 0.0:
            raise BudgetExceeded(f"the limit of {limits.seconds:g} seconds is reached")

    def settle(self, reserved: BudgetReserved, usage: Usage | None, step: bool = True) -> BudgetSettled:
        """Replace what was held by what was used; without a provider's count the estimate stands. A try that is made
        again counts for what it took, and is no `step`."""
        tokens = usage.input + usage.output if usage is not None else reserved.tokens
        cost = usage.cost if usage is not None else reserved.money
        for budget in self._chain():
            spent = budget._spent
            spent.held_steps -= 1
            spent.held_tokens -= reserved.tokens
            # Nothing held is nothing at all, whatever adding and taking away of fractions has left.
            spent.held_money = spent.held_money - (reserved.money or 0.0) if spent.held_steps else 0.0
            spent.steps += step
            spent.tokens += tokens
            spent.money += cost or 0.0
        spent = self._spent
        seconds = round(self._clock.monotonic() - self._began, 3)
        money = spent.money if cost is not None else None
        return BudgetSettled(reserved.request, spent.steps, spent.tokens, seconds, money, self._session)

    def release(self, reserved: BudgetReserved) -> None:
        """Give back what was held for a call that was never made."""
        for budget in self._chain():
            spent = budget._spent
            spent.held_steps -= 1
            spent.held_tokens -= reserved.tokens
            spent.held_money = spent.held_money - (reserved.money or 0.0) if spent.held_steps else 0.0

    def warnings(self) -> list[Nearing]:
        """Bounds that have come near since this was last asked, each told once: at 80 %, and again at 95 %."""
        found = []
        for budget in self._chain():
            shares = budget._shares()
            if not shares:
                continue
            share, text = max(shares)
            percent = next((mark for mark in _WARN_AT if share * 100 >= mark), 0)
            if percent > budget._warned:
                budget._warned = percent
                found.append(Nearing(percent, f"{share:.0%} of the budget is used: {text}."))
        return found

    def _shares(self) -> list[tuple[float, str]]:
        limits, spent = self._limits, self._spent
        shares = []
        if limits.turns:
            shares.append((spent.steps / limits.turns, f"{spent.steps} of {limits.turns} model calls"))
        if limits.tokens:
            shares.append((spent.tokens / limits.tokens, f"{spent.tokens} of {limits.tokens} tokens"))
        if limits.cost:
            shares.append((spent.money / limits.cost, f"{spent.money:.4g} of {limits.cost:g} in money"))
        return shares

    def _chain(self) -> "Iterator[Budget]":
        budget: Budget | None = self
        while budget is not None:
            yield budget
            budget = budget._parent
