"""What model calls used: tokens, cache hits and cost, over all sessions or those of one folder."""

import argparse
import os
import re
import time
from typing import Any

from codewhale.cli.parser import UsageError, workspace
from codewhale.cli.stdio import put
from codewhale.lib.clock import rfc3339
from codewhale.lib.text import one_line

_SPAN = re.compile(r"(\d{1,6})([mhdw])")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?Z?)?")
_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--since", metavar="WHEN", default="", help="only calls since: 24h, 7d, or a date in UTC")
    parser.add_argument("-w", "--workspace", metavar="DIR", help="only sessions of this folder (default: all sessions)")
    parser.add_argument("--days", action="store_true", help="one line per day")


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    from codewhale.cli.offline.usage import usage_stats
    from codewhale.config import home_dir, refuse_unusable

    home = home_dir(os.environ)
    refuse_unusable(home)
    folder = "" if args.workspace is None else workspace(args)
    stats = usage_stats(home, folder, _since(args.since))
    if args.json:
        from codewhale.display.lines import object_line

        put(object_line(stats) + "\n")
    else:
        put(_text(stats, args.days))
    return 0


def _since(text: str) -> str:
    if not text:
        return ""
    span = _SPAN.fullmatch(text)
    if span:
        return rfc3339(max(0.0, time.time() - int(span[1]) * _SECONDS[span[2]]))
    if _DATE.fullmatch(text):
        return text.rstrip("Z")
    raise UsageError(f"--since {one_line(text)!r}: use 24h, 7d, 2w or a date such as 2026-11-01")


def _text(stats: dict[str, Any], days: bool) -> str:
    total = stats["total"]
    if not total["calls"]:
        return "no model calls yet\n"
    lines = [
        f"sessions  {stats['sessions']}, {stats['turns']} turns, {total['calls']} model calls",
        f"tokens    {total['input']:,} in, {total['output']:,} out ({total['reasoning']:,} reasoning)",
        f"cache     {_cache(total)}",
        f"cost      {_cost(total)}",
    ]
    if total["saved"]:
        lines.append(f"saved     {_money(total['saved'])} by the cache")
    for cause, count in sorted(total["misses"].items(), key=lambda item: -int(item[1]["tokens"])):
        lines.append(f"missed    {one_line(cause)}: {count['tokens']:,} tokens in {_calls(count)}")
    for row in stats["models"]:
        lines.append(f"model     {one_line(row['model'])} at {one_line(row['provider'])}: {_row(row)}")
    lines += [f"day       {row['day']}: {_row(row)}" for row in stats["days"] if days]
    if stats["unreadable"]:
        lines.append(f"unread    {stats['unreadable']} sessions could not be read")
    return "\n".join(lines) + "\n"


def _row(sums: dict[str, Any]) -> str:
    return f"{_calls(sums)}, {sums['input']:,} in, {sums['output']:,} out, {_cost(sums)}"


def _calls(sums: dict[str, Any]) -> str:
    return f"{sums['calls']} call{'s' * (sums['calls'] != 1)}"


def _cache(sums: dict[str, Any]) -> str:
    if sums["hit_rate"] is None:
        return "unknown: not reported by any provider"
    return f"{sums['hit_rate']:.1%} of {sums['told']:,} tokens came from cache, {sums['expected_rate']:.1%} should have"


def _cost(sums: dict[str, Any]) -> str:
    if sums["unpriced"] == sums["calls"]:
        return "price unknown"
    known = _money(sums["cost"])
    return f"{known} and {sums['unpriced']} calls of unknown price" if sums["unpriced"] else known


def _money(amounts: dict[str, float]) -> str:
    return " + ".join(f"{amount:.6f} {one_line(currency)}" for currency, amount in amounts.items()) or "0"
