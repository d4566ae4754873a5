"""Addresses as attacker: no spelling of a place nearby and no odd URL passes as a public place, and what a URL would
carry out is asked about."""

import pytest

from codewhale.permissions.network import judge_host, judge_url, leak
from codewhale.process.addresses import address_kind

PRIVATE = (
    # loopback in every spelling that resolvers take
    "127.0.0.1 127.1 127.0.1 0x7f.1 0x7f000001 2130706433 017700000001 0177.0.0.1 0177.1 127.0.0.01 127.000.000.001 "
    "0x7F.0x0.0x0.0x1 127.0.0.1. 0 0.0.0.0 0x0 00 localhost LOCALHOST localhost. a.localhost localhost.localdomain "
    # this network, by number and by name
    "10.0.0.1 10.1 0xa000001 167772161 172.16.5.4 192.168.0.1 192.168.257 100.64.0.1 169.254.1.1 198.18.0.1 "
    "printer router.local x.internal nas.lan intranet kubernetes.default.svc x.svc.cluster.local "
    "1.0.0.127.in-addr.arpa "
    # what serves credentials
    "169.254.169.254 0xa9fea9fe 2852039166 0251.0376.0251.0376 169.254.43518 metadata metadata.google.internal "
    "METADATA.google.internal. metadata.goog 168.63.129.16 100.100.100.200 [fd00:ec2::254] host.docker.internal "
    # not on the public internet
    "224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 192.0.2.1 203.0.113.7 "
    # version 6, and version 4 inside it
    "[::1] [0:0:0:0:0:0:0:1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [::FFFF:10.0.0.1] [::127.0.0.1] [fe80::1] "
    "[fe80::1%25eth0] [fec0::1] [fc00::1] [fd12:3456::1] [ff02::1] [64:ff9b::7f00:1] [64:ff9b::10.0.0.1] "
    "[64:ff9b:1::a00:1] [2002:7f00:1::] [2002:a00:1::1] [2001:0:7f00:1::] [2001:db8::1] [100::1] "
    # other digits and dots that are folded into these
    "\uff11\uff12\uff17.0.0.1 127\u30020\u30020\u30021 \u2460\u2461\u2466.0.0.1 \uff4cocalhost loc\u00adalhost"
).split()


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
