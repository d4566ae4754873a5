"""Which URLs stay on this machine."""

import pytest

from codewhale.models.loopback import on_loopback


@pytest.mark.parametrize(
    "url",
    ["http://localhost", "https://LOCALHOST:8080/v1", "http://a.localhost/", "http://127.1.2.3:9", "http://[::1]:80/x"],
)
def test_these_stay(url: str) -> None:
    assert on_loopback(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://api.example.com",
        "http://localhost.example.com",
        "http://127.0.0.1.example.com",
        "http://localhost@example.com",
        "http://localhost:80@example.com",
        "http://example.com/localhost",
        "http://0.0.0.0",
        "http://[::2]",
        "ftp://localhost",
    ],
)
def test_these_do_not(url: str) -> None:
    assert not on_loopback(url)
