"""The loop guard: the same call with the same outcome, or a short cycle of calls, costs money and goes nowhere.

Identical means same tool, arguments and result within the last 12 calls of a turn; a cycle of 2 to 4 calls counts once
it has run three times in a row. At 3 the model is told with evidence, at 5 the call is not run any more, at 8 the turn
ends. Calls that poll are left alone; whatever changed a file makes other calls new: edit and test may go on for ever.
"""

import hashlib
import shlex
from collections.abc import Mapping
from itertools import takewhile

import msgspec
from msgspec import Struct

from codewhale.lib.patterns import lazy

NOTE_AT, BLOCK_AT, STOP_AT = 3, 5, 8
WINDOW = 12
_MEMORY = 64
_PERIODS = (2, 3, 4)
_LINE = lazy(r"[^\n\\<]{1,2000}")


class Mark(Struct, frozen=True):
    """One call in the guard's memory: what was asked, and what came of it; or what came of it last, where it did not
    run."""

    call: str
    outcome: str
    ran: bool = True

    def is_like(self, other: "Mark") -> bool:
        return (self.call, self.outcome) == (other.call, other.outcome)


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
        return _repeats([*self._marks, msgspec.structs.replace(last, ran=True)], ran=True)

    def after(self, tool: str, arguments: str, result: str) -> int:
        """Remember a call with its result; how many times it has now repeated."""
        self._marks.append(Mark(_key(tool, arguments), hashlib.sha256(result.encode()).hexdigest()))
        del self._marks[:-_MEMORY]
        return _repeats(self._marks, ran=True)

    def blocked(self, tool: str, arguments: str) -> int:
        """Remember that a call was asked for and not run; how often it was asked for. It is no outcome: whether the
        call is blocked the next time does not depend on it."""
        call = _key(tool, arguments)
        last = next((mark for mark in reversed(self._marks) if mark.call == call), Mark(call, ""))
        self._marks.append(msgspec.structs.replace(last, ran=False))
        del self._marks[:-_MEMORY]
        return _repeats(self._marks, ran=False)

    def changed(self, tool: str, arguments: str) -> None:
        """A call changed a file: every other one may come to something else now. What it did itself before counts on,
        for a program that writes a log each time is no nearer to anything."""
        call = _key(tool, arguments)
        self._marks = [mark for mark in self._marks if mark.call == call]


def _repeats(marks: list[Mark], *, ran: bool) -> int:
    """How often the last mark stands within the window; with `ran` only those that ran count."""
    pairs = [(mark.call, mark.outcome) for mark in marks]
    if pairs.count(pairs[-1]) == 1:
        return 1
    same = sum(mark.is_like(marks[-1]) and (mark.ran or not ran) for mark in marks[-WINDOW:])
    return max(same, *(_cycles(pairs, period) for period in _PERIODS))


def _cycles(pairs: list[tuple[str, str]], period: int) -> int:
    """How many times the last `period` marks stand one behind the other at the end."""
    if len(set(pairs[-period:])) < 2:
        return 0
    count = 0
    end = len(pairs)
    while end >= period and pairs[end - period : end] == pairs[-period:]:
        count += 1
        end -= period
    return count


def alike(arguments: Mapping[str, object], runs: bool) -> str:
    """What arguments are compared by: in the order of their names and, of a call that `runs` a program, without what
    a shell leaves out of a command: blanks between its words, a remark behind them."""
    if runs:
        arguments = {key: _words(item) if isinstance(item, str) else item for key, item in arguments.items()}
    return msgspec.json.encode(arguments, order="sorted").decode()


def _words(command: str) -> str:
    """The words of a command of one line, joined by single blanks; any other as it stands."""
    bare = command.strip()
    if not _LINE().fullmatch(bare):
        return bare
    lexer = shlex.shlex(bare, posix=False, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return "\0".join(takewhile(lambda word: not word.startswith("#"), lexer))
    except ValueError:
        return bare


def note(tool: str, count: int) -> str:
    """What the model is told of a repeat, behind the call's result."""
    return (
        f"[loop guard] This is repeat {count} of {tool} with the same arguments and the same result in this turn. "
        "Running it again will not change the result. Use what it says, try something else, or say what blocks you."
    )


def block(tool: str, count: int) -> str:
    """What the model is told instead of a result."""
    return (
        f"Error (loop guard): {tool} was not run. It was called {count} times with the same arguments and gave "
        "the same result each time (see above). Choose a different call or end with what you know."
    )


def _key(tool: str, arguments: str) -> str:
    return f"{tool}\0{hashlib.sha256(arguments.encode()).hexdigest()}"
