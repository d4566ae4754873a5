"""What a model is told whose answer is no end: it stopped, promised, wrote a call as text, or lost one on the way."""

import msgspec

TIMES = 3
PAUSED, EMPTY, ANNOUNCED, UNFINISHED, TEXT_CALL, TOO_LONG, LOST = (
    "paused", "empty", "announced", "unfinished", "text_call", "too_long", "lost",
)  # fmt: skip
# What a model did that was told and did not help, in the words of the turn's end.
REASONS = {
    PAUSED: "stopped in the middle",
    EMPTY: "gave neither an answer nor a tool call",
    ANNOUNCED: "announced a tool call and made none",
    UNFINISHED: "stopped before its work was done",
    TEXT_CALL: "wrote tool calls as text",
    TOO_LONG: "hit its length limit without an answer or a tool call",
    LOST: "made no tool call that could be read",
}
# Told again and again, since a model may learn from it; the other kinds are told once.
_AGAIN = (ANNOUNCED, TEXT_CALL)
# What a model may say was an answer after all.
MAY_STAND = (ANNOUNCED, TEXT_CALL, UNFINISHED)
_STANDS = "answer with the one word DONE: your last message then stands as the answer."
_TOLD = {
    PAUSED: "You stopped in the middle. Go on where you stopped.",
    EMPTY: "Your last message held neither an answer nor a tool call. If the task is done, say what you did; if not, "
    "make the next tool call now.",
    ANNOUNCED: "Your last message held no tool call, so nothing has happened. If something is left to do, make that "
    f"tool call now. If nothing is, {_STANDS}",
    UNFINISHED: "Your last message held no tool call, and work seems to be open. Make the next tool call now. If "
    f"nothing is left to do, {_STANDS}",
    TEXT_CALL: "Your last message wrote a tool call as text. Text is not run. Send it as a tool call through the tool "
    f"interface@alone@. If it was only shown and nothing is left to do, {_STANDS}",
    TOO_LONG: "Your last message hit its length limit before it held an answer or a tool call. Think less, and answer "
    "or make the next tool call now.",
    LOST: "Your last message was to make a tool call, but none arrived that could be read, so nothing was run. Make "
    "the call again, with its arguments as one valid JSON object.",
}
_ALONE = ", or alone with nothing else in the message"
_EXAMPLE = ("list_dir", '{"path":"."}')
_LONGEST_EXAMPLE = 4_000


def times(kind: str) -> int:
    """How often in a row an answer of this kind is told before the turn ends."""
    return TIMES if kind in _AGAIN else 1


def telling(kind: str, number: int, call: tuple[str, str] | None, alone: bool) -> str:
    """What a model is told the `number`th time. `call` is the one it wrote, as name and JSON, where that is known;
    `alone` says that a call which is all of a message runs at this endpoint."""
    told = _TOLD[kind].replace("@alone@", _ALONE if alone else "")
    if number == 2 and kind in _AGAIN:
        name, arguments = call if call is not None and len(call[1]) <= _LONGEST_EXAMPLE else _EXAMPLE
        told += f"\nA worked example: call the tool {name} with the arguments {arguments}"
        if alone:
            said = msgspec.json.encode({"name": name, "arguments": msgspec.Raw(arguments.encode())}).decode()
            told += f"\nor send this and nothing else:\n<tool_call>\n{said}\n</tool_call>"
    if number == TIMES:
        told += "\nThis is the last reminder: another such message ends the turn as failed."
    return told
