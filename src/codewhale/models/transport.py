"""Requests to one endpoint over libcurl: a POST, its streamed answer, the connection kept.

The one file that knows the HTTP library, imported with the first request; its errors end here. No redirects, cookies
or HTTP/2; deadlines are the caller's. Where a kept connection is closed, libcurl sends the request on a new one.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from codewhale.models.endpoint import Endpoint
from codewhale.process.addresses import address_kind, is_local_name

if TYPE_CHECKING:
    import pycurl

_CONNECT_SECONDS, _IDLE_SECONDS, _KEPT = 45.0, 55, 8
_HEAD_BYTES, _AHEAD_BYTES = 64 * 1024, 256 * 1024  # of a head; of content before somebody asks for it
_NO_ANSWER = "the server closed the connection without an answer"
_WEIRD_REPLY, _TOO_LARGE, _PAUSE = 8, 100, 0x10000001  # libcurl's own, without a name to import at the start
# Certificates of a system, where Python looks in other places for them.
_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem")


class WireError(Exception):
    """An answer that is not HTTP/1.1; the text is one line for a person."""


class WireCut(Exception):
    """The connection ended before an answer, or inside one; the text is one line for a person."""


class Unreachable(Exception):
    """No connection could be made; the text is one line for a person. `lasting`: another try would fail likewise."""

    def __init__(self, message: str, lasting: bool) -> None:
        super().__init__(message)
        self.lasting = lasting


class HttpAnswer:
    """An answer, whose head has come once `begin` returns. `headers` by lower-case name, repeated ones joined by ", ";
    `complete` once its content has been read to the end; `proxy_said` is what a proxy refused a tunnel with, `refused`
    why an address is not asked, `wrong` what makes it no answer."""

    def __init__(self, multi: "pycurl.AsyncCurlMulti", curl: "pycurl.Curl", refuses: Callable[[str], str]) -> None:
        """The transfer that `curl` describes begins; `close` ends it."""
        import pycurl

        self.status = 0
        self.complete = False
        self.headers: dict[str, str] = {}
        self.proxy_said = self.refused = self.wrong = ""
        self._multi, self._curl, self._refuses = multi, curl, refuses
        self._news = asyncio.Event()
        self._asked = self._begun = self._over = self._paused = False
        self._head = self._held = 0
        self._pieces: list[bytes] = []
        self._cut: BaseException | None = None
        curl.setopt(pycurl.PREREQFUNCTION, self._on_asking)
        curl.setopt(pycurl.HEADERFUNCTION, self._on_line)
        curl.setopt(pycurl.WRITEFUNCTION, self._on_piece)
        self._transfer = multi.add_handle(curl)
        self._transfer.add_done_callback(self._on_end)

    async def begin(self) -> None:
        """Wait for the head. Raises pycurl.error, WireCut."""
        await self._until(lambda: self._begun)
        if not self._begun:
            raise self._cut or WireCut(_NO_ANSWER)

    async def read(self) -> bytes:
        """More of the content as it comes, b"" at its end. Raises WireCut."""
        await self._until(lambda: self._pieces)
        if not self._pieces:
            if self._cut is not None:
                raise WireCut("the connection ended in the middle of the answer")
            self.complete = True
            return b""
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._held = 0
        if self._paused and not self._transfer.done():
            self._paused = False
            self._curl.pause(0)
        return data

    async def close(self) -> None:
        """Give the connection back if the answer has come to its end, else drop it."""
        if not self._transfer.done() and not self._multi.closed:
            self._multi.remove_handle(self._curl)
        self._curl.close()

    async def _until(self, ready: Callable[[], object]) -> None:
        while not ready() and not self._over:
            self._news.clear()
            await self._news.wait()

    # What the library calls; an exception in here would leave the request waiting until its deadline.

    def _on_end(self, transfer: "asyncio.Future[pycurl.Curl]") -> None:
        self._over, self._cut = True, WireCut(_NO_ANSWER) if transfer.cancelled() else transfer.exception()
        self._news.set()

    def _on_asking(self, address: str, *_others: object) -> int:
        """The request is about to be sent, for the first time or again: what came before was the proxy's."""
        self._asked, self.status = True, 0
        self.refused = self._refuses(address)
        return 1 if self.refused else 0

    def _on_line(self, line: bytes) -> int | None:
        """A line of a head, or one behind the content."""
        if self._begun:
            return None
        self._head += len(line)
        text = line.decode("latin-1").strip()
        if self._head > _HEAD_BYTES or not (self.status or text.startswith("HTTP/1.")):
            self.wrong = "its head is too large" if self._head > _HEAD_BYTES else text[:80] or "it has no status"
            return -1
        if not self.status:
            self.headers.clear()
            code = text.split()[1:2]
            self.status = int(code[0]) if code and code[0].isdecimal() else 1
            self.proxy_said = "" if self._asked or 200 <= self.status < 300 else text.partition(" ")[2]
        elif text:
            name, _, value = text.partition(":")
            name, value = name.lower(), value.strip()
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value
        elif self._asked and (self.status >= 200 or self.status == 101):
            self._begun = True
            self._news.set()
        else:
            self.status = 0
        return None

    def _on_piece(self, data: bytes) -> int | None:
        if self._held > _AHEAD_BYTES:
            self._paused = True
            return _PAUSE
        self._pieces.append(data)
        self._held += len(data)
        self._news.set()
        return None


