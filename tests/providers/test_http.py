"""The HTTP provider against a real socket: what is sent, when it is sent again, and how it ends."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import pytest

from codewhale.dialects.base import ProviderSettings
from codewhale.dialects.failures import Failure
from codewhale.dialects.openai_chat import OpenAIChat
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.stream import Failed, Finished, Retrying, StreamEvent, TextDelta
from codewhale.providers.exchange import Limits
from codewhale.providers.http import HttpProvider, Retries, limits_from
from support.wire import CERTIFICATE, Reply, Wire, answer, delta, sse, stream

GOOD = Reply([stream(sse(delta(content="ok"), delta("stop"), "[DONE]"))])
ANSWER: list[StreamEvent] = [TextDelta("ok"), Finished("stop")]
BUSY = Reply([answer(503, b'{"error":{"message":"busy"}}')])


class Naps:
    """A sleep that only notes how long it was asked to."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


def provider(url: str, sleep: Callable[[float], Awaitable[None]], **fields: object) -> HttpProvider:
    settings = ProviderSettings(base_url=url, api_key_env="THE_KEY", **fields)  # type: ignore[arg-type]
    retries = Retries(sleep=sleep, jitter=lambda: 0.0)
    limits = Limits(open=2.0, idle=2.0, wall=8.0)
    return HttpProvider("p", settings, "sk-secret-key", OpenAIChat(settings), limits, retries)


async def ask(*replies: Reply) -> tuple[list[StreamEvent], list[float], Wire]:
    """(all events, the naps taken, the server) of one request."""
    naps = Naps()
    async with Wire(replies) as wire:
        made = provider(wire.url, naps)
        events = [event async for event in made.stream(b"{}")]
        await made.aclose()
    return events, naps.taken, wire


async def test_what_is_sent() -> None:
    async with Wire([GOOD]) as wire:
        made = provider(wire.url, Naps(), headers={"X-Title": "cw"})
        assert [event async for event in made.stream(b'{"a":1}')] == ANSWER
        [request] = wire.requests
        assert request.head.startswith("POST /v1/chat/completions HTTP/1.1\r\n")
        assert request.body == b'{"a":1}'
        assert request.headers["authorization"] == "Bearer sk-secret-key"
        assert request.headers["content-type"] == "application/json"
        assert request.headers["x-title"] == "cw"
        await made.aclose()


async def test_one_connection_a_session() -> None:
    refusal = Reply([answer(400, b'{"error":"no"}')])
    async with Wire(
        [GOOD, refusal, GOOD, Reply([answer(200, b'{"choices":[{"message":{"content":"ok"}}]}')]), GOOD]
    ) as wire:
        made = provider(wire.url, Naps())
        for _ in range(8):
            assert [event async for event in made.stream(b"x" * 100_000)]
        assert (len(wire.requests), wire.connections) == (8, 1)
        await made.aclose()
        await asyncio.wait_for(wire.gone.wait(), 2)


async def test_requests_at_once_have_a_connection_each() -> None:
    async with Wire([GOOD]) as wire:
        made = provider(wire.url, Naps())

        async def one() -> list[StreamEvent]:
            return [event async for event in made.stream(b"{}")]

        for _ in range(2):
            assert await asyncio.gather(*(one() for _ in range(4))) == [ANSWER] * 4
        assert wire.connections == 4
        await made.aclose()


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (BUSY, "server"),
        (Reply([answer(429)]), "rate_limit"),
        (Reply([answer(500, b"<html><title>Oops</title>", content_type="text/html")]), "server"),
        (Reply([], "close"), "connect"),
        (Reply([b"HTTP/1.1 200 OK\r\n"], "close"), "connect"),
        (Reply([stream(b"")[:-5]], "close"), "interrupted"),
        (Reply([stream(sse(delta(role="assistant", content="")))[:-5]], "close"), "interrupted"),
        (Reply([stream(sse({"error": {"message": "overloaded"}}))]), "server"),
    ],
)
async def test_what_is_sent_again(reply: Reply, kind: str) -> None:
    events, naps, wire = await ask(reply, GOOD)
    assert [type(event) for event in events] == [Retrying, TextDelta, Finished]
    assert events[1:] == ANSWER
    assert naps == [1.0]
    events, naps, wire = await ask(reply)
    *retries, last = events
    assert [(event.attempt, event.attempts) for event in retries if isinstance(event, Retrying)] == [
        (1, 3),
        (2, 3),
        (3, 3),
    ]
    assert naps == [1.0, 2.0, 4.0]
    assert isinstance(last, Failed)
    assert (last.kind, last.retryable, last.started) == (kind, True, False)
    assert len(wire.requests) == 4


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply([answer(400, b'{"error":"maximum context length"}')]), "context_length"),
        (Reply([answer(402)]), "quota"),
        (Reply([answer(404)]), "bad_request"),
        (Reply([answer(307, b"", "location: http://127.0.0.1:1/")]), "bad_request"),
        (Reply([answer(200, b"<html>")]), "protocol"),
        (Reply([stream(b"data: \xff\n\n")]), "protocol"),
    ],
)
async def test_what_is_not_sent_again(reply: Reply, kind: str) -> None:
    events, naps, wire = await ask(reply)
    assert [(event.kind, event.started) for event in events if isinstance(event, Failed)] == [(kind, False)]
    assert (len(events), naps, len(wire.requests)) == (1, [], 1)


