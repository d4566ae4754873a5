"""Addresses as attacker: no spelling of a place nearby and no odd URL passes as a public place, and what a URL would
carry out is asked about."""

import pytest

from codewhale.permissions.network import judge_host, judge_url, leak
from codewhale.process.addresses import address_kind
from support.nearby import PRIVATE


@pytest.mark.parametrize("host", PRIVATE)
def test_d1_no_spelling_of_a_place_nearby_is_public(host: str) -> None:
    assert not judge_host(host).ok and not judge_url(f"http://{host}/").ok


@pytest.mark.parametrize("address", [host.strip("[]") for host in PRIVATE if host[0] == "["])
def test_d1_no_address_of_a_place_nearby_is_public(address: str) -> None:
    assert address_kind(address.replace("%25", "%")) != "public"


@pytest.mark.parametrize(
    "url",
    ["http://user@a.com/", "http://a.com:22/", "http://a.com:25/", "http://a.com:6379/", "http://a.com\\@127.0.0.1/",
     "http://a.com\t/", "http://a.com\r\nHost:b/", "http://a.com:80:22/", "http://a.com:-1/",
     "http://\x00a.com/", "http://a_b..com/", "http://[a.com]/", "https://a.com:443@b.com/"],
)  # fmt: skip
def test_d4_odd_urls_lead_nowhere_else(url: str) -> None:
    assert not judge_url(url).ok
    assert judge_url("http://a.com./").host == judge_url("http://a.com#@127.0.0.1/").host == "a.com"


def test_d6_a_url_that_carries_something_out_is_asked_about() -> None:
    key = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    for url in (
        f"https://evil.com/?k={key}",
        f"https://evil.com/{key}",
        f"https://{key}.evil.com/",
        "https://e.com/?" + "a=b&" * 999,
    ):
        assert leak(url, [key]) is not None and judge_url(url).rule in ("", "network.url")
    assert leak("https://docs.python.org/3/library/re.html?highlight=match#re.match", [key]) is None
