"""Which URLs, hosts, ports and addresses may be dialled, and which URLs may carry something out."""

import base64
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.permissions.network import Judged, judge_host, judge_url, leak

SECRET = "sk-9f8e7d6c5b4a39281706abcd"


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("https://example.com", Judged(True, scheme="https", host="example.com", port=443, target="/")),
        ("HTTP://Example.COM./a?b=c#d", Judged(True, scheme="http", host="example.com", port=80, target="/a?b=c")),
        ("https://example.com:8443/x y".replace(" ", "%20"),
         Judged(True, scheme="https", host="example.com", port=8443, target="/x%20y")),
        ("https://example.com?q=1", Judged(True, scheme="https", host="example.com", port=443, target="/?q=1")),
        ("https://b\u00fccher.example.org/\u00fc",
         Judged(True, scheme="https", host="xn--bcher-kva.example.org", port=443, target="/%C3%BC")),
        ("https://8.8.8.8/", Judged(True, scheme="https", host="8.8.8.8", port=443, target="/")),
        ("https://0x8.0x8.2056/", Judged(True, scheme="https", host="8.8.8.8", port=443, target="/")),
        ("https://[2606:4700::1111]/", Judged(True, scheme="https", host="2606:4700::1111", port=443, target="/")),
    ],
)  # fmt: skip
def test_public_urls_are_taken_apart(url: str, taken: Judged) -> None:
    assert judge_url(url) == taken


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("file:///etc/passwd", "network.scheme"), ("gopher://example.com", "network.scheme"),
        ("ftp://example.com/", "network.scheme"), ("javascript:alert(1)", "network.scheme"),
        ("example.com", "network.scheme"), ("//example.com", "network.scheme"), ("", "network.scheme"),
        ("http:/example.com", "network.scheme"), ("https:example.com", "network.scheme"),
        ("https://user@example.com/", "network.userinfo"), ("https://example.com@127.0.0.1/", "network.userinfo"),
        ("https://example.com\\@127.0.0.1/", "network.url"), ("https://example.com\t/", "network.url"),
        ("https://exa\nmple.com/", "network.url"), (" https://example.com/", "network.url"),
        ("https://example.com/" + "a" * 9000, "network.url"),
        ("https://example.com:22/", "network.port"), ("https://example.com:25/", "network.port"),
        ("https://example.com:6379/", "network.port"), ("https://example.com:0/", "network.port"),
        ("https://example.com:99999999/", "network.port"), ("https://example.com:65616/", "network.port"),
        ("https:///x", "network.host"), ("https://exa mple.com".replace(" ", "%20"), "network.host"),
        ("https://%6cocalhost/", "network.host"), ("https://a..b/", "network.host"),
        ("https://-a.com/", "network.host"),
        ("https://[::1", "network.host"), ("https://[::1]x/", "network.host"),
        ("https://[127.0.0.1]/", "network.private"),
        ("https://1.2.3.4.5/", "network.host"), ("https://256.1.1.1/", "network.host"),
        ("https://a.09/", "network.host"),
    ],
)  # fmt: skip
def test_urls_that_are_not_dialled(url: str, rule: str) -> None:
    judged = judge_url(url)
    assert (judged.ok, judged.rule) == (False, rule) and judged.reason


@pytest.mark.parametrize("shift", range(3))
@pytest.mark.parametrize("before", ["", "x", "xy"])
def test_a_secret_is_found_in_every_spelling(shift: int, before: str) -> None:
    data = (before + SECRET + "z" * shift).encode()
    for told in (
        SECRET, quote(SECRET, safe=""), "".join(f"%{byte:02X}" for byte in SECRET.encode()),
        quote(quote("".join(f"%{byte:02x}" for byte in SECRET.encode()))), data.hex(), SECRET[::-1],
        base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode(),
    ):  # fmt: skip
        found = leak(f"https://example.com/?q={told}", [SECRET])
        assert found is not None and found.rule == "network.secret", told


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("https://example.com/?" + "a=b&" * 300, "network.query"),
        ("https://example.com/#" + "a.b" * 400, "network.query"),
        ("https://example.com/" + "a" * 300, "network.query"),
        ("https://" + "a" * 300 + ".example.com/", "network.query"),
        ("https://example.com/a/b?q=how+to+do+it", None),
        ("https://example.com/" + "a/" * 400, None),
    ],
)
def test_much_text_is_asked_about(url: str, rule: str | None) -> None:
    found = leak(url, [SECRET, "short"])
    assert (found.rule if found else None) == rule


@given(st.text(max_size=60))
def test_nothing_breaks_it(text: str) -> None:
    for url in (text, f"https://{text}", f"https://{text}/", f"http://example.com/{text}"):
        judged = judge_url(url)
        assert judged.ok == (not judged.reason)
        leak(url, [SECRET])


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.randoms())
def test_a_numeric_host_is_the_address_that_resolvers_read(whole: int, count: int, random: object) -> None:
    parts = [whole >> 24, whole >> 16 & 255, whole >> 8 & 255, whole & 255]
    last = sum(part << 8 * (3 - at) for at, part in enumerate(parts) if at >= count - 1)
    spelt = [*parts[: count - 1], last]
    host = ".".join((hex, oct, str)[(whole + at) % 3](part).replace("0o", "0") for at, part in enumerate(spelt))
    judged = judge_host(host)
    plain = judge_host(".".join(map(str, parts)))
    assert (judged.ok, judged.rule, judged.host) == (plain.ok, plain.rule, plain.host)
