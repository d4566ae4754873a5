"""Fetching from the public network: one resolution a hop, every address checked, the checked address dialled, and
bounds on bytes, time, hops and what is unpacked. What may be dialled is asked of the guard that is handed in."""

import asyncio
import functools
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

    import httpcore2

Kind = Literal[
    "public", "loopback", "private", "link-local", "metadata", "shared", "multicast", "translated", "reserved"
]

# `ipaddress` knows too little (`is_global` is true for NAT64, 6to4, site-local and multicast addresses), so the blocks
# stand here: RFC 6890 and its successors, IANA as of 2026-11. The first block that holds an address tells its kind.
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


_CONNECT_SECONDS = 5.0
_MOST_ADDRESSES = 8
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OURS = frozenset({"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "te", "upgrade"})
# What is told to every server on the way; all other headers go to the first one alone.
_NEUTRAL = frozenset({"accept", "accept-language", "user-agent"})


class Guard(Struct, frozen=True):
    """Who says what may be dialled: `url(url)`, with the URL taken apart where it may, and `addresses(host, found)`."""

    url: Callable[[str], Judged]
    addresses: Callable[[str, Sequence[str]], Judged]


class FetchLimits(Struct, frozen=True):
    """What a fetch may take: `bytes` of content, unpacked or not, `seconds` in all, `hops` after the first."""

    bytes: int = 5_000_000
    seconds: float = 30.0
    hops: int = 10


class FetchReply(Struct, frozen=True):
    """What came. `url` answered in the end, `hops` are those that led there; `headers` by lower-case name. `cut` says
    which bound ended the content early, "" where it is whole."""

    url: str
    status: int
    headers: dict[str, str]
    content: bytes
    hops: tuple[str, ...] = ()
    cut: Literal["", "bytes", "seconds"] = ""

    def text(self) -> str:
        """The content in the charset it says it has, where that is one; else as UTF-8 with replacements."""
        _, _, said = self.headers.get("content-type", "").lower().partition("charset=")
        name = said.partition(";")[0].strip().strip("\"'")
        try:
            return self.content.decode(name or "utf-8", "replace")
        except (LookupError, ValueError):
            return self.content.decode("utf-8", "replace")


class DialError(Exception):
    """Nothing was fetched. `kind` is refused (by the guard, under `rule`), failed or timeout; the text is one
    sentence."""

    def __init__(self, kind: Literal["refused", "failed", "timeout"], message: str, rule: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.rule = rule


async def system_addresses(host: str, port: int) -> list[str]:
    """The addresses of a host as this machine resolves it. Raises OSError."""
    rows = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in rows))


def _direct(address: str, port: int) -> tuple[str, int]:
    return address, port


class Wires(Struct, frozen=True):
    """How the machine is asked: `resolve(host, port)` gives addresses, `route(address, port)` where a connection to a
    checked address really goes."""

    resolve: Callable[[str, int], Awaitable[list[str]]] = system_addresses
    route: Callable[[str, int], tuple[str, int]] = _direct


async def fetch(
    url: str,
    guard: Guard,
    bounds: FetchLimits | None = None,
    headers: Mapping[str, str] | None = None,
    wires: Wires | None = None,
) -> FetchReply:
    """GET a URL, redirects followed, each hop checked like the first. Raises DialError; a content longer or slower than
    the bounds comes as far as they go."""
    bounds, wires = bounds or FetchLimits(), wires or Wires()
    given = {name.lower(): value for name, value in (headers or {}).items() if name.lower() not in _OURS}
    hops: list[str] = []
    began, first = asyncio.get_running_loop().time(), ""
    while True:
        left = bounds.seconds - (asyncio.get_running_loop().time() - began)
        there = _allowed(guard.url(url), url)
        origin = f"{there.scheme}://{there.host}:{there.port}"
        first = first or origin
        if origin != first:
            given = {name: value for name, value in given.items() if name in _NEUTRAL}
        hop = _Hop(url, there, given, bounds)
        try:
            async with asyncio.timeout(max(0.0, left)):
                await hop.run(guard, wires)
        except TimeoutError:
            if not hop.status or hop.location:
                raise DialError("timeout", f"{there.host} did not answer within {bounds.seconds:g} seconds") from None
            hop.cut = "seconds"
        if not hop.location:
            return FetchReply(url, hop.status, hop.headers, bytes(hop.content), tuple(hops), hop.cut)
        hops.append(url)
        if len(hops) > bounds.hops:
            raise DialError("failed", f"{url} is the end of {bounds.hops} redirects and leads on")
        url = _joined(url, hop.location)


class _Hop:
    """One request and what came of it so far."""

    def __init__(self, url: str, there: Judged, headers: Mapping[str, str], bounds: FetchLimits) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.content = bytearray()
        self.location = ""
        self.cut: Literal["", "bytes", "seconds"] = ""
        self._url = url
        self._there = there
        self._given = headers
        self._limit = bounds.bytes

    async def run(self, guard: Guard, wires: Wires) -> None:
        """Resolve, check, connect to what was checked, ask, read. Raises DialError."""
        import httpcore2

        there = self._there
        addresses = await _resolved(there, guard, wires)
        pool = httpcore2.AsyncConnectionPool(
            ssl_context=httpcore2.default_ssl_context() if there.scheme == "https" else None,
            network_backend=_pinned(addresses, wires),
        )
        host = f"[{there.host}]" if ":" in there.host else there.host
        named = host if there.port == (443 if there.scheme == "https" else 80) else f"{host}:{there.port}"
        sent = {"host": named, "user-agent": "codewhale", "accept": "*/*", **self._given}
        sent |= {"accept-encoding": "gzip, deflate", "connection": "close"}
        try:
            raw = [(name.encode("ascii"), value.encode("latin-1")) for name, value in sent.items()]
            url = httpcore2.URL(scheme=there.scheme, host=there.host, port=there.port, target=there.target)
            response = await pool.handle_async_request(httpcore2.Request("GET", url, headers=raw))
            try:
                await self._read(response)
            finally:
                await response.aclose()
        except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError, UnicodeError) as error:
            if not self.status:
                raise DialError("failed", f"{there.host} cannot be asked: {_reason(error)}") from None
            raise DialError("failed", f"{there.host} broke off in the middle of its answer: {_reason(error)}") from None
        finally:
            await pool.aclose()

    async def _read(self, response: "httpcore2.Response") -> None:
        for raw_name, raw_value in response.headers:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value
        self.status = response.status
        if self.status in _REDIRECTS and "location" in self.headers:
            self.location = self.headers["location"].partition(", ")[0].strip() or "/"
            return
        async for piece in _unpacked(self.headers.get("content-encoding", ""), self._pieces(response), self._limit):
            room = self._limit - len(self.content)
            self.content += piece[:room]
            if len(piece) > room:
                self.cut = "bytes"
            if self.cut:
                return

    async def _pieces(self, response: "httpcore2.Response") -> AsyncIterator[bytes]:
        """The content as it is sent, which is bounded too: what unpacks to nothing may still be endless."""
        size = 0
        async for piece in response.aiter_stream():
            size += len(piece)
            if size > self._limit + (1 << 16):
                self.cut = "bytes"
                return
            yield piece


