"""Where requests go: what base URLs, paths and headers are accepted, and which of them a proxy carries."""

import pytest

from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.endpoint import Endpoint
from codewhale.protocol.errors import ConfigError


def endpoint(base_url: str, ours: dict[str, str] | None = None, /, **fields: object) -> Endpoint:
    return Endpoint("p", ProviderSettings(base_url=base_url, **fields), ours or {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "address", "target", "host"),
    [
        ("https://api.example.com", ("https", "api.example.com", 443), "/chat/completions", "api.example.com"),
        ("https://api.example.com/v1/", ("https", "api.example.com", 443), "/v1/chat/completions", "api.example.com"),
        ("http://127.0.0.1:8080/v4", ("http", "127.0.0.1", 8080), "/v4/chat/completions", "127.0.0.1:8080"),
        ("http://[::1]:80", ("http", "[::1]", 80), "/chat/completions", "[::1]:80"),
        ("http://localhost:1", ("http", "localhost", 1), "/chat/completions", "localhost:1"),
    ],
)
def test_a_base_url_taken_apart(url: str, address: tuple[str, str, int], target: str, host: str) -> None:
    made = endpoint(url)
    assert (made.scheme, made.host, made.port) == address
    assert (made.target, made.headers["host"]) == (target, host)


def test_headers_of_the_settings_win() -> None:
    made = endpoint("https://x", {"authorization": "Bearer k"}, headers={"X-Title": "t", "Authorization": "Basic z"})
    assert made.headers["x-title"] == "t"
    assert made.headers["authorization"] == "Basic z"


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
    with pytest.raises(ConfigError, match="an HTTP header cannot contain"):
        endpoint("https://x", {"x-api-key": "sk-1\r\nhost: y"})
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize("path", ["chat", "/a b", "/a#b", "/a\n"])
def test_paths_that_cannot_be(path: str) -> None:
    with pytest.raises(ConfigError, match="path"):
        endpoint("https://x", path=path)


def test_a_proxy_is_for_other_machines_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "http://proxy.example.com:3128")
    for host in ("localhost", "127.0.0.1", "127.9.9.9", "[::1]", "models.localhost"):
        assert endpoint(f"https://{host}/v1").proxy is None
    found = endpoint("https://api.example.com").proxy
    assert found is not None
    assert (found.host, found.port) == ("proxy.example.com", 3128)
