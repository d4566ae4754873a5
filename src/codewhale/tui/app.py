"""The app: where the panels stand, which keys hold, and which way events and messages go. Each panel owns its state."""

import asyncio
import gc
import os
import time
from functools import partial
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.actions import SkipAction
from textual.app import App, ComposeResult

from codewhale.display.setup import Setup, editor_of, language_of
from codewhale.display.words import Words
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.events import Compacted, Envelope, ModelChanged, ProgressShown, SessionResumed, TurnFinished
from codewhale.protocol.ops import Query, SessionStatus
from codewhale.protocol.views import GetContext, ListProviders
from codewhale.tui.actions import Doings, Overlays
from codewhale.tui.asking.panel import AskingPanel
from codewhale.tui.attention import Attention, way_of
from codewhale.tui.composer.composer import Composer
from codewhale.tui.composer.keeper import Keeper
from codewhale.tui.conversation import Conversation
from codewhale.tui.crash import write_crash
from codewhale.tui.forwarding import Forwarding
from codewhale.tui.hearing import Hearing
from codewhale.tui.input import IDLE_SECONDS, Consoles, Early, misses
from codewhale.tui.keys import bindings
from codewhale.tui.link import Link
from codewhale.tui.local import with_local
from codewhale.tui.screens.context import Desk
from codewhale.tui.screens.table import load
from codewhale.tui.settings import checked
from codewhale.tui.status import Status
from codewhale.tui.themed import Themed
from codewhale.tui.transcript.view import Transcript

# A second ctrl+c within this ends the app.
TWICE_SECONDS = 2.0
MOST_COPIED = 100_000
_LOOK_SECONDS = 0.1
# What holds under an open screen as well; everything else of the app is for the conversation.
_ALWAYS = frozenset({"redraw", "mouse", "theme"})
_OWN = frozenset(row.action for row in bindings("app") if not isinstance(row, tuple)) - _ALWAYS


