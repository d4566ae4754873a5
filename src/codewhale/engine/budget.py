"""Bounds of a run: what the next model call may take is reserved before it and settled after it."""

from msgspec import Struct

from codewhale.lib.clock import Clock
from codewhale.protocol.events import BudgetReserved, BudgetSettled
from codewhale.protocol.ops import Limits
from codewhale.protocol.stream import Usage


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


class Budget:
    """Totals of one session's run against its limits. `parent_session` is set for a child's slice."""

    def __init__(self, limits: Limits, clock: Clock, parent_session: str = "") -> None:
        self._limits = limits
        self._clock = clock
        self._parent = parent_session
        self._spent = Spent()
        self._began = clock.monotonic()

    def begin(self) -> None:
        """A turn starts: its seconds count from now."""
        self._began = self._clock.monotonic()

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the time bound; None without one."""
        if self._limits.seconds is None:
            return None
        return max(0.0, self._limits.seconds - (self._clock.monotonic() - self._began))

    def reserve(self, request: int, tokens: int, money: float | None) -> BudgetReserved:
        """Hold one step, `tokens` and `money` for a model call. Raises BudgetExceeded when a bound would be
        crossed; nothing is held then."""
        limits, spent = self._limits, self._spent
        if limits.turns is not None and spent.steps + spent.held_steps + 1 > limits.turns:
            raise BudgetExceeded(f"the bound of {limits.turns} model calls is reached")
        if limits.tokens is not None and spent.tokens + spent.held_tokens + tokens > limits.tokens:
            raise BudgetExceeded(
                f"the next call needs about {tokens} tokens; {spent.tokens} of {limits.tokens} are used"
            )
        if limits.cost is not None and spent.money + spent.held_money + (money or 0.0) > limits.cost:
            raise BudgetExceeded(f"the next call would cross the cost bound of {limits.cost}")
        if self.seconds_left == 0.0:
            raise BudgetExceeded(f"the bound of {limits.seconds:g} seconds is reached")
        spent.held_steps += 1
        spent.held_tokens += tokens
        spent.held_money += money or 0.0
        return BudgetReserved(request, tokens, money, self._parent)

    def settle(self, reserved: BudgetReserved, usage: Usage | None) -> BudgetSettled:
        """Replace what was held by what was used; without a provider's count the estimate stands."""
        spent = self._spent
        spent.held_steps -= 1
        spent.held_tokens -= reserved.tokens
        spent.held_money -= reserved.money or 0.0
        spent.steps += 1
        spent.tokens += usage.input + usage.output if usage is not None else reserved.tokens
        cost = usage.cost if usage is not None else reserved.money
        spent.money += cost or 0.0
        seconds = round(self._clock.monotonic() - self._began, 3)
        money = spent.money if cost is not None else None
        return BudgetSettled(reserved.request, spent.steps, spent.tokens, seconds, money, self._parent)
