"""The way to the engine: opening, failing in words, pumping events, going on with another session."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.widgets import Static

from codewhale.protocol.errors import CodeWhaleError, ConfigError, SessionError
from codewhale.protocol.events import Envelope, Notice, SessionOpened, TurnStarted
from codewhale.protocol.modes import Mode
from codewhale.protocol.ops import CloseSession, Interrupt, OpenSession, SessionStatus
from codewhale.tui.link import Link
from support.patience import HANG
from support.tuirecord import RecordedClient, envelopes, hosted, screen_text, until

OPENING = OpenSession("/w")
OPENED = SessionOpened(1, "/w", Mode.AGENT, "p", "m")


class Listening:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.sessions: list[str] = []
        self.told: list[Envelope] = []
        self.failures: list[tuple[str, bool]] = []
        self.faults: list[Exception] = []

    def opened(self, session: str) -> None:
        """A session."""
        self.sessions.append(session)

    def take(self, envelope: Envelope) -> None:
        """An event."""
        self.told.append(envelope)

    def failed(self, error: CodeWhaleError | OSError, opening: bool) -> None:
        """A failure."""
        self.failures.append((str(error), opening))

    def broke(self, error: Exception) -> None:
        """A fault."""
        self.faults.append(error)


class Door:
    """Hands out a client, or fails."""

    def __init__(self, client: RecordedClient, error: Exception | None = None) -> None:
        self.client = client
        self.error = error
        self.closed = 0

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[Any]:
        """The client, until it is given back."""
        if self.error is not None:
            raise self.error
        yield self.client
        self.closed += 1


async def when(condition: Callable[[], Any]) -> None:
    """Wait for a condition, at most ten seconds."""
    deadline = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < deadline, "it never came about"
        await asyncio.sleep(0.002)


async def test_a_record_is_played_and_grows() -> None:
    client = RecordedClient(envelopes([TurnStarted(1)]))
    client.feed(Notice("info", "later"))
    client.end()
    told = [envelope async for envelope in client.events(client.session)]
    assert [envelope.seq for envelope in told] == [1, 2]
    await client.submit(Interrupt(client.session))
    assert client.ops == [Interrupt(client.session)]


async def test_a_panel_is_hosted() -> None:
    async with hosted(lambda palette: Static(palette.name, markup=False), size=(20, 3)) as (host, pilot):
        await until(pilot, lambda: "dark" in screen_text(host))


async def test_events_are_passed_on_in_order_and_what_is_asked_before_waits() -> None:
    client = RecordedClient(envelopes([OPENED]), {SessionStatus: "stands"})
    door, listening = Door(client), Listening()
    link = Link(door, OPENING, listening)
    early = asyncio.create_task(link.query(SessionStatus("x")))
    await asyncio.sleep(0)
    link.start()
    assert await early == await link.query(SessionStatus("x")) == "stands"
    assert link.session == client.session
    client.feed(*[Notice("info", str(number)) for number in range(500)])
    await when(lambda: len(listening.told) == 501)
    assert [envelope.seq for envelope in listening.told] == list(range(1, 502))
    await link.aclose()
    assert (door.closed, listening.failures, listening.faults) == (1, [], [])


@pytest.mark.parametrize("error", [ConfigError("config.toml: no"), OSError(28, "No space left on device")])
async def test_what_cannot_be_opened_is_said_and_tried_again(error: Exception) -> None:
    door, listening = Door(RecordedClient(envelopes([OPENED])), error), Listening()
    link = Link(door, OPENING, listening)
    link.start()
    with pytest.raises(type(error)):
        await link.submit(Interrupt("x"))
    await when(lambda: listening.failures)
    assert listening.failures == [(str(error), True)]
    door.error = None
    await when(lambda: link.over)
    link.retry(provider="other")
    await link.submit(Interrupt("x"))
    opening = door.client.ops[0]
    assert isinstance(opening, OpenSession) and opening.provider == "other"
    await link.aclose()


async def test_a_fault_is_told_as_one() -> None:
    listening = Listening()
    link = Link(Door(RecordedClient(), ValueError("what somebody wrote")), OPENING, listening)
    link.start()
    await when(lambda: listening.faults)
    assert listening.failures == [("the session could not be opened", True)]
    await link.aclose()


async def test_another_session_takes_the_place_of_the_first() -> None:
    client = RecordedClient(envelopes([OPENED]))
    listening = Listening()
    link = Link(Door(client), OPENING, listening)
    link.start()
    await when(lambda: listening.told)
    await link.adopt("s-other")
    assert listening.sessions == [client.session, "s-other"] and link.session == "s-other"
    assert client.ops[-1] == CloseSession(client.session)
    await link.aclose()


async def test_a_session_that_ends_early_is_said() -> None:
    class Broken(RecordedClient):
        """Its events fail."""

        async def events(self, session: str, from_seq: int = 0, durable: bool = True) -> AsyncIterator[Envelope]:
            """One, then none."""
            yield envelopes([OPENED])[0]
            raise SessionError("the disk is full")

    listening = Listening()
    link = Link(Door(Broken()), OPENING, listening)
    link.start()
    await when(lambda: listening.failures)
    assert listening.failures == [("the disk is full", False)]
    await link.aclose()