class Transport:
    """Carries requests to one endpoint, each on a connection of its own while it lasts."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Nothing is imported, opened or loaded before the first request."""
        self._endpoint = endpoint
        rows = endpoint.headers.items()
        self._headers = [(f"{name}: {value}" if value else f"{name};").encode("latin-1") for name, value in rows]
        self._refuses = refuser(endpoint)
        self._multi: pycurl.AsyncCurlMulti | None = None
        self._found = list[str]()

    async def post(self, body: bytes, method: str = "POST", connect: float = _CONNECT_SECONDS) -> HttpAnswer:
        """Send a request and wait for the head of its answer; a GET has an empty body. Raises Unreachable, WireCut,
        WireError."""
        import pycurl

        found = await self._resolved(connect)
        if self._multi is None or self._multi.closed:
            self._multi = pycurl.AsyncCurlMulti()
            self._multi.setopt(pycurl.M_MAXCONNECTS, _KEPT)
        curl = pycurl.Curl()
        curl.setopt(pycurl.RESOLVE, found)
        self._describe(curl, connect)
        if method != "GET":
            curl.setopt(pycurl.POSTFIELDS, body)
        answer = HttpAnswer(self._multi, curl, self._refuses)
        try:
            await answer.begin()
        except BaseException as error:
            self._found = []
            fault = self._fault(error, curl, answer, connect) if isinstance(error, pycurl.error) else error
            await answer.close()
            raise fault from None
        return answer

    @property
    def address(self) -> str:
        """The address that is asked, as it may be shown."""
        path = self._endpoint.target.partition("?")[0]
        return f"{self._endpoint.scheme}://{self._endpoint.headers['host']}{path}"

    async def close(self) -> None:
        """Close every connection; another request opens one anew."""
        if self._multi is not None:
            await self._multi.aclose()

    async def _resolved(self, connect: float) -> list[str]:
        """Where the name on the way leads, asked anew after a fault, in the words of libcurl, whose own thread for that
        would hold up a close. Raises Unreachable."""
        place = self._endpoint.proxy or self._endpoint
        host = place.host.strip("[]")
        if self._found or ":" in host or host.replace(".", "").isdigit():
            return self._found
        try:
            async with asyncio.timeout(connect):
                rows = await asyncio.get_running_loop().getaddrinfo(host, place.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            why = f" within {connect:g} seconds" if isinstance(error, TimeoutError) else f": {error.args[-1]}"
            raise Unreachable(self._where() + why, False) from None
        addresses = [one for one in dict.fromkeys(str(row[4][0]) for row in rows) if "%" not in one]
        if reason := next(filter(None, map(self._refuses, addresses)), ""):
            raise Unreachable(f"{self._where()}: {reason}", True)
        self._found = [f"{host}:{place.port}:{','.join(addresses)}"] if addresses else []
        return self._found

    def _where(self) -> str:
        proxy = self._endpoint.proxy
        through = f" through the proxy {proxy.host}:{proxy.port}" if proxy else ""
        return f"cannot connect to {self._endpoint.host}:{self._endpoint.port}{through}"

    def _describe(self, curl: "pycurl.Curl", connect: float) -> None:
        """Say where a request goes and how."""
        import pycurl

        there, proxy = self._endpoint, self._endpoint.proxy
        curl.setopt(pycurl.URL, f"{there.scheme}://{there.host}:{there.port}{there.target}")
        curl.setopt(pycurl.PATH_AS_IS, True)
        curl.setopt(pycurl.HTTPHEADER, [*self._headers, b"expect:"])
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        curl.setopt(pycurl.NOSIGNAL, True)
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, round(connect * 1000))
        curl.setopt(pycurl.MAXAGE_CONN, _IDLE_SECONDS)
        curl.setopt(pycurl.NOPROXY, "")  # The environment has been asked.
        curl.setopt(pycurl.PROXY, "")
        if proxy is not None:
            host = f"[{proxy.host}]" if ":" in proxy.host else proxy.host
            curl.setopt(pycurl.PROXY, f"{proxy.scheme}://{host}:{proxy.port}")
            if proxy.auth is not None:
                curl.setopt(pycurl.PROXYUSERNAME, proxy.auth[0])
                curl.setopt(pycurl.PROXYPASSWORD, proxy.auth[1])
        if there.scheme == "https" or (proxy is not None and proxy.scheme == "https"):
            _trust(curl)

    def _fault(self, error: "pycurl.error", curl: "pycurl.Curl", answer: HttpAnswer, connect: float) -> Exception:
        """What an error of the library means that came before a head."""
        import pycurl

        code, text, where = error.args[0], str(error.args[-1]), self._where()
        if answer.proxy_said:
            return Unreachable(f"{where}: the proxy answered {answer.proxy_said}", answer.proxy_said.startswith("4"))
        if answer.refused:
            return Unreachable(f"{where}: {answer.refused}", True)
        if code == pycurl.E_OPERATION_TIMEDOUT:
            return Unreachable(f"{where} within {connect:g} seconds", False)
        not_http = (pycurl.E_UNSUPPORTED_PROTOCOL, _WEIRD_REPLY, pycurl.E_BAD_CONTENT_ENCODING, _TOO_LARGE)
        if answer.wrong or code in not_http:
            return WireError(f"the server's answer is not HTTP/1.1: {answer.wrong or text}")
        if code in (pycurl.E_GOT_NOTHING, pycurl.E_SEND_ERROR, pycurl.E_RECV_ERROR, pycurl.E_PARTIAL_FILE):
            return WireCut(_NO_ANSWER)
        if code == pycurl.E_SSL_CACERT_BADFILE:
            return Unreachable(f"the trusted certificates cannot be loaded: {text} (check SSL_CERT_FILE)", True)
        if code == pycurl.E_COULDNT_CONNECT and (number := curl.getinfo(pycurl.OS_ERRNO)):
            text = os.strerror(number)
        elif code == pycurl.E_PEER_FAILED_VERIFICATION:
            text = f"its certificate is not trusted: {text.rpartition(': ')[2]}"
        elif any(part in text for part in ("wrong version number", "http request", "packet length")):
            text = "it does not speak https; an address of a server without encryption begins with http://"
        return Unreachable(f"{where}: {text}", code == pycurl.E_PEER_FAILED_VERIFICATION)


