"""The public test kit: a scripted model, a whole application in a folder, a clock that obeys, a list of events."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from codewhale.app.client import EngineClient
from codewhale.app.compose import App, AppOptions, open_app
from codewhale.models.dialects.base import Fact, ProviderSettings
from codewhale.models.scripted import ScriptedProvider
from codewhale.protocol.events import Envelope, Event, TurnFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Limits, OpenSession, SendMessage

__all__ = ["FakeClock", "Harness", "ScriptedProvider", "collect", "harness"]

_DEADLINE = 300.0


class FakeClock:
    """Time that moves only when told."""

    def __init__(self, start: float = 1_750_000_000.0) -> None:
        self._now = start

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._now

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds


class Harness:
    """An application over one workspace with a scripted model."""

    def __init__(self, app: App, provider: ScriptedProvider, workspace: Path) -> None:
        self.app = app
        self.provider = provider
        self.workspace = workspace

    @property
    def client(self) -> EngineClient:
        """The client a frontend would be handed."""
        return self.app.client

    async def open(self, **fields: Any) -> str:
        """Open a session (fields of OpenSession; yolo by default) and return its id."""
        fields = {"mode": Mode.YOLO, "authority": Authority.AUTO, **fields}
        session: str = await self.client.submit(OpenSession(workspace=str(self.workspace), **fields))
        return session

    async def turn(
        self, text: str, session: str = "", limits: Limits | None = None, seconds: float = _DEADLINE
    ) -> list[Event]:
        """Send a message (to a new session when none is given) and return the turn's events to its end. Raises
        TimeoutError after `seconds`."""
        session = session or await self.open(limits=limits or Limits())
        events = self.client.events(session, from_seq=-1)
        waiting = asyncio.ensure_future(collect(events, seconds))
        await asyncio.sleep(0)
        await self.client.submit(SendMessage(session, text))
        return [envelope.event for envelope in await waiting]


async def _nowhere(host: str, port: int) -> Sequence[str]:
    raise OSError("this application has no web")


async def collect(events: AsyncIterator[Envelope], seconds: float = _DEADLINE) -> list[Envelope]:
    """Everything up to and including the end of a turn. Raises TimeoutError after `seconds`."""
    found: list[Envelope] = []
    async with asyncio.timeout(seconds):
        async for envelope in events:
            found.append(envelope)
            if isinstance(envelope.event, TurnFinished):
                break
    return found


@asynccontextmanager
async def harness(
    home: Path,
    workspace: Path,
    script: Sequence[Any],
    environ: Mapping[str, str] | None = None,
    facts: Mapping[str, Fact] | None = None,
    window: int = 0,
) -> AsyncIterator[Harness]:
    """A whole application whose model plays `script` (turns as dicts, or callables from request to turn), at a
    provider of these `facts`, with a window of so many tokens (0: a million). It finds no host of the web."""
    settings = ProviderSettings(dialect="scripted", context_window=window, facts=dict(facts or {}))
    provider = ScriptedProvider(script, settings=settings)
    options = AppOptions(home=str(home), workspace=str(workspace), provider="scripted", model="scripted")
    async with open_app(options, environ=environ or {}, providers={"scripted": provider}) as app:
        app.parts.web.resolve = _nowhere
        yield Harness(app, provider, workspace)
