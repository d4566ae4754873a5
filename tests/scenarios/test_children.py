"""Sub-agents through the front door: opened by a call, at work beside their parent, their ends told exactly once."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codewhale.agent.engine import Engine
from codewhale.protocol.children import ChildView, ListChildren
from codewhale.protocol.events import (
    CallFinished,
    ChildClosed,
    ChildOpened,
    Event,
    MessageAdded,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.messages import Message, Text
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import OpenSession, SendMessage, SetMode
from codewhale.testing import Harness, harness
from support.patience import HANG

Turn = dict[str, Any]


def call(tool: str, /, **arguments: Any) -> Turn:
    return {"calls": [{"name": tool, "arguments": arguments}]}


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def by_task(tasks: dict[str, list[Turn]]) -> Callable[[dict[str, Any]], Turn]:
    """A model for several conversations: each plays the turns of the key that a message of its person begins with."""
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


async def test_after_a_quota_error_nothing_more_is_sent_for_children(home: Path, workspace: Path) -> None:
    asked: list[str] = []

    def model(request: dict[str, Any]) -> Turn:
        words = [text_of(one) for one in request["messages"] if one["role"] == "user"]
        task = next((word for word in words if word.startswith("Task")), "")
        answers = sum(one["role"] == "assistant" for one in request["messages"])
        if task:
            asked.append(task[:6])
            if len(asked) == 3:
                return {"error": {"message": "insufficient balance", "kind": "quota"}}
            return {"text": f"SUMMARY: {task[:6]} is over"}
        opens = [{"name": "agent_open", "arguments": {"prompt": f"Task {n}", "role": "explore"}} for n in range(5)]
        return {"text": "Over."} if answers else {"calls": opens}

    async with harness(home, workspace, [model] * 40, facts={"parallel_requests": 1}) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.HEADLESS)
        await here.turn("Start", session)
        views = await here.app.parts.children.wait(session, (), 30, every=True)
    assert [view.status for view in views] == ["completed", "completed", "failed", "failed", "failed"]
    assert len(asked) == 3 and "insufficient balance" in views[4].error


async def test_a_person_is_told_of_an_end_by_a_turn_of_its_own(home: Path, workspace: Path) -> None:
    model = by_task(
        {
            "Look": [{"text": "SUMMARY: seen"}],
            "Start": [
                call("agent_open", prompt="Look", role="explore"),
                {"text": "It runs."},
                {"text": "Seen, it says."},
            ],
        }
    )
    async with harness(home, workspace, [model] * 10) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)
        ends: list[str] = []
        stream = here.client.events(session)
        await here.client.submit(SendMessage(session, "Start"))
        async with asyncio.timeout(HANG):
            async for envelope in stream:
                if isinstance(envelope.event, TurnFinished):
                    ends.append(str(envelope.event.result["answer"]))
                if len(ends) == 2:
                    break
        assert ends == ["It runs.", "Seen, it says."]


async def test_a_parent_that_is_narrowed_narrows_its_children_at_once(home: Path, workspace: Path) -> None:
    def model(request: dict[str, Any]) -> Turn:
        words = [text_of(one) for one in request["messages"] if one["role"] == "user"]
        answers = sum(one["role"] == "assistant" for one in request["messages"])
        if any(word.startswith("Write") for word in words):
            if answers == 0:
                return call("exec_shell", command="touch begun; while [ ! -e go ]; do sleep 0.05; done")
            return [call("write_file", path="made.txt", content="x"), {"text": "SUMMARY: could not"}][answers - 1]
        return [call("agent_open", prompt="Write it", role="implementer"), {"text": "It runs."}, {"text": "Over."}][
            answers
        ]

    async with harness(home, workspace, [model] * 20) as here:
        session = await here.open(mode=Mode.YOLO, authority=Authority.PERSON)
        ends = asyncio.create_task(two_ends(here, session))
        await asyncio.sleep(0)
        await here.client.submit(SendMessage(session, "Start"))
        await wait_for(lambda: here.app.engine.turn(session).idle and (workspace / "begun").exists())
        await here.client.submit(SetMode(session, Mode.PLAN))
        (workspace / "go").write_text("")
        await asyncio.wait_for(ends, HANG)
        (view,) = await children(here, session)
        refused = [
            envelope.event
            for envelope in here.app.parts.sessions.read(view.session)
            if isinstance(envelope.event, CallFinished) and not envelope.event.ok
        ]
        assert [one.name for one in refused] == ["write_file"] and "mode.plan" in refused[0].content
    assert not (workspace / "made.txt").exists()


async def two_ends(here: Harness, session: str) -> None:
    count = 0
    async for envelope in here.client.events(session, -1):
        count += isinstance(envelope.event, TurnFinished)
        if count == 2:
            return


async def wait_for(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG):
        while not holds():  # noqa: ASYNC110 (a state that nothing tells of)
            await asyncio.sleep(0.01)


async def test_children_that_ran_when_the_process_ended_are_told_as_interrupted_and_go_on(
    home: Path, workspace: Path
) -> None:
    def model(request: dict[str, Any]) -> Turn:
        words = [text_of(one) for one in request["messages"] if one["role"] == "user"]
        answers = sum(one["role"] == "assistant" for one in request["messages"])
        if any(word.startswith("Long") for word in words):
            if any("Go on" in word for word in words):
                return {"text": "SUMMARY: went on"}
            return call("exec_shell", command="sleep 100")
        if any("Next" in word for word in words):
            reports = [word for word in words if "subagent_done" in word]
            return [call("agent_eval", name="long", message="Go on"), {"text": f"{len(reports)} report"}][answers - 2]
        return [call("agent_open", prompt="Long", name="long"), {"text": "It runs."}][answers]

    async with harness(home, workspace, [model] * 20) as here:
        session = await here.open(mode=Mode.YOLO, authority=Authority.PERSON)
        await here.turn("Start", session)
        (view,) = await children(here, session)
        assert view.status == "running"
    async with harness(home, workspace, [model] * 20) as here:
        await here.client.submit(
            OpenSession(str(workspace), resume=session, mode=Mode.YOLO, authority=Authority.PERSON)
        )
        (view,) = await children(here, session)
        assert view.status == "interrupted"
        events = await here.turn("Next", session)
        (look,) = results(events, "agent_eval")
        assert (look["status"], look["result"]) == ("completed", "SUMMARY: went on")
        assert len(reports(events)) == 1
        assert isinstance(events[-1], TurnFinished) and events[-1].result["answer"] == "1 report"


async def test_a_writer_beside_another_one_gets_a_checkout_of_its_own(home: Path, git_workspace: Path) -> None:
    def model(request: dict[str, Any]) -> Turn:
        words = [text_of(one) for one in request["messages"] if one["role"] == "user"]
        answers = sum(one["role"] == "assistant" for one in request["messages"])
        task = next((word for word in words if word.startswith("Write")), "")
        if task:
            wait = "while [ ! -e second ]; do sleep 0.05; done" if "first" in task else "touch ../nothing; true"
            turns = [
                call("write_file", path="made.txt", content=task[:12]),
                call("exec_shell", command=wait),
                {"text": "SUMMARY: written"},
            ]
            return turns[answers]
        second = {"prompt": "Write second", "role": "implementer", "name": "two"}
        return [
            call("agent_open", prompt="Write first", role="implementer", name="one"),
            call("agent_open", **second),
            call("agent_open", **second, cwd="worktree"),
            call("agent_eval", name="two", timeout_ms=60_000),
            call("write_file", path="second", content=""),
            {"text": "Both."},
            {"text": "Over."},
        ][answers]

    async with harness(home, git_workspace, [model] * 40) as here:
        session = await here.open(mode=Mode.YOLO, authority=Authority.AUTO)
        events = await here.turn("Start", session)
        refused = [one for one in events if isinstance(one, CallFinished) and one.name == "agent_open" and not one.ok]
        assert len(refused) == 1 and "share a folder" in refused[0].content and '"cwd":"worktree"' in refused[0].content
        one, two = await children(here, session)
        assert (one.status, two.status, one.folder) == ("completed", "completed", "")
        assert (git_workspace / "made.txt").read_text() == "Write first\n"[:12]
        assert (Path(two.folder) / "made.txt").read_text() == "Write second"
    assert (Path(two.folder) / "made.txt").exists()  # kept: it holds a change


def report_all(engine: Engine, session: str) -> None:
    for child in engine.session(session).state.children:
        text = Text(f"{child} is over", source="harness")
        engine.report(session, MessageAdded(Message("user", (text,)), child=child))


async def test_ends_that_come_while_a_turn_ends_begin_one_turn_after_the_other(home: Path, workspace: Path) -> None:
    def model(request: dict[str, Any]) -> Turn:
        words = [text_of(one) for one in request["messages"] if one["role"] == "user"]
        if any(word.startswith("Task") for word in words):
            return {"text": "late", "delay": 600}
        opens = [{"name": "agent_open", "arguments": {"prompt": f"Task {n}", "role": "explore"}} for n in range(2)]
        return {"text": "So it is."} if any(one["role"] == "tool" for one in request["messages"]) else {"calls": opens}

    async with harness(home, workspace, [model] * 20) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)
        engine, turns = here.app.engine, list[type[Event]]()
        listener = engine.session(session).fanout.subscribe()
        await here.client.submit(SendMessage(session, "Start"))
        async with asyncio.timeout(HANG):
            while turns.count(TurnFinished) < 2 or not engine.turn(session).idle:
                happened = [one.event for one in await listener.drain() if one.session == session]
                turns += [type(event) for event in happened if isinstance(event, TurnStarted | TurnFinished)]
                if turns == [TurnStarted, TurnFinished]:  # it is being written down
                    ending = engine.turn(session)
                    assert ending.busy
                    report_all(engine, session)
                    assert engine.turn(session) is ending
        assert turns[:3] == [TurnStarted, TurnFinished, TurnStarted]
        assert turns == [TurnStarted, TurnFinished] * (len(turns) // 2)


async def test_a_report_that_is_known_already_keeps_no_turn_open(home: Path, workspace: Path) -> None:
    parent: list[tuple[Engine, str]] = []

    def model(request: dict[str, Any]) -> Turn:
        words = [text_of(one) for one in request["messages"] if one["role"] == "user"]
        answers = sum(one["role"] == "assistant" for one in request["messages"])
        if any(word.startswith("Look") for word in words):
            return {"text": "SUMMARY: seen"}
        if answers == 2:
            report_all(*parent[0])
        return [
            call("agent_open", prompt="Look", name="scout", role="explore"),
            call("agent_eval", name="scout", timeout_ms=60_000),
            {"text": "The scout has seen it."},
        ][answers]

    async with harness(home, workspace, [model] * 10) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.HEADLESS)
        parent.append((here.app.engine, session))
        events = await here.turn("Start", session)
    assert isinstance(events[-1], TurnFinished) and events[-1].status == "done"
    assert events[-1].result["answer"] == "The scout has seen it." and reports(events) == []