async def test_nothing_is_sent_again_once_something_was_passed_on() -> None:
    partial = stream(sse(delta(content="par"), delta(content="tial")))[:-5]
    for then in ("close", "reset"):
        events, naps, wire = await ask(Reply([partial], then), GOOD)
        assert "partial".startswith("".join(event.text for event in events[:-1] if isinstance(event, TextDelta)))
        last = events[-1]
        if then == "close" or len(events) > 1:
            assert isinstance(last, Failed)
            assert (last.kind, last.started, last.retryable) == ("interrupted", True, True)
            assert (naps, len(wire.requests)) == ([], 1)


@pytest.mark.parametrize(("header", "nap"), [("retry-after: 7", 7.0), ("retry-after-ms: 250", 0.25), ("x: y", 1.0)])
async def test_the_servers_wish_goes_first(header: str, nap: float) -> None:
    events, naps, _ = await ask(Reply([answer(429, b"", header)]), GOOD)
    assert events == [Retrying(1, 3, nap, "HTTP 429"), *ANSWER]
    assert naps == [nap]


async def test_a_wish_beyond_patience_ends_the_request() -> None:
    [failed], naps, _ = await ask(Reply([answer(429, b"slow down", "retry-after: 3600")]))
    assert failed == Failed("rate_limit", "HTTP 429: slow down (the server asks to wait 3600 seconds)", True, False)
    assert naps == []


def test_delays_grow_to_a_cap_and_are_jittered() -> None:
    failure = Failure("server", "x", True)
    many = Retries(count=10, jitter=lambda: 0.0)
    assert [many.delay(attempt, failure) for attempt in (1, 2, 3, 6, 7, 10, 11)] == [1, 2, 4, 32, 60, 60, None]
    assert Retries(jitter=lambda: 1.0).delay(1, failure) == 0.75
    drawn = {Retries().delay(2, failure) for _ in range(50)}
    assert len(drawn) > 10
    assert all(delay is not None and 1.5 <= delay <= 2.0 for delay in drawn)


async def test_a_connection_closed_while_idle_is_replaced_at_once() -> None:
    async with Wire([Reply(GOOD.pieces, "close")]) as wire:
        naps = Naps()
        made = provider(wire.url, naps)
        for _ in range(3):
            events = [event async for event in made.stream(b"{}")]
            assert events[-2:] == ANSWER
            assert all(event.delay == 0 for event in events if isinstance(event, Retrying))
        assert wire.connections == 3
        assert not any(naps.taken)
        await made.aclose()


async def test_nobody_listens() -> None:
    async with Wire([GOOD]) as wire:
        url = wire.url
    naps = Naps()
    events = [event async for event in provider(url, naps).stream(b"{}")]
    assert naps.taken == [1.0, 2.0, 4.0]
    last = events[-1]
    assert isinstance(last, Failed)
    assert last.kind == "connect"
    assert re.fullmatch(r"cannot connect to 127\.0\.0\.1:\d+: Connection refused", last.message)


async def test_a_server_that_never_answers_is_given_up() -> None:
    async with Wire([Reply([], "hang")]) as wire:
        settings = ProviderSettings(base_url=wire.url)
        limits = Limits(open=0.05, idle=1.0, wall=5.0)
        made = HttpProvider("p", settings, "", OpenAIChat(settings), limits, Retries(count=1, sleep=Naps()))
        events = [event async for event in made.stream(b"{}")]
        assert [type(event) for event in events] == [Retrying, Failed]
        assert "authorization" not in wire.requests[0].headers


