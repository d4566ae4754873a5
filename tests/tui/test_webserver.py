"""The page: who gets it, who does not, and that it holds nothing from elsewhere."""

import asyncio
import os
import re
import shlex
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("textual_serve")
from aiohttp import ClientSession, CookieJar, WSMsgType, web

from codewhale.tui.webserver import PageServer
from support.patience import HANG
from support.running import eventually

TOKEN = "t0ken"
SCRIPT = "import sys; sys.stdin.read(1)"
DEAF = "import os,time; open(os.environ['MARK'], 'w').write(str(os.getpid())); time.sleep(600)"


@asynccontextmanager
async def served(script: str = SCRIPT) -> AsyncIterator[str]:
    """The address of a page server whose pages run a script."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    server = PageServer(shlex.join([sys.executable, "-c", script]), port, TOKEN)
    runner = web.AppRunner(await server.make(), access_log=None)
    await runner.setup()
    await web.SockSite(runner, listening).start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()
        listening.close()


def person() -> ClientSession:
    """A browser that keeps cookies."""
    return ClientSession(cookie_jar=CookieJar(unsafe=True))


@pytest.mark.parametrize("path", ["/", "/?token=wrong", "/ws", "/static/js/textual.js", "/download/x", "/?token="])
async def test_nobody_gets_anything_without_the_token(path: str) -> None:
    async with served() as address, person() as browser, browser.get(address + path) as answer:
        assert answer.status == 403
        assert "codewhale web printed" in await answer.text()


async def test_the_token_becomes_a_cookie_and_leaves_the_address() -> None:
    async with served() as address, person() as browser:
        async with browser.get(f"{address}/?token={TOKEN}", allow_redirects=False) as answer:
            cookie = answer.headers["Set-Cookie"]
            assert (answer.status, answer.headers["Location"]) == (302, "/")
            assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        async with browser.get(f"{address}/") as answer:
            page = await answer.text()
            policy = answer.headers["Content-Security-Policy"]
            assert answer.status == 200 and TOKEN not in page
            assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
            assert f"ws://{address.removeprefix('http://')}/ws" in page
        async with browser.get(f"{address}/static/js/textual.js") as answer:
            assert answer.status == 200


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Host": "evil.example:80"}, {"Origin": "http://evil.example"}, {"Origin": "null"}],
)
async def test_other_pages_and_other_names_are_refused(headers: dict[str, str]) -> None:
    async with served() as address, person() as browser:
        async with browser.get(f"{address}/?token={TOKEN}"):
            pass
        async with browser.get(f"{address}/", headers=headers) as answer:
            assert answer.status == 403


async def test_a_page_through_a_tunnel_speaks_to_the_port_it_was_asked_at() -> None:
    async with served() as address, person() as browser:
        async with browser.get(f"{address}/?token={TOKEN}", allow_redirects=False) as answer:
            cookie = answer.headers["Set-Cookie"].partition(";")[0]
        headers = {"Host": "localhost:9999", "Cookie": cookie}
        async with browser.get(f"{address}/", headers=headers) as answer:
            assert re.search(r"ws://localhost:9999/ws", await answer.text())


async def test_only_so_many_pages_at_once() -> None:
    from codewhale.tui import webserver

    async with served() as address, person() as browser:
        async with browser.get(f"{address}/?token={TOKEN}"):
            pass
        sockets = [await browser.ws_connect(f"{address}/ws") for _ in range(webserver.MOST_PAGES)]
        async with browser.get(f"{address}/ws") as answer:
            assert answer.status == 503
        await asyncio.gather(*[one.close() for one in sockets])


@pytest.mark.parametrize("sent", ["no JSON", '{"a": 1}', "[]", '["resize", 7]', '["stdin"]'])
async def test_what_no_page_of_ours_sends_ends_that_page_alone(sent: str) -> None:
    async with served() as address, person() as browser:
        async with browser.get(f"{address}/?token={TOKEN}"):
            pass
        odd, other = [await browser.ws_connect(f"{address}/ws") for _ in range(2)]
        await odd.send_str(sent)
        assert (await odd.receive(timeout=HANG)).type in (WSMsgType.CLOSE, WSMsgType.CLOSED)
        assert not other.closed
        await other.send_json(["ping", "still here"])
        assert await other.receive_json(timeout=HANG) == ["pong", "still here"]


async def test_a_program_that_does_not_quit_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from codewhale.tui import webserver

    mark = tmp_path / "mark"
    monkeypatch.setenv("MARK", str(mark))
    monkeypatch.setattr(webserver, "CLOSE_SECONDS", 0.2)
    async with served(DEAF) as address, person() as browser:
        async with browser.get(f"{address}/?token={TOKEN}"):
            pass
        await browser.ws_connect(f"{address}/ws")
        await eventually(lambda: mark.exists() and bool(mark.read_text()))
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)
