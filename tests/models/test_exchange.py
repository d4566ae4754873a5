"""One answer over a real socket, cut at every byte, sent in every chunking, and in every shape it may not have."""

import asyncio
import gzip
import itertools
import json
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.dialects.failures import Failure, ProviderFailure
from codewhale.models.dialects.openai_stream import ChatParser
from codewhale.models.endpoint import Endpoint
from codewhale.models.exchange import Exchange, StreamLimits
from codewhale.models.transport import Transport
from codewhale.protocol.stream import CallDelta, Finished, ReasoningDelta, StreamEvent, TextDelta, Usage, UsageReport
from support.conformance import begins, told
from support.wire import Reply, Wire, answer, delta, sse, stream

QUICK = StreamLimits(first=2.0, gap=2.0, wall=8.0, content=1_000_000)
BODY = sse(
    delta(role="assistant", content=""),
    delta(reasoning_content="hm 🐋"),
    delta(content="Hé"),
    delta(tool_calls=[{"index": 0, "id": "x", "function": {"name": "f", "arguments": ""}}]),
    delta(tool_calls=[{"index": 0, "function": {"arguments": '{"p":1}'}}]),
    delta("tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
    "[DONE]",
)
WHOLE = stream(BODY, 100)
USAGE = UsageReport(Usage(input=5, output=2))
EVENTS: list[StreamEvent] = [
    ReasoningDelta("hm 🐋"),
    TextDelta("Hé"),
    CallDelta(0, "x", "f", '{"p":1}'),
    USAGE,
    Finished("tool_calls"),
]


def whole(events: list[StreamEvent]) -> list[StreamEvent]:
    """Events with the fragments of a call as one, however they were read."""
    out: list[StreamEvent] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, CallDelta) and isinstance(last, CallDelta) and last.index == event.index:
            out[-1] = CallDelta(event.index, last.id, last.name, last.arguments + event.arguments)
        else:
            out.append(event)
    return out


async def play(wire: Wire, limits: StreamLimits = QUICK) -> tuple[list[StreamEvent], Failure | None, bool]:
    """(events, the failure or None, whether the connection was kept)."""
    transport = Transport(Endpoint("p", ProviderSettings(base_url=wire.url), {}))
    exchange = Exchange(transport, b"{}", ChatParser(), limits)
    events: list[StreamEvent] = []
    failed = None
    try:
        while not exchange.over:
            events += await exchange.read()
    except ProviderFailure as error:
        failed = error.failure
    finally:
        await exchange.close()
    wire.replies = [Reply([answer(200)])]
    await (await transport.post(b"{}")).close()
    await transport.close()
    return whole(events), failed, wire.connections == 1


async def once(
    *pieces: bytes, then: str = "keep", limits: StreamLimits = QUICK
) -> tuple[list[StreamEvent], Failure | None, bool]:
    async with Wire([Reply(pieces, then)]) as wire:
        return await play(wire, limits)


async def test_a_whole_answer_leaves_the_connection_usable() -> None:
    assert await once(WHOLE) == (EVENTS, None, True)


async def test_an_answer_cut_at_every_byte() -> None:
    finish_at = WHOLE.index(b'"finish_reason": "tool_calls"')
    for cut in range(0, len(WHOLE)):
        events, failed, kept = await once(WHOLE[:cut], then="close")
        if failed is None:
            assert cut > finish_at
            assert [event for event in events if event != USAGE] == [event for event in EVENTS if event != USAGE]
        else:
            assert begins(told(events), told(EVENTS)), cut
            assert Finished("tool_calls") not in events
            assert failed.kind in ("connect", "server", "interrupted"), cut
            assert failed.retryable
        assert not kept


