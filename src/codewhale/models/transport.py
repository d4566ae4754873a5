"""Requests to one endpoint over httpcore2: a POST, its streamed answer, the connection kept.

The one file that knows the HTTP library: it is imported with the first request, and its exceptions end here. No
redirects, no cookies, no HTTP/2; deadlines are the caller's.
"""

import os
import re
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any

from codewhale.models.endpoint import Endpoint
from codewhale.process.addresses import address_kind, is_local_name

if TYPE_CHECKING:
    import httpcore2

_CONNECT_SECONDS = 45.0
_IDLE_SECONDS = 55.0
_KEPT = 8


class WireError(Exception):
    """An answer that is not HTTP/1.1; the text is one line for a person."""


class WireCut(Exception):
    """The connection ended before an answer, or inside one; the text is one line for a person."""


class StaleConnection(WireCut):
    """A connection kept from an earlier request ended before the answer: the server may have closed it while it was
    idle."""


class Unreachable(Exception):
    """No connection could be made; the text is one line for a person. `lasting`: another try would fail likewise."""

    def __init__(self, message: str, lasting: bool) -> None:
        super().__init__(message)
        self.lasting = lasting


class HttpAnswer:
    """An answer whose head has come. `headers` by lower-case name, repeated ones joined by ", "; `complete` once its
    content has been read to the end."""

    def __init__(self, response: "httpcore2.Response") -> None:
        self.status = response.status
        self.complete = False
        self.headers: dict[str, str] = {}
        for raw_name, raw_value in response.headers:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value
        self._response = response
        self._pieces: AsyncGenerator[bytes] = response.aiter_stream()

    async def read(self) -> bytes:
        """More of the content as it comes, b"" at its end. Raises WireCut, OSError."""
        import httpcore2

        try:
            async for piece in self._pieces:
                if piece:
                    return piece
        except httpcore2.ProtocolError:
            raise WireCut("the connection ended in the middle of the answer")
        except httpcore2.NetworkError as error:
            raise WireCut(f"the connection failed in the middle of the answer: {_reason(error)}")
        self.complete = True
        return b""

    async def close(self) -> None:
        """Give the connection back if the answer is complete, else drop it."""
        await self._pieces.aclose()
        await self._response.aclose()


class Transport:
    """Carries requests to one endpoint, each on a connection of its own while it lasts."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Nothing is imported, opened or loaded before the first request."""
        self._endpoint = endpoint
        self._headers = [(name.encode(), value.encode("latin-1")) for name, value in endpoint.headers.items()]
        self._pool: httpcore2.AsyncConnectionPool | None = None

    @property
    def kept(self) -> int:
        """How many connections are open and wait for a request."""
        if self._pool is None:
            return 0
        return sum(connection.is_idle() and not connection.has_expired() for connection in self._pool.connections)

    async def post(self, body: bytes, method: str = "POST", connect: float = _CONNECT_SECONDS) -> HttpAnswer:
        """Send a request and wait for the head of its answer; a GET has an empty body. Raises Unreachable, WireCut,
        WireError."""
        import httpcore2

        there = self._endpoint
        try:
            pool = self._pool = self._pool or _pool(there)
        except OSError as error:
            raise Unreachable(f"the trusted certificates cannot be loaded: {error} (check SSL_CERT_FILE)", True)
        url = httpcore2.URL(scheme=there.scheme, host=there.host.strip("[]"), port=there.port, target=there.target)
        length = (b"content-length", b"%d" % len(body))
        within = {"timeout": {"connect": connect}}
        request = httpcore2.Request(method, url, headers=[*self._headers, length], content=body, extensions=within)
        kept = self.kept > 0
        try:
            return HttpAnswer(await pool.handle_async_request(request))
        except PermissionError as error:
            raise Unreachable(f"{self._where()}: {error}", True)
        except httpcore2.ProxyError as error:
            raise Unreachable(f"{self._where()}: the proxy answered {error}", str(error).startswith("4"))
        except (httpcore2.ConnectError, UnicodeError) as error:
            certificate = type(_cause(error)).__name__ == "SSLCertVerificationError"
            raise Unreachable(f"{self._where()}: {_reason(error)}", certificate)
        except httpcore2.ConnectTimeout:
            raise Unreachable(f"{self._where()} within {connect:g} seconds", False)
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            if isinstance(error, httpcore2.ProtocolError) and _cause(error) is not error:  # The parser's own finding.
                raise WireError(f"the server's answer is not HTTP/1.1: {_reason(error)}")
            if kept:
                raise StaleConnection("the idle connection had been closed")
            raise WireCut("the server closed the connection without an answer")

    @property
    def address(self) -> str:
        """The address that is asked, as it may be shown."""
        there = self._endpoint
        path = there.target.partition("?")[0]
        return f"{there.scheme}://{there.headers['host']}{path}"

    async def close(self) -> None:
        """Close every connection."""
        if self._pool is not None:
            await self._pool.aclose()

    def _where(self) -> str:
        proxy = self._endpoint.proxy
        through = f" through the proxy {proxy.host}:{proxy.port}" if proxy else ""
        return f"cannot connect to {self._endpoint.host}:{self._endpoint.port}{through}"