async def test_cancelling_closes_promptly_and_leaves_the_provider_usable() -> None:
    partial = stream(sse(delta(content="par")))[:-5]
    for stuck in (Reply([], "hang"), Reply([partial], "hang")):
        async with Wire([stuck, GOOD]) as wire:
            made = provider(wire.url, Naps())
            seen = asyncio.Event()

            async def follow(made: HttpProvider = made, seen: asyncio.Event = seen) -> None:
                async for _ in made.stream(b"{}"):
                    seen.set()

            task = asyncio.ensure_future(follow())
            await asyncio.wait_for(wire.asked.wait(), 2)
            if stuck.pieces:
                await asyncio.wait_for(seen.wait(), 2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(wire.gone.wait(), 2)
            assert [event async for event in made.stream(b"{}")] == ANSWER
            await made.aclose()


async def test_cancelling_a_wait_between_tries() -> None:
    waiting = asyncio.Event()

    async def forever(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    async with Wire([BUSY]) as wire:
        made = provider(wire.url, forever)

        async def follow() -> list[StreamEvent]:
            return [event async for event in made.stream(b"{}")]

        task = asyncio.ensure_future(follow())
        await asyncio.wait_for(waiting.wait(), 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await made.aclose()


async def test_leaving_a_stream_early_drops_its_connection() -> None:
    async with Wire([Reply([stream(sse(delta(content="a")))[:-5]], "hang"), GOOD]) as wire:
        made = provider(wire.url, Naps())
        async with aclosing(made.stream(b"{}")) as events:  # type: ignore[type-var]
            assert await anext(events) == TextDelta("a")
        await asyncio.wait_for(wire.gone.wait(), 2)
        assert [event async for event in made.stream(b"{}")] == ANSWER
        await made.aclose()


async def test_the_key_is_never_told() -> None:
    said = json.dumps({"error": {"message": "Incorrect API key provided: sk-secret-key"}}).encode()
    [failed], _, _ = await ask(Reply([answer(401, said)]))
    assert failed == Failed(
        "auth", "HTTP 401: Incorrect API key provided: [key] (the key is read from THE_KEY)", False, False
    )


def test_limits_from_the_environment() -> None:
    assert limits_from({}) == Limits(open=45.0, idle=300.0, wall=1800.0, content=10_000_000)
    assert limits_from({"DEEPSEEK_STREAM_IDLE_TIMEOUT_SECS": "60"}).idle == 60
    both = {"DEEPSEEK_STREAM_IDLE_TIMEOUT_SECS": "60", "CODEWHALE_STREAM_IDLE_TIMEOUT_SECS": "9"}
    assert limits_from(both).idle == 9
    assert limits_from({"CODEWHALE_STREAM_IDLE_TIMEOUT_SECS": "99999"}).idle == 3600
    assert limits_from({"CODEWHALE_STREAM_OPEN_TIMEOUT_SECS": "1"}).open == 5
    assert limits_from({"CODEWHALE_STREAM_CONTENT_BYTES": "70000"}).content == 70_000
    with pytest.raises(ConfigError, match="CODEWHALE_STREAM_WALL_SECS = 'soon'"):
        limits_from({"CODEWHALE_STREAM_WALL_SECS": "soon"})


async def test_https_with_a_certificate_that_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    partial = Reply([stream(sse(delta(content="par")))[:-5]], "close")
    async with Wire([GOOD, GOOD, partial], tls=True) as wire:
        made = provider(wire.url, Naps())
        for _ in range(2):
            assert [event async for event in made.stream(b"x" * 100_000)] == ANSWER
        assert wire.connections == 1
        last = [event async for event in made.stream(b"{}")][-1]
        assert isinstance(last, Failed)
        assert (last.kind, last.started) == ("interrupted", True)
        await made.aclose()


async def test_https_with_a_certificate_that_is_not() -> None:
    async with Wire([GOOD], tls=True) as wire:
        [failed] = [event async for event in provider(wire.url, Naps()).stream(b"{}")]
        assert isinstance(failed, Failed)
        assert (failed.kind, failed.retryable, failed.started) == ("connect", False, False)
        assert "certificate" in failed.message
        assert not wire.requests