async def test_an_answer_without_a_length_cut_at_every_byte() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    done_at = BODY.index(b"[DONE]")
    for cut in range(0, len(BODY), 3):
        events, failed, _ = await once(head + BODY[:cut], then="close")
        assert (failed is None) == (Finished("tool_calls") in events)
        if cut > done_at + 6:
            assert events == EVENTS


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(1, len(WHOLE) - 1), max_size=20, unique=True))
def test_chunking_never_matters(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(WHOLE)]
    pieces = [WHOLE[start:stop] for start, stop in itertools.pairwise(edges)]
    assert asyncio.run(once(*pieces)) == (EVENTS, None, True)


HEADS = st.sampled_from(
    [b"", b"HTTP/1.1 200 OK\r\n\r\n", WHOLE[: WHOLE.index(b"64\r\n")], WHOLE[:300], answer(200)[:-1]]
)


@settings(max_examples=60, deadline=None)
@given(head=HEADS, noise=st.one_of(st.binary(max_size=60), st.text('\r\n{}<>[]:"0 data', max_size=60).map(str.encode)))
def test_noise_is_a_failure_or_an_answer_and_never_more(head: bytes, noise: bytes) -> None:
    events, failed, _ = asyncio.run(once(head + noise, then="close"))
    assert (failed is None) == any(isinstance(event, Finished) for event in events)


async def test_a_burst_of_ten_thousand_events_arrives_whole_and_in_order() -> None:
    words = [delta(content="word ") for _ in range(5000)]
    calls = [delta(tool_calls=[{"index": 0, "function": {"arguments": "x"}}]) for _ in range(5000)]
    body = sse(*words, delta(tool_calls=[{"index": 0, "id": "x", "function": {"name": "f"}}]), *calls, delta("stop"))
    async with Wire([Reply([stream(body, 80)])]) as wire:
        transport = Transport(Endpoint("p", ProviderSettings(base_url=wire.url), {}))
        exchange = Exchange(transport, b"{}", ChatParser(), QUICK)
        pieces = []
        while not exchange.over:
            pieces.append(await exchange.read())
        await exchange.close()
        await transport.close()
    events = [event for piece in pieces for event in piece]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "word " * 5000
    arguments = [event.arguments for event in events if isinstance(event, CallDelta)]
    assert "".join(arguments) == "x" * 5000 and events[-1] == Finished("stop")


async def test_byte_by_byte() -> None:
    assert await once(*(WHOLE[at : at + 1] for at in range(len(WHOLE)))) == (EVENTS, None, True)


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", "text/plain"])
async def test_a_whole_object_is_an_answer_too(content_type: str) -> None:
    message = {"content": "a", "tool_calls": [{"id": "x", "function": {"name": "f", "arguments": "{}"}}]}
    body = b"\n\n " + json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode()
    events, failed, kept = await once(answer(200, body, content_type=content_type))
    assert events == [TextDelta("a"), CallDelta(0, "x", "f", "{}"), Finished("tool_calls")]
    assert (failed, kept) == (None, True)


@pytest.mark.parametrize("content_type", ["application/json", ""])
async def test_events_are_events_whatever_they_are_called(content_type: str) -> None:
    assert (await once(answer(200, b"\xef\xbb\xbf" + BODY, content_type=content_type)))[0] == EVENTS


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_compressed_answers(coding: str) -> None:
    body = gzip.compress(BODY) if coding == "gzip" else zlib.compress(BODY)
    assert await once(answer(200, body, f"content-encoding: {coding}")) == (EVENTS, None, True)


async def kind_of(*pieces: bytes, then: str = "keep", limits: StreamLimits = QUICK) -> tuple[str, str]:
    _, failed, _ = await once(*pieces, then=then, limits=limits)
    assert failed is not None
    return failed.kind, failed.message


