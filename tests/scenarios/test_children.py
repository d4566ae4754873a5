"""Sub-agents through the front door: opened by a call, at work beside their parent, their ends told exactly once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codewhale.protocol.children import ChildView, ListChildren
from codewhale.protocol.events import CallFinished, ChildClosed, ChildOpened, Event, MessageAdded, TurnFinished
from codewhale.protocol.messages import Text
from codewhale.protocol.modes import Authority, Mode
from codewhale.testing import Harness, harness

Turn = dict[str, Any]


def call(tool: str, /, **arguments: Any) -> Turn:
    return {"calls": [{"name": tool, "arguments": arguments}]}


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def by_task(tasks: dict[str, list[Turn]]) -> Callable[[dict[str, Any]], Turn]:
    """A model for several conversations: the one whose first word of a user message is a key plays its turns in order."""
    played: dict[str, int] = {}

    def play(request: dict[str, Any]) -> Turn:
        words = [text_of(one) for one in request["messages"] if one["role"] == "user"]
        key = next(key for key in tasks if any(word.startswith(key) for word in reversed(words)))
        turn = played.get(key, 0)
        played[key] = turn + 1
        return tasks[key][turn]

    return play


def reports(events: list[Event]) -> list[str]:
    return [
        part.text
        for event in events
        if isinstance(event, MessageAdded) and event.child
        for part in event.message.parts
        if isinstance(part, Text)
    ]


def results(events: list[Event], name: str) -> list[dict[str, Any]]:
    return [json.loads(one.content) for one in events if isinstance(one, CallFinished) and one.name == name and one.ok]


async def children(here: Harness, session: str) -> tuple[ChildView, ...]:
    return await here.client.query(ListChildren(session))


async def test_a_turn_without_a_person_stays_open_until_its_children_have_reported(home: Path, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    model = by_task(
        {
            "Look": [call("read_file", path="a.txt"), {"text": "SUMMARY: it says one\n\nCHANGES: none"}],
            "Start": [
                call("agent_open", prompt="Look at a.txt", role="explore", name="scout"),
                {"text": "Opened."},
                {"text": "The scout says one."},
            ],
        }
    )
    async with harness(home, workspace, [model] * 10) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.HEADLESS)
        events = await here.turn("Start", session)
        (opened,) = results(events, "agent_open")
        assert (opened["name"], opened["status"], opened["terminal"]) == ("scout", "running", False)
        (report,) = reports(events)
        assert "scout (explore) completed: it says one" in report
        assert [type(one) for one in events if isinstance(one, ChildOpened | ChildClosed)] == [ChildOpened, ChildClosed]
        end = events[-1]
        assert isinstance(end, TurnFinished) and end.result["answer"] == "The scout says one."
        (view,) = await children(here, session)
        assert (view.status, view.reported, view.role) == ("completed", True, "explore")
