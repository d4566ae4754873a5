"""Conformance of a dialect: bytes in, events out, the exact bytes of the next request; see the fixtures' README."""

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from codewhale.agent.collect import Collector, ModelAnswer
from codewhale.agent.pending_call import prepare
from codewhale.catalog.registry import Catalog
from codewhale.models.build import build_dialect
from codewhale.models.dialects.base import ProviderSettings, RequestOptions
from codewhale.models.dialects.failures import ProviderFailure
from codewhale.models.exchange import Exchange, StreamLimits
from codewhale.models.sse import SseError, SseReader
from codewhale.models.transport import WireCut
from codewhale.protocol.events import CallFinished, Event, HeaderPinned, MessageAdded, RequestSent
from codewhale.protocol.messages import Image, Message, Opaque, Part, Text, ToolCall
from codewhale.protocol.stream import (
    Boundary,
    CallDelta,
    Failed,
    Finished,
    OpaqueDelta,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    Usage,
    UsageReport,
)
from codewhale.protocol.tools import Effect, ToolSpec
from codewhale.repair.repairer import CallRepairer
from codewhale.session.projection import Projection, header_sha256, request_body

FOLDER = Path(__file__).parents[1] / "models" / "conformance"


class Case(NamedTuple):
    """One fixture."""

    name: str
    data: dict[str, Any]

    @property
    def settings(self) -> ProviderSettings:
        """The endpoint's settings: its dialect and facts."""
        return ProviderSettings(dialect=self.data["dialect"], facts=self.data.get("facts", {}))

    @property
    def dialect(self) -> Any:
        """The dialect, as it is spoken over HTTP."""
        return build_dialect(self.data.get("provider", "p"), self.settings)

    @property
    def options(self) -> RequestOptions:
        """The options of each request."""
        return RequestOptions(**self.data.get("options", {}))

    @property
    def specs(self) -> list[ToolSpec]:
        """The tools as catalog rows."""
        return [ToolSpec(family="sample", effects=(Effect.READS,), **tool) for tool in self.data.get("tools", [])]

    @property
    def streams(self) -> list[bytes]:
        """The bytes of each answer."""
        return [stream_bytes(turn, self.data.get("named", False)) for turn in self.data["turns"] if answered(turn)]


def cases(dialect: str = "") -> list[Case]:
    """The fixtures (of one dialect), by name; each names its sources and says that it is constructed."""
    found = [Case(path.stem, json.loads(path.read_text())) for path in sorted(FOLDER.glob("*.json"))]
    for case in found:
        assert case.data["constructed"] is True and case.data["sources"], case.name
        assert all(source.startswith("https://") for source in case.data["sources"]), case.name
    return [case for case in found if dialect in ("", case.data["dialect"])]


def answered(turn: dict[str, Any]) -> bool:
    """Whether a turn has an answer."""
    return "sse" in turn or "json" in turn


def stream_bytes(turn: dict[str, Any], named: bool) -> bytes:
    """The bytes of one answer as they come."""
    if "json" in turn:
        return json.dumps(turn["json"], ensure_ascii=False).encode()
    blocks = []
    for item in turn["sse"]:
        if not isinstance(item, str):
            data = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
            item = f"event: {item['type']}\ndata: {data}" if named else f"data: {data}"
        blocks.append(item + "\n\n")
    return "".join(blocks).encode("utf-8", "surrogateescape")


class Canned:
    """A transport whose one answer is these pieces; `cut` breaks the connection behind them instead of ending."""

    def __init__(self, pieces: list[bytes], cut: bool = False) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self.complete = False
        self._pieces = iter(pieces)
        self._cut = cut

    async def post(self, body: bytes) -> "Canned":
        """The answer's head."""
        return self

    async def read(self) -> bytes:
        """The next piece, b"" at the end."""
        piece = next(self._pieces, b"")
        if not piece and self._cut:
            raise WireCut("the connection broke off")
        self.complete = not piece
        return piece

    async def close(self) -> None:
        """Nothing is open."""


async def hear(case: Case, pieces: list[bytes], cut: bool = False, parser: Any = None) -> list[StreamEvent]:
    """The events that an answer gives, a failure as the last; or the rest of one that `parser` has begun to read."""
    transport: Any = Canned(pieces, cut)
    exchange = Exchange(transport, b"{}", parser or case.dialect.parser(), StreamLimits())
    events: list[StreamEvent] = []
    try:
        while not exchange.over:
            events += await exchange.read()
    except ProviderFailure as error:
        told = error.failure
        events.append(Failed(told.kind, told.message, told.retryable, exchange.started))
    finally:
        await exchange.close()
    return events


