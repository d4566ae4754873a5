"""The screens over the conversation: opened one at a time from the table, and what they come to is carried out."""

import os
from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.widget import AwaitMount

from codewhale.lib.text import one_line
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import DemoStarted, StartDemo
from codewhale.tui.composer.composer import Composer
from codewhale.tui.doings import Doings
from codewhale.tui.later import later
from codewhale.tui.screens.desk import Desk
from codewhale.tui.screens.outcomes import (
    Connected,
    InsertText,
    OpenPath,
    OpenScreen,
    Outcome,
    Resume,
    RunAction,
    RunLine,
    Said,
)
from codewhale.tui.screens.table import load


class Overlays:
    """`say` tells the person one line, `editor` is the command line of their editor."""

    def __init__(
        self,
        app: App[Any],
        desk: Desk,
        doings: Doings,
        composer: Composer,
        say: Callable[..., None],
        editor: str,
    ) -> None:
        self._app = app
        self._desk = desk
        self._doings = doings
        self._composer = composer
        self._say = say
        self._editor = editor

    @property
    def open(self) -> bool:
        """Whether a screen stands over the conversation."""
        return len(self._app.screen_stack) > 1

    def show(self, name: str, argument: str = "") -> AwaitMount | None:
        """Open a screen of the table, unless one is open; what ends when it stands."""
        return None if self.open else self._app.push_screen(load(name)(self._desk, argument), self._closed)

    def _closed(self, outcome: Outcome | None) -> None:
        self._composer.focus()
        if outcome is not None:
            self._app.run_worker(self._carry_out(outcome), group="outcome")

    async def _carry_out(self, outcome: Outcome) -> None:
        match outcome:
            case RunLine(line=line):
                await self._doings.command(line)
            case RunAction(action=action):
                await self._act(action)
            case OpenScreen(name=name, argument=argument):
                self.show(name, argument)
            case InsertText(text=text):
                self._composer.text.type(text)
            case OpenPath(path=path, line=line):
                await self.edit(path, line)
            case Resume(session=session, fork=fork):
                await self._doings.resume(session, fork)
            case Connected():
                await self._connected(outcome)
            case Said(text=text, ok=ok):
                self._say(text, "success" if ok else "error")

    async def _act(self, action: str) -> None:
        """Do what a row of keys.py does, wherever it holds."""
        panel, _, name = action.partition(".")
        await self._app.run_action(name, self._composer if panel == "composer" else self._app)

    async def _connected(self, outcome: Connected) -> None:
        if outcome.demo:
            await self.demo()
            return
        self._say(self._desk.words("app.connected", provider=one_line(outcome.provider, 60)), "success")

    async def demo(self) -> None:
        """Begin the demonstration: its task stands in the composer."""
        try:
            started: DemoStarted = await self._desk.submit(StartDemo())
        except CodeWhaleError as error:
            self._say(str(error), "error")
            return
        await self._doings.adopt(started.session)
        self._composer.offer(started.prompt)
        self._say(self._desk.words("app.demo"), "accent")

    async def edit(self, path: str, line: int) -> None:
        """Open a file of the workspace, at a line from 1, in the person's editor."""
        whole = os.path.join(self._desk.workspace, path)
        edited = await later("edit_file")(self._app, self._editor, whole, line)
        if edited.code:
            self._say(self._desk.words(f"composer.{edited.code}", wrong=edited.wrong), "error")
