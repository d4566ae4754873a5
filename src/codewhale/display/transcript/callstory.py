"""The part of the story that is about calls: a card for each, what is asked about it, and what was checked."""

from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from codewhale.display.transcript.blocks import ASKING, DONE, FAILED, RUNNING, Asked, Block, Card
from codewhale.lib.text import one_line
from codewhale.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallFinished,
    CallProgress,
    CallStarted,
    Envelope,
    FileChanged,
    QuestionAnswered,
    QuestionAsked,
    RepairRecorded,
)
from codewhale.protocol.messages import ToolCall
from codewhale.protocol.tools import CommandSubject, JobSubject, PathSubject, Subject, UrlSubject

# Lines that a running call keeps, and how long each may be.
TAIL_LINES = 200
TAIL_CHARS = 2_000
# Characters of results and displays that all cards together keep; the oldest are shortened beyond it.
MOST_KEPT = 48_000_000
_SHORT = 400
_MOST_ARGUMENTS = 4_000
_ABOUT = (
    "command", "cmd", "path", "file_path", "pattern", "query", "url", "name", "objective", "prompt", "question", "title"
)  # fmt: skip
_MOST_SUBJECT = 300


class CallStory:
    """Blocks that are settled, and the calls among them. `touched` are the ids of settled blocks that changed."""

    def __init__(self, most_kept: int = MOST_KEPT) -> None:
        self.settled: list[Block] = []
        self.touched: set[int] = set()
        self.turn = 0
        self.open_calls: dict[str, Card] = {}
        self.checked = ("", "")
        self.last_file = ""
        self._asked: dict[str, Asked] = {}
        self._askers: dict[str, str] = {}
        self._late: dict[str, Card] = {}
        self._kept: deque[tuple[Card, int]] = deque()
        self._kept_size = 0
        self._most_kept = most_kept

    def call_folds(self) -> dict[type, Callable[[Any, Envelope], None]]:
        """What is done with each event of a call."""
        return {
            CallStarted: self._call_started,
            CallProgress: self._call_progress,
            CallFinished: self._call_finished,
            RepairRecorded: self._repaired,
            FileChanged: self._file_changed,
            ApprovalAsked: self._approval_asked,
            ApprovalAnswered: self._approval_answered,
            QuestionAsked: self._question_asked,
            QuestionAnswered: self._question_answered,
        }

    def settle(self, block: Block) -> None:
        """Add a block for good."""
        block.id, block.turn = len(self.settled), self.turn
        self.settled.append(block)

    def touch(self, block: Block) -> None:
        """Note that a block has changed."""
        block.version += 1
        if block.id >= 0:
            self.touched.add(block.id)

    # ------------------------------------------------------------------ calls

    def add_call(self, call: ToolCall) -> Card:
        """The card of a call that the model asked for."""
        card = Card(call_id=call.id, name=call.sent_name)
        _set_arguments(card, call.sent_arguments)
        self.settle(card)
        self.open_calls[call.id] = card
        return card

    def close_calls(self) -> None:
        """The turn is over: a call without a result will have none."""
        for card in self.open_calls.values():
            card.status, card.tail = FAILED, ()
            self.touch(card)
        self.open_calls.clear()
        self._late.clear()

    def _card(self, call_id: str, name: str) -> Card:
        return self.open_calls.get(call_id) or self.add_call(ToolCall(call_id, name, ""))

    def _call_started(self, event: CallStarted, envelope: Envelope) -> None:
        card = self._card(event.call_id, event.name)
        card.name, card.status, card.started = event.name, RUNNING, seconds_of(envelope.at)
        _set_arguments(card, event.arguments)
        self.touch(card)

    def _call_progress(self, event: CallProgress, envelope: Envelope) -> None:
        card = self.open_calls.get(event.call_id)
        if card is not None:
            self.add_tail(card, event.text)

    def add_tail(self, card: Card, text: str) -> None:
        """Lines that a running call told."""
        lines = text.rstrip("\n").rsplit("\n", TAIL_LINES)[-TAIL_LINES:]
        card.tail = (*card.tail, *(line[:TAIL_CHARS] for line in lines))[-TAIL_LINES:]
        self.touch(card)

    def _call_finished(self, event: CallFinished, envelope: Envelope) -> None:
        card = self._card(event.call_id, event.name)
        del self.open_calls[event.call_id]
        self._late[event.call_id] = card
        card.name, card.status, card.ms = event.name, DONE if event.ok else FAILED, event.ms
        card.tail, card.said, card.display, card.error = (), event.content, event.display, event.error
        self._keep(card)
        self.touch(card)
        if "workspace_tree_sha256" in event.metadata:
            said = one_line(str(event.metadata.get("summary") or event.name), 80)
            self.checked = (said, "") if event.ok and event.metadata.get("tests_ran") else ("", "")

    def _repaired(self, event: RepairRecorded, envelope: Envelope) -> None:
        card = self._card(event.call_id, event.name)
        card.repairs, card.lossy = event.codes, event.lossy
        self.touch(card)

    def _file_changed(self, event: FileChanged, envelope: Envelope) -> None:
        self.last_file = event.change.path
        self.uncheck()
        card = self._late.get(event.call_id) or self.open_calls.get(event.call_id)
        if card is not None and event.change.path not in card.files:
            card.files = (*card.files, event.change.path)
            self.touch(card)

    def uncheck(self) -> None:
        """What was checked may be another tree than the one that is there now."""
        verified, stale = self.checked
        self.checked = ("", verified or stale)

    def _keep(self, card: Card) -> None:
        """Count what a card holds; shorten the oldest where it is too much."""
        size = len(card.said) + sum(_size(display) for display in card.display)
        self._kept.append((card, size))
        self._kept_size += size
        while self._kept_size > self._most_kept and len(self._kept) > 1:
            old, held = self._kept.popleft()
            self._kept_size -= held
            if held > _SHORT:
                old.said, old.display, old.shortened = old.said[:_SHORT], (), held - _SHORT
                self.touch(old)

    # ------------------------------------------------------------------ asked of the person

    def _approval_asked(self, event: ApprovalAsked, envelope: Envelope) -> None:
        rows = tuple(_subject_row(subject) for subject in event.subjects)
        asked = Asked(request_id=event.request_id, kind="approval", subject=event.tool, reason=event.reason, rows=rows)
        if event.kind == "elevation":
            asked.kind = "elevation"
        card = self.open_calls.get(event.call_id)
        asked.card = card is not None
        self._ask(asked)
        if card is not None:
            card.status = ASKING
            self._askers[event.request_id] = event.call_id
            self.touch(card)

    def _ask(self, asked: Asked) -> None:
        self.settle(asked)
        self._asked[asked.request_id] = asked

    def _approval_answered(self, event: ApprovalAnswered, envelope: Envelope) -> None:
        state = ("allowed" if event.allowed else "denied") if event.by == "person" else event.by
        state = f"{state}_{event.remember}" if event.allowed and event.remember else state
        self._answer(event.request_id, state)
        card = self.open_calls.get(self._askers.pop(event.request_id, ""))
        if card is not None:
            card.status, card.answer = RUNNING if event.allowed and card.started else "waiting", state
            self.touch(card)

    def _answer(self, request_id: str, state: str) -> Asked | None:
        asked = self._asked.pop(request_id, None)
        if asked is not None:
            asked.state = state
            self.touch(asked)
        return asked

    def _question_asked(self, event: QuestionAsked, envelope: Envelope) -> None:
        rows = tuple((str(row.get("question") or row.get("header") or ""), "") for row in event.questions)
        asked = Asked(request_id=event.request_id, kind="question", rows=rows)
        asked.subject = "\n".join(str(row.get("id", "")) for row in event.questions)
        self._ask(asked)

    def _question_answered(self, event: QuestionAnswered, envelope: Envelope) -> None:
        asked = self._answer(event.request_id, "answered" if event.by == "person" else event.by)
        if asked is not None:
            said = {str(row.get("id", "")): _answer_text(row) for row in event.answers}
            ids = asked.subject.split("\n")
            asked.rows = tuple((row[0], said.get(key, "")) for row, key in zip(asked.rows, ids, strict=False))


