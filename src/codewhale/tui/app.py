"""The app: where the panels stand, which keys hold, and which way events and messages go. Each panel owns its state."""

import asyncio
import contextlib
import gc
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, ClassVar, TypeVar

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.actions import SkipAction
from textual.app import App, ComposeResult
from textual.screen import Screen

from codewhale.display.palette import Palette, load_palette, theme_names
from codewhale.display.setup import Setup, TuiSettings, editor_of, language_of, pager_of, theme_of
from codewhale.display.words import Words
from codewhale.lib.text import one_line
from codewhale.protocol.errors import CodeWhaleError, ConfigError
from codewhale.protocol.events import (
    Compacted,
    Envelope,
    FactProposed,
    FileChanged,
    ModelChanged,
    ProgressShown,
    Rewound,
    SessionResumed,
    ShellRan,
    TurnFinished,
)
from codewhale.protocol.memory import GetWaiting
from codewhale.protocol.ops import ChangeSetting, ListSessions, SessionStatus
from codewhale.protocol.requests import Query
from codewhale.protocol.views import GetContext, GetWorkspace, ListProviders
from codewhale.tui.actions import Overlays, SessionActions
from codewhale.tui.asking.panel import AskingPanel
from codewhale.tui.attention import Attention, way_of
from codewhale.tui.bidi import RightToLeft, orders_itself
from codewhale.tui.commands import with_local
from codewhale.tui.composer.composer import Composer
from codewhale.tui.composer.store import ComposerStore
from codewhale.tui.crash import write_crash
from codewhale.tui.input import IDLE_SECONDS, Consoles, Early, misses
from codewhale.tui.keys import bindings, check_keys, first_key, named_today
from codewhale.tui.link import Link
from codewhale.tui.screens.context import ScreenContext
from codewhale.tui.screens.table import progress_panel, proposals_line
from codewhale.tui.status import Status
from codewhale.tui.transcript.view import Transcript

T = TypeVar("T")

# A second ctrl+c within this ends the app.
TWICE_SECONDS = 2.0
MOST_COPIED = 100_000
_LOOK_SECONDS = 0.1
# What holds under an open screen as well; everything else of the app is for the conversation.
_ALWAYS = frozenset({"redraw", "suspend", "mouse", "theme"})
_OWN = frozenset(row.action.partition("(")[0] for row in bindings("app") if not isinstance(row, tuple)) - _ALWAYS


