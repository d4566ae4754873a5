"""The terminal interface as a page: textual-serve behind a token, for this machine alone. Needs the extra web."""

import asyncio
import contextlib
import hmac
import html
import logging
import re
import socket
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

_LOG = logging.getLogger("textual-serve")
COOKIE = "codewhale-token"
_HOSTS = frozenset({"127.0.0.1", "localhost"})
MOST_PAGES = 8
CLOSE_SECONDS = 20.0
_REFUSED = "This page needs the whole address that codewhale web printed.\n"

# Nothing of the page comes from elsewhere, and nobody else's page holds it.
_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "font-src 'self' data:; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'"
)

# The terminal has the focus as soon as it is there, and again whenever the page has.
_FOCUS = """<script>
  const focus = () => document.querySelector(".xterm-helper-textarea")?.focus();
  new MutationObserver((_, seen) => { focus(); if (document.activeElement !== document.body) seen.disconnect(); })
    .observe(document, {childList: true, subtree: true, attributes: true});
  window.addEventListener("focus", focus);
  window.addEventListener("click", focus);
</script>"""
_FONTS = re.compile(r'<link\s+rel="stylesheet"\s+href="https://[^>]*>')

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PageServer(Server):  # type: ignore[misc, unused-ignore]
    """Serves `command` to whoever shows `token`, once in the address and then as a cookie."""

    def __init__(self, command: str, port: int, token: str, title: str = "CodeWhale") -> None:
        super().__init__(f"exec {command}", host="127.0.0.1", port=port, title=title)
        self._token = token
        self._pages: set[asyncio.Task[object]] = set()

    async def make(self) -> web.Application:
        """The application with the guard before every route."""
        app: web.Application = await self._make_app()
        app.middlewares.append(self._guard)
        return app

    async def on_startup(self, app: web.Application) -> None:
        """Whoever started it has been told the address already."""

    async def on_shutdown(self, app: web.Application) -> None:
        for task in self._pages:
            task.cancel()
        if self._pages:
            await asyncio.wait(self._pages, timeout=2 * CLOSE_SECONDS)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run the program for one page until either ends; none outlives its page."""
        socket = web.WebSocketResponse(heartbeat=15)
        await socket.prepare(request)

        async def close() -> None:
            await socket.close()

        program = _Program(
            self.command,
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=close,
            download_manager=self.download_manager,
        )
        size = (to_int(request.query.get(name, ""), usual) for name, usual in (("width", 80), ("height", 24)))
        try:
            await program.start(*size)
            await self._process_messages(socket, program)
        except Exception:
            # What no page of ours sends, or a program that cannot be started: this page ends, the others go on.
            _LOG.exception("a page was closed")
        finally:
            await program.stop()
            await socket.close()
        return socket

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let through what comes from this machine's own page and shows the token."""
        if not _is_here(request):
            raise web.HTTPForbidden(text=_REFUSED)
        given = request.query.get("token", "")
        if request.path == "/" and given:
            if not self._matches(given):
                raise web.HTTPForbidden(text=_REFUSED)
            # The token leaves the address, and with it the history of the browser.
            response = web.Response(status=302, headers={"Location": "/"})
            response.set_cookie(self._cookie, self._token, httponly=True, samesite="Strict", path="/")
            return response
        if not self._matches(request.cookies.get(self._cookie, "")):
            raise web.HTTPForbidden(text=_REFUSED)
        # A tunnel may show this port as another one: the page speaks to the address that it was asked at.
        self.public_url = f"http://{request.host}"
        if request.path == "/ws":
            return await self._page(request, handler)
        page = await handler(request)
        if request.path == "/" and isinstance(page, web.Response):
            head = f'<head><meta charset="utf-8"><title>{html.escape(self.title)}</title>{_FOCUS}'
            page.text = _FONTS.sub("", page.text or "").replace("<head>", head, 1)
        return _sealed(page)

    async def _page(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if len(self._pages) >= MOST_PAGES:
            raise web.HTTPServiceUnavailable(text=f"{MOST_PAGES} pages are open already; close one.\n")
        task = asyncio.current_task()
        assert task is not None
        self._pages.add(task)
        try:
            return await handler(request)
        finally:
            self._pages.discard(task)

    @property
    def _cookie(self) -> str:
        # Cookies do not tell ports apart; two servers side by side do.
        return f"{COOKIE}-{self.port}"

    def _matches(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._token.encode())


class _Program(AppService):  # type: ignore[misc, unused-ignore]
    """What runs behind one page."""

    async def stop(self) -> None:
        """Ask it to quit; end it by force when it has not within CLOSE_SECONDS."""
        process = self._process
        if process is None:
            return
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await super().stop()
                    await process.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _is_here(request: web.Request) -> bool:
    """Whether the request names this machine as its host and, where a page sent it, comes from that same page."""
    name, _, port = request.host.rpartition(":")
    if name not in _HOSTS or not port.isdigit():
        return False
    origin = request.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == request.host


def _sealed(response: web.StreamResponse) -> web.StreamResponse:
    """The answer with what keeps other pages and places out of it."""
    if not response.prepared:
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["X-Frame-Options"] = "DENY"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def serve(command: str, listening: socket.socket, token: str, title: str) -> None:
    """Serve until SIGINT or SIGTERM. Raises nothing for a page that fails."""
    _LOG.setLevel(logging.CRITICAL)
    server = PageServer(command, listening.getsockname()[1], token, title)
    web.run_app(server.make(), sock=listening, print=None, access_log=None, loop=asyncio.new_event_loop())
