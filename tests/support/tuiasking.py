"""Asks for tests: a panel on a screen with a line to type into, and events that ask for something."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.pilot import Pilot
from textual.widgets import Input

from codewhale.display.palette import Palette
from codewhale.display.words import Words
from codewhale.protocol.decisions import Offer
from codewhale.protocol.events import ApprovalAsked, Event, QuestionAsked
from codewhale.protocol.tools import CommandSubject
from codewhale.tui.asking.card import Patience
from codewhale.tui.asking.panel import AskingPanel
from support.tuirecord import PanelHost, RecordedClient, envelopes, hosted, screen_text, until

QUICK = Patience(idle=0.0, seen=0.0)


class Desk(Vertical):
    """A line to type into below the asking panel."""

    DEFAULT_CSS = "Desk Input { dock: bottom; height: 3; }"

    def __init__(self, panel: AskingPanel) -> None:
        super().__init__()
        self.panel = panel

    def compose(self) -> ComposeResult:
        """The panel and the line."""
        yield self.panel
        yield Input(id="composer", select_on_focus=False)

    def on_mount(self) -> None:
        """The line has the focus at first."""
        self.query_one("#composer", Input).focus()

    def on_asking_panel_left(self) -> None:
        """Back to the line."""
        self.query_one("#composer", Input).focus()


class Asked:
    """A panel that was asked something, with the client that is answered."""

    def __init__(self, host: PanelHost, pilot: Pilot[None], desk: Desk, client: RecordedClient) -> None:
        self.host, self.pilot, self.context, self.client = host, pilot, desk, client
        self.panel = desk.panel

    def take(self, *events: Event, session: str = "s-recorded") -> None:
        """Let events happen."""
        for envelope in envelopes(events, session):
            self.panel.take(envelope)

    async def armed(self, request: str = "") -> Any:
        """Wait for the card (of a request) to take answers."""

        def ready() -> bool:
            card = self.panel.card
            return card is not None and card.armed and request in ("", card.request)

        await until(self.pilot, ready)
        return self.panel.card

    async def gone(self) -> None:
        """Wait until nothing is asked."""
        await until(self.pilot, lambda: self.panel.card is None)

    async def press(self, *keys: str) -> None:
        """Press keys, and let what they do happen."""
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def take_row(self, words: str) -> None:
        """Move to the answer that has these words, and take it by Enter."""

        def at_hand() -> bool:
            return any("› " in line and words in line for line in screen_text(self.host).splitlines())

        for _ in range(12):
            if at_hand():
                break
            await self.press("down")
        assert at_hand(), screen_text(self.host)
        await self.press("enter")

    @property
    def typed(self) -> str:
        """What stands in the line below."""
        return self.context.query_one("#composer", Input).value


@asynccontextmanager
async def asked(
    events: Sequence[Event],
    size: tuple[int, int] = (80, 24),
    patience: Patience | None = QUICK,
    language: str = "en",
    answers: dict[type, Any] | None = None,
) -> AsyncIterator[Asked]:
    """A panel to which this has happened."""
    client = RecordedClient((), answers or {})
    made: list[Desk] = []

    def make(palette: Palette) -> Desk:
        def quiet() -> float | None:
            written = made[0].is_mounted and made[0].query_one("#composer", Input).value
            host: Any = made[0].app
            return None if written else time.monotonic() - host.pressed

        made.append(Desk(AskingPanel(Words(language), palette, client.submit, quiet, {}, patience)))
        return made[0]

    async with hosted(make, size) as (host, pilot):
        stage = Asked(host, pilot, made[0], client)
        stage.take(*events)
        yield stage


def approval(command: str = "make test", request: str = "ask_1", **fields: Any) -> ApprovalAsked:
    """A command that is asked about."""
    given: dict[str, Any] = {
        "request_id": request,
        "call_id": "call_1",
        "tool": "exec_shell",
        "subjects": (CommandSubject(command),),
        "reason": "It runs a program that is not known to be harmless.",
        "rule": "shell.unknown",
        "sandbox": "workspace-write",
        "offer": Offer("exec_shell", "prefix", "make"),
    }
    return ApprovalAsked(**(given | fields))


def question(*more: dict[str, Any], request: str = "ask_q") -> QuestionAsked:
    """Questions, one of them about a database."""
    first = {
        "id": "database",
        "header": "Database",
        "question": "Which database should it use?",
        "options": [
            {"label": "SQLite", "description": "One file, nothing to run."},
            {"label": "PostgreSQL", "description": "A server that several machines share."},
        ],
    }
    return QuestionAsked(request, (first, *more))
