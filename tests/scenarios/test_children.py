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


async def test_a_fork_begins_with_the_bytes_of_its_parents_last_request(home: Path, workspace: Path) -> None:
    bodies: dict[str, list[bytes]] = {"child": [], "parent": []}

    def model(request: dict[str, Any]) -> Turn:
        words = [text_of(one) for one in request["messages"] if one["role"] == "user"]
        forked = any("Continue as a fork" in word for word in words)
        answers = sum(one["role"] == "assistant" for one in request["messages"])
        bodies["child" if forked else "parent"].append(json.dumps(request["messages"]).encode())
        if forked:
            return {"text": "SUMMARY: forked"}
        return [
            call("checklist_write", todos=[{"content": "a", "status": "pending"}]),
            call("agent_open", prompt="Continue as a fork", fork_context=True, role="explore"),
            {"text": "Opened it."},
            {"text": "All is done."},
        ][min(answers, 3)]

    async with harness(home, workspace, [model] * 12) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.HEADLESS)
        events = await here.turn("Begin", session)
        (opened,) = results(events, "agent_open")
        assert opened["context_mode"] == "forked" and opened["prefix_cache"]["expected_cached_tokens"] > 0
    before, child = bodies["parent"][1], bodies["child"][0]
    assert child.startswith(before[:-1])


async def test_a_message_wakes_a_child_that_is_over_and_extends_its_last_request(home: Path, workspace: Path) -> None:
    requests: list[list[dict[str, Any]]] = []

    def model(request: dict[str, Any]) -> Turn:
        messages = request["messages"]
        words = [text_of(one) for one in messages if one["role"] == "user"]
        answers = sum(one["role"] == "assistant" for one in messages)
        if any(word.startswith("Count") for word in words):
            requests.append(messages)
            return {"text": f"SUMMARY: count {answers + 1}"}
        return [
            call("agent_open", prompt="Count", name="counter", role="explore"),
            call("agent_eval", name="counter"),
            call("agent_eval", name="counter", message="Again"),
            call("agent_eval", name="counter", message="Once more"),
            call("agent_close", name="counter"),
            {"text": "It has counted to three."},
        ][answers]

    async with harness(home, workspace, [model] * 20) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.HEADLESS)
        events = await here.turn("Start", session)
        looks = results(events, "agent_eval")
        assert [look["result"] for look in looks] == [f"SUMMARY: count {n}" for n in (1, 2, 3)]
        assert [look["snapshot"]["task"] for look in looks] == [1, 2, 3]
        assert reports(events) == []
        assert await children(here, session) == ()
    first, second, third = requests
    assert second[: len(first)] == first and third[: len(second)] == second


async def test_a_child_goes_no_further_than_its_role_and_its_parent(home: Path, workspace: Path) -> None:
    model = by_task(
        {
            "Change": [call("write_file", path="made.txt", content="x"), {"text": "SUMMARY: could not"}],
            "Start": [call("agent_open", prompt="Change it", role="explore"), {"text": "Opened."}, {"text": "Over."}],
        }
    )
    async with harness(home, workspace, [model] * 10) as here:
        await here.turn("Start", await here.open(mode=Mode.YOLO, authority=Authority.AUTO))
    assert not (workspace / "made.txt").exists()
