"""The project map in a turn: of names alone at first, of the code once a search has made its index."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from codewhale.app.compose import AppOptions, open_app
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.scripted import ScriptedProvider
from codewhale.protocol.events import CallFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import OpenSession, SendMessage
from codewhale.testing import collect


async def played(folder: Path, names: list[tuple[str, dict[str, Any]]]) -> list[CallFinished]:
    workspace = folder / "work"
    workspace.mkdir(parents=True)
    (workspace / "store.py").write_text("class SessionStore:\n    def save(self) -> None:\n        pass\n")
    turns = [{"calls": [{"name": name, "arguments": given}]} for name, given in names]
    provider = ScriptedProvider(turns, settings=ProviderSettings(dialect="scripted"))
    options = AppOptions(str(folder / "home"), str(workspace), "scripted", "scripted")
    async with open_app(options, environ={}, providers={"scripted": provider}) as app:
        opening = OpenSession(workspace=str(workspace), mode=Mode.YOLO, authority=Authority.AUTO)
        session: str = await app.client.submit(opening)
        waiting = asyncio.ensure_future(collect(app.client.events(session, from_seq=-1)))
        await asyncio.sleep(0)
        await app.client.submit(SendMessage(session, "Go."))
        return [one.event for one in await waiting if isinstance(one.event, CallFinished)]


async def test_the_map_shows_the_code_once_it_is_indexed(tmp_path: Path) -> None:
    done = await played(tmp_path, [("project_map", {}), ("codebase_search", {"query": "save"}), ("project_map", {})])
    assert all(result.ok for result in done), [result.content for result in done]
    before, after = (msgspec.json.decode(done[number].content) for number in (0, 2))
    assert before["tree"] == "store.py"
    assert "  store.py: SessionStore(save)" in after["tree"].splitlines()
    assert set(before) == set(after) == {"tree", "summary", "key_files"}
