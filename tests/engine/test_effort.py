"""How hard the model is to think: the rule, and what reaches the provider."""

from pathlib import Path
from typing import Any

import pytest

from codewhale.engine.effort import CHOICES, turn_effort
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import EffortChanged, Event, RequestSent
from codewhale.protocol.ops import SessionStatus, SetEffort
from codewhale.testing import harness


@pytest.mark.parametrize("chosen", [choice for choice in CHOICES if choice != "auto"])
def test_a_chosen_level_stays(chosen: str) -> None:
    assert turn_effort(chosen, "Debug this error.") == turn_effort(chosen, "", child=True) == chosen


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("Why does this crash?", "max"),
        ("Debugging: the build FAILED", "max"),
        ("请帮我调试这个函数", "max"),
        ("運行時報錯", "max"),
        ("起動するとエラーになる", "max"),
        ("errorが出る", "max"),
        ("Search for the error text", "max"),
        ("Look up where it is set", "low"),
        ("搜索所有调用者", "low"),
        ("使用箇所を検索して", "low"),
        ("Write a parser for dates.", "high"),
        ("Add a terror level to the game, then research it", "high"),
        ("写一个解析器", "high"),
        ("", "high"),
    ],
)
def test_words_choose_the_level(text: str, level: str) -> None:
    assert turn_effort("auto", text) == level
    assert turn_effort("auto", text, child=True) == "low"


def sent(events: list[Event]) -> list[str]:
    return [event.effort for event in events if isinstance(event, RequestSent)]


async def test_each_turn_is_sent_at_its_level(tmp_path: Path) -> None:
    async with harness(tmp_path / "home", tmp_path, [{"text": "Yes."}] * 4) as agent:
        session = await agent.open()
        assert sent(await agent.turn("Hello", session)) == [""]
        await agent.client.submit(SetEffort(session, "auto"))
        assert sent(await agent.turn("Fix this bug", session)) == ["max"]
        assert sent(await agent.turn("Write a poem", session)) == ["high"]
        await agent.client.submit(SetEffort(session, "off"))
        assert sent(await agent.turn("Fix this bug", session)) == ["off"]


async def test_it_is_kept_with_the_session(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with harness(home, tmp_path, [{"text": "Yes."}] * 2) as agent:
        session = await agent.open(effort="low")
        await agent.turn("Hello", session)
    async with harness(home, tmp_path, [{"text": "Yes."}] * 2) as agent:
        await agent.open(resume=session)
        assert sent(await agent.turn("Again", session)) == ["low"]


async def test_new_sessions_begin_as_configured(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('reasoning_effort = "max"\n')
    async with harness(home, tmp_path, [{"text": "Yes."}] * 2) as agent:
        session = await agent.open()
        assert sent(await agent.turn("Hello", session)) == ["max"]
        status: Any = await agent.client.query(SessionStatus(session))
        assert status.effort == "max"


async def test_an_unknown_level_changes_nothing(tmp_path: Path) -> None:
    async with harness(tmp_path / "home", tmp_path, [{"text": "Yes."}]) as agent:
        session = await agent.open()
        with pytest.raises(SessionError, match="low, medium"):
            await agent.client.submit(SetEffort(session, "huge"))
        assert not [event for event in await agent.turn("Hello", session) if isinstance(event, EffortChanged)]
