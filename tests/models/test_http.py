"""The HTTP provider against a real socket: what is sent, when it is sent again, and how it ends."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import pytest

from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.dialects.failures import Failure
from codewhale.models.dialects.openai_chat import OpenAIChat
from codewhale.models.exchange import StreamLimits
from codewhale.models.http import HttpProvider, limits_from, limits_of
from codewhale.models.retries import Retries, retries_of
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.stream import Failed, Finished, Resent, Retrying, StreamEvent, TextDelta
from support.loopserver import LoopServer
from support.patience import HANG
from support.wire import CERTIFICATE, Reply, Wire, answer, delta, sse, stream

GOOD = Reply([stream(sse(delta(content="ok"), delta("stop"), "[DONE]"))])
ANSWER: list[StreamEvent] = [TextDelta("ok"), Finished("stop")]
BUSY = Reply([answer(503, b'{"error":{"message":"busy"}}')])


class Flood(LoopServer):
    """Answers each request with a beginning, and then with the same bytes for ever."""

    def __init__(self, first: bytes, beat: bytes) -> None:
        super().__init__()
        self._first, self._beat = first, beat

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talk to one connection until it goes."""
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + self._first)
        while True:
            writer.write(self._beat)
            await writer.drain()
            await asyncio.sleep(0.02)


