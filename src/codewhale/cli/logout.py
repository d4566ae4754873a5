"""Delete the key that `codewhale login` stored for a provider. Keys in the configuration or the environment stay."""

import argparse
import os

from codewhale.cli.stdio import put, say
from codewhale.lib.text import sanitise


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", metavar="NAME", help="a provider that was logged in to")
    parser.epilog = "exit codes:\n  0 deleted   1 no key was stored   2 wrong usage\n"


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    from codewhale.cli.offline.login import log_out
    from codewhale.config import home_dir

    removed, left = log_out(home_dir(os.environ), os.environ, args.name)
    if removed:
        put(sanitise(f"The key of {args.name} is deleted.") + "\n")
    else:
        say(f"codewhale: no key is stored for {args.name}")
    if left:
        say(f"codewhale: {args.name} still uses the key from {left}")
    return 0 if removed else 1
