"""Check the machine and the configuration, and ask the provider: for its list of models, and where a key is sent or
the model is not on it with one very small request. Nothing is changed; a key is never shown. Exits with 1 when
something must be fixed first."""

import argparse
import asyncio
import os

from codewhale.cli.parser import add_workspace, workspace
from codewhale.cli.stdio import put


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--offline", action="store_true", help="make no request to the provider")
    add_workspace(parser)


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    from codewhale.app.doctor import diagnose, examine, read_aloud
    from codewhale.config import home_dir
    from codewhale.display.lines import object_line

    place = (home_dir(os.environ), workspace(args), os.environ)
    found = diagnose(*place) if args.offline else asyncio.run(examine(*place))
    put((object_line(found) if args.json else read_aloud(found)) + "\n")
    return 0 if found.ok else 1