def _pool(endpoint: Endpoint) -> "httpcore2.AsyncConnectionPool":
    """The connections to `endpoint`. Certificates are loaded once, where something on the way is https: as the system
    trusts them, or those of SSL_CERT_FILE or SSL_CERT_DIR."""
    import httpcore2

    found = endpoint.proxy
    secure_proxy = found is not None and found.scheme == "https"
    tls = httpcore2.default_ssl_context() if endpoint.scheme == "https" or secure_proxy else None
    proxy = None
    if found is not None:
        url = httpcore2.URL(scheme=found.scheme, host=found.host, port=found.port, target="/")
        proxy = httpcore2.Proxy(url, auth=found.auth, ssl_context=tls if secure_proxy else None)
    return httpcore2.AsyncConnectionPool(
        ssl_context=tls,
        proxy=proxy,
        max_connections=None,
        max_keepalive_connections=_KEPT,
        keepalive_expiry=_IDLE_SECONDS,
        network_backend=connections(refuser(endpoint)),
    )


def connections(refuses: Callable[[str], str] | None) -> "httpcore2.AsyncNetworkBackend":
    """Connections whose address is asked about, by `refuses(address)`, before a byte is sent to it: why not
    (PermissionError), or ""."""
    import httpcore2

    class Backend(httpcore2.AnyIOBackend):
        async def connect_tcp(self, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
            stream = await super().connect_tcp(*args, **options)
            reason = refuses(str(stream.get_extra_info("server_addr")[0])) if refuses is not None else ""
            if reason:
                await stream.aclose()
                raise PermissionError(reason)
            return stream

    return Backend()


def refuser(endpoint: Endpoint) -> Callable[[str], str] | None:
    """Why an address that the endpoint's name led to is not asked, None where that needs no look: an address or a local
    name is what the person wrote, and a proxy is where they said. Over https the certificate tells who answers, so that
    a private address is as good as any (split DNS, tunnels); what no public name ever means is refused."""
    host = endpoint.host.strip("[]")
    if endpoint.proxy is not None or ":" in host or host[-1:].isdigit() or is_local_name(host):
        return None

    def refuses(address: str) -> str:
        kind = address_kind(address)
        if kind not in ("loopback", "link-local", "metadata", "multicast"):
            return ""
        return f"{host} leads to {address} ({kind}), which is not allowed; to use it anyway, put it in base_url"

    return refuses


def _cause(error: Exception) -> BaseException:
    """What the library wrapped: the first fault of several, the error itself where it wrapped none."""
    cause: BaseException = error
    if error.args and isinstance(error.args[0], BaseException):
        cause = error.args[0].__cause__ or error.args[0]
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    return cause


def _reason(error: Exception) -> str:
    cause = _cause(error)
    if isinstance(cause, OSError) and "Connect call failed" in str(cause):
        # asyncio says which address it was and leaves out why; of several addresses, the first says it.
        code = re.search(r"\[Errno (\d+)\]", str(cause))
        return os.strerror(int(code[1])) if code else str(cause)
    if getattr(cause, "reason", "") in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
        return "it does not speak https; an address of a server without encryption begins with http://"
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