def _trust(curl: "pycurl.Curl") -> None:
    """Trust the certificates that the system trusts, or those of SSL_CERT_FILE and SSL_CERT_DIR."""
    import pycurl

    curl.setopt(pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_2)
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if not file and not folder:
        import ssl

        paths = ssl.get_default_verify_paths()
        file, folder = paths.cafile or next(filter(os.path.isfile, _BUNDLES), None), paths.capath
        if sys.platform == "darwin":
            curl.setopt(pycurl.SSL_OPTIONS, pycurl.SSLOPT_NATIVE_CA)
            curl.setopt(pycurl.PROXY_SSL_OPTIONS, pycurl.SSLOPT_NATIVE_CA)
    options = (pycurl.CAINFO, pycurl.PROXY_CAINFO, pycurl.CAPATH, pycurl.PROXY_CAPATH)
    for option, path in zip(options, (file, file, folder, folder), strict=True):
        curl.setopt(option, path) if path else curl.unsetopt(option)


def refuser(endpoint: Endpoint) -> Callable[[str], str]:
    """Tells why an address that the endpoint's name led to is not asked, "" where it is: an address or a local name is
    what the person wrote, and a proxy is where they said. Over https the certificate tells who answers, so that a
    private address is as good as any (split DNS, tunnels); what no public name ever means is refused."""
    host = endpoint.host.strip("[]")
    if endpoint.proxy is not None or ":" in host or host[-1:].isdigit() or is_local_name(host):
        return lambda _: ""

    def refuses(address: str) -> str:
        kind = address_kind(address)
        if kind not in ("loopback", "link-local", "metadata", "multicast"):
            return ""
        return f"{host} leads to {address} ({kind}), which is not allowed; to use it anyway, put it in base_url"

    return refuses
