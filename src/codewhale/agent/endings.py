"""What an answer without calls is: an end, or a model that stopped short of one. It may have said nothing, said what
it will do and not done it, written a call as text, or have had its call lost on the way."""

from collections.abc import Callable

from codewhale.agent.collect import Answer
from codewhale.agent.promises import Moment, begins_like, promises
from codewhale.agent.reminders import ANNOUNCED, EMPTY, LOST, PAUSED, TEXT_CALL, TOO_LONG, UNFINISHED

LOST_CALL = "malformed_function_call"
_CALL_FINISHES = ("tool_calls", "function_call", "tool_use", LOST_CALL)


def shortfall(answer: Answer, moment: Moment, writes_call: bool, is_tool: Callable[[str], bool]) -> str:
    """What an answer without a call is short of, "" where it is an end. `writes_call` says that its text looks like
    one."""
    text = answer.text.strip()
    if answer.finish == "pause_turn":
        return PAUSED
    lost = answer.finish.lower() in _CALL_FINISHES
    if not text:
        return LOST if lost else TOO_LONG if answer.finish == "length" else EMPTY
    if writes_call:
        return TEXT_CALL
    if answer.finish != "length":
        if promises(text, moment, is_tool):
            return ANNOUNCED
        if begins_like(text, moment.openings):
            return UNFINISHED
    return LOST if lost else ""
