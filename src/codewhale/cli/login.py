"""Store a provider's API key for its host: in a file that only you can read, or in the system keyring.

The key is typed without being shown, or read from stdin. It is sent to the host that the provider has now, and
to no other: when base_url changes to another host, log in again.
"""

import argparse
import os
import sys

from codewhale.cli.parser import UsageError
from codewhale.cli.stdio import put, read_all_stdin, say
from codewhale.lib.text import sanitise

MAX_KEY = 16 << 10


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", metavar="NAME", help="a provider, as `codewhale provider list` names it")
    parser.add_argument("--keyring", action="store_true", help="store it in the system keyring (codewhale[keyring])")


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    from codewhale.cli.offline.login import log_in, login_host
    from codewhale.config import home_dir

    home = home_dir(os.environ)
    host = login_host(home, os.environ, args.name)
    kept = log_in(home, os.environ, args.name, _key(args.name, host), args.keyring)
    put(sanitise(f"The key of {args.name} is stored in {kept.place}, for {kept.host} only.") + "\n")
    if kept.wins:
        say(f"codewhale: {kept.wins} takes precedence and is used instead")
    return 0


def _key(name: str, host: str) -> str:
    if os.isatty(0):
        import getpass

        try:
            text = getpass.getpass(f"Key of {name}, for {host} (not shown): ", stream=sys.stderr)
        except EOFError:
            text = ""
    else:
        text = read_all_stdin(MAX_KEY).decode("utf-8", "replace")
    key = text.strip()
    if not key:
        raise UsageError(f"no key entered; type it, or pipe it in: codewhale login {name} < FILE")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError("not a key: a key is one line of ASCII characters without spaces. Nothing was stored")
    return key
