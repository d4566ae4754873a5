"""A server at an address: every connection goes through the dialler of the web, what was configured for the server is
sent to no other place, and no answer is larger than its bound."""

from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import AsyncExitStack
from types import TracebackType

import httpcore2
import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from codewhale.lib.text import one_line
from codewhale.mcp.broker.login import AskPerson, LoginFlow
from codewhale.mcp.frames import Open
from codewhale.process.addresses import address_kind, is_local_name
from codewhale.services.web.dialler import Dialler

MOST_BODY = 160 << 20
TOKEN_SECONDS = 30.0
LED = "it leads elsewhere,"
_USUAL = {"http": 80, "https": 443}
_DENIED = (401, 403)


class WebTransport:
    """The streams of one address. `problem` says what last stood in the way, `denied` that it was a login."""

    def __init__(self, order: Open, ask: AskPerson) -> None:
        spec = order.spec
        self.problem = ""
        self.denied = False
        self._spec = spec
        self._stack = AsyncExitStack()
        self._login = None
        if not any(name.lower() == "authorization" for name in spec.headers):
            self._login = LoginFlow(order, ask, self._sent)

    async def __aenter__(self) -> TransportStreams:
        spec = self._spec
        auth = await self._login.provider() if self._login is not None else None
        client = httpx2.AsyncClient(
            transport=GuardedTransport(spec.url, spec.headers, self._noted),
            headers=spec.headers, auth=auth, timeout=httpx2.Timeout(30.0, read=None), trust_env=False,
        )  # fmt: skip
        await self._stack.enter_async_context(client)
        return await self._stack.enter_async_context(
            streamable_http_client(spec.url, http_client=client, max_sse_event_size=MOST_BODY)
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return await self._stack.__aexit__(kind, error, trace)
        finally:
            if self._login is not None:
                await self._login.settle()

    async def _sent(self, request: httpx2.Request) -> httpx2.Response:
        """The answer to a request beside the protocol, which carries nothing that was configured for the server."""
        transport = GuardedTransport(self._spec.url, {}, lambda problem, denied: None)
        async with httpx2.AsyncClient(transport=transport, timeout=TOKEN_SECONDS, trust_env=False) as client:
            return await client.send(request, follow_redirects=False)

    def _noted(self, problem: str, denied: bool) -> None:
        self.problem, self.denied = problem, denied


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Requests of a server's client. `noted(problem, denied)` hears how each ended."""

    def __init__(self, url: str, headers: dict[str, str], noted: Callable[[str, bool], None]) -> None:
        self._own = _place(httpx2.URL(url))
        self._headers = {name.lower(): value for name, value in headers.items()}
        self._noted = noted
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=httpcore2.default_ssl_context(), network_backend=Dialler().backend(self._is_own)
        )

    def _is_own(self, host: str, port: int) -> bool:
        """What the configuration names: its host and port, and on a host of one's own every port."""
        return host == self._own[1] and (port == self._own[2] or _is_near(host))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; redirects are not followed here."""
        own = _place(request.url) == self._own
        if not own:
            for name, value in self._headers.items():
                if request.headers.get(name) == value:
                    del request.headers[name]
        asked = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=request.url.raw_scheme, host=request.url.raw_host, port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw, content=request.stream, extensions=request.extensions,
        )  # fmt: skip
        try:
            found = await self._pool.handle_async_request(asked)
        except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError, OSError) as error:
            self._noted(f"{request.url.host} could not be reached: {error!s:.300}", False)
            raise httpx2.ConnectError(str(error), request=request) from error
        if own:
            said = f"it answered with the status {found.status}" if found.status >= 300 else ""
            self._noted(self._leads(request.url, found) or said, found.status in _DENIED)
        assert isinstance(found.stream, AsyncIterable)
        return httpx2.Response(
            status_code=found.status, headers=found.headers, stream=_Bounded(found.stream), extensions=found.extensions
        )

    def _leads(self, url: httpx2.URL, answer: httpcore2.Response) -> str:
        """Where a redirect leads that is not followed, without what may be secret in it."""
        rows = [value for name, value in answer.headers if name.lower() == b"location"]
        if not 300 <= answer.status < 400 or not rows:
            return ""
        place = rows[0].decode("latin-1").strip()
        try:
            target = url.join(place)
            if _place(target) == self._own:
                return ""
            place = str(target.copy_with(userinfo=b"", query=None, fragment=None))
        except (ValueError, httpx2.InvalidURL):
            place = place.partition("?")[0].rpartition("@")[2]
        return f"{LED} to {one_line(place, 200)}, which is not its configured address; nothing was sent there"

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends at its bound; a stream of events has it for each event, and none for all."""

    def __init__(self, stream: AsyncIterable[bytes]) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, events = 0, False
        try:
            async for part in self._stream:
                events = events or (
                    size == 0 and part.lstrip().startswith((b"event:", b"data:", b"id:", b":", b"retry:"))
                )
                size += len(part)
                if size > MOST_BODY and not events:
                    raise httpx2.ReadError(f"an answer of more than {MOST_BODY:,} bytes")
                yield part
        except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError) as error:
            raise httpx2.ReadError(str(error)) from error

    async def aclose(self) -> None:
        close = getattr(self._stream, "aclose", None)
        if close is not None:
            await close()


def _place(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or _USUAL.get(url.scheme, 0)


def _is_near(host: str) -> bool:
    try:
        return address_kind(host) != "public"
    except ValueError:
        return is_local_name(host)
