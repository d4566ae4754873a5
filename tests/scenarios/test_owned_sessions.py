"""Sessions that work for another one, through the client: who asks, who is told, and what is a person's alone."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import ApprovalAsked, Envelope, TurnFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Answer, CloseSession, ListSessions, OpenSession, SendMessage, SessionStatus
from codewhale.testing import Harness, harness
from support.patience import HANG

WRITE: list[Any] = [{"calls": [{"name": "exec_shell", "arguments": {"command": "touch made"}}]}, {"text": "done"}]


async def family(here: Harness, authority: Authority = Authority.PERSON) -> tuple[str, str]:
    """A person's session and one that works for it."""
    root = await here.open(mode=Mode.AGENT, authority=authority)
    owned = await here.open(mode=Mode.YOLO, authority=Authority.AUTO, owner=root, kind="scout", name="tests")
    return root, owned


async def heard(here: Harness, root: str, sent: asyncio.Event, until: type, owned: bool) -> list[Envelope]:
    """What a watcher of the root is told up to an event of this type."""
    events: list[Envelope] = []
    stream = here.client.events(root, -1, owned=owned)
    sent.set()
    async for envelope in stream:
        events.append(envelope)
        if isinstance(envelope.event, until):
            return events
    return events


async def test_what_an_owned_session_asks_reaches_who_watches_its_root_and_is_answered_there(
    home: Path, workspace: Path
) -> None:
    async with harness(home, workspace, WRITE) as here:
        root, owned = await family(here)
        sent = asyncio.Event()
        watching = asyncio.create_task(heard(here, root, sent, ApprovalAsked, owned=False))
        await sent.wait()
        await here.client.submit(SendMessage(owned, "Make it"))
        (asked,) = await asyncio.wait_for(watching, HANG)
        assert asked.session == owned and isinstance(asked.event, ApprovalAsked)
        assert asked.event.asker == "scout tests"
        late = await asyncio.wait_for(anext(aiter(late_events(here, root))), HANG)
        assert late.event == asked.event
        watching = asyncio.create_task(heard(here, root, sent, TurnFinished, owned=True))
        await asyncio.sleep(0)
        assert await here.client.submit(Answer(root, asked.event.request_id, allowed=True))
        assert {one.session for one in await asyncio.wait_for(watching, HANG)} == {owned}
    assert (workspace / "made").exists()


async def late_events(here: Harness, root: str) -> Any:
    """What a watcher who comes late is told of the owned sessions."""
    async for envelope in here.client.events(root):
        if envelope.session != root:
            yield envelope


async def test_an_owned_session_goes_no_further_than_its_owner(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, WRITE) as here:
        _, owned = await family(here, Authority.HEADLESS)
        await here.turn("Make it", owned)
        assert not (workspace / "made").exists()


async def test_the_latest_session_is_a_persons_and_listings_name_the_owner(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": "one"}, {"text": "two"}]) as here:
        root, owned = await family(here)
        await here.turn("Look", root)
        await here.turn("Search", owned)
        assert [row.id for row in await here.client.query(ListSessions(str(workspace)))] == [root]
        rows = {row.id: row for row in here.app.parts.sessions.summaries(str(workspace), owned=True)}
        assert (rows[owned].owner, rows[owned].kind, rows[owned].name) == (root, "scout", "tests")
        assert rows[root].owner == ""
        await here.client.submit(CloseSession(root))
        with pytest.raises(SessionError, match="not open"):
            await here.client.query(SessionStatus(owned))
        assert await here.client.submit(OpenSession(str(workspace), resume="latest")) == root


async def test_an_owner_must_be_open(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, []) as here:
        with pytest.raises(SessionError, match="not open"):
            await here.open(owner="20200101-000000-00000000")
