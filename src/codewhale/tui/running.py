"""Running the app on a terminal: the signals that end it, and the session closed behind it."""

import asyncio
import os
import signal

from msgspec import Struct

from codewhale.display.leaving import exit_within, farewell
from codewhale.display.setup import Setup
from codewhale.tui.app import CodeWhaleApp
from codewhale.tui.terminal import Terminal

CRASHED, HUNG_UP = 1, 129
_LEAVING = 20.0  # seconds until the process ends at the latest, whatever a thread of it still does
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(Struct, frozen=True):
    """The exit code, and lines for the person ("" for none)."""

    code: int
    said: str = ""


def run_screen(setup: Setup) -> Ended:
    """Open the app, and return when the person has left it."""
    return asyncio.run(_run(setup))


async def _run(setup: Setup) -> Ended:
    served = "TEXTUAL_DRIVER" in os.environ
    app = CodeWhaleApp(setup) if served else CodeWhaleApp(setup, driver_class=Terminal)
    loop = asyncio.get_running_loop()
    for number in _STOPS:
        loop.add_signal_handler(number, app.hung_up)
    try:
        await app.run_async(mouse=setup.settings.mouse)
    finally:
        for number in _STOPS:
            # Whoever asks once more does not want to wait for the session to be closed.
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
        said = await _farewell(app)
        await app.link.aclose()
    code = CRASHED if app.return_code else HUNG_UP if app.gone else 0
    exit_within(_LEAVING, code)
    if code:
        return Ended(code)
    return Ended(0, said)


async def _farewell(app: CodeWhaleApp) -> str:
    """What the session came to, unless the program failed or its terminal is gone."""
    turns = app.transcript.source.model.turn
    left = turns and app.link.session and not app.return_code and not app.gone
    return await farewell(app.link.query, app.link.session, app.words) if left else ""