class CodeWhaleApp(Forwarding, Hearing, Themed, App[int], inherit_bindings=False):
    """Transcript, what is asked, composer and status, one above the other. Fed by a Link alone."""

    BINDINGS: ClassVar = bindings("app")
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    CSS = """
    Screen { background: $background; color: $foreground; layout: vertical; }
    Transcript { height: 1fr; }
    Input .input--placeholder, Input > .input--placeholder { color: $cw-muted; }
    """

    def __init__(self, setup: Setup, **driving: Any) -> None:
        super().__init__(**driving)
        self._setup = setup
        settings, environ = setup.settings, setup.environ
        self.words = Words(language_of(settings, environ))
        self.palette, self.own_keys, self._wrong = checked(settings, setup.home, environ)
        self._editor = editor_of(settings, environ)
        self._mouse = settings.mouse
        self._key_at = time.monotonic()
        self._armed = 0.0
        self._early = Early(self)
        self.gone = False
        self._greeted = False
        self._disable_notifications = self._disable_tooltips = True  # there are none: what is said has its own line
        self._sending = asyncio.Lock()  # messages are sent in the order in which they were written
        self.link = Link(setup.connect, setup.opening, self)
        way, clock = way_of(settings.notify, environ), setup.clock
        self.attention = Attention(self._write, self.words, way, settings.title, clock.monotonic)
        # Before there is anything to be styled again.
        self.register_theme(theme := self.palette.theme())
        self.set_reactive(App.theme, theme.name)
        self.stylesheet.set_variables(self.get_css_variables())
        self._build(setup.opening.workspace)

    def _build(self, folder: str) -> None:
        words, palette, clock = self.words, self.palette, self._setup.clock
        submit = self.link.submit
        self.desk = Desk(words, palette, self._ask, submit, self.own_keys)
        self.desk.workspace = folder
        self.transcript = Transcript(words, palette, now=clock.now)
        self.asking = AskingPanel(words, palette, submit, self._quiet, self.own_keys, self._setup.patience)
        keeper = Keeper(self._setup.home, folder)
        self.composer = Composer(words, palette, self._ask, submit, keeper, self._editor)
        self.status = Status(words, palette, clock.monotonic, self.own_keys)
        idle = getattr(self._setup.patience, "idle", IDLE_SECONDS)
        self.consoles = Consoles(self._quiet, lambda: not self.overlays.open and self.asking.card is None, idle)
        self._opens_console: Any = None
        self.progress: Any = None
        self.doings = Doings(self.link, words, lambda: self.status.standing, self, folder)
        self.overlays = Overlays(self, self.desk, self.doings, self.composer, self.say, self._editor)

    # -------------------------------------------------------------- life

    def on_load(self) -> None:
        """The person's own keys. Tasks begin as they do everywhere else in the program."""
        asyncio.get_running_loop().set_task_factory(None)
        self.set_keymap(dict(self.own_keys))

    def get_default_screen(self) -> Conversation:
        return Conversation(id="_default")

    def compose(self) -> ComposeResult:
        """The panels, top to bottom; that of what is asked comes behind the first frame."""
        yield self.transcript
        yield self.composer
        yield self.status

    def on_mount(self) -> None:
        """Give the keys to the composer, and open the engine once something is seen."""
        self.composer.focus()
        self.app_resume_signal.subscribe(self, self._back)
        self.attention.begin(os.path.basename(self.desk.workspace) or self.desk.workspace)
        if self._wrong:
            self.say(self._wrong, "error")
        self.call_after_refresh(self._painted)

    async def _painted(self) -> None:
        """The first frame is out: the engine is opened, and the composer has what was typed before."""
        await self.composer.complete()
        await self._early.release()
        gc.enable()
        await self.mount(self.asking, before=self.composer)
        self.link.start()

    def on_unmount(self) -> None:
        self.attention.end()

    def leave(self) -> None:
        """End the app, the session is closed behind it; in the middle of something that is asked about first."""
        if reasons := self.status.standing.unfinished(self.words):
            self.open_screen("leave", "\n".join(reasons))
        else:
            self.exit(0)

    def action_end(self) -> None:
        self.exit(0)

    def hung_up(self) -> None:
        """The terminal is gone, or the process was told to end."""
        if not self.gone:
            self.gone = True
            self.exit(0)

    def drained(self) -> None:
        """A slow terminal has taken everything: draw what was left out."""
        if self._running and not self._exit:
            self.screen.refresh()

    def _display(self, screen: Any, renderable: Any) -> None:
        if not getattr(self._driver, "behind", False):
            super()._display(screen, renderable)

    def _fatal_error(self) -> None:
        """A fault of the program: one file without content, one sentence on the terminal."""
        error: Any = self._exception or RuntimeError()
        error = getattr(error, "error", error)  # what a worker failed with
        path = write_crash(self._setup.home, error, time.time())
        self.panic(Text(self.words("app.crash", kind=type(error).__name__, path=path or "-")))

    def _write(self, data: str) -> None:
        if self._driver is not None and not self.is_headless:
            self._driver.write(data)

    # -------------------------------------------------------------- what the link tells

    def opened(self, session: str) -> None:
        """Another session: the panels begin anew."""
        self.desk.session = session
        self.transcript.begin(session)
        self.asking.begin()
        if self.progress is not None:
            self.progress.begin()
        self.composer.open(session)
        self.status.begin()
        for notice in self._setup.notices:
            self.tell(notice, level="warning")
        first, self._greeted = not self._greeted, True
        self.look(first)

    def look(self, first: bool = False) -> None:
        """Ask for what no event tells."""
        self.run_worker(partial(self._look, first), group="look", exclusive=True)

    def take(self, envelope: Envelope) -> None:
        """Hand an event to every panel."""
        self.transcript.take(envelope)
        self.asking.take(envelope)
        if self.progress is not None or isinstance(envelope.event, ProgressShown):
            self._progress(envelope)
        self.status.take(envelope)
        self.attention.take(envelope, self.link.live)
        if not self.link.live:
            return  # what is past has happened to nobody here
        self.composer.take(envelope)
        if self.consoles.take(envelope):
            self.say(self.words("console.waits"), "warning")
            self._opens_console = self._opens_console or self.set_interval(_LOOK_SECONDS, self._console)
        if isinstance(envelope.event, TurnFinished | ModelChanged | Compacted | SessionResumed):
            self.look()

    def _console(self) -> None:
        """A command that is typed into has its console as soon as nothing else is written."""
        if (job := self.consoles.due()) != "":
            self.open_screen("console", job)

    def _progress(self, envelope: Envelope) -> None:
        """Bars come with the first thing that has progress."""
        if self.progress is None:
            self.progress = load("progress")(self.words, self.palette)
            self.mount(self.progress, before=self.composer)
        self.progress.take(envelope)

    def failed(self, error: CodeWhaleError | OSError, opening: bool) -> None:
        """Say why there is no session, and what to do."""
        self.status.lost()
        said = self.words("app.not_opened" if opening else "app.ended")
        self.transcript.tell(said, f"{error}\n{self.words('app.what_to_do')}")

    def broke(self, error: Exception) -> None:
        """A fault of the program ends it."""
        self._handle_exception(error)

    async def _look(self, first: bool = False) -> None:
        session = self.link.session
        try:
            view = await self._ask(SessionStatus(session))
            self.desk.workspace = view.workspace
            self.status.see(view)
            self.status.see_context(await self._ask(GetContext(session, brief=True)))
            if first:
                await self._greet(session)
        except (CodeWhaleError, OSError) as error:
            self.say(str(error), "error")

    async def _greet(self, session: str) -> None:
        """Where the provider cannot be asked as it is, help to connect one."""
        rows = await self._ask(ListProviders(session))
        if any(row.current and not row.ready for row in rows):
            self.open_screen("firstrun")

    async def _ask(self, query: Query) -> Any:
        return with_local(query, await self.link.query(query), self.words, self._setup.home)

    # -------------------------------------------------------------- who is there

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste):
            self._key_at = time.monotonic()
            self.attention.key()
            if self._early.keeps(event):
                return
            if not self.overlays.open and misses(event, self.focused):
                self.screen.set_focus(self.composer.text)
        await super().on_event(event)

    def _quiet(self) -> float | None:
        """Seconds since the last key, None while something stands in the composer."""
        free = self.composer.empty and not self.composer.choosing
        return time.monotonic() - self._key_at if free else None

    def _back(self, _: Any) -> None:
        """The terminal was an editor's: what was pressed there is no answer here."""
        self._key_at = time.monotonic()
        self.composer.focus()

    # -------------------------------------------------------------- what panels and screens ask of the app

    def say(self, text: str, tone: str = "text") -> None:
        """One line for the person; one that has no room below stands in the transcript as well."""
        self.status.say(text, tone)
        if cell_len(text) > self.size.width - 2:
            self.tell(text, level="error" if tone == "error" else "info")

    def tell(self, text: str, detail: str = "", level: str = "info") -> None:
        """Lines in the transcript that are no event of the session."""
        self.transcript.tell(text, detail, level)

    def open_screen(self, name: str, argument: str = "") -> None:
        """Open a screen of the table; what is typed before it stands is for it."""
        if (opened := self.overlays.show(name, argument)) is not None:
            self._early.until(opened)

    # -------------------------------------------------------------- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What is for the conversation does not hold under an open screen."""
        return not (action in _OWN and self.overlays.open)

    def action_interrupt(self) -> None:
        """Copy what is selected, stop the turn, or end on the second time."""
        text = self.composer.selected or self.screen.get_selected_text() or ""
        now = time.monotonic()
        if text:
            self.copy_to_clipboard(text[:MOST_COPIED])
            self.say(self.words("app.copied_selection"), "success")
        elif now - self._armed < TWICE_SECONDS:
            self.leave()
        else:
            self._armed = now
            busy = self.status.standing.busy
            self.say(self.words("app.stopping" if busy else "app.again_quits"), "warning")
            if busy:
                self.run_worker(self.doings.interrupt())

    def action_leave(self) -> None:
        if not self.composer.empty:
            raise SkipAction
        self.leave()

    def action_mouse(self) -> None:
        catch = getattr(self._driver, "catch_mouse", None)
        if catch is not None:
            self._mouse = not self._mouse
            catch(self._mouse)
            self.say(self.words("app.mouse_on" if self._mouse else "app.mouse_off"))

    def action_redraw(self) -> None:
        self._write("\x1b[2J")
        self.screen.refresh(layout=True)
