"""Open the terminal interface.

Without a terminal it exits with 2; codewhale exec runs one prompt without the interface.
"""

import gc
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from codewhale.cli.stdio import say, say_raw
from codewhale.cli.usage import opening, workspace
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import OpenSession

if TYPE_CHECKING:
    import argparse

    from codewhale.app.client import EngineClient

_NO_TERMINAL = """codewhale: the interface needs a terminal. To run one prompt without it:

  codewhale exec "fix the failing test"
  codewhale --help
"""
# The first word of a command line that is one of these belongs to the interface, not to a command.
OPTIONS = frozenset(
    {
        "-w",
        "--workspace",
        "--provider",
        "--model",
        "--mode",
        "--approval",
        "--resume",
        "--continue",
        "--fork",
        "--plain",
        "--theme",
        "--add-dir",
        "--worktree",
    }
)
# What the parser makes of a command line without arguments; it is not loaded for one.
NO_ARGUMENTS: Mapping[str, Any] = MappingProxyType(
    {
        "words": [],
        "workspace": ".",
        "provider": "",
        "model": "",
        "mode": None,
        "approval": None,
        "resume": None,
        "fork": None,
        "latest": False,
        "theme": "",
        "plain": False,
        "add_dir": None,
        "worktree": None,
    }
)
WEB_DRIVER = "textual.drivers.web_driver:WebDriver"


def build(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments."""
    from codewhale.cli.parser import add_session

    add_session(parser)
    looks = parser.add_argument_group("appearance")
    looks.add_argument("--theme", metavar="NAME", default="", help="dark, light, contrast or a file in themes/")
    looks.add_argument("--plain", action="store_true", help="line by line, for simple terminals and screen readers")


def run(args: Any) -> int:
    """Run it; returns the exit code."""
    served = os.environ.get("TEXTUAL_DRIVER") == WEB_DRIVER
    if not served and not args.plain and not (os.isatty(0) and os.isatty(1)):
        say_raw(_NO_TERMINAL)
        return 2
    mode = Mode(args.mode) if args.mode else Mode.AGENT
    session = opening(args, workspace(args), mode, Authority.PERSON)
    if args.worktree is None:
        return _start(args, session, served)
    from codewhale.cli.worktree import in_worktree

    def work(place: str) -> int:
        return _start(args, replace(session, workspace=place), served)

    return in_worktree(args.worktree, session.workspace, work)


def _start(args: Any, session: OpenSession, served: bool) -> int:
    overrides = {"tui.theme": args.theme} if args.theme else {}
    plain = args.plain or (not served and os.environ.get("TERM", "dumb") in ("", "dumb"))
    return _open(session, overrides, plain)


def main(arguments: list[str], program: str = "codewhale") -> int:
    """Parse and run; what this raises is told by dispatch."""
    if not arguments:
        return run(SimpleNamespace(**NO_ARGUMENTS))
    from codewhale.cli.parser import Parser

    parser = Parser(prog=program, description=__doc__)
    build(parser)
    return run(parser.parse_args(arguments))


def _open(session: OpenSession, overrides: Mapping[str, Any], plain: bool) -> int:
    # Nothing of what is imported until the first frame is garbage; the app collects again from then on.
    gc.disable()
    from codewhale.config import Project, home_dir, load
    from codewhale.display.setup import Setup, TuiSettings

    home = home_dir(os.environ)
    # The table of the interface alone: the rest is read, and judged, when the engine is opened behind the screen.
    config = load(home, session.workspace, os.environ, overrides, Project(lambda path, sha256: False, {}))
    settings = config.section("tui", TuiSettings)
    if overrides:
        from codewhale.display.palette import load_palette

        load_palette(settings.theme, home)
    notices: list[str] = []
    engine = _Engine(home, session, overrides, notices)
    setup = Setup(engine.connect, session, home, settings, notices=notices)
    if plain:
        gc.enable()
        from codewhale.headless.plain import run_plain

        return run_plain(setup)
    from codewhale.tui.running import run_screen

    ended = run_screen(setup)
    if ended.said:
        say(ended.said)
    return ended.code


class _Engine:
    """What the interface connects to."""

    def __init__(self, home: str, opening: OpenSession, overrides: Mapping[str, Any], notices: list[str]) -> None:
        self._home = home
        self._opening = opening
        self._overrides = dict(overrides)
        self._notices = notices

    @asynccontextmanager
    async def connect(self) -> AsyncIterator["EngineClient"]:
        """The client of an open application. It is imported beside the screen, which stays alive meanwhile."""
        import asyncio

        await asyncio.to_thread(_import_engine)
        from codewhale.app.compose import AppOptions, open_app

        options = AppOptions(
            home=self._home,
            workspace=self._opening.workspace,
            provider=self._opening.provider,
            model=self._opening.model,
            overrides=self._overrides,
        )
        async with open_app(options) as app:
            self._notices[:] = app.config.notices
            tasking = app.parts.tasking
            async with tasking.working(app.client, "terminal", tasking.settings.workers, _unheard):
                yield app.client


def _unheard(line: str) -> None:
    """What the worker says of tasks: the interface shows them by itself."""


def _import_engine() -> None:
    import codewhale.app.compose  # noqa: F401
