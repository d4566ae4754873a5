"""The whole terminal interface under a pilot: on a record, or over a real engine whose model is scripted."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from textual.pilot import Pilot

from codewhale.app.compose import AppOptions, open_app
from codewhale.display.setup import Setup, TuiSettings
from codewhale.lib.clock import Clock, SystemClock
from codewhale.models.scripted import ScriptedProvider
from codewhale.protocol.events import Envelope, Event
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.ops import ListSessions, OpenSession, SessionStatus, StatusView
from codewhale.protocol.views import (
    CompleteCommand,
    ContextView,
    FindFiles,
    GetContext,
    GetQueue,
    GetWorkspace,
    ListCommands,
    ListProviders,
    ProviderRow,
    WorkspaceRow,
)
from codewhale.testing import ProviderSettings
from codewhale.tui.app import CodeWhaleApp
from codewhale.tui.asking.card import Patience
from support.patience import HANG
from support.tuirecord import RecordedClient, envelopes, screen_text, until

FOLDER = "/home/ada/shop"
AT_ONCE = Patience(idle=0.0, seen=0.0)
STATUS = StatusView(
    "s-recorded", FOLDER, Mode.AGENT, Authority.PERSON, "deepseek", "deepseek-v4", 0, 0, 0, False, "", (), 0, 0,
    approval=Approval.SUGGEST, branch="main", sandbox="landlock",
)  # fmt: skip
CONTEXT = ContextView(
    "deepseek", "deepseek-v4", 128_000, "catalog", 28_000, 100_000, 6_372, 80_000, (), (), 0, True, 0, 0, 0, 0, 0
)
READY = (ProviderRow("deepseek", "openai-chat", "https://api.deepseek.com", True, "", current=True),)
ANSWERS: dict[type, Any] = {
    SessionStatus: STATUS,
    GetContext: CONTEXT,
    ListProviders: READY,
    GetQueue: (),
    ListCommands: (),
    CompleteCommand: (),
    FindFiles: (),
    GetWorkspace: WorkspaceRow(FOLDER, "main", 2),
    ListSessions: [],
}


class Stage(Struct):
    """An app with its pilot, and the client that it was handed."""

    app: CodeWhaleApp
    pilot: Pilot[Any]
    client: Any

    @property
    def text(self) -> str:
        """What is on the screen."""
        return screen_text(self.app)

    async def until(self, condition: Callable[[], Any] | str, seconds: float = HANG) -> Any:
        """Wait for a condition, or for words on the screen."""
        if isinstance(condition, str):
            words = condition
            return await until(self.pilot, lambda: words in self.text, seconds)
        return await until(self.pilot, condition, seconds)

    async def type(self, text: str) -> None:
        """Press a key for each character."""
        names = {" ": "space", "/": "slash", "!": "exclamation_mark", "@": "at", ".": "full_stop", "-": "minus"}
        await self.pilot.press(*[names.get(char, char) for char in text])


@asynccontextmanager
async def running(setup: Setup, client: Any, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Stage]:
    """The app under a pilot; the session is closed behind it."""
    app = CodeWhaleApp(setup)
    try:
        async with app.run_test(size=size) as pilot:
            yield Stage(app, pilot, client)
    finally:
        await app.link.aclose()


@asynccontextmanager
async def recorded(
    home: Path,
    events: Sequence[Event | Envelope] = (),
    size: tuple[int, int] = (80, 24),
    settings: TuiSettings | None = None,
    answers: Mapping[type, Any] | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Stage]:
    """The app on a record. `answers` join or replace the usual ones."""
    record = [event for event in events if isinstance(event, Envelope)]
    record = record or envelopes([event for event in events if not isinstance(event, Envelope)])
    client = RecordedClient(record, ANSWERS | dict(answers or {}))

    @asynccontextmanager
    async def connect() -> AsyncIterator[Any]:
        yield client

    opening = OpenSession(FOLDER, authority=Authority.PERSON)
    setup = Setup(connect, opening, str(home), settings or TuiSettings(), {}, AT_ONCE, clock=clock or SystemClock())
    async with running(setup, client, size) as stage:
        yield stage


@asynccontextmanager
async def scripted(
    home: Path, workspace: Path, script: Sequence[Any], size: tuple[int, int] = (100, 30), **fields: Any
) -> AsyncIterator[Stage]:
    """The app over a real engine whose model plays `script`; `fields` are those of OpenSession."""
    provider = ScriptedProvider(script, settings=ProviderSettings(dialect="scripted"))
    options = AppOptions(home=str(home), workspace=str(workspace), provider="scripted", model="scripted")
    clients: list[Any] = []

    @asynccontextmanager
    async def connect() -> AsyncIterator[Any]:
        async with open_app(options, environ={}, providers={"scripted": provider}) as app:
            clients.append(app.client)
            yield app.client

    opening = OpenSession(str(workspace), authority=Authority.PERSON, **fields)
    async with running(Setup(connect, opening, str(home), TuiSettings(), {}, AT_ONCE), None, size) as stage:
        await until(stage.pilot, lambda: stage.app.link.session)
        stage.client = clients[0]
        yield stage
