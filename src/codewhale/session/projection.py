"""What is sent to the model, as a pure fold of the log.

Wire bytes of past messages are appended once and never rewritten, so request n is a prefix of request n+1
except at a named edge: a changed model, pruned results, a compaction and its undoing.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from codewhale.models.build import build_dialect
from codewhale.models.dialects.base import Dialect, LoadImage, ProviderSettings, RequestOptions
from codewhale.models.dialects.sizes import message_sizes
from codewhale.models.dialects.validate import Validator
from codewhale.protocol.events import ONE_SHOT, Event, HeaderPinned, RequestSent
from codewhale.protocol.messages import Image, Message, Part, ResultPart, Text
from codewhale.session.conversation import LOST_RESULT, ConversationFold, result_parts
from codewhale.session.footprint import Footprint, head_sizes, word_sizes
from codewhale.session.forgetting import forget, holder
from codewhale.session.standing import standing

__all__ = ["LOST_RESULT", "Projection", "header_sha256", "pinned_dialect", "request_body"]


class _Piece(Struct):
    """Where the bytes of one message are: they end at `end`; `call_ids` are those it answers, `count` the number of
    messages it is said to be."""

    end: int
    call_ids: tuple[str, ...]
    count: int


class _Said(Struct, frozen=True):
    wire: bytes
    pieces: tuple[_Piece, ...]
    picture_bytes: int
    words: Counter[str]


class Projection(ConversationFold):
    """The wire messages of one session in one dialect; `count` is how many they are, `sent_pictures` how many bytes
    of the last request were pictures."""

    def __init__(self, dialect: Dialect, load_image: LoadImage) -> None:
        super().__init__()
        self._dialect = dialect
        self.load_image = load_image
        self._wire = bytearray()
        self._hash = hashlib.sha256()
        self._pieces: list[_Piece] = []
        self._places: dict[str, int] = {}
        self._picture_bytes = 0
        self._words: Counter[str] = Counter()  # of user messages, by whose they are
        self._sizes, self._sized = Counter[str](), 0  # of the rest, as far as it was looked at
        self._validator: Validator | None = None
        self.sent_pictures = 0
        self.count = 0

    def apply(self, event: Event) -> None:
        """Add one event."""
        if isinstance(event, RequestSent):
            self.sent_pictures = self.picture_bytes
        super().apply(event)

    def _put(self, message: Message) -> None:
        data = self._said(message)
        if data:
            results = result_parts(message)
            self._wire += data
            self._hash.update(data)
            self._pieces.append(_Piece(len(self._wire), tuple(part.call_id for part in results), len(results) or 1))
            self._places.update((part.call_id, len(self._pieces) - 1) for part in results)
            self.count += self._pieces[-1].count
            self._picture_bytes += _picture_bytes(message, len(data))
            if message.role == "user":
                self._words.update(word_sizes(message.parts))

    def _said(self, message: Message) -> bytes:
        data = self._dialect.message(message, self.load_image)
        return b"," + data if data and self._wire else data

    def _shorten(self, results: tuple[ResultPart, ...]) -> None:
        shorter = {result.call_id: result for result in results}
        for place in sorted({self._places[call_id] for call_id in shorter if call_id in self._places}):
            piece = self._pieces[place]
            if all(call_id in shorter for call_id in piece.call_ids):
                self._say_anew(place, Message("tool", tuple(shorter[call_id] for call_id in piece.call_ids)))
        self._hash = hashlib.sha256(self._wire)
        self._forget()

    def _forget(self) -> None:
        """What was read of the messages no longer holds."""
        self._validator = None
        self._sizes, self._sized = Counter(), 0

    def _say_anew(self, place: int, message: Message) -> None:
        start, end = self._pieces[place - 1].end if place else 0, self._pieces[place].end
        data = self._dialect.message(message, self.load_image)
        data = b"," + data if place else data
        self._wire[start:end] = data
        for piece in self._pieces[place:]:
            piece.end += len(data) - (end - start)

    def _saved(self) -> object:
        pieces = tuple(_Piece(piece.end, piece.call_ids, piece.count) for piece in self._pieces)
        return _Said(bytes(self._wire), pieces, self._picture_bytes, self._words.copy())

    def _restore(self, said: object) -> None:
        before = said if isinstance(said, _Said) else _Said(b"", (), 0, Counter())
        self._wire = bytearray(before.wire)
        self._hash = hashlib.sha256(before.wire)
        self._forget()
        self._words = before.words.copy()
        self._pieces = list(before.pieces)
        self._places = {call_id: place for place, piece in enumerate(before.pieces) for call_id in piece.call_ids}
        self._picture_bytes = before.picture_bytes
        self.count = sum(piece.count for piece in before.pieces)

    def holds(self, texts: Iterable[str]) -> bool:
        """Whether the next request's messages hold one of these texts."""
        pending = self._said(Message("user", tuple(self._pending))) if self._pending else b""
        return holder(texts)((bytes(self._wire) + pending).decode("utf-8", "replace"))

    @property
    def size(self) -> int:
        """Bytes of the next request's messages, the system text left out."""
        pending = self._said(Message("user", tuple(self._pending))) if self._pending else b""
        return len(self._wire) + len(pending)

    @property
    def picture_bytes(self) -> int:
        """How much of the next request is pictures."""
        if not any(isinstance(part, Image) for part in self._pending):
            return self._picture_bytes
        pending = Message("user", tuple(self._pending))
        return self._picture_bytes + _picture_bytes(pending, len(self._said(pending)))

    def index(self, call_ids: Sequence[str]) -> int:
        """The index of the first message that answers one of these calls; 0 is the system message."""
        first = min((self._places[call_id] for call_id in call_ids if call_id in self._places), default=0)
        return 1 + sum(piece.count for piece in self._pieces[:first])

    def request(self, header: HeaderPinned, options: RequestOptions, extra: str = "") -> tuple[bytes, str, int]:
        """The next request's body, its sha256 (of header and messages) and its number of messages. Pending words and
        `extra`, a last word of this request alone, are included; pending ones are set apart from later ones by the
        request_sent event alone, so that a request that was never sent leaves no trace."""
        last = self._last(extra)
        messages = (self._wire, last) if last else (self._wire,)
        body = self._dialect.body(header.model, header.system, header.tools_json, messages, options)
        digest = self._hash.copy()
        digest.update(last)
        digest.update(header.sha256.encode())
        return body, digest.hexdigest(), self.count + bool(last)

    def footprint(self, header: HeaderPinned, options: RequestOptions, more: Sequence[Part] = ()) -> Footprint:
        """What the next request consists of, with `more` behind the pending words. Each message is looked at once."""
        parts = (*self._pending, *more)
        last = self._said(Message("user", parts)) if parts else b""
        self._sizes.update(message_sizes(memoryview(self._wire)[self._sized :]))
        self._sized = len(self._wire)
        tail = self._words + self._sizes + word_sizes(parts) + message_sizes(last)
        size = self._sized + len(last)
        around = self._dialect.body(header.model, header.system, header.tools_json, (b"0",) if size else (), options)
        return Footprint(len(around) - bool(size) + size, head_sizes(header.system, header.tools_json), tail)

    def fault(self, header: HeaderPinned, extra: str = "") -> str:
        """What no provider would take in the next request, "" when it is sound. Each message is read once."""
        if self._validator is None:
            self._validator = Validator(header.dialect, header.facts, int(bool(self._dialect.system(header.system))))
        return self._validator.fault(self._wire, self._last(extra))

    def _last(self, extra: str) -> bytes:
        words = [*self._pending, Text(extra, source="harness")] if extra else self._pending
        return self._said(Message("user", tuple(words))) if words else b""


