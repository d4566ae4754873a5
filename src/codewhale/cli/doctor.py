"""Check the machine, the configuration and the provider settings. Nothing is contacted or changed; a key is
looked for and never shown. Exits with 1 when something must be fixed first."""

import argparse
import os

from codewhale.cli.parser import add_workspace, workspace
from codewhale.cli.stdio import put
from codewhale.lib.text import sanitise

_MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_workspace(parser)


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    from codewhale.app.doctor import diagnose
    from codewhale.config import home_dir
    from codewhale.display.lines import object_line

    found = diagnose(home_dir(os.environ), workspace(args), os.environ)
    if args.json:
        put(object_line(found) + "\n")
        return 0 if found.ok else 1
    put(f"codewhale {found.version}\n")
    for check in found.checks:
        fix = f"\n{'':18}-> {check.fix}" if check.fix else ""
        put(sanitise(f"{_MARKS[check.status]}  {check.name:<10}  {check.detail}{fix}") + "\n")
    warned = any(check.status == "warn" for check in found.checks)
    put("not ready: see FAIL above\n" if not found.ok else "usable; see warn above\n" if warned else "ready\n")
    return 0 if found.ok else 1
