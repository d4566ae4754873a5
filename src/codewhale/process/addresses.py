"""What kind of place an internet address is, by the registries of special-purpose addresses (IANA, as of 2026-11).

Facts alone: who may dial what is decided by policy. `ipaddress` knows too little of this (`is_global` is true for
NAT64, 6to4, site-local and multicast addresses), so the blocks stand here.
"""

import functools
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

Kind = Literal[
    "public", "loopback", "private", "link-local", "metadata", "shared", "multicast", "translated", "reserved"
]

# RFC 6890 and its successors; the first block that holds an address tells its kind.
_V4: tuple[tuple[str, Kind], ...] = (
    ("169.254.169.254/32", "metadata"),
    ("169.254.170.0/24", "metadata"),
    ("168.63.129.16/32", "metadata"),
    ("100.100.100.200/32", "metadata"),
    ("192.0.0.192/32", "metadata"),
    ("0.0.0.0/8", "reserved"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "reserved"),
    ("192.88.99.0/24", "translated"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "reserved"),
    ("198.51.100.0/24", "reserved"),
    ("203.0.113.0/24", "reserved"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
)
_V6: tuple[tuple[str, Kind], ...] = (
    ("fd00:ec2::254/128", "metadata"),
    ("fd20:ce::254/128", "metadata"),
    ("::1/128", "loopback"),
    ("64:ff9b::/96", "translated"),
    ("64:ff9b:1::/48", "translated"),
    ("2001::/32", "translated"),
    ("2001::/23", "reserved"),
    ("2001:db8::/32", "reserved"),
    ("2002::/16", "translated"),
    ("3fff::/20", "reserved"),
    ("fc00::/7", "private"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "private"),
    ("ff00::/8", "multicast"),
    ("2000::/3", "public"),
)


class Judged(Struct, frozen=True):
    """What is said of a URL or a host. `rule` and `reason` tell why it is refused, "" where it is not; `host` is in
    lower case, an address in its usual spelling; `target` is path and query as they are sent."""

    ok: bool
    rule: str = ""
    reason: str = ""
    scheme: str = ""
    host: str = ""
    port: int = 0
    target: str = ""


_LOCAL_ENDS = frozenset("localhost localdomain local internal intranet lan home corp private arpa onion svc".split())


def is_local_name(host: str) -> bool:
    """Whether a host name is one of this machine or of its own network by its spelling: without a dot, or under an end
    that the public tree does not have (RFC 6762, 6761, 8375; ICANN's list of colliding names)."""
    name = host.lower().rstrip(".")
    return "." not in name or name.rpartition(".")[2] in _LOCAL_ENDS


def address_kind(text: str) -> Kind:
    """The kind of an IPv4 or IPv6 address in its usual spelling (a zone after % is ignored); an address that carries
    another inside is of the kind of the inner one where that is not public. Raises ValueError for anything else."""
    from ipaddress import IPv4Address, ip_address

    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv4Address):
        found: Kind = next((kind for network, kind in _v4() if address in network), "public")
        return found
    if address.ipv4_mapped is not None:
        return address_kind(str(address.ipv4_mapped))
    if int(address) >> 32 == 0 and int(address) > 1:  # IPv4-compatible, long withdrawn (RFC 4291)
        inner = address_kind(str(IPv4Address(int(address))))
        return inner if inner != "public" else "translated"
    # What is in none of these blocks is not in use: only 2000::/3 is global unicast (RFC 4291, 2.4).
    kind: Kind = next((kind for network, kind in _v6() if address in network), "reserved")
    inside = address.sixtofour or (IPv4Address(int(address) & 0xFFFFFFFF) if kind == "translated" else None)
    if inside is not None and (inner := address_kind(str(inside))) != "public":
        return inner
    return kind


@functools.cache
def _v4() -> "tuple[tuple[IPv4Network, Kind], ...]":
    from ipaddress import IPv4Network

    return tuple((IPv4Network(block), kind) for block, kind in _V4)


@functools.cache
def _v6() -> "tuple[tuple[IPv6Network, Kind], ...]":
    from ipaddress import IPv6Network

    return tuple((IPv6Network(block), kind) for block, kind in _V6)
