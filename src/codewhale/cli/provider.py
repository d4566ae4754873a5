"""List the providers and where each one's key comes from, and test what one supports."""

import argparse
import asyncio
import os
from typing import Any

from codewhale.cli.parser import add_api_key, add_workspace, workspace
from codewhale.cli.stdio import put, say
from codewhale.lib.text import one_line, sanitise

_TEST = """Ask a provider a few small questions and show what it supports: whether it streams, calls tools (several at
once, undeclared ones), reasons in a field of its own, reports its cache and the window of the model.

At most 4 requests of 1,300 tokens with answers of at most 1,024 tokens. Each finding is yes, no or unknown, with what
was seen. What is certain is printed as lines of config.toml; --save writes them there.
"""


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="list|test", required=True)
    every = actions.add_parser("list", help="the providers, whether each can be used, and where its key comes from")
    test = actions.add_parser("test", help="ask a provider a few small questions", description=_TEST)
    test.epilog = "exit codes:\n  0 it answered   1 it did not   2 wrong usage or configuration\n"
    test.add_argument("name", metavar="NAME", help="a provider, as `codewhale provider list` names it")
    test.add_argument("--model", metavar="M", default="", help="the model to ask (default: the provider's own)")
    test.add_argument("--save", action="store_true", help="write what was found into config.toml")
    add_api_key(test)
    for action in (every, test):
        action.add_argument("--json", action="store_true", help="JSON: an array of providers, or the findings")
        add_workspace(action)


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    from codewhale.config import home_dir

    home, folder = home_dir(os.environ), workspace(args)
    return _list(home, folder, args) if args.action == "list" else _test(home, folder, args)


def _list(home: str, folder: str, args: argparse.Namespace) -> int:
    from codewhale.app.routes import open_routes
    from codewhale.app.settings import open_config
    from codewhale.display.lines import object_line

    rows = open_routes(home, open_config(home, folder, os.environ, {}), os.environ).rows()
    if args.json:
        put(object_line(rows) + "\n")
        return 0
    for row in rows:
        mark = "*" if row.default else " "
        put(
            sanitise(f"{mark} {row.name:<18} {row.dialect:<17} {row.base_url or '-':<42} {_state(row)}".rstrip()) + "\n"
        )
    put("* is used by default; store a key with: codewhale login NAME\n")
    return 0


def _state(row: Any) -> str:
    return one_line(row.problem, 300) if row.problem else f"key: {one_line(row.key.source)}"


def _test(home: str, folder: str, args: argparse.Namespace) -> int:
    from codewhale.cli.offline.probe import probe_provider, save
    from codewhale.display.lines import object_line

    report = asyncio.run(probe_provider(home, folder, os.environ, args.name, args.model, args.api_key))
    if args.json:
        put(object_line(report) + "\n")
    else:
        put(sanitise(_read_aloud(report)) + "\n")
    if args.save and report.toml:
        say(f"codewhale: saved in {save(home, report)}")
    return 0 if report.ok else 1


def _read_aloud(report: Any) -> str:
    found = report.found
    lines = [f"{report.model} of {report.provider} at {report.base_url or report.dialect}, key: {report.key}"]
    if not report.ok:
        return f"{lines[0]}\nno answer: {found.error}"
    lines += [f"{finding.answer:<8} {finding.name:<16} {finding.evidence}" for finding in found.findings]
    lines.append(f"{found.requests} requests, {found.input} tokens in, {found.output} out, {found.seconds:.1f} s")
    return "\n".join(lines) + (f"\n\n# for config.toml\n{report.toml.rstrip()}" if report.toml else "")
