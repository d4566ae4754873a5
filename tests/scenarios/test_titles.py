"""Titles made from the first exchange: one short call beside the conversation, which nobody waits for."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from codewhale.agent.titles import MOST_TOKENS
from codewhale.app.compose import App, AppOptions, open_app
from codewhale.protocol.events import TitleSet, TurnFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import CloseSession, OpenSession, RunCommand, SendMessage, SessionUsage
from codewhale.session.titling import title_of
from codewhale.testing import Harness, harness
from support.cacheserver import CacheServer, Reply
from support.scenes import watching

CONFIG = """
provider = "p"
model = "large"
{more}
[providers.p]
dialect = "openai-chat"
base_url = "{url}"
context_window = 1000000
[providers.p.prices."*"]
miss = 2.0
hit = 0.1
output = 8.0
"""


def is_title(payload: dict[str, Any]) -> bool:
    return "Give this conversation a title" in str(payload["messages"][-1]["content"])


@contextlib.asynccontextmanager
async def opened(home: Path, workspace: Path, server: CacheServer, more: str = "titles = true") -> AsyncIterator[App]:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(CONFIG.format(url=server.url, more=more))
    async with open_app(AppOptions(home=str(home), workspace=str(workspace)), environ={}) as app:
        yield app


def answering(title: str) -> Any:
    def respond(payload: dict[str, Any]) -> Reply:
        return {"text": title if is_title(payload) else f"Answer to {len(payload['messages'])} messages."}

    return respond


async def test_the_first_turn_of_a_person_gives_the_session_a_title(home: Path, workspace: Path) -> None:
    async with CacheServer(answering('Title: "Fix the **parser**."')) as server, opened(home, workspace, server) as app:
        session = await app.client.submit(OpenSession(str(workspace), Mode.AGENT, Authority.PERSON))
        async with watching(Harness(app, None, workspace), session) as watch:  # type: ignore[arg-type]
            await app.client.submit(SendMessage(session, "The parser is broken, fix it"))
            assert await watch.until(TitleSet) == TitleSet("Fix the parser", "model")
            await app.client.submit(SendMessage(session, "And now?"))
            await watch.until(TurnFinished, 2)
        assert app.parts.sessions.summary(session).title == "Fix the parser"
        titles = [one for one in server.served if is_title(one.payload)]
        talk = [one for one in server.served if not is_title(one.payload)]
        assert (len(titles), len(talk)) == (1, 2)
        asked = titles[0].payload
        assert "tools" not in asked and len(asked["messages"]) == 1 and asked.get("max_tokens", 0) == MOST_TOKENS
        assert len(str(asked)) < 1000
        # The conversation holds nothing of it, and its bytes go on from those of the first request.
        assert talk[1].prompt.startswith(talk[0].prompt[:-1]) or talk[1].kept > 0.99
        usage = await app.client.query(SessionUsage(session))
        assert usage.total["calls"] == 3
        await app.client.submit(CloseSession(session))


async def test_the_persons_title_is_kept_and_a_setting_or_nobody_there_asks_for_none(
    home: Path, workspace: Path
) -> None:
    for authority, more, line in (
        (Authority.PERSON, "titles = false", ""),
        (Authority.PERSON, "", ""),  # a server of this machine, which may hold one conversation at a time
        (Authority.AUTO, "titles = true", ""),
        (Authority.HEADLESS, "titles = true", ""),
        (Authority.PERSON, "titles = true", "/rename Mine"),
    ):
        async with CacheServer(answering("Theirs")) as server, opened(home, workspace, server, more) as app:
            session = await app.client.submit(OpenSession(str(workspace), Mode.AGENT, authority))
            if line:
                await app.client.submit(RunCommand(session, line))
            async with watching(Harness(app, None, workspace), session) as watch:  # type: ignore[arg-type]
                for turn in (1, 2):
                    await app.client.submit(SendMessage(session, "First words of mine\nand more"))
                    await watch.until(TurnFinished, turn)
            await app.client.submit(CloseSession(session))
            assert [is_title(one.payload) for one in server.served] == [False, False]
            assert app.parts.sessions.summary(session).title == ("Mine" if line else "First words of mine")


async def test_a_scripted_model_is_not_asked(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": "One."}, {"text": "Two."}]) as agent:
        session = await agent.open(authority=Authority.PERSON)
        await agent.turn("One", session)
        await agent.turn("Two", session)
        assert len(agent.provider.requests) == 2


async def test_without_a_usable_title_the_first_words_stay(home: Path, workspace: Path) -> None:
    async with CacheServer(answering("...")) as server, opened(home, workspace, server) as app:
        session = await app.client.submit(OpenSession(str(workspace), Mode.AGENT, Authority.PERSON))
        async with watching(Harness(app, None, workspace), session) as watch:  # type: ignore[arg-type]
            for turn in (1, 2, 3):
                await app.client.submit(SendMessage(session, f"Begin here {turn}"))
                await watch.until(TurnFinished, turn)
        await app.client.submit(CloseSession(session))
        assert sum(is_title(one.payload) for one in server.served) == 1
        assert app.parts.sessions.summary(session).title == "Begin here 1"


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Fix the parser", "Fix the parser"),
        ('  "Fix the parser."  ', "Fix the parser"),
        ("**Title:** Fix it", "Fix it"),
        ("标题：修复解析器。", "修复解析器"),
        ("<think>hm\nhm</think>\n\n# Fix it\nmore", "Fix it"),
        ("", ""),
        ("\n \n", ""),
        ("...", ""),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("word " * 100, "word " * 15 + "word…"),
    ],
)
def test_what_a_model_answers_becomes_one_line(answer: str, title: str) -> None:
    assert title_of(answer) == title