def seconds_of(at: str) -> float:
    """The time of an envelope in seconds since the epoch; 0 when it cannot be read."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return 0.0


def subject_of(arguments: str) -> str:
    """What a call is about, in a few words: its command, path, pattern or the first text that it was given."""
    try:
        given = msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, ValueError):
        return one_line(arguments, _MOST_SUBJECT)
    if not isinstance(given, dict):
        return one_line(arguments, _MOST_SUBJECT)
    texts = [given[key] for key in _ABOUT if isinstance(given.get(key), str) and given[key]]
    texts = texts or [value for value in given.values() if isinstance(value, str) and value]
    return one_line(texts[0][: _MOST_SUBJECT * 2], _MOST_SUBJECT) if texts else ""


def _set_arguments(card: Card, arguments: str) -> None:
    if arguments and (arguments != card.arguments or not card.subject):
        card.subject = subject_of(arguments)
        card.arguments = arguments[:_MOST_ARGUMENTS]


def _subject_row(subject: Subject) -> tuple[str, str]:
    match subject:
        case CommandSubject(command=command, cwd=cwd, stdin=stdin):
            about = f"{command} <<< {stdin}" if stdin else command
            return "command", about if cwd == "." else f"{about}  ({cwd})"
        case PathSubject(path=path, write=write):
            return ("write" if write else "read"), path
        case UrlSubject(url=url):
            return "url", url
        case JobSubject(id=job, text=text):
            return "job", f"{job} {text}".rstrip()


def _answer_text(row: dict[str, Any]) -> str:
    for key in ("value", "answer", "text", "label", "answers", "labels", "selected"):
        value = row.get(key)
        if value:
            return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return ""


def _size(display: Any) -> int:
    return sum(len(value) if isinstance(value, str) else 100 * len(value or ()) for value in _values(display))


def _values(display: Any) -> list[Any]:
    return [value for value in msgspec.structs.astuple(display) if isinstance(value, str | tuple)]
