"""An answer without calls: an end of the turn, or a model that stopped short of one, and what it is told then.

It may have said nothing, said what it will do and not done it, written a call as text, or lost its call on the way.
"""

import re
from collections.abc import Callable

import msgspec
from msgspec import Struct

from codewhale.agent.collect import ModelAnswer, RawCall
from codewhale.agent.pending_call import PendingCall, may_hold_calls
from codewhale.agent.tool_calls import ToolCallRunner
from codewhale.agent.turn import Turn
from codewhale.catalog.registry import Catalog
from codewhale.lib.patterns import lazy
from codewhale.protocol.events import ContextAppended, TextStreamed
from codewhale.protocol.messages import Text
from codewhale.protocol.modes import Mode

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
_STANDS = "answer with the one word DONE: your last message then counts as the answer."
_REMINDERS = {
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


def reminder(kind: str, number: int, call: tuple[str, str] | None, alone: bool) -> str:
    """What a model is told the `number`th time. `call` is the one it wrote, as name and JSON, where that is known;
    `alone` says that a call which is all of a message runs at this endpoint."""
    text = _REMINDERS[kind].replace("@alone@", _ALONE if alone else "")
    if number == 2 and kind in _AGAIN:
        name, arguments = call if call is not None and len(call[1]) <= _LONGEST_EXAMPLE else _EXAMPLE
        text += f"\nA worked example: call the tool {name} with the arguments {arguments}"
        if alone:
            shown = msgspec.json.encode({"name": name, "arguments": msgspec.Raw(arguments.encode())}).decode()
            text += f"\nor send this and nothing else:\n<tool_call>\n{shown}\n</tool_call>"
    if number == TIMES:
        text += "\nThis is the last reminder: another such message ends the turn as failed."
    return text


# ---------------------------------------------------------------------- a promise and no deed


class Moment(Struct, frozen=True):
    """Where in a turn an answer stands: what the person asked, whether calls were made and one of them has acted
    (more than read), how the words began that came with calls before, and whether the model was just told that it
    wrote a call: words without one then say that it was only shown."""

    asked: str
    mode: Mode
    called: bool = False
    acted: bool = False
    openings: frozenset[str] = frozenset()
    denies: bool = False


_DONE = lazy(r"\W{0,10}done\W{0,10}", re.I)


def says_done(text: str) -> bool:
    """Whether an answer says that the one before it stands."""
    return bool(_DONE().fullmatch(text.strip()))


_ASKS = "?？؟՞\u037e"
_GOES_ON = lazy(r"(?:[:：…]|\.\.\.)[*_]{0,3}\Z")
# What an answer has that tells something: a figure, a quotation, code, a path. A promise may name what it is about.
_FACT = lazy(r"[\d`<{\[/\"«“「=|_]|\w\.\w")
_THING = lazy(r"`[^`\n]+`|\w/\w|\w\.[a-z]{1,5}\b|[a-z]_[a-z]")
_SENTENCE = lazy(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_WORD = lazy(r"[A-Za-z]\w*_\w+")
_SECTION = lazy(r"[\W_]*SUMMARY\b")  # how the answer of a sub-agent begins
_SHORT, _LEAST = 240, 12


def promises(text: str, moment: Moment, is_tool: Callable[[str], bool]) -> bool:
    """Whether a text is words of what comes next and no deed. One that ends as if more came is; before anything has
    acted also one that ends with the name of a tool, and a short one that answers an order with no fact: a report
    says what was found or done, a question asks. Where nothing was called at all, naming the thing is no fact."""
    if text.endswith(("```", "~~~")) or text[-1] in _ASKS:
        return False
    if _GOES_ON().search(text[-40:]):
        return True
    if moment.acted or moment.denies or _SECTION().match(text):
        return False
    if any(is_tool(word) for word in _WORD().findall(_last_sentence(text))):
        return True
    short = _LEAST < weight(text) <= _SHORT and text.count("\n") < 3
    if not short or not _orders(moment.asked) or (moment.called and moment.mode is Mode.PLAN):
        return False
    named = not moment.called and "<" not in text and bool(_THING().search(text))
    return named or not _FACT().search(text)


def _orders(asked: str) -> bool:
    """Whether what was asked is of some length and no question."""
    asked = asked.strip()
    return weight(asked) >= _LEAST and asked[-1] not in _ASKS


def begins_like(text: str, openings: frozenset[str]) -> bool:
    """Whether a short text that asks nothing begins its last sentence like words that came with calls."""
    return len(text) <= _SHORT and text[-1] not in _ASKS and opening(text) in openings


def weight(text: str) -> int:
    """The length of a text in letters; a character that is a word counts as three."""
    return len(text) + 2 * sum(char >= "\u2e80" for char in text[:1_000])


def opening(text: str) -> str:
    """How the last sentence of a text begins: its first two words, or characters where there are no blanks."""
    last = _last_sentence(text).lower().lstrip(" *_#->")
    words = last.split()
    return " ".join(words[:2]) if len(words) > 2 else last[:3] if last and last[0] >= "\u2e80" else ""


def _last_sentence(text: str) -> str:
    sentences = [part for part in _SENTENCE().split(text[-1_000:].strip()) if part and part.strip()]
    return sentences[-1] if sentences else ""


# ---------------------------------------------------------------------- what an answer is short of

LOST_CALL = "malformed_function_call"
_CALL_FINISHES = ("tool_calls", "function_call", "tool_use", LOST_CALL)


def reason_to_continue(answer: ModelAnswer, moment: Moment, writes_call: bool, is_tool: Callable[[str], bool]) -> str:
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


CHILDREN = "agents"  # the family of tools by which another session acts
# What every text that looks like a call has somewhere.
_SIGNS = lazy(r"[<\[{`(]|\*\*\* |Action|to=")


class TurnAnswers:
    """Follows one turn: the calls that were made in it, and what the model was told since the last one."""

    def __init__(self, turn: Turn, catalog: Catalog, runner: ToolCallRunner) -> None:
        self._turn = turn
        self._session = turn.session
        self._catalog = catalog
        self._runner = runner
        self._reminded: list[str] = []
        self._heeded = 0
        self._doubted = ""
        self._called = self._acted = False
        self._openings: set[str] = set()

    # ------------------------------------------------------------------ words that are calls

    @property
    def _channel(self) -> bool | None:
        """Whether text is this model's channel for calls; None where nothing is known, and calls are native."""
        fact = self._session.provider.settings.facts.get("text_calls")
        return None if fact is None else bool(fact)

    def with_calls(self, answer: ModelAnswer) -> ModelAnswer:
        """The answer with the calls that its text is or ends with as calls, where they may be taken as such. What was
        held back of the rest is shown: what a person saw is what is recorded."""
        said = answer.text or answer.reasoning
        look = self._channel is not False and not answer.calls and may_hold_calls(said)
        repairer = self._runner.repairer() if look else None
        found = repairer.find_calls(said) if repairer is not None else None
        # A server reads calls in answers alone: in thoughts they are none of its channel.
        if repairer is None or found is None or not repairer.takes(found, bool(self._channel and answer.text)):
            self.show(answer)
            return answer
        kept = [item for item in answer.items if not isinstance(item, Text)]
        before = found.before if answer.text and found.before.strip() else ""
        seen = len(answer.text) - len(answer.held)
        unseen, before = before[seen:], before if len(before) > seen else answer.text[:seen]
        if unseen:
            self._session.emit(TextStreamed(unseen))
        words = [Text(before, source="model")] if before else []
        calls = [RawCall("", call.name, call.arguments, call.code) for call in found.calls]
        return msgspec.structs.replace(answer, items=(*kept, *words, *calls))

    def show(self, answer: ModelAnswer) -> None:
        """Tell what was held back of a text that turned out to be words."""
        if answer.held:
            self._session.emit(TextStreamed(answer.held))

    # ------------------------------------------------------------------ words where a call was due

    def lacks(self, answer: ModelAnswer) -> tuple[str, bool]:
        """What an answer without calls is short of, "" where it is an end, and whether the turn goes on: the model has
        been told then."""
        if self._stands(answer):
            return "", False
        look = None
        if _SIGNS().search(answer.text):
            look = self._runner.repairer().looks_like_call(answer.text)
        short = reason_to_continue(answer, self._moment(), look is not None, self._is_tool)
        if short in (PAUSED, LOST, UNFINISHED) and self._reminded and answer.text.strip():
            return "", False
        if short in MAY_STAND and self._heeded >= TIMES and not self._reminded:
            return "", False  # it did each time what it was asked to, and says no more than this
        if not short or len(self._reminded) >= TIMES or self._reminded.count(short) >= times(short):
            return short, False
        self._reminded.append(short)
        self._doubted = answer.text if short in MAY_STAND else ""
        call = self._readable(look.name, look.arguments) if look is not None and short == TEXT_CALL else None
        alone = self._channel is not False
        self._session.emit(ContextAppended("nudge", reminder(short, len(self._reminded), call, alone)))
        return short, True

    def answer(self, answer: ModelAnswer) -> str:
        """The words that stand as the turn's answer: those before, where the last ones only say so."""
        return self._doubted if self._stands(answer) else answer.text

    def _stands(self, answer: ModelAnswer) -> bool:
        return bool(self._doubted) and says_done(answer.text)

    def _moment(self) -> Moment:
        session = self._session
        return Moment(
            asked=self._turn.asked,
            mode=session.state.mode,
            called=self._called,
            acted=self._acted,
            openings=frozenset(self._openings),
            denies=self._reminded[-1:] == [TEXT_CALL],
        )

    def _is_tool(self, name: str) -> bool:
        return self._catalog.resolve(name) is not None

    def _readable(self, name: str, arguments: str) -> tuple[str, str] | None:
        """A call as the model is shown it: under our names, as JSON; None where it would be refused."""
        verdict = self._runner.repairer().judge(name, arguments)
        if verdict.error is not None or verdict.arguments is None:
            return None
        return verdict.name, msgspec.json.encode(verdict.arguments).decode()

    # ------------------------------------------------------------------ calls

    def note(self, text: str, calls: list[PendingCall]) -> None:
        """Take in calls that were made, the text they came with, and what came of them."""
        self._heeded += bool(self._reminded)
        self._reminded, self._doubted, self._called = [], "", True
        self._openings.add(opening(text.strip()))
        self._openings.discard("")
        for call in calls:
            spec = call.spec
            self._acted = self._acted or (call.ok and spec is not None and (spec.touches or spec.family == CHILDREN))
