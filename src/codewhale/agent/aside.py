"""What the model is asked for behind the unchanged conversation, so that its provider's cache serves it: a summary, a
relay. The answer is no part of the conversation."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from codewhale.agent.model_call import ModelCalls
from codewhale.agent.turn import Turn
from codewhale.protocol.stream import Failed
from codewhale.session.budget import BudgetExceeded

PAUSES = (1.0, 2.0, 4.0)
_LONGEST = 32_768
_T = TypeVar("_T")


class NoAnswer(Exception):
    """Nothing came of it; the text says why, `failure` what the provider said last."""

    def __init__(self, why: str, failure: Failed | None = None) -> None:
        super().__init__(why)
        self.failure = failure


def bound_for(window: int) -> int:
    """How many tokens such an answer may have, by the tokens of the model's window."""
    return min(8192, max(1024, window // 16))


async def ask_aside(calls: ModelCalls, purpose: str, extra: str, bound: int, pauses: tuple[float, ...] = PAUSES) -> str:
    """The model's text for `extra`, its last word; calls that it makes are not run. `pauses` are the seconds before
    each new try. Raises NoAnswer."""
    failure: Failed | None = None
    for pause in (0.0, *pauses):
        if pause:
            await asyncio.sleep(pause)
        try:
            answer = await calls.ask(purpose=purpose, extra=extra, max_tokens=bound)
        except BudgetExceeded as over:
            raise NoAnswer(str(over)) from None
        failure = answer.failure
        if failure is None and answer.text.strip():
            return answer.text.strip() + ("\n[cut at its limit]" if answer.finish == "length" else "")
        if failure is not None and not failure.retryable:
            break
        if answer.finish == "length":  # thinking took all of it
            bound = min(2 * bound, _LONGEST)
    raise NoAnswer("the model gave no text" if failure is None else failure.message, failure)


async def in_place_of_a_turn(turn: Turn, work: Callable[[ModelCalls], Awaitable[_T]]) -> _T:
    """Do what asks the model aside as the work of a turn: what it was asked for when the turn is stopped is settled."""
    turn.check()
    calls = ModelCalls(turn)
    try:
        return await work(calls)
    except asyncio.CancelledError:
        calls.salvage()
        raise
