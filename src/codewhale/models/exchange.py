"""One request and its answer: bytes sent once, stream events out, every fault turned into a typed failure."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct

from codewhale.models.dialects.failures import Failure, ProviderFailure, failure, from_status, page_line, retry_after
from codewhale.models.sse import SseError, SseReader
from codewhale.models.transport import HttpAnswer, Transport, Unreachable, WireCut, WireError
from codewhale.protocol.stream import CallDelta, OpaqueDelta, ReasoningDelta, StreamEvent, TextDelta

if TYPE_CHECKING:
    import zlib

T = TypeVar("T")

_REFUSAL_BYTES = 64 * 1024
_REFUSAL_SECONDS = 5.0
_WIRE_FACTOR = 64  # An event's wrapping is that much larger than the word it brings, and then some.
_LINGER = 2.0  # Seconds given to what follows the end of an answer.
# A server that shows that it is alive, and brings nothing, is waited for this many times as long, up to these seconds.
_ALIVE_FACTOR, _ALIVE_SECONDS = 5, 600.0


class AnswerParser(Protocol):
    """A dialect's reader of one answer. `ended`: the provider said why it ended, or that nothing follows; `done`:
    nothing does follow; `size`: characters of content so far."""

    ended: bool
    done: bool
    size: int

    def feed(self, name: str, data: str, out: list[StreamEvent]) -> None:
        """Read one server-sent event. Raises ProviderFailure."""
        ...

    def whole(self, data: bytes, out: list[StreamEvent]) -> None:
        """Read an answer that is one JSON object. Raises ProviderFailure."""
        ...

    def report(self, out: list[StreamEvent]) -> None:
        """Append the usage where known."""
        ...

    def finish(self, out: list[StreamEvent]) -> None:
        """Append usage and Finished."""
        ...


class StreamLimits(Struct, frozen=True):
    """Seconds and bytes that bound one request: `first` until the first word of its answer, `gap` between two pieces
    of it, `wall` for all of it; `content` bounds text, reasoning and arguments together."""

    first: float = 120.0
    gap: float = 60.0
    wall: float = 1800.0
    content: int = 10_000_000


class Exchange:
    """One request and its answer. Call `read` until `over`, then `close` in any case."""

    def __init__(self, transport: Transport, body: bytes, parser: AnswerParser, limits: StreamLimits) -> None:
        """Its time runs from now on. `answered` is set once an answer has begun, `started` once some of it has been
        passed on."""
        self.over = False
        self.answered = False
        self.started = False
        self._transport = transport
        self._body = body
        self._parser = parser
        self._limits = limits
        self._now = asyncio.get_running_loop().time
        self._deadline = self._now() + limits.wall
        self._waited = 0.0
        self._spoke = False
        self._answer: HttpAnswer | None = None
        self._inflate: zlib._Decompress | None = None
        self._sse = SseReader(limits.content)
        self._shape = ""
        self._held = bytearray()
        self._received = 0
        self._pending: ProviderFailure | None = None

    async def read(self) -> list[StreamEvent]:
        """The next events, as many as came together; the last of all is Finished. Raises ProviderFailure, after every
        event before the fault has been returned."""
        if self._pending is not None:
            raise self._pending
        out: list[StreamEvent] = []
        try:
            await self._step(out)
        except ProviderFailure as error:
            if not out and not self.started:
                raise
            self._parser.report(out)
            self._pending = error
        self.started = self.started or bool(out)
        return list(_joined(out))

    async def close(self) -> None:
        """Give the connection back if its answer is complete, else drop it."""
        answer, self._answer = self._answer, None
        if answer is not None:
            await answer.close()

    async def _step(self, out: list[StreamEvent]) -> None:
        try:
            answer = self._answer or await self._open()
            data = await self._receive(answer)
            self._take(data, out)
            if any(map(_brings, out)) or (self._shape == "json" and data.strip()):
                self._waited, self._spoke = 0.0, True
            if not data or self._parser.done:
                await self._end(answer, out)
        except WireCut as cut:
            if not self._parser.ended:
                raise failure("interrupted", str(cut))
            self._end_now(out)
        except WireError as error:
            raise failure("protocol", str(error))
        except SseError as error:
            if not self._parser.ended:
                raise failure("malformed" if error.damaged else "protocol", str(error))
            self._end_now(out)
        except ProviderFailure as error:
            # The model was done: what is damaged behind the end of an answer takes nothing from it.
            if error.failure.kind != "malformed" or not self._parser.ended:
                raise
            self._end_now(out)

    async def _open(self) -> HttpAnswer:
        """Send the request and read the head of its answer. Raises ProviderFailure for anything but a 200."""
        first = self._limits.first
        answer = self._answer = await self._bounded(self._send(), first, first, "did not start to answer")
        if answer.status != 200:
            raise ProviderFailure(await self._refusal(answer))
        self.answered = True
        coding = answer.headers.get("content-encoding", "identity").lower()
        if coding in ("gzip", "x-gzip", "deflate"):
            import zlib

            self._inflate = zlib.decompressobj(47)
        elif coding != "identity":
            raise failure("protocol", f"the server used a content encoding that was not asked for: {coding}")
        return answer

    async def _send(self) -> HttpAnswer:
        try:
            return await self._transport.post(self._body)
        except Unreachable as error:
            raise ProviderFailure(Failure("connect", str(error), not error.lasting))
        except WireCut as error:
            raise failure("connect", str(error))

    async def _refusal(self, answer: HttpAnswer) -> Failure:
        """The failure that an answer other than 200 means; its body is read as far as that is quick."""
        body = bytearray()
        with contextlib.suppress(ProviderFailure, WireCut):  # What has come says enough.
            await self._bounded(_read_refusal(answer, body), _REFUSAL_SECONDS, _REFUSAL_SECONDS, "")
        if answer.headers.get("content-encoding", "identity").lower() != "identity":
            body.clear()
        return from_status(answer.status, answer.headers, bytes(body), retry_after(answer.headers, time.time()))

    async def _receive(self, answer: HttpAnswer) -> bytes:
        """The next bytes of the answer, b"" at its end. Once the model is done, only a short while is given to what
        may follow (usage, [DONE])."""
        fault = "sent nothing more" if self._spoke else "sent no first token"
        try:
            data = await self._bounded(answer.read(), *self._patience(), fault)
        except ProviderFailure:
            if not self._parser.ended:
                raise
            raise WireCut("the server did not end its answer")
        self._count(len(data))
        return data

    def _patience(self) -> tuple[float, float]:
        """Seconds to wait for the next bytes, and the whole time of which they are left: so long for bytes, and some
        times that for a part of the answer, so that signs of life alone do not hold a turn for ever."""
        if self._parser.ended:
            return (min(self._limits.gap, _LINGER),) * 2
        silent = self._limits.gap if self._spoke else self._limits.first
        alive = max(silent, min(_ALIVE_FACTOR * silent, _ALIVE_SECONDS))
        left = max(0.0, alive - self._waited)
        return (silent, silent) if silent <= left else (left, alive)

    def _count(self, size: int) -> None:
        self._received += size
        limit = self._limits.content * _WIRE_FACTOR
        if self._received > limit:
            raise failure("protocol", f"the answer is larger than {limit} bytes")

    def _take(self, data: bytes, out: list[StreamEvent]) -> None:
        if self._inflate is None:
            self._content(data, out)
            return
        import zlib

        while data:
            try:
                plain = self._inflate.decompress(data, 256 * 1024)
            except zlib.error:
                raise failure("malformed", "the server's compressed answer is damaged")
            data = self._inflate.unconsumed_tail
            self._count(len(plain))
            self._content(plain, out)

    def _content(self, data: bytes, out: list[StreamEvent]) -> None:
        if not self._shape:
            self._shape, data = _shape(bytes(self._held) + data)
            self._held = bytearray(data if self._shape in ("", "json") else b"")
        elif self._shape == "json":
            self._held += data
        if self._shape == "json":
            if len(self._held) > 2 * self._limits.content:
                raise failure("protocol", f"the answer is larger than {2 * self._limits.content} bytes")
        elif self._shape == "page":
            raise failure("protocol", f"the server answered with {page_line(data)}; check base_url")
        elif self._shape:
            feed = self._parser.feed
            for name, text in self._sse.feed(data):
                feed(name, text, out)
            self._check_size()

    def _check_size(self) -> None:
        if self._parser.size > self._limits.content:
            raise failure("protocol", f"the answer has more than {self._limits.content} characters")

    async def _end(self, answer: HttpAnswer, out: list[StreamEvent]) -> None:
        """The answer is complete or its parser wants no more: read what is left, so that the connection can be kept."""
        if not answer.complete:
            with contextlib.suppress(ProviderFailure, WireCut):
                await self._bounded(_drain(answer), _LINGER, _LINGER, "")
        self._end_now(out)

    def _end_now(self, out: list[StreamEvent]) -> None:
        if self._shape == "json":
            self._parser.whole(bytes(self._held), out)
            self._check_size()
        elif not self._parser.done:
            self._last_event(out)
        if not self._parser.ended:
            raise failure("interrupted", "the answer ended before the model did")
        self._parser.finish(out)
        self.over = True

    def _last_event(self, out: list[StreamEvent]) -> None:
        """An event that no blank line followed; one that is cut short says nothing."""
        try:
            for name, text in self._sse.close():
                self._parser.feed(name, text, out)
        except SseError:
            return
        except ProviderFailure as error:
            if error.failure.kind != "malformed":
                raise

    async def _bounded(self, awaitable: Awaitable[T], seconds: float, whole: float, fault: str) -> T:
        """What `awaitable` gives within `seconds`, the rest of `whole`. Raises ProviderFailure."""
        begun = self._now()
        left = self._deadline - begun
        try:
            async with asyncio.timeout(min(seconds, max(left, 0.0))):
                return await awaitable
        except TimeoutError:
            if left <= seconds:
                raise ProviderFailure(Failure("timeout", "the request took longer than its time limit", False))
            raise failure("timeout", f"the server {fault} within {whole:g} seconds")
        finally:
            self._waited += self._now() - begun


def _brings(event: StreamEvent) -> bool:
    """Whether an event is a part of the answer, and not a mere sign of life."""
    if isinstance(event, CallDelta):
        return bool(event.id or event.name or event.arguments)
    return isinstance(event, (TextDelta, ReasoningDelta, OpaqueDelta))


def _kind(event: StreamEvent) -> tuple[type, int]:
    return type(event), event.index if isinstance(event, CallDelta) else 0


def _joined(events: list[StreamEvent]) -> Iterator[StreamEvent]:
    """Events that came together, neighbouring deltas of one part as one."""
    for _, group in groupby(events, _kind):
        first, *more = group
        if more and isinstance(first, (TextDelta, ReasoningDelta)):
            yield type(first)("".join(event.text for event in (first, *more) if isinstance(event, type(first))))
        elif more and isinstance(first, CallDelta):
            yield _whole_call([first, *(event for event in more if isinstance(event, CallDelta))])
        else:
            yield from (first, *more)


def _whole_call(deltas: list[CallDelta]) -> CallDelta:
    call_id = next((delta.id for delta in deltas if delta.id), "")
    name, arguments = "".join(delta.name for delta in deltas), "".join(delta.arguments for delta in deltas)
    return CallDelta(deltas[0].index, call_id, name, arguments)


def _shape(data: bytes) -> tuple[str, bytes]:
    """What an answer is, by its first character whatever its content type says ("json", "page", "events", or ""
    while that cannot be told), and its bytes from there on."""
    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start or start in (b"\xef", b"\xef\xbb"):
        return "", start
    return ("json" if start[:1] == b"{" else "page" if start[:1] == b"<" else "events"), start


async def _read_refusal(answer: HttpAnswer, body: bytearray) -> None:
    while len(body) < _REFUSAL_BYTES and (data := await answer.read()):
        body += data


async def _drain(answer: HttpAnswer) -> None:
    while await answer.read():
        pass
