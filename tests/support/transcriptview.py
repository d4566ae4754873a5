"""A transcript on a screen, with the events of a session in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from codewhale.display.words import Words
from codewhale.protocol.events import Event
from codewhale.tui.transcript.view import Transcript
from support.tuirecord import SESSION, PanelHost, envelopes, hosted


@asynccontextmanager
async def shown(
    *events: Event, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[Transcript, PanelHost, Pilot[None]]]:
    """The transcript of these events, the app that holds it, and the pilot."""
    async with hosted(lambda palette: Transcript(Words("en"), palette), size) as (host, pilot):
        view = host.panel
        assert isinstance(view, Transcript)
        view.begin(SESSION)
        for envelope in envelopes(events):
            view.take(envelope)
        await settled(view, pilot)
        yield view, host, pilot


async def settled(view: Transcript, pilot: Pilot[None]) -> None:
    """Everything that came is on the screen."""
    view.take_all()
    view.draw()
    await pilot.pause()
