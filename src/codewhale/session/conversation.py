"""The order of a conversation, as a fold of the log: which messages stand in it, and what takes them back.

Adjacent words of the person and the harness travel as one user message; a request or an answer ends that run. What
is done with each message is the business of a subclass: the projection keeps its bytes.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from msgspec import Struct

from codewhale.protocol.events import (
    CallFinished,
    Compacted,
    CompactionUndone,
    ContextAppended,
    Event,
    HeaderPinned,
    MessageAdded,
    ModelChanged,
    RequestSent,
    ResultsPruned,
)
from codewhale.protocol.messages import Message, Part, ResultPart, Text

COMPACTED = "<compacted"  # how the message begins that stands for a compacted conversation
LOST_RESULT = "The result of this call is lost: the session log was damaged. Check its effects before repeating it."


class _Frame(Struct):
    """What can come back: the conversation as it stood, and all that happened since. `number` is the compaction that
    took its place; 0 while results have been pruned and no request was sent since."""

    said: object
    pending: tuple[Part, ...]
    open: tuple[str, ...]
    results: tuple[ResultPart, ...]
    later: list[Event]
    number: int = 0


class ConversationFold(ABC):
    """Says the messages of a session in order. Where damage took a call or its result from the log, the other half is
    left out or said to be lost: providers take calls and results in pairs alone."""

    def __init__(self) -> None:
        self._pending: list[Part] = []
        self._open: list[str] = []
        self._results: list[ResultPart] = []
        self._frames: list[_Frame] = []

    @abstractmethod
    def _put(self, message: Message) -> None:
        """Say a message behind all others."""

    @abstractmethod
    def _shorten(self, results: tuple[ResultPart, ...]) -> None:
        """Say these results in place of those of their calls."""

    @abstractmethod
    def _saved(self) -> object:
        """All that was said, for `_restore`."""

    @abstractmethod
    def _restore(self, said: object) -> None:
        """Stand again as when it was saved; None is the beginning."""

    def apply(self, event: Event) -> None:
        """Add one event."""
        match event:
            case Compacted():
                self._compact(event)
            case CompactionUndone(number=number):
                self._undo(number)
            case ResultsPruned(results=results):
                if not self._frames or self._frames[-1].number:
                    self._frames.append(self._frame())
                self._frames[-1].later.append(event)
                self._shorten(results)
            case MessageAdded() | CallFinished() | ContextAppended() | HeaderPinned() | ModelChanged() | RequestSent():
                if self._frames:
                    self._frames[-1].later.append(event)
                self._step(event)

    def _step(self, event: Event) -> None:
        match event:
            case MessageAdded(message=message):
                self._add(message)
            case CallFinished(call_id=call_id) if call_id in self._open:
                # Results stand together right behind their calls: whatever is pending waits.
                self._answer(call_id, _rendered(event), event.ok)
                if event.images:
                    self._pending += [Text(f"Shown by {event.name}:", source="harness"), *event.images]
            case ContextAppended():
                self._pending.append(update_text(event))
            case RequestSent(purpose=""):  # one made beside the conversation ends nothing
                self._flush()
                self._keep_pruned()
            case HeaderPinned() | ModelChanged():
                self._flush()

    # ------------------------------------------------------------------ what joins

    def _add(self, message: Message) -> None:
        if message.role == "user":
            self._pending.extend(message.parts)
        else:
            self._flush()
            self._append(message)
            self._open = [call.id for call in message.calls]

    def _answer(self, call_id: str, content: str, ok: bool) -> None:
        """Add a result; those of one assistant message are one message, said when the last of them is here."""
        self._open.remove(call_id)
        self._results.append(ResultPart(call_id, content, ok))
        if not self._open:
            results, self._results = tuple(self._results), []
            self._put(Message("tool", results))

    def _flush(self) -> None:
        if self._pending:
            parts, self._pending = tuple(self._pending), []
            self._append(Message("user", parts))

    def _append(self, message: Message) -> None:
        for call_id in self._open.copy():
            self._answer(call_id, LOST_RESULT, False)
        self._put(message)

    # ------------------------------------------------------------------ what is said anew

    def _frame(self) -> _Frame:
        return _Frame(self._saved(), tuple(self._pending), tuple(self._open), tuple(self._results), [])

    def _compact(self, event: Compacted) -> None:
        """Say these messages in place of all; words that no request has carried yet stand behind them."""
        if not self._frames or self._frames[-1].number:
            self._frames.append(self._frame())
        frame = self._frames[-1]
        frame.number = event.number
        frame.later = [later for later in frame.later if not isinstance(later, ResultsPruned)]
        pending, self._pending, self._open, self._results = self._pending, [], [], []
        self._restore(None)
        for message in event.messages:
            if message.role == "tool":
                self._take(message.parts)
            else:
                self._add(message)
        self._flush()
        self._pending = pending

    def _take(self, parts: Iterable[Part]) -> None:
        """The results of calls just said."""
        for part in parts:
            if isinstance(part, ResultPart) and part.call_id in self._open:
                self._answer(part.call_id, part.content, part.ok)

    def _undo(self, number: int) -> None:
        """Stand as if compaction `number`, the last one, had never been. Another number means damage: nothing."""
        self._keep_pruned()
        if not self._frames or self._frames[-1].number != number:
            return
        frame = self._frames.pop()
        self._restore(frame.said)
        self._pending, self._open = list(frame.pending), list(frame.open)
        self._results = list(frame.results)
        for event in frame.later:
            self.apply(event)

    def _keep_pruned(self) -> None:
        """What was pruned since the last request has been sent so: it stays."""
        if self._frames and not self._frames[-1].number:
            frame = self._frames.pop()
            if self._frames:
                self._frames[-1].later += frame.later


class Conversation(ConversationFold):
    """The messages themselves, as the next request says them."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        super().__init__()
        self._messages: list[Message] = []
        for event in events:
            self.apply(event)

    @property
    def messages(self) -> tuple[Message, ...]:
        """All of them in order, without words that no request has carried yet."""
        return tuple(self._messages)

    @property
    def pending(self) -> tuple[Part, ...]:
        """Those words."""
        return tuple(self._pending)

    def _put(self, message: Message) -> None:
        self._messages.append(message)

    def _shorten(self, results: tuple[ResultPart, ...]) -> None:
        shorter = {result.call_id: result for result in results}
        for place, message in enumerate(self._messages):
            if message.role == "tool" and all(shorter.get(part.call_id) for part in result_parts(message)):
                self._messages[place] = Message("tool", tuple(shorter[part.call_id] for part in result_parts(message)))

    def _saved(self) -> object:
        return tuple(self._messages)

    def _restore(self, said: object) -> None:
        self._messages = list(said) if isinstance(said, tuple) else []


def update_text(event: ContextAppended) -> Text:
    """A context update as it stands in a message."""
    return Text(event.text, "harness", event.kind)


def result_parts(message: Message) -> tuple[ResultPart, ...]:
    """The results of a tool message."""
    return tuple(part for part in message.parts if isinstance(part, ResultPart))


def _rendered(event: CallFinished) -> str:
    """A result as the model reads it: of a call by a name on its way out, with one line that says so. A log that holds
    the line already is said as it was."""
    notice = event.metadata.get("_deprecation")
    said = notice.get("message") if isinstance(notice, dict) else None
    if not isinstance(said, str) or event.content.endswith(said):
        return event.content
    return f"{event.content}\n\n{said}"
