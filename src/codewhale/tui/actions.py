"""What the person asks for: messages, commands, modes, other sessions, and the screens over the conversation. What
comes of it, or why it could not be done, is one line."""

import os
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from textual.app import App
from textual.widget import AwaitMount

from codewhale.display.words import Words
from codewhale.lib.text import one_line
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.ops import (
    CommandOutput,
    DemoStarted,
    Interrupt,
    OpenSession,
    RunCommand,
    RunShell,
    SendMessage,
    SetEffort,
    SetMode,
    StartDemo,
)
from codewhale.protocol.requests import Op
from codewhale.tui.commands import QUIT, screen_of
from codewhale.tui.composer.composer import Composer
from codewhale.tui.facts import SessionFacts
from codewhale.tui.keys import ACTIONS
from codewhale.tui.link import Link
from codewhale.tui.screens.context import (
    Connected,
    InsertText,
    OfferText,
    OpenPath,
    OpenScreen,
    Outcome,
    Resume,
    RunAction,
    RunLine,
    ScreenContext,
    ShowLine,
)
from codewhale.tui.screens.table import file_editor, load

T = TypeVar("T")

EFFORTS = ("", "off", "low", "medium", "high", "max", "auto")
# What is said in so few characters stands in the status line; the rest in the transcript.
SHORT = 100


class AppActions(Protocol):
    """What the app does for them."""

    def say(self, text: str, tone: str = "text") -> None: ...

    def tell(self, text: str, detail: str = "", level: str = "info") -> None: ...

    def open_screen(self, name: str, argument: str = "") -> None:
        """Open a screen of the table."""
        ...

    def choose_theme(self, name: str) -> None:
        """Use other colours, and keep them."""
        ...

    def leave(self) -> None: ...

    def offer(self, text: str) -> None:
        """Put a text into the composer, to be edited and sent."""
        ...


class SessionActions:
    """`session_facts` is how the session stands, `folder` where sessions are opened."""

    def __init__(
        self, link: Link, words: Words, facts: Callable[[], SessionFacts], stage: AppActions, folder: str
    ) -> None:
        self._link = link
        self._words = words
        self._session_facts = facts
        self._stage = stage
        self._folder = folder

    # -------------------------------------------------------------- words to the model

    async def send(self, message: Any) -> bool:
        """Send what the composer said; whether it was taken."""
        op = SendMessage(self._link.session, message.text, "", message.delivery, message.attachments)
        return await self._done(op)

    async def shell(self, line: str) -> None:
        await self._done(RunShell(self._link.session, line))

    async def interrupt(self) -> None:
        await self._done(Interrupt(self._link.session))

    # -------------------------------------------------------------- commands

    async def command(self, line: str) -> None:
        """Run a slash command, or open the screen that answers it."""
        name, _, rest = line.strip().partition(" ")
        if name in QUIT:
            self._stage.leave()
        elif name == "/theme":
            self._stage.choose_theme(rest.strip())
        elif (screen := screen_of(line)) is not None:
            self._stage.open_screen(*screen)
        else:
            await self._run(line)

    async def _run(self, line: str) -> None:
        output = await self._tried(self._link.submit(RunCommand(self._link.session, line)))
        if not isinstance(output, CommandOutput):
            return
        if output.session:
            await self._tried(self._link.adopt(output.session))
        if output.draft:
            self._stage.offer(output.draft)
        text = output.text.strip()
        if not text:
            return
        if "\n" not in text and len(text) <= SHORT:
            self._stage.say(text, "success" if output.ok else "error")
        else:
            self._stage.tell(line, text, "info" if output.ok else "error")

    # -------------------------------------------------------------- settings of the session

    async def next_mode(self) -> None:
        """From agent to plan, from plan and yolo to agent. Nothing leads to yolo but its command."""
        following = Mode.PLAN if self._session_facts().mode == Mode.AGENT else Mode.AGENT
        await self._done(SetMode(self._link.session, following))

    async def ask_again(self) -> None:
        """Ask again about what the sandbox holds, or say how that is switched off."""
        if self._session_facts().approval != Approval.SANDBOX:
            self._stage.say(self._words("app.asks_already"), "muted")
        else:
            await self._run(f"/approval {Approval.SUGGEST}")

    async def next_effort(self) -> None:
        now = self._session_facts().effort
        following = EFFORTS[(EFFORTS.index(now) + 1) % len(EFFORTS)] if now in EFFORTS else ""
        if await self._done(SetEffort(self._link.session, following)):
            said = following or self._words("app.effort_own")
            self._stage.say(self._words("app.effort", effort=said), "muted")

    # -------------------------------------------------------------- other sessions

    async def resume(self, session: str, fork: bool) -> None:
        """Go on with another session, or with a copy of it."""
        named = {"fork": session} if fork else {"resume": session}
        await self.open(OpenSession(self._folder, authority=Authority.PERSON, **named))  # type: ignore[arg-type]

    async def open(self, opening: OpenSession) -> None:
        """Leave the session at hand for another, or open the first one."""
        if self._link.over:
            self._link.retry(provider=opening.provider, model=opening.model, resume=opening.resume, fork=opening.fork)
            return
        await self._tried(self._link.go_on(opening))

    async def adopt(self, session: str) -> None:
        """Show a session that is open already."""
        await self._tried(self._link.adopt(session))

    # -------------------------------------------------------------- its inside

    async def _done(self, op: Op[object]) -> bool:
        """Whether it was done; why not was said."""
        return await self._tried(self._do(op)) or False

    async def _do(self, op: Op[object]) -> bool:
        await self._link.submit(op)
        return True

    async def _tried(self, doing: Awaitable[T]) -> T | None:
        try:
            return await doing
        except (CodeWhaleError, OSError) as error:
            self._stage.say(str(error) or type(error).__name__, "error")
            return None


