"""How hard the model is to think: the rule, and what reaches the provider."""

from pathlib import Path
from typing import Any

import pytest

from codewhale.agent.effort import CHOICES, facts_at, turn_effort, wakes
from codewhale.models.dialects.base import ProviderSettings
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import EffortChanged, Event, RequestSent
from codewhale.protocol.ops import SendMessage, SessionStatus, SetEffort
from codewhale.testing import harness
from support.stage import staged, until


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


def test_a_head_pinned_without_thinking_is_pinned_anew_when_it_begins() -> None:
    facts = {"replays_reasoning": True, "images": False}
    asleep = facts_at("off", facts)
    assert asleep["replays_reasoning"] is False and asleep["images"] is False
    assert wakes("high", asleep) and wakes("", asleep) and not wakes("off", asleep)
    assert facts_at("high", facts) == facts and not wakes("high", facts)
    assert facts_at("off", {"images": False}) == {"images": False}


async def test_thinking_does_not_begin_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    script = [{"calls": [{"name": "read_file", "arguments": {"wait": "gate"}}]}, {"text": "Yes."}]
    async with staged(tmp_path / "home", tmp_path, script) as stage:
        stage.provider.settings = ProviderSettings(dialect="scripted", facts={"replays_reasoning": True})
        session = stage.open(effort="off")
        await stage.engine.send(SendMessage(session.id, "Hello"))
        await until(lambda: bool(stage.tools.begun))
        with pytest.raises(SessionError, match="turn is running"):
            stage.control.set_effort(session.id, "high")
        assert session.state.effort == "off"
        stage.tools.gate("gate").set()
        await until(lambda: stage.engine.turn(session.id).idle)
        stage.control.set_effort(session.id, "high")
        header = session.state.header
        assert header is not None and header.facts == {"replays_reasoning": True}


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
