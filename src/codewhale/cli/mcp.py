"""`codewhale mcp`: the MCP servers that the files of the person and of the project name."""

import argparse
import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from codewhale.cli import mcpserve
from codewhale.cli.parser import ChoiceError, add_workspace, workspace
from codewhale.cli.stdio import put, say, say_raw
from codewhale.lib.text import sanitise
from codewhale.protocol.errors import ConfigError

if TYPE_CHECKING:
    from codewhale.mcp.admin import McpAdmin

_WHAT = """List, add, approve, switch and check MCP servers: programs and addresses of others
that bring tools, resources and prompts.

Servers are named in your own mcp.json and in a project's .mcp.json or
.codewhale/mcp.json. None is started before you approve it: its whole command
line, the names of its variables, its address, and the bytes of the files it
names. After a change it asks again.

serve is the other side: it offers this workspace to other programs.
"""
_ENDS = "exit codes:\n  0 done, and nothing is wrong   1 something is wrong, or you answered no   2 wrong usage\n"
Doing = Callable[["McpAdmin", argparse.Namespace], int]


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description, parser.epilog = _WHAT, _ENDS
    actions = parser.add_subparsers(dest="action", metavar="list|show|add|approve|...", required=True)
    _declare(actions, "list", "the servers with their state")
    _named(_declare(actions, "show", "all that is known of a server"))
    _for_project(_declare(actions, "init", "make an empty file with an example"))
    add = _named(_declare(actions, "add", "add a server, and approve it as it is shown"))
    add.add_argument("line", metavar="COMMAND|URL", nargs="+", help="the program with its arguments, or the address")
    add.add_argument("--env", metavar="NAME=VALUE", action="append", default=[], help="a variable of the program")
    add.add_argument("--header", metavar="NAME:VALUE", action="append", default=[], help="a header for the address")
    _for_project(add)
    approve = _named(_declare(actions, "approve", "show what would be started, and approve it"))
    for action in (add, approve):
        action.add_argument("-y", "--yes", action="store_true", help="do not ask, also on a terminal")
    for verb, what in (("enable", "switch a server on"), ("disable", "switch a server off")):
        _named(_declare(actions, verb, what))
    _named(_declare(actions, "remove", "take a server out of its file, with its approval"))
    validate = _declare(actions, "validate", "say what is wrong with the files")
    validate.add_argument("--start", action="store_true", help="also start each approved server")
    _named(_declare(actions, "reload", "start a server and list anew what it offers"))
    login = _named(_declare(actions, "login", "keep a token for the address of a server; it is read from stdin"))
    how = login.add_mutually_exclusive_group()
    how.add_argument("--remove", action="store_true", help="remove the kept token, and the login")
    how.add_argument("--browser", action="store_true", help="log in by OAuth: shows the address to open")
    mcpserve.build(actions.add_parser("serve", help="offer this workspace's tools to other programs"))


def _declare(actions: Any, name: str, what: str) -> argparse.ArgumentParser:
    action: argparse.ArgumentParser = actions.add_parser(name, help=what, epilog=_ENDS)
    action.add_argument("--json", action="store_true", help="as JSON")
    add_workspace(action)
    return action


def _named(action: argparse.ArgumentParser) -> argparse.ArgumentParser:
    action.add_argument("name", metavar="NAME", help="the name of the server")
    return action


def _for_project(action: argparse.ArgumentParser) -> None:
    action.add_argument("--project", action="store_true", help="in the project's file, not in your own")


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    if args.action == "serve":
        return mcpserve.run(args)
    from codewhale.app.mcpparts import open_servers
    from codewhale.app.settings import open_config
    from codewhale.config import home_dir, refuse_unusable
    from codewhale.mcp.admin import McpAdmin

    home, folder = home_dir(os.environ), workspace(args)
    refuse_unusable(home)
    config = open_config(home, folder, os.environ, {})
    service = open_servers(home, folder, config.section("mcp_config_path", str), os.environ)
    try:
        return _DOINGS[args.action](McpAdmin(service), args)
    except ConfigError as error:
        raise ChoiceError(str(error)) from error


