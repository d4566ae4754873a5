"""`codewhale exec`: run one prompt without a screen and print the answer."""

import argparse
import asyncio
import gc
import math
import os
import re
import signal
from typing import Any

from msgspec.structs import replace

from codewhale.cli.parser import ChoiceError, UsageError, add_api_key, add_session, workspace
from codewhale.cli.stdio import Stdout, piped_in, put, read_stdin, say, say_raw
from codewhale.cli.usage import RETRYABLE, USAGE, exit_code, opening
from codewhale.display.leaving import exit_within
from codewhale.lib.text import fenced
from codewhale.protocol.errors import CodeWhaleError, SessionError
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Limits, OpenSession

_LEAVING = 20.0  # seconds from the end of a run, or an order to end, to the end of the process at the latest
_WHAT = """Run one prompt without the interface and print the answer.

PROMPT is the task; - reads it from stdin. Anything piped in beside a PROMPT is sent along with it. A prompt
that starts with a slash, such as "/status", runs that command without a model call.

It never asks: without --auto or --yolo, reads and file changes inside the workspace run, and
commands and network writes are denied.
"""
_EXIT_CODES = """exit codes:
  0 done   1 the task failed   2 wrong usage or configuration   3 a call was denied
  4 a limit was reached   75 try again later   130 interrupted
"""


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = _WHAT
    parser.epilog = _EXIT_CODES
    add_session(parser)
    add_api_key(parser)
    trust = parser.add_mutually_exclusive_group()
    trust.add_argument("--auto", action="store_true", help="run everything that no rule denies or asks about")
    trust.add_argument("--yolo", action="store_true", help="run everything except what is always denied")
    lifts = "let what this clause of the project's constitution blocks through, once for each time it is given"
    parser.add_argument("--allow-clause", metavar="ID", action="append", default=[], help=lifts)
    parser.add_argument("--output-format", choices=["text", "json", "stream-json"], default="text", help="default text")
    parser.add_argument("--deltas", action="store_true", help="with stream-json: also parts of answers as they arrive")
    add_limits(parser)
    parser.add_argument("prompt", metavar="PROMPT|-", nargs="?", help="what to do, in quotes; - reads it from stdin")


def add_limits(parser: argparse.ArgumentParser) -> None:
    """The options that bound a run."""
    limit = parser.add_argument_group("limits of this turn")
    limit.add_argument("--max-turns", metavar="N", type=whole_number, help="model calls")
    limit.add_argument("--max-seconds", metavar="N", type=_amount, help="seconds of wall time")
    limit.add_argument("--max-tokens", metavar="N", type=whole_number, help="tokens in and out")
    limit.add_argument("--max-cost", metavar="X", type=_amount, help="cost; the model needs a known price")


def limits_of(args: argparse.Namespace) -> Limits:
    return Limits(args.max_turns, args.max_tokens, args.max_seconds, args.max_cost)


def whole_number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    named = f"--worktree={args.worktree}" in args.words
    if args.prompt is None and args.worktree and not named:  # the last word is the prompt
        args.prompt, args.worktree = args.worktree, ""
    if args.prompt is None:
        raise UsageError("the following arguments are required: PROMPT|-")
    folder = workspace(args)
    session = _opening(args, folder)
    if args.deltas and args.output_format != "stream-json":
        raise UsageError("--deltas needs --output-format stream-json")
    prompt, context = _prompt(args.prompt)

    def work(place: str) -> int:
        gc.disable()  # until the engine is loaded
        try:
            return asyncio.run(_exec(args, replace(session, workspace=place), prompt, context))
        finally:
            gc.enable()

    if args.worktree is None:
        return work(folder)
    from codewhale.cli.worktree import in_worktree

    return in_worktree(args.worktree, folder, work)


def _opening(args: argparse.Namespace, folder: str) -> OpenSession:
    mode = Mode(args.mode) if args.mode else (Mode.YOLO if args.yolo else Mode.AGENT)
    if args.yolo and mode is not Mode.YOLO:
        raise UsageError(f"--yolo and --mode {mode.value} contradict each other")
    if args.auto and mode is Mode.YOLO:
        raise UsageError("--auto and --mode yolo contradict each other")
    authority = Authority.AUTO if args.auto or mode is Mode.YOLO else Authority.HEADLESS
    allowed = tuple(args.allow_clause)
    return replace(opening(args, folder, mode, authority), limits=limits_of(args), clauses=allowed)


def _prompt(argument: str) -> tuple[str, str]:
    """The prompt and the fenced text beside it."""
    if argument == "-":
        text = read_stdin()
        if not text.strip():
            raise UsageError("the prompt on stdin is empty")
        return text, ""
    if not argument.strip():
        raise UsageError("the prompt is empty")
    from codewhale.display.setup import is_command

    piped = read_stdin() if piped_in() and not is_command(argument) else ""
    return argument, fenced(piped) if piped.strip() else ""


async def _exec(args: argparse.Namespace, session: OpenSession, prompt: str, context: str) -> int:
    from codewhale.app.compose import AppOptions, open_app
    from codewhale.config import home_dir
    from codewhale.headless.headless import Headless, HeadlessOptions, ProgressLines

    options = AppOptions(
        home=home_dir(os.environ),
        workspace=session.workspace,
        provider=args.provider,
        model=args.model,
        api_key=args.api_key,
    )
    what = HeadlessOptions(session, prompt, context, args.output_format, args.deltas)
    async with open_app(options) as app:
        gc.freeze()  # what is loaded stays: no collection goes through it
        gc.enable()
        for notice in app.config.notices:
            say(f"codewhale: {notice}")
        headless = Headless(app.client, what, Stdout(), ProgressLines(say_raw))
        _obey_signals(headless)
        try:
            code = await headless.run()
            exit_within(_LEAVING, code)
            return code
        except CodeWhaleError as error:
            # A session that cannot be found is a mistake in the command line.
            named = isinstance(error, SessionError) and not headless.session and exit_code(error) == 1
            fault = ChoiceError(str(error)) if named else error
            _tell_programs(fault, what, headless.session)
            raise fault from error.__cause__


def _tell_programs(error: CodeWhaleError, what: Any, session: str) -> None:
    """Print the JSON object of a run that had no turn, unless the command line itself is at fault."""
    from codewhale.display.lines import object_line
    from codewhale.headless.headless import outcome

    code = exit_code(error)
    if code != USAGE and what.output == "json":
        status = "infra" if code == RETRYABLE else "failed"
        put(object_line(outcome(session, status, code, error=str(error))) + "\n")


def _obey_signals(headless: Any) -> None:
    """The first Ctrl+C (or TERM, HUP) stops the turn, the same once more ends the process at once."""
    loop = asyncio.get_running_loop()
    seen: set[int] = set()

    def stop(number: int, frame: object) -> None:
        if number in seen:
            os._exit(130)
        seen.add(number)
        exit_within(_LEAVING, 130)
        loop.call_soon_threadsafe(headless.interrupt)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)
