"""What is sent to the model, as a pure fold of the log.

Wire bytes of past messages are appended once and never rewritten, so request n is a prefix of request n+1
except at a named edge. Adjacent words of the person and the harness travel as one user message; a request or
an answer ends that run.
"""

import hashlib
from collections.abc import Sequence

from codewhale.protocol.events import (
    CallFinished,
    ContextAppended,
    Event,
    HeaderPinned,
    MessageAdded,
    ModelChanged,
    RequestSent,
)
from codewhale.protocol.messages import Message, Part, ResultPart, Text
from codewhale.providers.base import Dialect, LoadImage, ProviderSettings, RequestOptions
from codewhale.providers.build import build_dialect

LOST_RESULT = "The result of this call is lost: the session log was damaged. Check its effects before repeating it."


class Projection:
    """The wire messages of one session in one dialect. Where damage took a call or its result from the log, the
    other half is left out or said to be lost: providers take calls and results in pairs alone."""

    def __init__(self, dialect: Dialect, load_image: LoadImage) -> None:
        self._dialect = dialect
        self._load_image = load_image
        self._wire = bytearray()
        self._hash = hashlib.sha256()
        self._pending: list[Part] = []
        self._open: list[str] = []
        self._results: list[ResultPart] = []
        self.count = 0

    def apply(self, event: Event) -> None:
        """Add one event."""
        match event:
            case MessageAdded(message=message):
                self._add(message)
            case CallFinished(call_id=call_id) if call_id in self._open:
                # Results stand together right behind their calls: whatever is pending waits.
                self._answer(call_id, event.content, event.ok)
                if event.images:
                    self._pending += [Text(f"Shown by {event.name}:", source="harness"), *event.images]
            case ContextAppended(text=text):
                self._pending.append(Text(text, source="harness"))
            case RequestSent():
                self._flush()
            case HeaderPinned() | ModelChanged():
                self._flush()

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
            self._put(Message("tool", results), len(results))

    def _flush(self) -> None:
        if self._pending:
            parts, self._pending = tuple(self._pending), []
            self._append(Message("user", parts))

    def _append(self, message: Message) -> None:
        for call_id in self._open.copy():
            self._answer(call_id, LOST_RESULT, False)
        self._put(message)

    def _put(self, message: Message, count: int = 1) -> None:
        data = self._said(message)
        if data:
            self._wire += data
            self._hash.update(data)
            self.count += count

    def _said(self, message: Message) -> bytes:
        data = self._dialect.message(message, self._load_image)
        return b"," + data if data and self._wire else data

    def request(self, header: HeaderPinned, options: RequestOptions, extra: str = "") -> tuple[bytes, str, int]:
        """The next request's body, its sha256 (of header and messages) and its number of messages. Pending words and
        `extra`, a last word of this request alone, are included; pending ones are set apart from later ones by the
        request_sent event alone, so that a request that was never sent leaves no trace."""
        words = [*self._pending, Text(extra, source="harness")] if extra else self._pending
        last = self._said(Message("user", tuple(words))) if words else b""
        messages = (self._wire, last) if last else (self._wire,)
        body = self._dialect.body(header.model, header.system, header.tools_json, messages, options)
        digest = self._hash.copy()
        digest.update(last)
        digest.update(header.sha256.encode())
        return body, digest.hexdigest(), self.count + bool(last)


def header_sha256(system: str, tools_json: str) -> str:
    """The name of a head: sha256 over its system text and tools value."""
    return hashlib.sha256(system.encode() + b"\0" + tools_json.encode()).hexdigest()


def pinned_dialect(header: HeaderPinned) -> Dialect:
    """The dialect as it was when the head was pinned, whatever the configuration says now."""
    return build_dialect(header.provider, ProviderSettings(dialect=header.dialect, facts=header.facts))


def request_body(events: Sequence[Event], number: int, load_image: LoadImage) -> bytes | None:
    """The exact body of model request `number` (from 1) of a log, or None when it was never sent."""
    header: HeaderPinned | None = None
    for end, event in enumerate(events):
        if isinstance(event, HeaderPinned):
            header = event
        if isinstance(event, RequestSent) and event.request == number and header is not None:
            projection = Projection(pinned_dialect(header), load_image)
            for earlier in events[:end]:
                projection.apply(earlier)
            return projection.request(header, RequestOptions(event.max_tokens, event.effort), event.extra)[0]
    return None
