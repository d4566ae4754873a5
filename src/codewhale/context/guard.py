"""The loop guard: the same call with the same outcome, or a short cycle of calls, costs money and goes nowhere.

Identical means same tool, arguments and result within the last 12 calls of a turn, whether it failed or not; a
cycle of 2 to 4 calls counts once it has run three times without another call between. At 3 the model is told
with evidence, at 5 the call is not run any more, at 8 the turn ends. Calls that wait or poll are left alone.
"""

import hashlib

from msgspec import Struct

NOTE_AT, BLOCK_AT, STOP_AT = 3, 5, 8
WINDOW = 12
_MEMORY = 64
_PERIODS = (2, 3, 4)


class Mark(Struct, frozen=True):
    """One call in the guard's memory: what was asked, and what came of it."""

    call: str
    outcome: str


class LoopGuard:
    """The memory of one turn."""

    def __init__(self) -> None:
        self._marks: list[Mark] = []

    def before(self, tool: str, arguments: str) -> int:
        """How often in a row of repeats this call would stand, were its outcome the same again."""
        call = _key(tool, arguments)
        last = next((mark for mark in reversed(self._marks[-WINDOW:]) if mark.call == call), None)
        if last is None:
            return 1
        return self._repeats([*self._marks, last])

    def after(self, tool: str, arguments: str, result: str) -> int:
        """Remember a call with its result; how many times it has now repeated."""
        self._marks.append(Mark(_key(tool, arguments), hashlib.sha256(result.encode()).hexdigest()))
        del self._marks[:-_MEMORY]
        return self._repeats(self._marks)

    def blocked(self, tool: str, arguments: str) -> int:
        """Remember a call that was not run, as if its outcome had been the same; its count."""
        call = _key(tool, arguments)
        last = next((mark for mark in reversed(self._marks) if mark.call == call), Mark(call, ""))
        self._marks.append(last)
        del self._marks[:-_MEMORY]
        return self._repeats(self._marks)

    @staticmethod
    def _repeats(marks: list[Mark]) -> int:
        same = sum(mark == marks[-1] for mark in marks[-WINDOW:])
        return max(same, *(_cycles(marks, period) for period in _PERIODS))


def _cycles(marks: list[Mark], period: int) -> int:
    """How many times the last `period` marks stand one behind the other at the end."""
    if len(set(marks[-period:])) < 2:
        return 0
    count = 0
    end = len(marks)
    while end >= period and marks[end - period : end] == marks[-period:]:
        count += 1
        end -= period
    return count


def note(tool: str, count: int) -> str:
    """What the model is told of a repeat, behind the call's result."""
    return (
        f"[loop guard] This is repeat {count} of {tool} with the same arguments and the same result in this turn. "
        "Running it again will not change the result. Use what it says, try something else, or say what blocks you."
    )


def block(tool: str, count: int) -> str:
    """What the model is told instead of a result."""
    return (
        f"Error (loop guard): {tool} was not run. It has been asked {count} times with the same arguments and gave "
        "the same result each time, which stands above. Choose a different call or end with what you know."
    )


def _key(tool: str, arguments: str) -> str:
    return f"{tool}\0{hashlib.sha256(arguments.encode()).hexdigest()}"
