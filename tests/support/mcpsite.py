"""A server of the Model Context Protocol at an address, in the older revision; it may want a token or lead on."""

import asyncio
import json
import time
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from codewhale.mcp.terms import ServerFailed, ServerSpec
from support.patience import HANG


class Web(BaseHTTPRequestHandler):
    """A server of the older revision over HTTP, its guard of tokens, and the place where one logs in."""

    protocol_version = "HTTP/1.1"
    site: "Site"

    def do_GET(self) -> None:
        """What is said of the login; and where it leads."""
        own = self.site.url
        if self.path.startswith("/.well-known/oauth-protected-resource"):
            self._json(200, {"resource": f"{own}/mcp", "authorization_servers": [self.site.authority or own]})
        elif self.path.startswith("/.well-known/"):
            self._json(200, {
                "issuer": own, "authorization_endpoint": f"{own}/authorize", "token_endpoint": f"{own}/token",
                "registration_endpoint": f"{own}/register", "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            })  # fmt: skip
        else:
            self._json(405, {})

    def do_POST(self) -> None:
        """Tokens, and the protocol."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.site.seen.append((self.path, self.headers.get("Authorization") or ""))
        if self.path == "/register":
            self._json(201, {**json.loads(body), "client_id": "registered"})
        elif self.path == "/token":
            self._give({name: values[0] for name, values in parse_qs(body.decode()).items()})
        elif self.site.moved:
            self._lead(307, self.site.moved)
        elif self.site.token and self.headers.get("Authorization") != f"Bearer {self.site.token}":
            self._json(401, {})
        else:
            message = json.loads(body)
            status, place = self.site.leads.get((self.path, message.get("method")), (0, ""))
            if status:
                self._lead(status, place)
            else:
                self._speak(message)

    def _give(self, form: dict[str, str]) -> None:
        """Tokens for a code or a refresh token; each of those is taken once, and gives another."""
        site = self.site
        if form.get("grant_type") == "refresh_token":
            site.presented.append(form["refresh_token"])
            site.asked.set()
            time.sleep(site.pause)
            if site.token_status:
                return self._lead(site.token_status, f"{site.moved}/token")
            if form["refresh_token"] != site.refresh:
                return self._json(400, {"error": "invalid_grant"})
            site.rotate()
        given = {"access_token": site.gives, "token_type": "Bearer", "refresh_token": site.refresh, "expires_in": 3600}
        return self._json(200, given)

    def _lead(self, status: int, place: str) -> None:
        self.send_response(status)
        self.send_header("Location", place)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _speak(self, message: dict[str, Any]) -> None:
        number, method = message.get("id"), message.get("method")
        if number is None:
            return self._json(202, {})
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "web", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "say", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "said"}]},
        }  # fmt: skip
        if method not in results:
            error = {"code": -32601, "message": "unknown"}
            return self._json(200, {"jsonrpc": "2.0", "id": number, "error": error})
        return self._json(200, {"jsonrpc": "2.0", "id": number, "result": results[method]})

    def _json(self, status: int, value: object) -> None:
        data = json.dumps(value).encode() if status != 202 else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


class Site:
    """One such server: what token it wants, where it leads instead (`leads` by path and method), and what it has seen.
    As an authority it `gives` an access token and a `refresh` token; `presented` are the refresh tokens it was sent,
    `token_status` what it answers them instead. `end` it."""

    def __init__(self, ip: str = "127.0.0.1") -> None:
        self.token = self.moved = self.authority = ""
        self.seen: list[tuple[str, str]] = []
        self.leads: dict[tuple[str, str], tuple[int, str]] = {}
        self.gives, self.refresh, self.pause, self.token_status = "fresh", "r", 0.0, 0
        self.presented: list[str] = []
        self.asked = Event()
        self.guards: list[Site] = [self]
        handler = type("SiteHandler", (Web,), {"site": self})
        self.server = ThreadingHTTPServer((ip, 0), handler)
        self.port = int(self.server.server_address[1])
        self.url = f"http://{ip}:{self.port}"
        self._thread = Thread(target=self.server.serve_forever, args=(0.02,))
        self._thread.start()

    def end(self) -> None:
        """Answer nobody any more."""
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()

    def rotate(self) -> None:
        """Other tokens from now on; those from before are worth nothing."""
        number = len(self.presented)
        self.gives, self.refresh = f"fresh-{number}", f"refresh-{number}"
        for site in self.guards:
            site.token = self.gives

    def spec(self, name: str = "web", **fields: Any) -> ServerSpec:
        """How it is reached."""
        return ServerSpec(name, url=f"{self.url}/mcp", connect_seconds=HANG, **fields)


class Silent:
    """A caller that nobody asks."""

    async def elicit(self, server: str, message: str, schema: dict[str, Any], url: str) -> dict[str, Any]:
        return {"action": "decline"}

    async def sample(self, server: str, request: dict[str, Any]) -> dict[str, Any]:
        raise ServerFailed("refused", "no")

    def progress(self, server: str, done: float, total: float | None, text: str) -> None: ...

    def log(self, server: str, level: str, text: str) -> None: ...


def browser(visited: list[str]) -> Callable[[str], None]:
    """Somebody who logs in, and is led back."""

    def visit(url: str) -> None:
        visited.append(url)
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        back = f"{query['redirect_uri']}?code=c&state={query['state']}"
        asyncio.get_running_loop().run_in_executor(None, lambda: urllib.request.urlopen(back, timeout=60).read())

    return visit
