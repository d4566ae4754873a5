"""One request to the public internet. A name is resolved once for each request; every address that it leads to is
judged, and what was judged is dialled. Bodies end at their cap, and everything ends in its time."""

import asyncio
import contextlib
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from codewhale.lib.text import one_line
from codewhale.permissions.network import PORTS, Judged, judge_url
from codewhale.process.addresses import address_kind
from codewhale.protocol.errors import ToolError

if TYPE_CHECKING:
    import httpcore2

MOST_HOPS = 5
MOST_BYTES, MOST_SECONDS = 10 << 20, 60.0
_CONNECT_SECONDS = 10.0
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_AGENT = b"Mozilla/5.0 (compatible; CodeWhale; a person's coding agent)"
_KINDS = {
    "loopback": "this machine", "metadata": "the credentials of this machine", "multicast": "a multicast address",
    "translated": "an address inside another", "reserved": "no address of the public internet",
}  # fmt: skip

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]


class WebAnswer(Struct, frozen=True):
    """What an address answered; headers by lower-case name. `elsewhere` is where a redirect leads that was not
    followed, because that is another site; `truncated` a body that was cut at its cap."""

    url: str
    status: int
    headers: dict[str, str]
    body: bytes
    truncated: bool = False
    elsewhere: str = ""

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class WebRequest(Struct, frozen=True):
    """What is asked. `own` is an address that the person's configuration names: it may be private, has any port, and
    redirects are not followed. A body is JSON, and is sent by POST."""

    url: str
    most: int = 1 << 20
    seconds: float = 15.0
    accept: str = "text/html, application/xhtml+xml, application/json;q=0.9, text/*;q=0.9, */*;q=0.5"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    own: bool = False


async def resolved(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, in the order in which they are to be tried. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in found))


class Dialler:
    """The only way to the web. `resolve`, `kind` (of an address) and `ports` are others in tests alone."""

    def __init__(
        self,
        resolve: Resolver = resolved,
        kind: Callable[[str], str] = address_kind,
        ports: frozenset[int] = PORTS,
    ) -> None:
        self._resolve = resolve
        self._kind = kind
        self._ports = ports

    async def ask(self, request: WebRequest) -> WebAnswer:
        """Send it and read the answer. Redirects within one site are followed, each judged anew. Raises ToolError."""
        try:
            async with asyncio.timeout(request.seconds):
                return await self._follow(request)
        except TimeoutError:
            raise ToolError(
                "timeout",
                f"{one_line(request.url, 200)} did not answer within {request.seconds:g} seconds.",
                field="timeout_ms",
                expected="more time, or another address",
                received=f"{request.seconds * 1000:.0f}",
            ) from None

    def backend(self, own: Callable[[str, int], bool]) -> "httpcore2.AsyncNetworkBackend":
        """Connections for another client of HTTP: the host of each is resolved once, all that it leads to is judged
        unless the person's configuration names it (`own`), and what was judged is dialled."""
        import httpcore2

        dialler = self

        class Judging(httpcore2.AnyIOBackend):
            async def connect_tcp(
                self, host: str, port: int, *rest: Any, **options: Any
            ) -> httpcore2.AsyncNetworkStream:
                named = own(host, port)
                shown = f"[{host}]" if ":" in host else host
                try:
                    place = (
                        Judged(True, host=host, port=port)
                        if named
                        else dialler._judged(f"http://{shown}:{port}/", False)
                    )
                    addresses = await dialler._addresses(place, named)
                except ToolError as error:
                    raise httpcore2.ConnectError(error.message) from None
                return await _pinned(addresses).connect_tcp(host, port, *rest, **options)

        return Judging()

    async def _follow(self, request: WebRequest) -> WebAnswer:
        url, seen = request.url, set[str]()
        while True:
            place = self._judged(url, request.own)
            answer = await self._once(request, url, place)
            target = answer.headers.get("location", "")
            if request.own or answer.status not in _REDIRECTS or not target or request.body:
                return answer
            seen.add(url)
            url = _joined(url, target.strip()).partition("#")[0]
            judged = self._judged(url, own=False)
            if not _one_site(place.host, judged.host) or (place.scheme, judged.scheme) == ("https", "http"):
                return WebAnswer(answer.url, answer.status, answer.headers, b"", elsewhere=url)
            if url in seen or len(seen) > MOST_HOPS:
                what = "leads back to itself" if url in seen else f"leads on more than {MOST_HOPS} times"
                raise ToolError("execution_failed", f"{one_line(request.url, 200)} {what}; nothing was read.")

    def _judged(self, url: str, own: bool) -> Judged:
        if own:
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
            target = parts.path + (f"?{parts.query}" if parts.query else "")
            return Judged(True, scheme=parts.scheme, host=parts.hostname or "", port=port, target=target or "/")
        judged = judge_url(url, self._ports)
        if not judged.ok:
            raise refused(url, judged.reason)
        return judged

    async def _addresses(self, place: Judged, own: bool) -> Sequence[str]:
        """The addresses of a host, all of which may be dialled."""
        try:
            found = await self._resolve(place.host, place.port)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ToolError(
                "execution_failed", f"The host {place.host} was not found: {one_line(reason, 120)}."
            ) from None
        for address in found if not own else ():
            if (kind := self._kind(address)) != "public":
                what = _KINDS.get(kind, "in the network of this machine")
                raise refused(place.host, f"it leads to {address}, which is {what} ({kind})")
        if not found:
            raise ToolError("execution_failed", f"The host {place.host} has no address.")
        return found

    async def _once(self, request: WebRequest, url: str, place: Judged) -> WebAnswer:
        import httpcore2

        addresses = await self._addresses(place, request.own)
        tls = httpcore2.default_ssl_context() if place.scheme == "https" else None
        usual = place.port == (443 if tls else 80)
        host = f"[{place.host}]" if ":" in place.host else place.host
        headers = [
            (b"host", (host if usual else f"{host}:{place.port}").encode()),
            (b"user-agent", _AGENT), (b"accept", request.accept.encode()), (b"accept-encoding", b"gzip, deflate"),
            *((name.encode(), value.encode("latin-1", "replace")) for name, value in request.headers),
        ]  # fmt: skip
        if request.body:
            headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(request.body))]
        there = httpcore2.URL(scheme=place.scheme, host=place.host, port=place.port, target=place.target.encode())
        asked = httpcore2.Request(
            "POST" if request.body else "GET", there, headers=headers, content=request.body or None
        )
        try:
            async with (
                httpcore2.AsyncConnectionPool(ssl_context=tls, network_backend=_pinned(addresses)) as pool,
                contextlib.aclosing(await pool.handle_async_request(asked)) as response,
            ):
                found = _headers(response.headers)
                leads = response.status in _REDIRECTS and "location" in found and not request.own
                body, cut = (b"", False) if leads else await _body(response, found, request.most)
                return WebAnswer(url, response.status, found, body, cut)
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException, OSError) as error:
            raise ToolError(
                "execution_failed", f"{place.host} could not be read: {one_line(_reason(error), 200)}."
            ) from None


