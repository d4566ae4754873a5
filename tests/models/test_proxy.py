"""Proxies from the environment: which is chosen, what is refused, and whole requests through one."""

import base64
import os

import pytest

from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.dialects.openai_chat import OpenAIChat
from codewhale.models.exchange import StreamLimits
from codewhale.models.http import HttpProvider
from codewhale.models.proxy import ProxyAddress, environment_proxy
from codewhale.models.retries import Retries
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.stream import Failed, Finished, Retrying, StreamEvent, TextDelta
from support.proxy import Proxy, Socks
from support.wire import CERTIFICATE, Reply, Wire, delta, sse, stream

GOOD = Reply([stream(sse(delta(content="ok"), delta("stop"), "[DONE]"))])
ANSWER: list[StreamEvent] = [TextDelta("ok"), Finished("stop")]


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that names no proxy."""
    for key in [key for key in os.environ if key.lower().endswith("_proxy") or key == "REQUEST_METHOD"]:
        monkeypatch.delenv(key)


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({}, None),
        ({"HTTPS_PROXY": ""}, None),
        ({"HTTP_PROXY": "http://p:1"}, None),
        ({"HTTPS_PROXY": "http://p:1"}, ProxyAddress("http", "p", 1, None)),
        ({"https_proxy": "p:1"}, ProxyAddress("http", "p", 1, None)),
        ({"ALL_PROXY": "https://p/"}, ProxyAddress("https", "p", 443, None)),
        ({"ALL_PROXY": "http://a", "HTTPS_PROXY": "http://b"}, ProxyAddress("http", "b", 80, None)),
        ({"HTTPS_PROXY": "http://u%40x:p%3a@p:1"}, ProxyAddress("http", "p", 1, (b"u@x", b"p:"))),
        ({"ALL_PROXY": "socks5h://u:p@p"}, ProxyAddress("socks5h", "p", 1080, (b"u", b"p"))),
        ({"HTTPS_PROXY": "http://[fd00::1]:1"}, ProxyAddress("http", "fd00::1", 1, None)),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "example.com"}, None),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "x, .example.com"}, None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "ample.com"}, ProxyAddress("http", "p", 1, None)),
    ],
)
def test_which_proxy(variables: dict[str, str], found: ProxyAddress | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in variables.items():
        monkeypatch.setenv(key, value)
    assert environment_proxy("https", "api.example.com", 443) == found


@pytest.mark.parametrize(
    "url", ["socks9://u:secret@p:1", "ftp://u:secret@p", "http://u:secret@", "http://u:secret@p:x"]
)
def test_what_is_no_proxy_is_an_error_without_its_password(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", url)
    with pytest.raises(ConfigError, match="HTTPS_PROXY") as caught:
        environment_proxy("https", "api.example.com", 443)
    assert "secret" not in str(caught.value)


def provider(url: str) -> HttpProvider:
    settings = ProviderSettings(base_url=url, facts={"allow_insecure_http": True})
    retries = Retries(1, 1, base=0.0)
    return HttpProvider("p", settings, "k", OpenAIChat(settings), StreamLimits(first=2.0, gap=2.0, wall=8.0), retries)


async def ask(made: HttpProvider, times: int = 1) -> list[StreamEvent]:
    """The events of the last of so many requests."""
    for _ in range(times):
        events = [event async for event in made.stream(b"x" * 100_000)]
    await made.aclose()
    return events


async def test_https_goes_through_one_tunnel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    async with Wire([GOOD], tls=True) as wire, Proxy(wire.url) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:pw@{proxy.address}")
        assert await ask(provider("https://models.example/v1"), times=3) == ANSWER
        assert proxy.asked == ["CONNECT models.example:443 HTTP/1.1"]
        assert proxy.auth == ["Basic " + base64.b64encode(b"user:pw").decode()]
        assert wire.connections == 1
        for request in wire.requests:
            assert request.head.startswith("POST /v1/chat/completions HTTP/1.1\r\n")
            assert request.headers["host"] == "models.example"
            assert "proxy-authorization" not in request.headers


async def test_the_key_is_not_shown_to_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    async with Wire([GOOD], tls=True) as wire, Proxy(wire.url) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy.address}")
        assert await ask(provider("https://models.example/v1")) == ANSWER
        assert wire.requests[0].headers["authorization"] == "Bearer k"
        assert "authorization" not in proxy.heads[0].lower()


async def test_a_socks_proxy_is_asked_for_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    async with Wire([GOOD], tls=True) as wire, Socks(wire.url) as proxy:
        monkeypatch.setenv("ALL_PROXY", f"socks5h://user:p%40w@{proxy.address}")
        assert await ask(provider("https://models.example/v1"), times=3) == ANSWER
        assert (proxy.asked, proxy.auth, wire.connections) == (["models.example:443"], ["user:p@w"], 1)


async def test_http_is_forwarded(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Wire([GOOD]) as wire, Proxy(wire.url) as proxy:
        monkeypatch.setenv("http_proxy", proxy.address)
        assert await ask(provider("http://models.example:81/v1"), times=3) == ANSWER
        assert proxy.asked == ["POST http://models.example:81/v1/chat/completions HTTP/1.1"]
        assert (len(wire.requests), wire.connections) == (3, 1)


async def test_loopback_is_never_sent_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Wire([GOOD]) as wire, Proxy(wire.url) as proxy:
        for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(variable, f"http://{proxy.address}")
        assert await ask(provider(wire.url)) == ANSWER
        assert proxy.asked == []


@pytest.mark.parametrize(("refusal", "retryable"), [("407 Who are you", False), ("502 Bad Gateway", True)])
async def test_a_proxy_that_refuses(refusal: str, retryable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Proxy("http://127.0.0.1:1", refusal) as proxy:
        monkeypatch.setenv("ALL_PROXY", proxy.address)
        *retries, last = await ask(provider("https://models.example"))
        told = f"cannot connect to models.example:443 through the proxy {proxy.address}: the proxy answered {refusal}"
        asked = "asked https://models.example/chat/completions" + ", 2 times" * retryable
        assert last == Failed("connect", f"{told} ({asked})", retryable, False)
        assert [type(event) for event in retries] == [Retrying] * retryable


async def test_a_proxy_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Proxy("") as proxy:
        address = proxy.address
    monkeypatch.setenv("ALL_PROXY", address)
    last = (await ask(provider("https://models.example")))[-1]
    assert isinstance(last, Failed)
    assert last.kind == "connect"
    assert f"through the proxy {address}: " in last.message
