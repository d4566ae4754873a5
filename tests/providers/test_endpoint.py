"""Where requests go: what base URLs, paths and headers are accepted, and what a connection is kept for."""

import pytest

from codewhale.protocol.errors import ConfigError
from codewhale.providers.base import ProviderSettings
from codewhale.providers.endpoint import Endpoint
from support.wire import Reply, Wire, answer


def endpoint(base_url: str, ours: dict[str, str] | None = None, /, **fields: object) -> Endpoint:
    return Endpoint("p", ProviderSettings(base_url=base_url, **fields), ours or {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "first", "host"),
    [
        ("https://api.example.com", "POST /chat/completions HTTP/1.1", "api.example.com"),
        ("https://api.example.com/v1/", "POST /v1/chat/completions HTTP/1.1", "api.example.com"),
        ("http://127.0.0.1:8080/v4", "POST /v4/chat/completions HTTP/1.1", "127.0.0.1:8080"),
        ("http://[::1]:80", "POST /chat/completions HTTP/1.1", "[::1]:80"),
        ("http://localhost:1", "POST /chat/completions HTTP/1.1", "localhost:1"),
    ],
)
def test_the_head_of_a_request(url: str, first: str, host: str) -> None:
    lines = endpoint(url).head(3).decode().split("\r\n")
    assert lines[:3] == [first, f"host: {host}", "content-length: 3"]
    assert lines[-2:] == ["", ""]


def test_headers_of_the_settings_win() -> None:
    made = endpoint("https://x", {"authorization": "Bearer k"}, headers={"X-Title": "t", "Authorization": "Basic z"})
    head = made.head(0).decode()
    assert "\r\nx-title: t\r\n" in head
    assert "Bearer" not in head
    assert "\r\nauthorization: Basic z\r\n" in head


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.example.com",
        "ftp://x",
        "https://user:pw@x",
        "https://x:99999",
        "https://x:0",
        "https://x/a b",
        "https://x/\r\nevil: 1",
        "https://x#f",
        "https://x/#f",
        "file:///etc",
    ],
)
def test_what_is_no_base_url(url: str) -> None:
    with pytest.raises(ConfigError, match=r"providers\.p\.base_url"):
        endpoint(url)


@pytest.mark.parametrize("host", ["example.com", "127.evil.com", "10.0.0.1", "0.0.0.0", "[::2]", "localhost.evil.com"])
def test_plain_http_stays_on_this_machine(host: str) -> None:
    with pytest.raises(ConfigError, match="allow_insecure_http"):
        endpoint(f"http://{host}/v1")
    assert endpoint(f"http://{host}/v1", facts={"allow_insecure_http": True}).host == host


@pytest.mark.parametrize(
    "headers", [{"a b": "c"}, {"a": "b\r\nc: d"}, {"Host": "x"}, {"content-length": "1"}, {"": "x"}]
)
def test_headers_that_cannot_be_set(headers: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="headers"):
        endpoint("https://x", headers=headers)


def test_a_key_that_no_header_can_carry_is_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        endpoint("https://x", {"authorization": "Bearer sk-1\nsk-2"})
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize("path", ["chat", "/a b", "/a#b", "/a\n"])
def test_paths_that_cannot_be(path: str) -> None:
    with pytest.raises(ConfigError, match="path"):
        endpoint("https://x", path=path)


async def test_only_complete_connections_are_kept() -> None:
    async with Wire([Reply([answer(200, b"abc")])]) as wire:
        made = endpoint(wire.url)
        first = await made.connect()
        await first.request(made.head(0), b"")
        made.give_back(first)
        assert made.take() is None
        second = await made.connect()
        await second.request(made.head(0), b"")
        assert await second.read() == b"abc"
        made.give_back(second)
        assert made.take() is second
        made.give_back(second)
        made.close()
        assert made.take() is None
