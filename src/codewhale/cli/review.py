"""Review a change with the configured model; it changes no file and asks nothing.

Without TARGET it reviews uncommitted changes. TARGET is a branch, a commit or a range, or - for the text of a
pull request on stdin.
"""

import argparse
import asyncio
import os

from codewhale.cli.exec import add_limits, limits_of, whole_number
from codewhale.cli.parser import ChoiceError, UsageError, add_api_key, add_workspace, workspace
from codewhale.cli.stdio import put, read_stdin, say
from codewhale.protocol.errors import ReviewTargetError
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Interrupt, OpenSession
from codewhale.protocol.reviews import REVIEW_SECONDS, SEVERITIES, Review, ReviewResult

SERIOUS = 3
_EXIT_CODES = """exit codes:
  0 reviewed   1 the review failed   2 wrong usage or configuration   3 findings at or above --fail-on
  4 a limit was reached   75 try again later   130 interrupted
"""


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description, parser.epilog = __doc__, _EXIT_CODES
    add_workspace(parser)
    parser.add_argument("--provider", metavar="P", default="", help="the configured provider to use")
    parser.add_argument("--model", metavar="M", default="", help="the model to use")
    add_api_key(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--staged", action="store_true", help="the staged changes")
    what.add_argument("--base", metavar="REF", default="", help="what this branch changed since REF")
    what.add_argument("target", metavar="TARGET", nargs="?", default="", help="what to review")
    parser.add_argument("--path", metavar="PATH", default="", help="only this file or folder")
    parser.add_argument("--max-chars", metavar="N", type=whole_number, default=200_000, help="most characters to read")
    parser.add_argument("--fail-on", choices=SEVERITIES, help="exit with 3 for findings of this severity or worse")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_limits(parser)


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    folder = workspace(args)
    text = read_stdin() if args.target == "-" else ""
    if args.target == "-" and not text.strip():
        raise UsageError("the text on stdin is empty")
    opening = OpenSession(folder, Mode.PLAN, Authority.HEADLESS, args.provider, args.model, limits=limits_of(args))
    return _print(args, asyncio.run(_review(args, opening, text)))


async def _review(args: argparse.Namespace, opening: OpenSession, text: str) -> ReviewResult:
    import signal

    from codewhale.app.compose import AppOptions, open_app
    from codewhale.config import home_dir

    options = AppOptions(home_dir(os.environ), opening.workspace, args.provider, args.model, args.api_key)
    async with open_app(options) as app:
        session = await app.client.submit(opening)
        loop, stops = asyncio.get_running_loop(), set[asyncio.Task[None]]()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, lambda: stops.add(loop.create_task(app.client.submit(Interrupt(session)))))
        target = "" if text else args.target
        seconds = args.max_seconds or REVIEW_SECONDS
        op = Review(session, target, text, args.staged, args.base, args.path, args.max_chars, seconds)
        try:
            return await app.client.submit(op)
        except ReviewTargetError as error:
            raise ChoiceError(str(error)) from error


def _print(args: argparse.Namespace, result: ReviewResult) -> int:
    from codewhale.display.lines import object_line
    from codewhale.lib.text import sanitise

    grave = SEVERITIES[: SEVERITIES.index(args.fail_on) + 1] if args.fail_on else ()
    code = SERIOUS if any(one.severity in grave for one in result.findings) else result.exit_code
    if args.json:
        fields = {name: getattr(result, name) for name in result.__struct_fields__ if name != "text"}
        put(object_line({"schema_version": 1, **fields, "exit_code": code}) + "\n")
    elif result.status == "done":
        put(sanitise(result.text) + "\n")
    else:
        say(f"codewhale: {result.status}: {result.error or 'no reason given'}")
    return code