def told(events: list[StreamEvent]) -> list[dict[str, Any]]:
    """Events as a fixture writes them, adjacent deltas merged."""
    out: list[dict[str, Any]] = []
    for event in events:
        match event:
            case TextDelta(text=text) | ReasoningDelta(text=text):
                key = "text" if isinstance(event, TextDelta) else "reasoning"
                if out and key in out[-1]:
                    out[-1][key] += text
                elif text:
                    out.append({key: text})
            case CallDelta():
                call = out[-1].get("call") if out else None
                if call and call[0] == event.index:
                    call[1:] = [call[1] or event.id, call[2] + event.name, call[3] + event.arguments]
                else:
                    out.append({"call": [event.index, event.id, event.name, event.arguments]})
            case OpaqueDelta(part=part):
                out.append({"opaque": part.json})
            case Boundary():
                out.append({"boundary": True})
            case UsageReport(usage=usage):
                out.append({"usage": {k: v for k, v in msgspec.to_builtins(usage).items() if k != "type"}})
            case Finished(reason=reason):
                out.append({"finished": reason})
            case Failed(kind=kind):
                out.append({"failed": kind})
    return out


class Conversation:
    """A session's log around one fixture, from which requests are projected."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.calls: tuple[ToolCall, ...] = ()
        self.ran: list[str] = []
        self._catalog = Catalog(case.specs)
        dialect, data = case.dialect, case.data
        tools = dialect.tools_json(case.specs) if case.specs else "[]"
        system = data.get("system", "")
        self.header = HeaderPinned(
            data["dialect"],
            data.get("provider", "p"),
            data["model"],
            system,
            tools,
            header_sha256(system, tools),
            case.settings.facts,
        )
        self._projection = Projection(dialect, no_image)
        self.log: list[Event] = []
        self.add(self.header)

    def add(self, *events: Event) -> None:
        """Append to the log."""
        for event in events:
            self.log.append(event)
            self._projection.apply(event)

    def say(self, turn: dict[str, Any]) -> None:
        """The person's words or the results of the calls before."""
        for call, result in zip(self.calls, turn.get("results", []), strict=True):
            self.add(CallFinished(call.id, call.sent_name, result.get("ok", True), result["content"]))
            self.ran.append(call.id)
        if "user" in turn:
            words = turn["user"]
            parts = (Text(words),) if isinstance(words, str) else msgspec.convert(words, tuple[Part, ...])
            self.add(MessageAdded(Message("user", parts)))

    def request(self) -> bytes:
        """The body of the next request, which is sound and then sent; the same as its log alone gives."""
        options = self.case.options
        assert self._projection.fault(self.header) == ""
        body, sha, count = self._projection.request(self.header, options)
        number = sum(isinstance(event, RequestSent) for event in self.log) + 1
        self.add(RequestSent(number, len(body), sha, count, options.max_tokens, options.effort))
        assert request_body(self.log, number, no_image) == body
        return body

    def answer(self, events: list[StreamEvent]) -> ModelAnswer:
        """Keep an answer as a turn does: its calls under ids of their own, and none of an answer that failed."""
        collector = Collector(lambda event: None)
        for event in events:
            collector.add(event)
        answer = collector.answer()
        used = {call.id for event in self.log if isinstance(event, MessageAdded) for call in event.message.calls}
        calls: list[ToolCall] = []
        for raw in answer.calls if answer.failure is None else ():
            call_id = raw.id if raw.id and raw.id not in used else f"call_{len(used) + 1}"
            used.add(call_id)
            calls.append(
                prepare(
                    raw, call_id, self._catalog, answer.finish == "length", lambda: CallRepairer(self._catalog)
                ).call
            )
        self.calls = tuple(calls)
        parts = answer.parts(calls)
        if parts and (answer.failure is None or answer.text.strip()):
            self.add(MessageAdded(Message("assistant", parts), answer.finish))
        return answer


