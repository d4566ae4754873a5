"""List the known models, or show the facts of one. Other models can be used as well."""

import argparse
import asyncio
import os
from typing import Any

from codewhale.cli.parser import UsageError, add_workspace, workspace
from codewhale.cli.stdio import put, say
from codewhale.lib.text import sanitise


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="list|resolve", required=True)
    every = actions.add_parser("list", help="the known models, by provider and by id pattern")
    every.add_argument("--live", action="store_true", help="ask the provider which models it serves now")
    one = actions.add_parser("resolve", help="a model's context window and its source, price and facts")
    one.add_argument("id", metavar="ID", help="the id as sent, or PROVIDER/ID")
    for action in (every, one):
        action.add_argument(
            "--provider", metavar="P", default="", help="the provider (default for resolve: the configured one)"
        )
        action.add_argument("--json", action="store_true", help="JSON")
        add_workspace(action)


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    from codewhale.config import home_dir

    home, folder = home_dir(os.environ), workspace(args)
    if args.action == "resolve":
        return _resolve(home, folder, args)
    return _live(home, folder, args) if args.live else _list(home, folder, args)


def _list(home: str, folder: str, args: argparse.Namespace) -> int:
    from codewhale.cli.offline.models import model_rows
    from codewhale.display.lines import object_line

    rows = model_rows(home, folder, os.environ, args.provider)
    if args.json:
        put(object_line(rows) + "\n")
        return 0
    for row in rows:
        mark = "*" if row.default else " "
        put(sanitise(f"{mark} {row.provider or '(any)':<18} {_size(row.window):>9}  {row.match}") + "\n")
    put("* is a provider's default model; the number is the context window in tokens, - means unknown\n")
    return 0


def _live(home: str, folder: str, args: argparse.Namespace) -> int:
    from codewhale.cli.offline.models import live_models
    from codewhale.display.lines import object_line

    names = asyncio.run(live_models(home, folder, os.environ, args.provider))
    if args.json:
        put(object_line(names) + "\n")
    else:
        put("".join(sanitise(name) + "\n" for name in names))
    if not names:
        say("codewhale: the provider lists no models, or could not be reached; `codewhale provider test` shows why")
    return 0 if names else 1


def _resolve(home: str, folder: str, args: argparse.Namespace) -> int:
    from codewhale.cli.offline.models import resolve
    from codewhale.display.lines import object_line

    if not args.id.strip():
        raise UsageError("the id of a model is empty")
    found = resolve(home, folder, os.environ, args.id, args.provider)
    put((object_line(found) if args.json else sanitise(_read_aloud(found))) + "\n")
    return 0


def _read_aloud(found: Any) -> str:
    guess = ", a guess" if found.window_source in ("name", "fallback") else ""
    bound = f"at most {found.max_output:,} tokens" if found.max_output else "as long as the provider allows"
    lines = [
        f"{found.model} of {found.provider} ({found.dialect}{f' at {found.base_url}' if found.base_url else ''})",
        f"window      {found.window:,} tokens ({found.window_source}{guess})",
        f"answers     {bound}",
        f"price       {_price(found.price)}",
    ]
    lines += [f"fact        {name} = {value}" for name, value in found.facts.items()]
    if not found.known:
        lines.append("this id is not in the model table; it can be used unchanged")
    if found.others:
        lines.append(f"also known at {', '.join(found.others)}")
    return "\n".join(lines)


def _price(price: Any) -> str:
    if price is None:
        return "unknown"
    where = f" ({price.source}, {price.date})" if price.source else ""
    return f"{price.miss:g} in, {price.hit:g} from the cache, {price.output:g} out, {price.currency} per million{where}"


def _size(tokens: int) -> str:
    return f"{tokens:,}" if tokens else "-"
