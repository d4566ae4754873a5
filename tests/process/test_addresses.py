"""Kinds of addresses."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.process.addresses import address_kind, is_local_name


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("8.8.8.8", "public"), ("1.1.1.1", "public"), ("2606:4700::1111", "public"), ("2a00:1450::1", "public"),
        ("127.0.0.1", "loopback"), ("127.255.255.254", "loopback"), ("::1", "loopback"),
        ("10.0.0.1", "private"), ("172.16.0.1", "private"), ("172.31.255.255", "private"), ("192.168.1.1", "private"),
        ("172.32.0.1", "public"), ("fc00::1", "private"), ("fd12::1", "private"), ("fec0::1", "private"),
        ("169.254.1.1", "link-local"), ("fe80::1", "link-local"), ("fe80::1%eth0", "link-local"),
        ("169.254.169.254", "metadata"), ("169.254.170.2", "metadata"), ("168.63.129.16", "metadata"),
        ("100.100.100.200", "metadata"), ("fd00:ec2::254", "metadata"), ("::ffff:169.254.169.254", "metadata"),
        ("100.64.0.1", "shared"), ("100.127.255.255", "shared"), ("100.128.0.1", "public"),
        ("0.0.0.0", "reserved"), ("0.1.2.3", "reserved"), ("::", "reserved"), ("255.255.255.255", "reserved"),
        ("240.0.0.1", "reserved"), ("198.18.0.1", "reserved"), ("192.0.2.1", "reserved"), ("203.0.113.9", "reserved"),
        ("224.0.0.1", "multicast"), ("239.1.1.1", "multicast"), ("ff02::1", "multicast"),
        ("::ffff:127.0.0.1", "loopback"), ("::ffff:8.8.8.8", "public"), ("::ffff:7f00:1", "loopback"),
        ("::127.0.0.1", "loopback"), ("::8.8.8.8", "translated"),
        ("64:ff9b::7f00:1", "loopback"), ("64:ff9b::808:808", "translated"), ("64:ff9b:1::a00:1", "private"),
        ("2002:7f00:1::", "loopback"), ("2002:a00:1::", "private"), ("2002:808:808::", "translated"),
        ("2001:0:1::1", "translated"), ("2001:db8::1", "reserved"), ("3fff::1", "reserved"), ("100::1", "reserved"),
        ("5f00::1", "reserved"), ("4000::1", "reserved"), ("192.88.99.1", "translated"),
    ],
)  # fmt: skip
def test_kinds(address: str, kind: str) -> None:
    found = address_kind(address)
    assert found == kind or (kind == "translated" and found != "public")


@pytest.mark.parametrize("text", ["", "127.1", "0x7f.1", "2130706433", "a.b", "1.2.3.4.5", "::g", "1.2.3.256"])
def test_other_spellings_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        address_kind(text)


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_what_python_calls_private_is_never_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    kind = address_kind(str(address))
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return
    if not address.is_global or address.is_multicast or address.is_reserved:
        assert kind != "public"
    mapped = address_kind(f"::ffff:{address}") if address.version == 4 else kind
    assert (mapped == "public") == (kind == "public")


def test_local_names() -> None:
    assert all(map(is_local_name, ("localhost", "a.localhost", "gpu-box", "Box.local", "x.internal.", "a.lan", "")))
    assert not any(map(is_local_name, ("example.com", "local.example.com", "api.deepseek.com.")))
