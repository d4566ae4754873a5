"""What waits for an answer, and exactly what is asked: whatever could hide or move text is shown as an escape."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from codewhale.display.text import Span, Spans, flat, wrap_whole
from codewhale.display.worded import worded
from codewhale.display.words import Words
from codewhale.lib.text import sanitise
from codewhale.protocol.blocks import Block, ChecklistBlock, DiffBlock, MarkdownBlock, TableBlock, TerminalBlock
from codewhale.protocol.decisions import Offer
from codewhale.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Envelope,
    MessageAdded,
    ModeChanged,
    QuestionAnswered,
    QuestionAsked,
    RepairRecorded,
    SessionResumed,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.messages import ToolCall
from codewhale.protocol.tools import ChildSubject, CommandSubject, Effect, PathSubject, UrlSubject

MOST_CALLS = 200
ESCAPED = "bold warning"
_EFFECTS = frozenset(effect.value for effect in Effect) | {"nothing"}
_SANDBOXES = ("none", "read-only", "workspace-write")
# Blanks that are none or look like one, fillers, variation selectors, three combining marks and more on one letter.
_BLANK = re.compile(
    "[\t\u00a0\u034f\u115f\u1160\u1680\u17b4\u17b5\u2000-\u200a\u202f\u205f\u2800\u3000\u3164\uffa0\ufe00-\ufe0f"
    "\U000e0100-\U000e01ef]|(?:[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]){3,}"
)
_UNPRINTED = re.compile("[^\n\x20-\x7e]")
_FIRST, _NEXT, WRAPPED = "  ", "│ ", "┊ "


_PLAN_ROWS = {"Approve and run": "run", "Approve, keep asking": "run_asking", "Keep planning": "keep"}
_PLAN_TEXTS = (("label", ""), ("description", "_more"))


class Asks:
    """The open asks of all sessions that are followed."""

    def __init__(self) -> None:
        self._open: dict[str, Envelope] = {}
        self._arguments: dict[tuple[str, str], str] = {}

    def take(self, envelope: Envelope) -> bool:
        """Count an event in; whether anything has changed."""
        match envelope.event:
            case MessageAdded(message=message):
                for part in message.parts:
                    if isinstance(part, ToolCall):
                        self._note(envelope.session, part.id, part.sent_arguments)
            case RepairRecorded(call_id=call, arguments=arguments):
                self._note(envelope.session, call, arguments)
            case ApprovalAsked(request_id=request) | QuestionAsked(request_id=request):
                self._open[request] = envelope
                return True
            case ApprovalAnswered(request_id=request) | QuestionAnswered(request_id=request):
                return self.drop(request)
            case TurnStarted() | TurnFinished() | ModeChanged() | SessionResumed():
                # Nobody waits any more for what a turn that is over has asked, nor for what stood between two.
                gone = [key for key, asked in self._open.items() if asked.session == envelope.session]
                for key in gone:
                    self.drop(key)
                return bool(gone)
        return False

    def drop(self, request: str) -> bool:
        """Forget an ask; whether there was one."""
        return self._open.pop(request, None) is not None

    def arguments(self, session: str, call: str) -> str:
        """What a call was written with, "" where that was not seen."""
        return self._arguments.get((session, call), "")

    def _note(self, session: str, call: str, arguments: str) -> None:
        self._arguments[session, call] = arguments
        if len(self._arguments) > MOST_CALLS:
            del self._arguments[next(iter(self._arguments))]

    @property
    def first(self) -> Envelope | None:
        """The one that has waited longest."""
        return next(iter(self._open.values()), None)

    def __len__(self) -> int:
        return len(self._open)


def spans(text: str, tone: str) -> list[Span]:
    """Text on one line as spans, with escapes for what cannot be seen. Spans ends are escaped too."""
    if not _UNPRINTED.search(text) and "\n" not in text:
        return [(text, tone)]
    found: list[Span] = []
    for char, hidden in _pieces(text):
        said = hidden or char
        kind = ESCAPED if hidden else tone
        if found and found[-1][1] == kind:
            found[-1] = (found[-1][0] + said, kind)
        else:
            found.append((said, kind))
    return found


def hides(text: str) -> bool:
    """Whether a text has characters (other than line ends) that are shown as escapes."""
    return any(hidden for _, hidden in _pieces(text.replace("\n", " ")))


def shown_question(request: str, question: Mapping[str, Any], words: Words) -> Mapping[str, Any]:
    """A question as it is shown: the program's about a plan in the person's language, a model's as it is."""
    if not request.startswith("plan_"):
        return question
    rows = [row for row in question.get("options", ()) if isinstance(row, Mapping)]
    options = [{key: words(f"plan.{_PLAN_ROWS[row['label']]}{end}") for key, end in _PLAN_TEXTS} for row in rows]
    return {"header": words("plan.header"), "question": words("plan.question", n=question["count"]), "options": options}