async def test_answers_that_are_not_answers() -> None:
    page = b"<html><title>Sign in</title>"
    assert await kind_of(answer(200, page)) == (
        "protocol",
        "the server answered with Sign in (an HTML page, not an API answer); check base_url",
    )
    assert (await kind_of(answer(200, b'{"choices": ')))[0] == "malformed"
    assert (await kind_of(answer(200, b'{"error": {"message": "x", "code": 429}}')))[0] == "rate_limit"
    assert (await kind_of(answer(200, b"", "content-encoding: br")))[0] == "protocol"
    assert (await kind_of(answer(200, b"no gzip", "content-encoding: gzip")))[0] == "malformed"
    assert (await kind_of(b"220 smtp.example.com\r\n\r\n"))[0] == "protocol"
    assert (await kind_of(answer(200, b"")))[0] == "interrupted"


async def test_invalid_utf8_fails_closed_and_keeps_what_came() -> None:
    body = sse(delta(content="a")) + b'data: {"x":"\xff"}\n\n' + sse(delta("stop"))
    events, failed, _ = await once(stream(body))
    assert events == [TextDelta("a")]
    assert failed == Failure("malformed", "the event stream contains bytes that are not UTF-8", True)


async def test_a_line_cut_inside_a_character_after_the_end_does_no_harm() -> None:
    body = sse(delta(content="a"), delta("stop")) + 'data: {"x":"é'.encode()[:-1]
    for then in ("keep", "close"):
        reply = stream(body) if then == "keep" else stream(body)[:-5]
        assert (await once(reply, then=then))[:2] == ([TextDelta("a"), Finished("stop")], None)


async def test_too_much_content_is_refused() -> None:
    limits = StreamLimits(first=2.0, gap=2.0, wall=8.0, content=1000)
    many = sse(*(delta(content="x" * 100) for _ in range(11)), delta("stop"))
    assert (await kind_of(stream(many, 200), limits=limits))[0] == "protocol"
    assert (await kind_of(stream(sse(delta(content="x" * 2000))), limits=limits))[0] == "protocol"
    assert (await kind_of(answer(200, b'{"choices":' + b" " * 3000), limits=limits))[0] == "protocol"
    bomb = gzip.compress(b": " + b"\n" * 3_000_000)
    assert (await kind_of(answer(200, bomb, "content-encoding: gzip"), limits=limits))[0] == "protocol"


async def test_a_silent_server_runs_into_the_idle_limit() -> None:
    limits = StreamLimits(first=2.0, gap=0.05, wall=8.0)
    partial = WHOLE[: WHOLE.index(b'{"index": 0, "id": "x"')]
    events, failed, kept = await once(partial, then="hang", limits=limits)
    assert events == EVENTS[:2]
    assert failed is not None
    assert (failed.kind, failed.message, kept) == ("timeout", "the server sent nothing more within 0.05 seconds", False)


async def test_a_server_that_does_not_begin_runs_into_the_open_limit() -> None:
    limits = StreamLimits(first=0.05, gap=2.0, wall=8.0)
    assert await kind_of(then="hang", limits=limits) == (
        "timeout",
        "the server did not start to answer within 0.05 seconds",
    )


async def test_a_drip_runs_into_the_wall() -> None:
    limits = StreamLimits(first=2.0, gap=2.0, wall=0.1)
    events, failed, _ = await once(stream(sse(delta(content="a")))[:-5], then="hang", limits=limits)
    assert events == [TextDelta("a")]
    assert failed == Failure("timeout", "the request took longer than its time limit", False)


async def test_a_server_that_forgets_to_end_does_not_hold_the_answer() -> None:
    limits = StreamLimits(first=2.0, gap=0.05, wall=8.0)
    unfinished = stream(sse(delta(content="a"), delta("stop")))[:-5]
    assert await once(unfinished, then="hang", limits=limits) == ([TextDelta("a"), Finished("stop")], None, False)


async def test_an_endless_refusal_is_read_only_so_far() -> None:
    head = b"HTTP/1.1 500 X\r\ncontent-type: text/plain\r\n\r\n"
    kind, message = await kind_of(head, *([b"busy " * 2000] * 20), then="hang")
    assert kind == "server"
    assert len(message) < 500
