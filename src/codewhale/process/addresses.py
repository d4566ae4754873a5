"""What kind of place an internet address is, by the registries of special-purpose addresses (IANA, as of 2026-11).
Facts alone: who may connect to what is decided by others."""

import functools
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

Kind = Literal[
    "public", "loopback", "private", "link-local", "metadata", "shared", "multicast", "translated", "reserved"
]

# RFC 6890 and its successors; the first block that holds an address tells its kind. `ipaddress` knows too little of
# this: `is_global` is true for NAT64, 6to4, site-local and multicast addresses.
_BLOCKS: tuple[tuple[Kind, str], ...] = (
    ("metadata", "169.254.169.254/32 169.254.170.0/24 168.63.129.16/32 100.100.100.200/32 192.0.0.192/32"),
    ("metadata", "fd00:ec2::254/128 fd20:ce::254/128"),
    ("loopback", "127.0.0.0/8 ::1/128"),
    ("private", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10"),
    ("shared", "100.64.0.0/10"),
    ("link-local", "169.254.0.0/16 fe80::/10"),
    ("multicast", "224.0.0.0/4 ff00::/8"),
    ("translated", "192.88.99.0/24 64:ff9b::/96 64:ff9b:1::/48 2001::/32 2002::/16"),
    ("reserved", "0.0.0.0/8 192.0.0.0/24 192.0.2.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4"),
    ("reserved", "2001::/23 2001:db8::/32 3fff::/20"),
    ("public", "0.0.0.0/0 2000::/3"),
    ("reserved", "::/0"),  # only 2000::/3 is global unicast (RFC 4291, 2.4)
)
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
    kind = next(kind for network, kind in _networks() if address in network)
    if isinstance(address, IPv4Address):
        return kind
    if address.ipv4_mapped is not None:
        return address_kind(str(address.ipv4_mapped))
    inside = address.sixtofour or (IPv4Address(int(address) & 0xFFFFFFFF) if kind == "translated" else None)
    if int(address) >> 32 == 0 and int(address) > 1:  # IPv4-compatible, long withdrawn (RFC 4291)
        kind, inside = "translated", IPv4Address(int(address))
    if inside is not None and (inner := address_kind(str(inside))) != "public":
        return inner
    return kind


@functools.cache
def _networks() -> "tuple[tuple[IPv4Network | IPv6Network, Kind], ...]":
    from ipaddress import ip_network

    return tuple((ip_network(block), kind) for kind, blocks in _BLOCKS for block in blocks.split())