async def check(case: Case) -> None:
    """Each request has exactly the fixture's bytes, and each answer gives exactly its events, in one piece and byte by
    byte."""
    conversation = Conversation(case)
    wire: list[str] = []
    for number, turn in enumerate(case.data["turns"], 1):
        conversation.say(turn)
        wire += turn["wire"]
        expected = case.data["head"] + ",".join(wire) + case.data["tail"]
        assert conversation.request().decode() == expected, f"{case.name}: request {number}"
        if not answered(turn):
            continue
        data = stream_bytes(turn, case.data.get("named", False))
        events = await hear(case, [data])
        assert told(events) == turn["events"], f"{case.name}: answer {number}"
        apart = await hear(case, [bytes([byte]) for byte in data])
        assert told(apart) == turn["events"], f"{case.name}: answer {number} byte by byte"
        conversation.answer(events)


async def check_cuts(case: Case) -> int:
    """Each answer cut behind every byte, by an end and by a break: what came is the beginning of the whole answer, a
    call counts only in an answer that ended, and the request after it is sound. Returns the number of cuts."""
    cuts = 0
    for upto, turn in enumerate(case.data["turns"]):
        if not answered(turn):
            continue
        data = stream_bytes(turn, case.data.get("named", False))
        seen: set[str] = set()
        for at, before, parser, piece in _cuts(case, data, "json" in turn):
            events = before + await hear(case, [piece] if piece else [], bool(at % 2), parser)
            cuts += 1
            key = repr(told(events))
            if key not in seen:
                seen.add(key)
                _check_cut(case, upto, events, turn["events"])
    return cuts


def _cuts(case: Case, data: bytes, whole: bool) -> Iterator[tuple[int, list[StreamEvent], Any, bytes]]:
    """For each cut: its place, the events of the blocks before it, a parser that has read those, and what came of the
    block it is in."""
    reader, before, start = SseReader(), list[StreamEvent](), 0
    parser = pickle.dumps(case.dialect.parser())
    for at in range(len(data)):
        yield at, before, pickle.loads(parser), data[start:at]
        if not whole and data[: at + 1].endswith(b"\n\n"):
            after, events = pickle.loads(parser), list(before)
            try:
                for name, text in reader.feed(data[start : at + 1]):
                    after.feed(name, text, events)
            except (ProviderFailure, SseError):
                whole = True  # What follows is not read: each later cut is of this block.
                continue
            parser, before, start = pickle.dumps(after), events, at + 1


def _check_cut(case: Case, upto: int, events: list[StreamEvent], whole: list[dict[str, Any]]) -> None:
    """The conversation up to an answer, that answer cut, and one more message of the person."""
    assert isinstance(events[-1], (Failed, Finished))
    assert begins(told(events), whole), (told(events), whole)
    conversation = Conversation(case)
    for number, turn in enumerate(case.data["turns"][: upto + 1]):
        conversation.say(turn)
        conversation.request()
        if number < upto:
            conversation.answer(list(_events_of(turn["events"], case.data["dialect"])))
    answer = conversation.answer(events)
    if answer.failure is not None:
        assert conversation.calls == ()
    conversation.say(
        {"results": [{"content": "done"} for _ in conversation.calls]} if conversation.calls else {"user": "Go on."}
    )
    json.loads(conversation.request())
    assert len(set(conversation.ran)) == len(conversation.ran)


def begins(part: list[dict[str, Any]], whole: list[dict[str, Any]]) -> bool:
    """Whether what came of a cut answer is a beginning of the whole: usage and the end aside, which may be missing."""
    shown = [item for item in part if not {"usage", "finished", "failed"} & item.keys()]
    full = [item for item in whole if not {"usage", "finished", "failed"} & item.keys()]
    for have, want in zip(shown, full, strict=False):
        if have == want:
            continue
        if have is not shown[-1] or have.keys() != want.keys():
            return False
        key = next(iter(have))
        if key == "call":
            if have["call"][0] != want["call"][0] or not want["call"][3].startswith(have["call"][3]):
                return False
        elif not str(want[key]).startswith(str(have[key])):
            return False
    return len(shown) <= len(full)


def _events_of(items: list[dict[str, Any]], dialect: str) -> Iterator[StreamEvent]:
    """Events as they stand in a fixture."""
    for item in items:
        match item:
            case {"text": text}:
                yield TextDelta(text)
            case {"reasoning": text}:
                yield ReasoningDelta(text)
            case {"call": call}:
                yield CallDelta(*call)
            case {"opaque": text}:
                yield OpaqueDelta(Opaque(dialect, text))
            case {"boundary": _}:
                yield Boundary()
            case {"usage": usage}:
                yield UsageReport(Usage(**usage))
            case {"finished": reason}:
                yield Finished(reason)


def no_image(image: Image) -> bytes:
    """Images of fixtures are always these three bytes."""
    return b"\x89PN"