def refused(url: str, reason: str) -> ToolError:
    return ToolError(
        "permission_denied",
        f"{one_line(url, 200)} is not opened: {reason}.",
        field="url",
        expected="an http or https address of the public internet",
        received=one_line(url, 200),
    )


def _joined(url: str, target: str) -> str:
    """Where a redirect leads. Raises ToolError."""
    try:
        return urljoin(url, target)
    except ValueError:
        raise refused(target, "it is no address") from None


def _one_site(one: str, other: str) -> bool:
    return one.removeprefix("www.") == other.removeprefix("www.")


def _pinned(addresses: Sequence[str]) -> "httpcore2.AsyncNetworkBackend":
    """Connections to these addresses alone, whatever host is named."""
    import httpcore2

    class Backend(httpcore2.AnyIOBackend):
        async def connect_tcp(self, host: str, port: int, *rest: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
            options["timeout"] = _CONNECT_SECONDS
            for address in addresses[:-1]:
                with contextlib.suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                    return await super().connect_tcp(address, port, **options)
            return await super().connect_tcp(addresses[-1], port, **options)

    return Backend()


def _headers(rows: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    found = dict[str, str]()
    for raw_name, raw_value in rows:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found and name != "location" else value
    return found


async def _body(response: "httpcore2.Response", headers: dict[str, str], most: int) -> tuple[bytes, bool]:
    """At most `most` bytes of content as it was before it was compressed, and whether there was more."""
    coding = headers.get("content-encoding", "").strip().lower()
    if coding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise ToolError(
            "execution_failed", f"The answer is compressed as {one_line(coding, 40)}, which was not asked for."
        )
    parts, size = list[bytes](), 0
    try:
        async for piece in _plain(response.aiter_stream(), coding, most):
            parts.append(piece[: most - size])
            size += len(piece)
            if size > most:
                return b"".join(parts), True
    except zlib.error:
        raise ToolError("execution_failed", f"The answer says that it is {coding} and is not.") from None
    return b"".join(parts), False


async def _plain(stream: AsyncIterator[bytes], coding: str, most: int) -> AsyncIterator[bytes]:
    """The pieces of a body, decompressed; none is larger than `most` and a byte."""
    if coding in ("", "identity"):
        async for piece in stream:
            yield piece
        return
    reader, begun = zlib.decompressobj(zlib.MAX_WBITS | 32), False
    async for piece in stream:
        rest = piece
        while rest:
            try:
                plain = reader.decompress(rest, most + 1)
            except zlib.error:
                if begun or coding != "deflate":
                    raise
                reader = zlib.decompressobj(-zlib.MAX_WBITS)  # many servers send deflate without its frame
                plain = reader.decompress(rest, most + 1)
            begun = True
            yield plain
            rest = reader.unconsumed_tail


def _reason(error: BaseException) -> str:
    cause: BaseException | None = error
    while cause is not None and not str(cause):
        cause = cause.__cause__ or cause.__context__
    return str(cause) if cause is not None else type(error).__name__