class MainScreen(Screen[None]):
    """Every panel is given its style where it is mounted: the first frame does not wait until all have theirs again."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._begun = False

    def update_node_styles(self, animate: bool = True) -> None:
        """Style the panels anew, but for the first time, when the screen comes up with them."""
        if self._begun:
            super().update_node_styles(animate)
        self._begun = True


# After these the bar is asked for again: the window, the branch and what of it is changed.
_SEEN_ANEW = (TurnFinished, ModelChanged, Compacted, SessionResumed, Rewound, ShellRan)


class CodeWhaleApp(App[int], inherit_bindings=False):
    """Transcript, what is asked, composer and status, one above the other. Fed by a Link alone."""

    BINDINGS: ClassVar = bindings("app")
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    CSS = """
    MainScreen { background: $background; color: $foreground; layout: vertical; }
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
        self._pressed = self._resumed = 0.0  # when the last key was read, and the program continued
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
        if not orders_itself(environ):
            self._filters.append(RightToLeft())
        # Before there is anything to be styled again.
        self.register_theme(theme := self.palette.theme())
        self.set_reactive(App.theme, theme.name)
        self.stylesheet.set_variables(self.get_css_variables())
        self._build(setup.opening.workspace)

    def _build(self, folder: str) -> None:
        words, palette, clock = self.words, self.palette, self._setup.clock
        submit = self.link.submit
        self.context = ScreenContext(words, palette, self._ask, submit, self.own_keys, clock.now)
        self.context.workspace = folder
        self.context.editor, self.context.pager = self._editor, pager_of(self._setup.environ)
        self.transcript = Transcript(words, palette, now=clock.now, stop=first_key("composer.escape", self.own_keys))
        self.transcript.context = self.context
        self.asking = AskingPanel(words, palette, submit, self._quiet, self.own_keys, self._setup.patience)
        store = ComposerStore(self._setup.home, folder)
        self.composer = Composer(words, palette, self._ask, submit, store, self._editor)
        self.status = Status(words, palette, clock.monotonic, self.own_keys)
        self.composer.idle_hint = self.status.hint
        idle = getattr(self._setup.patience, "idle", IDLE_SECONDS)
        self.consoles = Consoles(self._quiet, lambda: not self.overlays.open and self.asking.card is None, idle)
        self._opens_console: Any = None
        self.progress: Any = None
        self.proposals: Any = None
        self.actions = SessionActions(self.link, words, lambda: self.status.facts, self, folder)
        self.overlays = Overlays(self, self.context, self.actions, self.composer, self.say, self._editor)

    # -------------------------------------------------------------- life

    def on_load(self) -> None:
        """The person's own keys. Tasks begin as they do everywhere else in the program."""
        asyncio.get_running_loop().set_task_factory(None)
        self.set_keymap(dict(self.own_keys))

    def get_default_screen(self) -> MainScreen:
        return MainScreen(id="_default")

    def compose(self) -> ComposeResult:
        """The panels, top to bottom; that of what is asked comes behind the first frame."""
        yield self.transcript
        yield self.composer
        yield self.status

    def on_mount(self) -> None:
        """Give the keys to the composer, and open the engine once something is seen."""
        self.composer.focus()
        self.app_resume_signal.subscribe(self, self._back)
        self.attention.begin(os.path.basename(self.context.workspace) or self.context.workspace)
        if self._wrong:
            self.say(self._wrong, "error")
        self.call_after_refresh(self._painted)

    async def _painted(self) -> None:
        """The first frame is out: the engine is opened, and the composer has what was typed before."""
        await self.composer.complete()
        await self._early.release()
        gc.freeze()  # what is loaded stays: no collection goes through it in the middle of a key
        gc.enable()
        await self.mount(self.asking, before=self.composer)
        self.link.start()

    def on_unmount(self) -> None:
        self.attention.end()

    def leave(self) -> None:
        """End the app, the session is closed behind it; in the middle of something that is asked about first."""
        if reasons := self.status.facts.unfinished(self.words):
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
        self.context.session = session
        self.transcript.begin(session)
        self.asking.begin()
        for panel in (self.progress, self.proposals):
            if panel is not None:
                panel.begin()
        self.composer.open(session)
        self.status.begin()
        for notice in self._setup.notices:
            self.tell(notice, level="warning")
        first, self._greeted = not self._greeted, True
        if first:
            gc.freeze()
        self.look(first)

    def look(self, first: bool = False) -> None:
        """Ask for what no event tells."""
        looks: Callable[[], Awaitable[None]] = partial(self._look, first)
        self.run_worker(looks, group="look", exclusive=True)

    def take(self, envelope: Envelope) -> None:
        """Hand an event to every panel."""
        self.transcript.take(envelope)
        self.asking.take(envelope)
        if self.progress is not None or isinstance(envelope.event, ProgressShown):
            self._progress(envelope)
        self.status.take(envelope)
        self.composer.set_mode(self.status.facts.mode)
        self.attention.take(envelope, self.link.live)
        if not self.link.live:
            return  # what is past has happened to nobody here
        self.composer.take(envelope)
        if self.proposals is not None or isinstance(envelope.event, FactProposed):
            self._propose(envelope)
        if self.consoles.take(envelope):
            self.say(self.words("console.waits"), "warning")
            self._opens_console = self._opens_console or self.set_interval(_LOOK_SECONDS, self._console)
        undone = isinstance(envelope.event, FileChanged) and not self.status.facts.busy
        if undone or isinstance(envelope.event, _SEEN_ANEW):
            self.look()

    def _console(self) -> None:
        """A command that is typed into has its console as soon as nothing else is written."""
        if (job := self.consoles.due()) != "":
            self.open_screen("console", job)

    def _progress(self, envelope: Envelope) -> None:
        """Bars come with the first thing that has progress."""
        if self.progress is None:
            self.progress = progress_panel()(self.words, self.palette)
            self.mount(self.progress, before=self.composer)
        self.progress.take(envelope)

    def _propose(self, envelope: Envelope) -> None:
        """What is proposed to be remembered has its line when there is something."""
        if self.proposals is None:
            self.proposals = proposals_line()(self.context)
            self.mount(self.proposals, before=self.composer)
        self.proposals.take(envelope)

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
            self.context.workspace = view.workspace
            self.status.see(view)
            self.composer.set_mode(self.status.facts.mode)
            self.status.see_context(await self._ask(GetContext(session, brief=True)))
            place = await self._ask(GetWorkspace(session))
            self.status.see_workspace(place)
            if not view.turns:
                rows = await self._ask(ListSessions(view.workspace))
                self.transcript.welcome(view, place, rows, first_key("app.help", self.own_keys))
            if first:
                if not view.sandbox:
                    self.tell(self.words("app.no_sandbox"), self.words("app.no_sandbox_help"), "warning")
                await self._count_facts()
                await self._greet(session)
        except (CodeWhaleError, OSError) as error:
            self.say(str(error), "error")

    async def _count_facts(self) -> None:
        """Say once how many proposals wait since an earlier session."""
        with contextlib.suppress(KeyError):  # nobody here keeps any
            if waiting := len(await self._ask(GetWaiting(self.context.workspace))):
                self.tell(self.words("proposals.waiting", n=waiting))

    async def _greet(self, session: str) -> None:
        """Where the provider cannot be asked as it is, help to connect one."""
        rows = await self._ask(ListProviders(session))
        if any(row.current and not row.ready for row in rows):
            self.open_screen("firstrun")

    async def _ask(self, query: Query[T], /) -> T:
        answer: T = with_local(query, await self.link.query(query), self.words, self._setup.home)
        return answer

    # -------------------------------------------------------------- who is there

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste):
            self._key_at, self._pressed = time.monotonic(), event.time
            self.attention.key()
            if not event.is_forwarded and self._early.keeps(event):
                return
            if not self.overlays.open and misses(event, self.focused):
                self.screen.set_focus(self.composer.text)
        await super().on_event(event)

    def _quiet(self) -> float | None:
        """Seconds since the last key, None while something stands in the composer."""
        free = self.composer.empty and not self.composer.choosing
        return time.monotonic() - self._key_at if free else None

    def _back(self, _: Any) -> None:
        """The terminal was an editor's or the shell's: what was pressed there is no answer here."""
        self._key_at = time.monotonic()
        self.composer.focus()
        self.screen.refresh(layout=True)

    # -------------------------------------------------------------- what panels and screens ask of the app

    def say(self, text: str, tone: str = "text") -> None:
        """One line for the person; one that has no room below stands in the transcript as well."""
        self.status.say(text, tone)
        if cell_len(text) > self.size.width - 2:
            self.tell(text, level="error" if tone == "error" else "info")

    def tell(self, text: str, detail: str = "", level: str = "info") -> None:
        """Lines in the transcript that are no event of the session."""
        self.transcript.tell(text, detail, level)

    def offer(self, text: str) -> None:
        self.composer.offer(text)

    def open_screen(self, name: str, argument: str = "") -> None:
        """Open a screen of the table; what is typed before it stands is for it."""
        if (opened := self.overlays.show(name, argument)) is not None:
            self._early.until(opened)

    # -------------------------------------------------------------- what panels and the terminal say

    def on_composer_sent(self, message: Composer.Sent) -> None:
        """A message to the model; what could not be sent stands in the composer again."""
        self.transcript.action_bottom()
        self.run_worker(self._send(message))

    def on_composer_continued(self) -> None:
        """Enter on nothing goes on with the last session, while a new one offers that."""
        start = self.transcript.source.start
        if start is not None and start.last is not None:
            self.run_worker(self.actions.resume(start.last.id, False))

    async def _send(self, message: Composer.Sent) -> None:
        async with self._sending:
            if not await self.actions.send(message):
                self.composer.give_back(message.draft)

    def on_composer_command(self, message: Composer.Command) -> None:
        self.transcript.action_bottom()
        self.run_worker(self._command(message.line))

    async def _command(self, line: str) -> None:
        await self.actions.command(line)
        self.look()

    def on_composer_shell(self, message: Composer.Shell) -> None:
        self.transcript.action_bottom()
        self.run_worker(self.actions.shell(message.line))

    def on_composer_mode_cycled(self) -> None:
        self.run_worker(self.actions.next_mode())

    def on_composer_effort_cycled(self) -> None:
        self.run_worker(self.actions.next_effort())

    def on_transcript_open_file(self, message: Transcript.OpenFile) -> None:
        self.run_worker(self.overlays.edit(message.path, message.line))

    def on_transcript_open_agent(self, message: Transcript.OpenAgent) -> None:
        self.open_screen("agents", message.session)

    def on_transcript_copied(self, message: Transcript.Copied) -> None:
        name = "copied_nothing" if not message.size else "copied" if message.whole else "copied_part"
        said = self.words(f"app.{name}", what=message.what, size=f"{message.size:,}")
        self.say(said, "success" if message.size and message.whole else "warning")

    def on_transcript_left(self) -> None:
        self.composer.focus()

    def on_asking_panel_waits(self, message: AskingPanel.Waits) -> None:
        self.composer.card_waits(message.on)

    def on_asking_panel_left(self) -> None:
        self.composer.focus()

    def on_asking_panel_failed(self, message: AskingPanel.Failed) -> None:
        self.say(message.text, "error")

    def on_app_focus(self) -> None:
        self.attention.focus(True)

    def on_app_blur(self) -> None:
        self.attention.focus(False)

    # -------------------------------------------------------------- colours

    def choose_theme(self, name: str) -> None:
        """Use other colours from now on; "" names those there are."""
        if not name:
            self.say(self.words("app.themes", names=", ".join(theme_names(self._setup.home))))
        elif self._use_theme(name):
            self.run_worker(self._keep_theme(name))

    async def _keep_theme(self, name: str) -> None:
        try:
            await self.link.submit(ChangeSetting(self.link.session, "tui.theme", name))
        except (CodeWhaleError, OSError) as error:
            self.say(str(error), "error")

    def _use_theme(self, name: str) -> bool:
        try:
            self.palette = self.context.palette = load_palette(name, self._setup.home)
        except ConfigError as error:
            self.say(str(error), "error")
            return False
        self.register_theme(theme := self.palette.theme())
        self.theme = theme.name
        panels: list[Any] = [*self.screen_stack[0].children, *self.screen_stack[1:]]
        for panel in panels:
            if (repaint := getattr(panel, "repaint", None)) is not None:
                repaint(self.palette)
        return True

    def action_theme(self) -> None:
        names = theme_names(self._setup.home)
        now = self.palette.name
        name = names[(names.index(now) + 1) % len(names)] if now in names else names[0]
        if self._use_theme(name):
            self.say(self.words("app.theme", name=one_line(name)))

    # -------------------------------------------------------------- keys that are another panel's

    def action_open_screen(self, name: str) -> None:
        self.open_screen(name)

    async def action_transcript(self, name: str) -> None:
        await self.run_action(name, self.transcript)

    async def action_reading(self, name: str) -> None:
        """Scroll and unfold the card while it has the focus, else the transcript."""
        card = self.asking.card
        await self.run_action(name, card if card is not None and card.has_focus else self.transcript)

    def action_fact(self, name: str) -> None:
        """Take, change or drop the first fact that is proposed; what is not seen whole is read before it is taken."""
        fact = None if self.proposals is None else self.proposals.first
        if fact is None:
            self.say(self.words("proposals.none"), "muted")
        elif name == "drop" or (name == "take" and self.proposals.whole):
            deciding = self.actions.command(f"/memory {name} {fact.id}")
            self.run_worker(self.proposals.decide(fact, deciding), group="facts")
        else:
            self.offer(f"/memory take {fact.id} {' '.join(fact.text.split())}")
            if name == "take":
                self.say(self.words("proposals.read"))

    def action_focus_transcript(self) -> None:
        self.transcript.focus()

    def action_answer(self) -> None:
        """What is asked has the keys; what was written is put aside."""
        if self.asking.card is not None:
            self.composer.step_aside()
            self.asking.focus_card()

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
            busy = self.status.facts.busy
            self.say(self.words("app.stopping" if busy else "app.again_quits"), "warning")
            if busy:
                self.run_worker(self.actions.interrupt())

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

    def action_ask_again(self) -> None:
        """Ask about every command again."""
        self.run_worker(self.actions.ask_again())

    def action_suspend(self) -> None:
        """Leave the terminal to the shell until `fg`. A browser has no shell: there the key is the composer's."""
        suspend = getattr(self._driver, "suspend", None)
        if suspend is None:
            raise SkipAction
        if self._pressed < self._resumed:  # held down, and read before the first one was acted on
            return
        self._suspend_signal()
        suspend(self.words("app.suspended_busy" if self.status.facts.busy else "app.suspended"))
        self._resumed = time.monotonic()

    def action_redraw(self) -> None:
        self._write("\x1b[2J")
        self.screen.refresh(layout=True)


def checked(settings: TuiSettings, home: str, environ: Mapping[str, str]) -> tuple[Palette, Mapping[str, str], str]:
    """The colours and the keys of the settings, and what is wrong with them ("" for nothing): then ours hold."""
    wrong = ""
    keys: Mapping[str, str] = named_today(settings.keys)
    try:
        palette = load_palette(theme_of(settings, environ), home)
    except ConfigError as error:
        palette, wrong = load_palette("dark", home), str(error)
    try:
        check_keys(keys)
    except ConfigError as error:
        keys, wrong = {}, wrong or str(error)
    return palette, keys, wrong