class Naps:
    """A sleep that only notes how long it was asked to."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


def provider(url: str, sleep: Callable[[float], Awaitable[None]], **fields: object) -> HttpProvider:
    settings = ProviderSettings(base_url=url, api_key_env="THE_KEY", **fields)  # type: ignore[arg-type]
    retries = Retries(sleep=sleep, jitter=lambda: 0.0)
    limits = StreamLimits(first=2.0, gap=2.0, wall=8.0)
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
        await asyncio.wait_for(wire.gone.wait(), HANG)


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
        (Reply([stream(b"data: \xff\n\n")]), "malformed"),
        (Reply([stream(b"data: {\n\n")]), "malformed"),
    ],
)
async def test_what_is_sent_again(reply: Reply, kind: str) -> None:
    broke = b" 200 OK\r\ncontent-type" in b"".join(reply.pieces)
    events, naps, wire = await ask(reply, GOOD)
    assert [type(event) for event in events] == [Retrying, *[Resent] * broke, TextDelta, Finished]
    assert events[-2:] == ANSWER
    assert naps == [1.0]
    events, naps, wire = await ask(reply)
    *retries, last = events
    assert [(event.attempt, event.attempts, event.broke) for event in retries if isinstance(event, Retrying)] == [
        (attempt, 5, broke) for attempt in (1, 2, 3, 4, 5)
    ]
    assert naps == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert isinstance(last, Failed)
    assert (last.kind, last.retryable, last.started) == (kind, True, False)
    assert last.message.endswith(f"(asked {wire.url}/chat/completions, 6 times)")
    assert len(wire.requests) == 6


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply([answer(400, b'{"error":"maximum context length"}')]), "context_length"),
        (Reply([answer(404, b'{"error":"The model `m` does not exist"}')]), "no_model"),
        (Reply([answer(402)]), "quota"),
        (Reply([answer(307, b"", "location: http://127.0.0.1:1/")]), "bad_request"),
        (Reply([answer(200, b"<html>")]), "protocol"),
    ],
)
async def test_what_is_not_sent_again(reply: Reply, kind: str) -> None:
    events, naps, wire = await ask(reply)
    assert [(event.kind, event.started) for event in events if isinstance(event, Failed)] == [(kind, False)]
    assert (len(events), naps, len(wire.requests)) == (1, [], 1)


@pytest.mark.parametrize("then", ["close", "reset", "hang"])
async def test_an_answer_that_breaks_is_asked_for_again(then: str) -> None:
    partial = stream(sse(delta(content="par"), delta(content="tial")))[:-5]
    naps = Naps()
    async with Wire([Reply([partial], then), GOOD]) as wire:
        settings = ProviderSettings(base_url=wire.url)
        retries = Retries(sleep=naps, jitter=lambda: 0.0)
        made = HttpProvider("p", settings, "", OpenAIChat(settings), StreamLimits(first=5.0, gap=0.2), retries)
        events = [event async for event in made.stream(b"{}")]
        await made.aclose()
    came = [event for event in events[:-2] if isinstance(event, TextDelta)]
    assert "partial".startswith("".join(event.text for event in came))
    [retrying, resent, *last] = events[len(came) :]
    assert isinstance(retrying, Retrying) and retrying.broke and (retrying.attempt, retrying.attempts) == (1, 5)
    assert (resent, last, naps.taken) == (Resent(), ANSWER, [1.0])
    assert [request.body for request in wire.requests] == [b"{}", b"{}"]


async def test_both_kinds_of_tries_count_together_against_their_settings() -> None:
    partial = Reply([stream(sse(delta(content="par")))[:-5]], "close")
    replies = [BUSY, partial, BUSY, partial, partial]
    for settings, tries in (((4, 4), 5), ((2, 9), 3), ((9, 3), 4), ((9, 9), 6), ((0, 9), 1), ((9, 0), 2)):
        async with Wire([*replies, GOOD]) as wire:
            table = ProviderSettings(base_url=wire.url)
            retries = Retries(*settings, sleep=Naps(), jitter=lambda: 0.0)
            made = HttpProvider("p", table, "", OpenAIChat(table), StreamLimits(), retries)
            events = [event async for event in made.stream(b"{}")]
            await made.aclose()
        assert len(wire.requests) == tries
        assert isinstance(events[-1], Finished) is (tries == 6)


@pytest.mark.parametrize(
    ("beat", "spoke"),
    [(b": alive\n\n", False), (sse({"choices": []}), False), (b"\n", True), (sse(delta(content="")), True)],
)
async def test_signs_of_life_alone_do_not_hold_an_answer_for_ever(beat: bytes, spoke: bool) -> None:
    first = sse(delta(content="par")) if spoke else b""
    limits = StreamLimits(first=5.0 if spoke else 0.4, gap=0.4)
    async with Flood(first, beat) as flood:
        settings = ProviderSettings(base_url=f"http://{flood.address}/v1")
        made = HttpProvider("p", settings, "", OpenAIChat(settings), limits, Retries(0, 0))
        begun = asyncio.get_running_loop().time()
        async with asyncio.timeout(HANG):
            events = [event async for event in made.stream(b"{}")]
        took = asyncio.get_running_loop().time() - begun
        await made.aclose()
    last = events[-1]
    assert isinstance(last, Failed) and (last.kind, last.started) == ("timeout", spoke)
    what = "nothing more" if spoke else "no first token"
    assert f"sent {what} within 2 seconds" in last.message and took >= 2


@pytest.mark.parametrize(
    ("base_url", "first"),
    [
        ("http://127.0.0.1:8080/v1", 600.0),
        ("http://localhost/v1", 600.0),
        ("http://[::1]:1/v1", 600.0),
        ("https://192.168.1.4/v1", 600.0),
        ("https://[fd12::1]/v1", 600.0),
        ("https://100.64.0.9/v1", 600.0),
        ("https://gpu.lan:8443/v1", 600.0),
        ("https://api.example.com/v1", 120.0),
        ("https://8.8.8.8/v1", 120.0),
        ("https://[2001:4860::1]/v1", 120.0),
    ],
)
def test_a_model_nearby_has_longer_for_its_first_token(base_url: str, first: float) -> None:
    limits = limits_of("p", ProviderSettings(base_url=base_url))
    assert (limits.first, limits.gap) == (first, 60.0)
    own = ProviderSettings(base_url=base_url, first_token_timeout=7, gap_timeout=3.5)
    assert limits_of("p", own) == StreamLimits(first=7.0, gap=3.5)


@pytest.mark.parametrize("fields", [{"gap_timeout": 0}, {"gap_timeout": -1}, {"first_token_timeout": 1e9}])
def test_a_time_out_out_of_bounds_is_named(fields: dict[str, float]) -> None:
    [key] = fields
    with pytest.raises(ConfigError, match=rf"providers\.p\.{key} = "):
        limits_of("p", ProviderSettings(base_url="https://example.com", **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["request_retries", "stream_retries"])
def test_how_often_is_a_setting_with_bounds(key: str) -> None:
    assert retries_of("p", ProviderSettings()) == Retries(5, 5)
    settings = ProviderSettings(**{key: 0})  # type: ignore[arg-type]
    assert (retries_of("p", settings).most(key == "stream_retries"), Retries().most(True)) == (0, 5)
    for count in (-1, 101):
        with pytest.raises(ConfigError, match=rf"providers\.p\.{key} = {count}"):
            retries_of("p", ProviderSettings(**{key: count}))  # type: ignore[arg-type]


async def test_the_version_in_an_address_may_be_missing_or_too_much() -> None:
    """A server that answers at one of the two places alone is found, and asked there from then on."""
    gone = Reply([answer(404, b'{"detail":"Not Found"}')])
    for base, first, second in (("", "", "/v1"), ("/v1", "/v1", "")):
        async with Wire([gone, GOOD]) as wire:
            made = provider(f"http://{wire.address}{base}", Naps())
            for _ in range(2):
                assert [event async for event in made.stream(b"{}")] == ANSWER
            await made.aclose()
        paths = [request.head.split()[1] for request in wire.requests]
        assert paths == [f"{first}/chat/completions", *[f"{second}/chat/completions"] * 2]


async def test_where_nothing_answers_both_addresses_are_named() -> None:
    [failed], naps, wire = await ask(Reply([answer(404, b'{"detail":"Not Found"}')]))
    assert isinstance(failed, Failed) and (failed.kind, failed.retryable, naps) == ("bad_request", False, [])
    root = wire.url.removesuffix("/v1")
    assert failed.message == (
        "HTTP 404: Not Found (check base_url and path) "
        f"(asked {wire.url}/chat/completions, then {root}/chat/completions)"
    )


@pytest.mark.parametrize(("header", "nap"), [("retry-after: 7", 7.0), ("retry-after-ms: 250", 0.25), ("x: y", 1.0)])
async def test_the_servers_wish_goes_first(header: str, nap: float) -> None:
    events, naps, _ = await ask(Reply([answer(429, b"", header)]), GOOD)
    assert events == [Retrying(1, 5, nap, "HTTP 429", kind="rate_limit"), *ANSWER]
    assert naps == [nap]


async def test_a_wish_beyond_patience_ends_the_request() -> None:
    [failed], naps, wire = await ask(Reply([answer(429, b"slow down", "retry-after: 3600")]))
    told = f"HTTP 429: slow down (the server asks you to wait 3600 seconds) (asked {wire.url}/chat/completions)"
    assert failed == Failed("rate_limit", told, True, False)
    assert naps == []


def test_delays_grow_to_a_cap_and_are_jittered() -> None:
    failure = Failure("server", "x", True)
    many = Retries(10, jitter=lambda: 0.0)
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
    assert naps.taken == [1.0, 2.0, 4.0, 8.0, 16.0]
    last = events[-1]
    assert isinstance(last, Failed)
    assert last.kind == "connect"
    asked = re.escape(f" (asked {url}/chat/completions, 6 times)")
    assert re.fullmatch(rf"cannot connect to 127\.0\.0\.1:\d+: Connection refused{asked}", last.message)


async def test_a_server_that_never_answers_is_given_up() -> None:
    async with Wire([Reply([], "hang")]) as wire:
        settings = ProviderSettings(base_url=wire.url)
        limits = StreamLimits(first=0.05, gap=1.0, wall=5.0)
        made = HttpProvider("p", settings, "", OpenAIChat(settings), limits, Retries(1, 1, sleep=Naps()))
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
            await asyncio.wait_for(wire.asked.wait(), HANG)
            if stuck.pieces:
                await asyncio.wait_for(seen.wait(), HANG)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(wire.gone.wait(), HANG)
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
        await asyncio.wait_for(waiting.wait(), HANG)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await made.aclose()


async def test_leaving_a_stream_early_drops_its_connection() -> None:
    async with Wire([Reply([stream(sse(delta(content="a")))[:-5]], "hang"), GOOD]) as wire:
        made = provider(wire.url, Naps())
        async with aclosing(made.stream(b"{}")) as events:  # type: ignore[type-var]
            assert await anext(events) == TextDelta("a")
        await asyncio.wait_for(wire.gone.wait(), HANG)
        assert [event async for event in made.stream(b"{}")] == ANSWER
        await made.aclose()


async def test_the_key_is_never_told() -> None:
    said = json.dumps({"error": {"message": "Incorrect API key provided: sk-secret-key"}}).encode()
    [failed], _, wire = await ask(Reply([answer(401, said)]))
    told = "HTTP 401: Incorrect API key provided: [key] (the key is read from THE_KEY)"
    assert failed == Failed("auth", f"{told} (asked {wire.url}/chat/completions)", False, False)


def test_limits_from_the_environment() -> None:
    own = StreamLimits(first=9.0, gap=8.0)
    assert limits_from({}, own) == own
    assert limits_from({"DEEPSEEK_STREAM_IDLE_TIMEOUT_SECS": "60"}, own).gap == 60
    both = {"DEEPSEEK_STREAM_IDLE_TIMEOUT_SECS": "60", "CODEWHALE_STREAM_IDLE_TIMEOUT_SECS": "9"}
    assert limits_from(both, own).gap == 9
    assert limits_from({"CODEWHALE_STREAM_IDLE_TIMEOUT_SECS": "99999"}, own).gap == 3600
    assert limits_from({"CODEWHALE_STREAM_OPEN_TIMEOUT_SECS": "1"}, own).first == 5
    assert limits_from({"CODEWHALE_STREAM_CONTENT_BYTES": "70000"}, own).content == 70_000
    with pytest.raises(ConfigError, match="CODEWHALE_STREAM_WALL_SECS = 'soon'"):
        limits_from({"CODEWHALE_STREAM_WALL_SECS": "soon"}, own)


async def test_https_with_a_certificate_that_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    partial = Reply([stream(sse(delta(content="par")))[:-5]], "close")
    async with Wire([GOOD, GOOD, partial, partial], tls=True) as wire:
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