class Overlays:
    """`say` tells the person one line, `editor` is the command line of their editor."""

    def __init__(
        self,
        app: App[Any],
        context: ScreenContext,
        actions: SessionActions,
        composer: Composer,
        say: Callable[..., None],
        editor: str,
    ) -> None:
        self._app = app
        self._context = context
        self._actions = actions
        self._composer = composer
        self._say = say
        self._editor = editor

    @property
    def open(self) -> bool:
        """Whether a screen stands over the conversation."""
        return len(self._app.screen_stack) > 1

    def show(self, name: str, argument: str = "") -> AwaitMount | None:
        """Open a screen of the table, unless one is open; what ends when it stands."""
        return None if self.open else self._app.push_screen(load(name)(self._context, argument), self._closed)

    def _closed(self, outcome: Outcome | None) -> None:
        self._composer.focus()
        if outcome is not None:
            self._app.run_worker(self._carry_out(outcome), group="outcome")

    async def _carry_out(self, outcome: Outcome) -> None:
        match outcome:
            case RunLine(line=line):
                await self._actions.command(line)
            case RunAction(action=action):
                await self._act(action)
            case OpenScreen(name=name, argument=argument):
                self.show(name, argument)
            case InsertText(text=text):
                self._composer.text.type(text)
            case OfferText(text=text):
                self._composer.offer(text)
            case OpenPath(path=path, line=line):
                await self.edit(path, line)
            case Resume(session=session, fork=fork):
                await self._actions.resume(session, fork)
            case Connected():
                await self._connected(outcome)
            case ShowLine(text=text, ok=ok):
                self._say(text, "success" if ok else "error")

    async def _act(self, action: str) -> None:
        """Do what a row of keys.py does, wherever it holds."""
        panel, _, name = action.partition(".")
        does = next((row.does for row in ACTIONS if row.id == action), "")
        await self._app.run_action(does or name, self._composer if panel == "composer" else self._app)

    async def _connected(self, outcome: Connected) -> None:
        if outcome.demo:
            await self.demo()
            return
        model = one_line(outcome.model, 100)
        self._say(self._context.words("app.connected", model=model, provider=one_line(outcome.provider, 60)), "success")

    async def demo(self) -> None:
        """Begin the demonstration: its task stands in the composer."""
        try:
            started: DemoStarted = await self._context.submit(StartDemo())
        except CodeWhaleError as error:
            self._say(str(error), "error")
            return
        await self._actions.adopt(started.session)
        self._composer.offer(started.prompt)
        self._say(self._context.words("app.demo"), "accent")

    async def edit(self, path: str, line: int) -> None:
        """Open a file of the workspace, at a line from 1, in the person's editor."""
        whole = os.path.join(self._context.workspace, path)
        edited = await file_editor()(self._app, self._editor, whole, line)
        if edited.code:
            self._say(self._context.words(f"composer.{edited.code}", wrong=edited.wrong), "error")