def _allowed(verdict: Judged, url: str) -> Judged:
    if not verdict.ok:
        raise DialError("refused", f"{url[:200]} is not dialled: {verdict.reason}", verdict.rule)
    return verdict


async def _resolved(there: Judged, guard: Guard, wires: Wires) -> list[str]:
    """The addresses of a host, every one of them checked. Raises DialError."""
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in there.host else socket.AF_INET, there.host)
        return [there.host]
    except OSError:
        pass
    try:
        found = await wires.resolve(there.host, there.port)
    except (OSError, UnicodeError) as error:
        raise DialError("failed", f"{there.host} has no address: {_reason(error)}") from None
    _allowed(guard.addresses(there.host, found), f"{there.scheme}://{there.host}")
    # IPv4 first: where IPv6 leads nowhere, that only shows after a long wait.
    return sorted(found, key=lambda address: ":" in address)[:_MOST_ADDRESSES]


def _pinned(addresses: Sequence[str], wires: Wires) -> Any:
    """A network backend that connects to these addresses, whatever name it is given."""
    import httpcore2

    class Backend(httpcore2.AnyIOBackend):
        async def connect_tcp(
            self, host: str, port: int, timeout: float | None = None, *rest: Any, **options: Any
        ) -> "httpcore2.AsyncNetworkStream":
            fault: Exception | None = None
            for address in addresses:
                try:
                    place = wires.route(address, port)
                    return await super().connect_tcp(*place, timeout=_CONNECT_SECONDS)
                except (httpcore2.NetworkError, httpcore2.TimeoutException, OSError) as error:
                    fault = fault or error
            raise httpcore2.ConnectError(str(fault)) from fault

    return Backend()


async def _unpacked(encoding: str, pieces: AsyncIterator[bytes], limit: int) -> AsyncIterator[bytes]:
    """Content as it was before it was packed, in pieces of at most `limit` bytes and one. Raises DialError."""
    kind = encoding.strip().lower()
    if kind in ("", "identity"):
        async for piece in pieces:
            yield piece
        return
    if kind not in ("gzip", "x-gzip", "deflate"):
        raise DialError("failed", f"the answer is packed as {kind[:40]!r}, which was not asked for")
    import zlib

    unpacker = None if kind == "deflate" else zlib.decompressobj(31)
    async for piece in pieces:
        try:
            unpacker = unpacker or zlib.decompressobj(15 if piece[0] & 15 == 8 else -15)
            yield unpacker.decompress(piece, limit + 1)
        except zlib.error as error:
            raise DialError("failed", f"the answer cannot be unpacked: {error}") from None


def _joined(url: str, location: str) -> str:
    from urllib.parse import urljoin

    try:
        return urljoin(url, location)
    except ValueError:
        raise DialError("failed", f"the redirect to {location[:200]!r} leads nowhere") from None


def _reason(error: BaseException) -> str:
    cause = error.__cause__ or error
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