def _picture_bytes(message: Message, said: int) -> int:
    """How many bytes of a message are pictures; none where the dialect leaves them out."""
    encoded = sum(-(-part.bytes // 3) * 4 for part in message.parts if isinstance(part, Image))
    return encoded if said >= encoded else 0


def header_sha256(system: str, tools_json: str) -> str:
    """The name of a head: sha256 over its system text and tools value."""
    return hashlib.sha256(system.encode() + b"\0" + tools_json.encode()).hexdigest()


def pinned_dialect(header: HeaderPinned) -> Dialect:
    """The dialect as it was when the head was pinned, whatever the configuration says now."""
    return build_dialect(header.provider, ProviderSettings(dialect=header.dialect, facts=header.facts))


def request_body(events: Sequence[Event], number: int, load_image: LoadImage) -> bytes | None:
    """The exact body of model request `number` (from 1) of a log, or None when it was never sent; of a question, what
    it is made of."""
    header: HeaderPinned | None = None
    for end, event in enumerate(events):
        if isinstance(event, HeaderPinned):
            header = event
        if isinstance(event, RequestSent) and event.request == number and event.purpose in ONE_SHOT:
            return event.extra.encode()
        if isinstance(event, RequestSent) and event.request == number and header is not None:
            projection = Projection(pinned_dialect(header), load_image)
            for earlier in forget(standing(events[:end])):
                projection.apply(earlier)
            return projection.request(header, RequestOptions(event.max_tokens, event.effort), event.extra)[0]
    return None
