"""Serve the terminal interface to a browser on this machine.

It listens on loopback only and requires the token in the address it prints: anyone with that address can do
what you can. Needs the extra: pip install 'codewhale[web]'.
"""

import argparse
import os
import re
import shlex

from codewhale.cli.parser import ChoiceError, UsageError, add_workspace, workspace
from codewhale.cli.stdio import put, say
from codewhale.lib.text import one_line
from codewhale.process.itself import own_python

PORT = 7877
_PROGRAM = "import sys; from codewhale.cli import main; sys.argv[0] = 'codewhale'; sys.exit(main())"
_MISSING = "the browser interface needs the extra web: pip install 'codewhale[web]'"


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = __doc__
    add_workspace(parser)
    parser.add_argument(
        "--port", metavar="N", type=_port, default=PORT, help=f"where to listen; 0 takes any free port; default {PORT}"
    )
    parser.add_argument("--theme", metavar="NAME", default="", help="dark, light, contrast or a file in themes/")
    parser.add_argument("--provider", metavar="P", default="", help="the configured provider to use")
    parser.add_argument("--model", metavar="M", default="", help="the model to use")
    parser.add_argument(
        "--continue", dest="latest", action="store_true", help="resume the latest session of this folder"
    )


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to 65535")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Serve until stopped; returns the exit code."""
    import secrets
    import socket

    command = shlex.join(_command(args))
    try:
        from codewhale.tui.webserver import serve
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("textual_serve", "aiohttp", "aiohttp_jinja2", "jinja2"):
            raise
        raise ChoiceError(_MISSING) from error
    try:
        listening = socket.create_server(("127.0.0.1", args.port), backlog=16)
    except OSError as error:
        raise UsageError(f"--port {args.port}: {error.strerror}; try another port, or 0 for any free one") from error
    token = secrets.token_urlsafe(32)
    with listening:
        port = listening.getsockname()[1]
        put(f"http://127.0.0.1:{port}/?token={token}\n")
        say("codewhale web: open that address in a browser on this machine; Ctrl+C stops it")
        serve(command, listening, token, f"{one_line(os.path.basename(workspace(args)), 60) or '/'} · CodeWhale")
    return 0


def _command(args: argparse.Namespace) -> list[str]:
    """The command line of the interface that each page gets."""
    words = [*own_python(_PROGRAM, "--workspace", workspace(args))]
    for name in ("theme", "provider", "model"):
        if value := getattr(args, name):
            words += [f"--{name}", value]
    return [*words, "--continue"] if args.latest else words
