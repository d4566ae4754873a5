"""Serve this workspace to other programs over the Model Context Protocol.

Offered are tools that read, and conversations; what writes or runs when it is named (--offer), and then each call is
decided by your permissions and asked of the client's person, or denied where the client cannot ask. Over stdio unless
--http is named: it asks for a token, and listens on this machine alone unless a host is named."""

import argparse
import asyncio
import os
import re
import signal
from typing import TYPE_CHECKING, Any

from codewhale.cli.exec import add_limits, limits_of
from codewhale.cli.parser import UsageError, add_workspace, workspace
from codewhale.cli.stdio import put, say
from codewhale.display.leaving import exit_within

if TYPE_CHECKING:
    from codewhale.app.compose import App
    from codewhale.mcpserver.server import CodeWhaleServer

TOKEN_VARIABLE, TOKEN_NAME = "CODEWHALE_MCP_TOKEN", "codewhale mcp serve"
_LEAVING = 20.0  # seconds from an order to end to the end of the process at the latest
_CONVERSATION_SECONDS = 1800.0
_SHORTEST_TOKEN = 16


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = __doc__
    add_workspace(parser)
    what = "offer this tool too (repeatable); beside those of [mcp_server] offer in config.toml"
    parser.add_argument("--offer", metavar="TOOL", action="append", default=[], help=what)
    parser.add_argument("--no-conversations", action="store_true", help="offer no conversations")
    modes = ["plan", "agent", "yolo"]
    what = (
        "what conversations and calls may do; default agent where a tool that changes something is offered, else plan"
    )
    parser.add_argument("--mode", choices=modes, help=what)
    parser.add_argument("--provider", metavar="P", default="", help="the configured provider of conversations")
    parser.add_argument("--model", metavar="M", default="", help="the model of conversations")
    http = parser.add_argument_group("HTTP")
    what = "serve over HTTP at /mcp; 0 takes any free port; host 127.0.0.1 unless named"
    http.add_argument("--http", metavar="[HOST:]PORT", type=_address, help=what)
    what = "a further value of Host that is served (repeatable): the name of this machine in your network"
    http.add_argument("--allow-host", metavar="NAME[:PORT]", action="append", default=[], type=_host, help=what)
    what = "pages of this origin may call the server (repeatable)"
    http.add_argument("--allow-origin", metavar="ORIGIN", action="append", default=[], type=_origin, help=what)
    http.add_argument("--token", dest="show_token", action="store_true", help="print the token and end")
    http.add_argument("--new-token", action="store_true", help="make another token, print it and end")
    add_limits(parser)


def run(args: argparse.Namespace) -> int:
    """Serve until the client or a signal ends it; returns the exit code."""
    if args.show_token or args.new_token:
        put(f"{_token(renew=args.new_token)}\n")
        return 0
    if args.http is None and (args.allow_host or args.allow_origin):
        raise UsageError("--allow-host and --allow-origin need --http")
    return asyncio.run(_serve(args, workspace(args)))


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535 or not re.fullmatch(r"[A-Za-z0-9.:-]*", host):
        raise argparse.ArgumentTypeError(f"{text!r} is not [HOST:]PORT, such as 7879 or 127.0.0.1:7879")
    return host or "127.0.0.1", int(port)


def _host(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a host, such as box.local or box.local:7879")
    return text.lower()


def _origin(text: str) -> str:
    if not re.fullmatch(r"https?://[^/\s*]{1,253}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not an origin, such as https://example.com")
    return text


def _token(renew: bool = False) -> str:
    """The token that HTTP asks for: of the environment, or the one that is kept; made where there is none."""
    import secrets

    from codewhale.config import home_dir
    from codewhale.models.keys import KeyStore

    named = os.environ.get(TOKEN_VARIABLE, "").strip()
    if named and not renew:
        if len(named) < _SHORTEST_TOKEN or not named.isascii() or not named.isprintable() or " " in named:
            raise UsageError(f"{TOKEN_VARIABLE} must be {_SHORTEST_TOKEN} or more ASCII characters without spaces")
        return named
    store = KeyStore(home_dir(os.environ))
    row = None if renew else store.all().get(TOKEN_NAME)
    if row is not None and row.key:
        return row.key
    token = secrets.token_urlsafe(32)
    store.put(TOKEN_NAME, token, "localhost")
    return token


async def _serve(args: argparse.Namespace, folder: str) -> int:
    from codewhale.app.compose import AppOptions, open_app
    from codewhale.config import home_dir

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    options = AppOptions(home_dir(os.environ), folder, provider=args.provider, model=args.model)
    async with open_app(options) as app:
        for notice in app.config.notices:
            say(f"codewhale: {notice}")
        served = await _served(args, app, folder)
        serving = asyncio.create_task(_http(args, served) if args.http is not None else _stdio(served))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            exit_within(_LEAVING, 0)
            stopping.cancel()
            serving.cancel()
            await asyncio.gather(serving, stopping, return_exceptions=True)
            await served.aclose()
        if not serving.cancelled() and (fault := serving.exception()) is not None:
            raise fault
    return 0


async def _served(args: argparse.Namespace, app: "App", folder: str) -> "CodeWhaleServer":
    """What is served. Raises ConfigError for a tool that cannot be offered."""
    from msgspec.structs import replace

    from codewhale import __version__
    from codewhale.app.settings import McpServerTable
    from codewhale.display.words import Words
    from codewhale.mcpserver.offer import offered
    from codewhale.mcpserver.server import CodeWhaleServer, Serving
    from codewhale.protocol.directcalls import ListTools
    from codewhale.protocol.modes import Mode
    from codewhale.protocol.ops import CloseSession, OpenSession

    opening = OpenSession(folder, provider=args.provider, model=args.model)
    looking = await app.client.submit(opening)
    rows = await app.client.query(ListTools(looking))
    await app.client.submit(CloseSession(looking))
    named = (*app.config.section("mcp_server", McpServerTable).offer, *args.offer)
    offer = offered(rows, named, not args.no_conversations)
    mode = Mode(args.mode) if args.mode else Mode.AGENT if offer.changes else Mode.PLAN
    limits = limits_of(args)
    if limits.seconds is None:
        limits = replace(limits, seconds=_CONVERSATION_SECONDS)
    words = Words(app.config.get("tui.language") or "en")
    return CodeWhaleServer(app.client, Serving(replace(opening, mode=mode, limits=limits), offer, words, __version__))


async def _stdio(served: "CodeWhaleServer") -> None:
    from codewhale.mcpserver.stdio import StandardStreams, serve_stdio

    await serve_stdio(served.protocol(), StandardStreams())


async def _http(args: argparse.Namespace, served: "CodeWhaleServer") -> None:
    from codewhale.mcpserver import http

    host, port = args.http
    try:
        listening = http.listening(host, port)
    except OSError as error:
        raise UsageError(f"--http {host}:{port}: {error.strerror}; try another port, or 0 for any free one") from error
    with listening:
        port = listening.getsockname()[1]
        opened = http.door(_token(), host, port, tuple(args.allow_host), tuple(args.allow_origin))
        shown = f"[{host}]" if ":" in host else host
        say(f"codewhale mcp serve: http://{shown}:{port}{http.PATH}; codewhale mcp serve --token prints its token")
        if not http.is_loopback(host):
            say("codewhale mcp serve: others can reach this address, and HTTP does not hide the token on its way")
        listener: Any = http.listener(served.protocol(), opened)
        try:
            await listener.serve(sockets=[listening])
        except asyncio.CancelledError:
            listener.end()
            raise
