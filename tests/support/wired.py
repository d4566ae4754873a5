"""A whole application whose provider speaks HTTP to a server on loopback that plays byte scripts."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codewhale.app.client import EngineClient
from codewhale.app.compose import AppOptions, open_app
from codewhale.models.build import build_dialect
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.exchange import StreamLimits
from codewhale.models.http import HttpProvider
from codewhale.models.known_models import resolve_model
from codewhale.models.retries import Retries
from codewhale.protocol.events import Event, TurnFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import OpenSession, SendMessage
from codewhale.testing import collect
from support.wire import Reply, Wire


@dataclass
class Wired:
    """A session against the server; `naps` are the waits between tries, which come at once."""

    client: EngineClient
    wire: Wire
    session: str
    naps: list[float] = field(default_factory=list)

    async def turn(self, text: str) -> tuple[list[Event], dict[str, Any]]:
        """(its events, its result) of one turn."""
        waiting = asyncio.ensure_future(collect(self.client.events(self.session, from_seq=-1)))
        await asyncio.sleep(0)
        await self.client.submit(SendMessage(self.session, text))
        events = [envelope.event for envelope in await waiting]
        assert isinstance(events[-1], TurnFinished)
        return events, events[-1].result


@asynccontextmanager
async def wired(
    home: Path, workspace: Path, replies: Sequence[Reply], idle: float = 5.0, **settings: Any
) -> AsyncIterator[Wired]:
    """A session in yolo mode; `idle` bounds the gaps in an answer, in seconds."""
    naps: list[float] = []

    async def nap(seconds: float) -> None:
        naps.append(seconds)

    async with Wire(replies) as wire:
        table = ProviderSettings(base_url=wire.url, **settings)
        dialect: Any = build_dialect("wired", table)
        limits, retries = (
            StreamLimits(first=min(5, 2 * idle), gap=idle, wall=20),
            Retries(sleep=nap, jitter=lambda: 0.0),
        )
        provider = HttpProvider("wired", table, "", dialect, limits, retries)
        provider.model = resolve_model("wired", table, "m")[1]
        options = AppOptions(home=str(home), workspace=str(workspace), provider="wired", model="m")
        async with open_app(options, environ={}, providers={"wired": provider}) as app:
            opened = OpenSession(workspace=str(workspace), mode=Mode.YOLO, authority=Authority.AUTO)
            yield Wired(app.client, wire, await app.client.submit(opened), naps)
