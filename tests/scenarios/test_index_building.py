"""The index of a repository is built behind a person's first turn, and by nobody else's."""

import asyncio
from pathlib import Path

from codewhale.codesearch.search import CodeSearch
from codewhale.protocol.events import Notice, TurnFinished
from codewhale.protocol.modes import Authority
from codewhale.testing import Harness, harness
from support.patchland import git
from support.patience import HANG
from support.searchtree import planted

SCRIPT = [{"text": "One."}, {"text": "Two."}]


async def notices(stage: Harness, session: str, turns: int) -> list[str]:
    """The codes of a session's notices up to the end of a turn."""
    codes: list[str] = []
    async for envelope in stage.client.events(session):
        match envelope.event:
            case Notice(code=code):
                codes.append(code)
            case TurnFinished(turn=turn) if turn == turns:
                break
    return codes


async def test_a_persons_first_turn_in_a_repository_begins_it(tmp_path: Path, home: Path) -> None:
    tree = planted(tmp_path)
    git(tree, "init", "-q")
    async with harness(home, tree, SCRIPT) as stage:
        session = await stage.open(authority=Authority.PERSON)
        await stage.turn("Go.", session)
        async with asyncio.timeout(HANG):  # its end is seen before what follows it has begun
            async for envelope in stage.client.events(session):
                if isinstance(envelope.event, Notice) and envelope.event.code == "index_building":
                    break
        search = stage.app.parts.services.code_search
        assert isinstance(search, CodeSearch)
        answer = await search.search(str(tree), "token store", patience=None)
        assert answer.coverage == 1.0
        await stage.turn("Go on.", session)
        assert (await notices(stage, session, 2)).count("index_building") == 1


async def test_a_run_without_a_person_builds_none(tmp_path: Path, home: Path) -> None:
    tree = planted(tmp_path)
    git(tree, "init", "-q")
    async with harness(home, tree, SCRIPT) as stage:
        session = await stage.open()
        await stage.turn("Go.", session)
        await stage.turn("Go on.", session)
        assert "index_building" not in await notices(stage, session, 2)
        assert not stage.app.parts.services.built("code_search")