def held_by(ask: ApprovalAsked, words: Words) -> str:
    """What the sandbox would leave to a call, in words; of one outside the workspace, what a yes opens."""
    if ask.rule == "path.outside":
        return words("asking.sandbox_path")
    if ask.rule == "mode.agent.later":
        return words("asking.sandbox_later")
    if kind_of(ask) == "child":
        return words("asking.sandbox_child")
    if ask.sandbox == "workspace-write" and "network" in ask.allowances:
        return words("asking.sandbox_network")
    return words(f"asking.sandbox_{ask.sandbox if ask.sandbox in _SANDBOXES else 'other'}", name=flat(ask.sandbox))


def offer_of(offer: Offer, words: Words, short: bool = False) -> str:
    """What a rule would allow from now on, in words or (`short`) in one that names it."""
    value = "".join(text for text, _ in spans(offer.value, ""))
    field = "tool" if offer.field == "tests" and not value else offer.field
    return words(f"asking.{'what' if short else 'offer'}_{field}", tool=flat(offer.tool), value=value)


def kind_of(ask: ApprovalAsked) -> str:
    """The kind of question: for more rights, or by the one thing that it is about."""
    if ask.kind != "policy" or len(ask.subjects) != 1:
        return ask.kind
    if ask.rule == "path.outside":
        return "outside_file" if any(isinstance(one, PathSubject) and one.write for one in ask.subjects) else "outside"
    match ask.subjects[0]:
        case CommandSubject():
            return "command"
        case PathSubject(write=True):
            return "file"
        case UrlSubject():
            return "address"
        case ChildSubject():
            return "child"
    return ask.kind


def reason_of(ask: ApprovalAsked, words: Words) -> str:
    """Why it is asked, the rule's own words before what policy said of this call where the language has such."""
    for rule in (ask.rule, ask.rule.partition(".")[0]):
        with contextlib.suppress(KeyError):
            return words(f"rules.{rule}", reason=ask.reason)
    return ask.reason


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    blanks = {at: match for match in _BLANK.finditer(text) for at in range(*match.span())}
    for at, char in enumerate(text):
        if char == "\n":
            yield char, "\\n"
        elif at in blanks:
            yield char, "\\t" if char == "\t" else _escape(char)
        else:
            safe = sanitise(char)
            yield char, safe if safe != char else ""


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def exact_lines(text: str, width: int, tone: str = "code", first: str = _FIRST) -> list[Spans]:
    """All of a text in lines of at most `width` columns: the first behind `first`, one that begins at a line end of the
    text behind a bar, one that was wrapped behind a broken bar."""
    lines: list[Spans] = []
    room = max(4, width - len(_NEXT))
    for number, line in enumerate(text.split("\n")):
        for piece_number, piece in enumerate(wrap_whole(tuple(spans(line, tone)), room, words=False)):
            edge = WRAPPED if piece_number else _NEXT if number else first
            lines.append(((edge, "muted"), *piece))
    return lines


def block_lines(block: Block, width: int, words: Words) -> list[Spans]:
    """A display block with nothing left out."""
    match block:
        case TableBlock(header=("sub-agent", _), rows=rows):
            named = [(words(f"asking.row_{name}"), _may(said, words) if name == "may" else said) for name, said in rows]
            return [line for name, said in named for line in exact_lines(f"{name}: {said}", width, "text")]
        case DiffBlock(path=path, diff=diff):
            return [(("  ", "muted"), *spans(path, "bold text")), *_diff(diff, width)]
        case TerminalBlock(command=command, output=output):
            return [*exact_lines(command, width, first="$ "), *exact_lines(output, width, "text")]
        case TableBlock():
            shown = worded(block, words)
            cells = (shown.header, *shown.rows)
            return [line for row in cells for line in exact_lines(" │ ".join(row), width, "text")]
        case ChecklistBlock(items=items):
            return [line for status, text in items for line in exact_lines(f"{status}: {text}", width, "text")]
        case MarkdownBlock(text=text):
            return exact_lines(text, width, "text")


def _may(said: str, words: Words) -> str:
    """What the calls of a sub-agent may do: effects, in words, or tools."""
    return ", ".join(words(f"asking.may_{one}") if one in _EFFECTS else one for one in said.split(", "))


def bare_lines(tool: str, arguments: str, without: str, width: int) -> list[Spans]:
    """A call in which nothing is a command, a path or an address: its name and what it was written with, or `without`
    where that is nothing."""
    if arguments.strip() not in ("", "{}"):
        return exact_lines(f"{tool} {arguments}", width)
    return [*exact_lines(tool, width), ((f"  {without}", "muted"),)]


def _diff(diff: str, width: int) -> list[Spans]:
    lines: list[Spans] = []
    for line in diff.rstrip("\n").split("\n"):
        if line.startswith(("--- ", "+++ ")) and not lines:
            continue
        tone = {"+": "added on:added_background", "-": "removed on:removed_background", "@": "accent"}.get(line[:1])
        lines += exact_lines(line, width, tone or "text")
    return lines