def _list(admin: "McpAdmin", args: argparse.Namespace) -> int:
    from codewhale.mcp.admin import describe

    rows, faults = admin.rows(), [fault.line for fault in admin.faults()]
    if args.json:
        _json({"file": admin.path(False), "servers": rows, "faults": faults})
    else:
        put(sanitise("".join(f"{line}\n" for line in (*map(describe, rows), *faults))))
        if not rows:
            say(f"codewhale: no MCP servers; `codewhale mcp add` writes to {admin.path(False)}")
    return 1 if faults or any(row.state == "faulty" for row in rows) else 0


def _show(admin: "McpAdmin", args: argparse.Namespace) -> int:
    from codewhale.mcp.admin import shown

    row = admin.row(args.name)
    if args.json:
        _json(row)
    else:
        put(shown(row) + "\n")
    return 1 if row.state in ("faulty", "failed") else 0


def _init(admin: "McpAdmin", args: argparse.Namespace) -> int:
    return _done(args, "made", admin.init(args.project))


def _add(admin: "McpAdmin", args: argparse.Namespace) -> int:
    from codewhale.mcp.typed import typed_entry

    path = admin.add(args.name, typed_entry(args.line, args.env, args.header), args.project)
    return _approve(admin, args) or _done(args, "added to", path)


def _approve(admin: "McpAdmin", args: argparse.Namespace) -> int:
    pending = admin.pending(args.name)
    if pending is None:
        say(f"codewhale: {args.name} is approved as it is")
        return 0
    say_raw("".join(f"{sanitise(line)}\n" for line in pending.card))
    if os.isatty(0) and os.isatty(2) and not args.yes:
        say_raw(f"Approve {args.name} as shown? [y/N] ")
        if os.read(0, 100).strip().lower() not in (b"y", b"yes"):
            say("codewhale: not approved; it is not started")
            return 1
    admin.approve(args.name, pending.fingerprint)
    if args.action == "approve":
        _done(args, "approved", args.name)
    return 0


def _switch(admin: "McpAdmin", args: argparse.Namespace) -> int:
    return _done(args, f"{args.action}d in", admin.switch(args.name, args.action == "enable"))


def _remove(admin: "McpAdmin", args: argparse.Namespace) -> int:
    return _done(args, "removed from", admin.remove(args.name))


def _validate(admin: "McpAdmin", args: argparse.Namespace) -> int:
    found = asyncio.run(_closing(admin, lambda: admin.validate(args.start)))
    if args.json:
        _json({"faults": found.faults, "answered": found.answered})
    else:
        put(sanitise("".join(f"{line}\n" for line in (*found.faults, *found.answered))))
        say("codewhale: nothing is wrong") if not found.faults else None
    return 1 if found.faults else 0


def _reload(admin: "McpAdmin", args: argparse.Namespace) -> int:
    from codewhale.mcp.admin import describe

    row = asyncio.run(_closing(admin, lambda: admin.start(args.name)))
    if args.json:
        _json(row)
    else:
        put(sanitise(f"{describe(row)}\n"))
    return 0


async def _closing(admin: "McpAdmin", work: Callable[[], Any]) -> Any:
    try:
        return await work()
    finally:
        await admin.aclose()


def _login(admin: "McpAdmin", args: argparse.Namespace) -> int:
    if args.remove:
        return _done(args, "removed the token of" if admin.forget_token(args.name) else "had no token:", args.name)
    if args.browser:
        asyncio.run(_closing(admin, lambda: admin.log_in(args.name, _visit)))
        return _done(args, "logged in to", args.name)
    token = _typed(f"Token for {args.name}: ")
    return _done(args, "kept for", admin.keep_token(args.name, token))


def _visit(url: str) -> None:
    say(sanitise(f"codewhale: open this address in your browser, and log in there:\n{url}"))


def _typed(question: str) -> str:
    if os.isatty(0):
        import getpass

        return getpass.getpass(question)
    return os.fdopen(0, "rb", closefd=False).readline(65_536).decode("utf-8", "replace").strip()


def _done(args: argparse.Namespace, what: str, where: str) -> int:
    if args.json:
        _json({"action": args.action, "where": where})
    else:
        put(sanitise(f"{what} {where}\n"))
    return 0


def _json(value: object) -> None:
    from codewhale.display.lines import object_line

    put(object_line(value) + "\n")


_DOINGS: dict[str, Doing] = {
    "list": _list, "show": _show, "init": _init, "add": _add, "approve": _approve, "enable": _switch,
    "disable": _switch, "remove": _remove, "validate": _validate, "reload": _reload, "login": _login,
}  # fmt: skip
