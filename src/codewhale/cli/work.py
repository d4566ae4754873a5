"""Work at durable tasks without a screen until it is told to stop.

It takes tasks in the order in which they were queued and says a line of each that begins or ends. Ctrl+C or a TERM
signal stops those at work in order: they can be gone on with.
"""

import argparse
import asyncio
import os
import signal

from codewhale.cli.exec import whole_number
from codewhale.cli.stdio import say
from codewhale.cli.usage import UsageError


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--workers", metavar="N", type=whole_number, help="tasks at once, 1 to 8 (default 2)")
    parser.add_argument("--once", action="store_true", help="end when nothing is queued or at work")


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    from codewhale.tasks.model import MOST_WORKERS

    if args.workers is not None and not 1 <= args.workers <= MOST_WORKERS:
        raise UsageError(f"--workers {args.workers}: 1 to {MOST_WORKERS} tasks at once")
    return asyncio.run(_work(args.workers or 0, args.once))


async def _work(workers: int, once: bool) -> int:
    from codewhale.app.compose import AppOptions, open_app
    from codewhale.config import home_dir, refuse_unusable

    home = home_dir(os.environ)
    refuse_unusable(home)
    os.makedirs(home, mode=0o700, exist_ok=True)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with open_app(AppOptions(home=home, workspace=home)) as app:  # the folder of no project configures it
        tasking = app.parts.tasking
        await asyncio.to_thread(lambda: tasking.book.journal)  # what keeps it from working is told at once
        slots = workers or tasking.settings.workers

        async with tasking.working(app.client, "codewhale work", slots, lambda line: say(f"codewhale: {line}")):
            say(f"codewhale: works at tasks, {slots} at once; Ctrl+C ends it")
            if once:
                idle = asyncio.create_task(tasking.idle())
                await asyncio.wait({idle, asyncio.create_task(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
                if idle.done():
                    idle.result()  # which says why the journal could not be read
            else:
                await stop.wait()
    return 0
