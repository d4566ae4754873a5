"""`codewhale config`: read and change the configuration."""

import argparse
import os

from codewhale.cli.parser import add_workspace, workspace
from codewhale.cli.stdio import put, say
from codewhale.lib.text import sanitise

_WHAT = """Read and change the configuration.

The layers, lowest first: defaults, config.toml, the environment, the command line. Every key has an
environment variable: provider is CODEWHALE_PROVIDER, providers.deepseek.base_url is
CODEWHALE_PROVIDERS_DEEPSEEK_BASE_URL. The best place for a provider's key is `codewhale login NAME`; api_key_env
names an environment variable that holds one, and api_key holds one itself. No key is ever shown.
"""


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = _WHAT
    actions = parser.add_subparsers(dest="action", metavar="get|set|list|path", required=True)
    get = actions.add_parser("get", help="print a value", description="Print the value of a key, or a table's values.")
    get.add_argument("key", metavar="KEY", help="such as provider or providers.deepseek.base_url")
    get.add_argument("--show-origin", action="store_true", help="also where the value comes from")
    set_ = actions.add_parser("set", help="change a value", description="Change one value in config.toml.")
    set_.add_argument("key", metavar="KEY", help="such as model or providers.NAME.base_url")
    set_.add_argument("value", metavar="VALUE", help="text, a number, true or false, or JSON: what the key takes")
    every = actions.add_parser(
        "list", help="print every value and where it comes from; of providers the one in use and what is configured"
    )
    actions.add_parser("path", help="print where config.toml is", description="Print where config.toml is.")
    for action in (get, every):
        add_workspace(action)


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    from codewhale.config import config_file, home_dir

    home = home_dir(os.environ)
    if args.action == "path":
        path = config_file(home)
        put((sanitise(path) if os.isatty(1) else path) + "\n")
        return 0
    if args.action == "set":
        return _set(home, args.key, args.value)
    return _print(home, args)


def _set(home: str, key: str, value: str) -> int:
    from codewhale.app.settings import Settings
    from codewhale.config.edit import set_value
    from codewhale.config.values import variable

    path, _ = set_value(home, key, value, Settings)
    if os.environ.get(variable(path)):
        say(f"codewhale: {variable(path)} is set in the environment and wins over config.toml")
    return 0


def _table(key: str) -> str:
    """The provider's table that a key stands in, "" for any other key."""
    return ".".join(key.split(".")[:2]) if key.startswith("providers.") else ""


def _print(home: str, args: argparse.Namespace) -> int:
    from codewhale.app.settings import Settings, open_config
    from codewhale.config.edit import kind_at, parse_key
    from codewhale.config.values import dotted, is_table

    config = open_config(home, workspace(args), os.environ, {})
    for notice in config.notices:
        say(f"codewhale: {notice}")
    entries = config.entries(Settings)
    if args.action == "list":
        touched = {_table(entry.key) for entry in entries if entry.origin != "default"}
        touched |= {"", f"providers.{config.get('provider')}"}
        for entry in entries:
            if _table(entry.key) in touched:
                put(sanitise(f"{entry.key} = {entry.shown}  # {entry.origin}") + "\n")
        return 0
    path = parse_key(args.key)
    table = is_table(kind_at(Settings, path))
    key = dotted(path)
    chosen = [entry for entry in entries if entry.key == key or (table and entry.key.startswith(key + "."))]
    if not chosen:
        say(f"codewhale: {key} is not set")
        return 1
    for entry in chosen:
        value = entry.shown if table or entry.secret or not isinstance(entry.value, str) else entry.value
        name = f"{entry.key} = " if table else ""
        origin = f"  # {entry.origin}" if args.show_origin else ""
        put(sanitise(f"{name}{value}{origin}") + "\n")
    return 0
