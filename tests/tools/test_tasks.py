"""Durable tasks through the front door: made by a call, run by whoever works, never beyond what their maker may."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from codewhale.journal.sqlite import SqliteJournal
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.events import ApprovalAsked, CallFinished, Event
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.ops import Answer, ListSessions, SendMessage, SetMode
from codewhale.protocol.tasks import CancelTask, GetTask, ListTasks, ResumeTask, TaskRecord
from codewhale.protocol.tools import Origin
from codewhale.tasks.book import NOBODY
from codewhale.tasks.model import TaskError
from codewhale.testing import Harness, collect, harness
from support.patience import HANG

Turn = dict[str, Any]
LEASE = "[tasks]\nlease_seconds = 600.0\n"  # whoever is only slow keeps it
ALLOWED = '[[rules]]\naction = "allow"\ntool = "task_create"\n'


@pytest.fixture(autouse=True)
def tools(home: Path) -> None:
    """The tools of tasks stand in the array from the start."""
    home.mkdir(exist_ok=True)
    names = '"task_create", "task_list", "task_read", "task_cancel"'
    (home / "config.toml").write_text(f"{LEASE}[tools]\nalways_load = [{names}]\n")


def call(tool: str, /, **arguments: Any) -> Turn:
    return {"calls": [{"name": tool, "arguments": arguments}]}


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def model(turns: dict[str, list[Turn]]) -> Callable[[dict[str, Any]], Turn]:
    """For several conversations: each plays the turns of the key that its last matching message begins with."""
    played: dict[str, int] = {}

    def play(request: dict[str, Any]) -> Turn:
        words = [text_of(one) for one in request["messages"] if one["role"] == "user"]
        key = next(key for key in turns if any(word.startswith(key) for word in reversed(words)))
        played[key] = played.get(key, 0) + 1
        left = turns[key]
        return left[played[key] - 1] if played[key] <= len(left) else {"text": "done"}

    return play


@asynccontextmanager
async def working(here: Harness) -> AsyncIterator[list[str]]:
    said: list[str] = []
    async with here.app.parts.tasking.working(here.client, "test", 2, said.append):
        yield said


async def until(here: Harness, task: str, *states: str) -> TaskRecord:
    async with asyncio.timeout(HANG):
        while True:
            record = await here.client.query(GetTask(task))
            if record.task.status in states:
                return record
            await asyncio.sleep(0.05)


def result(events: Sequence[Event], name: str) -> CallFinished:
    return next(event for event in events if isinstance(event, CallFinished) and event.name == name)


async def made(here: Harness, prompt: str = "Make", **fields: Any) -> str:
    """The id of the task that a turn which begins with `prompt` creates."""
    session = await here.open(**fields)
    finished = result(await here.turn(prompt, session), "task_create")
    assert finished.ok, finished.content
    return str(json.loads(finished.content)["task"]["id"])


async def test_a_task_outlives_its_session_and_is_run_once(home: Path, workspace: Path) -> None:
    turns = {
        "Make": [call("task_create", prompt="Write the file"), call("task_list"), {"text": "made"}],
        "Write": [call("checklist_write", todos=[{"content": "write", "status": "completed"}]),
                  call("write_file", path="out.txt", content="once\n"), {"text": "written"}],
    }  # fmt: skip
    async with harness(home, workspace, model(turns)) as here:
        session = await here.open(mode=Mode.AGENT)
        events = await here.turn("Make", session)
        task = json.loads(result(events, "task_create").content)["task"]
        listed = json.loads(result(events, "task_list").content)
        assert listed["notice"] == NOBODY and [one["id"] for one in listed["tasks"]] == [task["id"]]
    async with harness(home, workspace, model(turns)) as here:
        async with working(here) as said:
            record = await until(here, task["id"], "completed")
            board = await here.client.query(ListTasks())
            assert board.notice == "" and board.counts == {"completed": 1}
        assert (workspace / "out.txt").read_text() == "once\n"
        view = record.task
        assert (view.answer, view.attempt, view.mode, view.creator) == ("written", 1, "agent", session)
        assert said == [f"{view.id} begins", f"{view.id} completed"]
        assert [line.text for line in record.timeline if line.kind in ("attempt", "file", "turn")] == [
            "attempt 1 began", "out.txt", "done", "attempt 1 completed",
        ]  # fmt: skip
        assert [item["content"] for item in record.checklist] == ["write"]
        assert view.session and view.session not in [
            row.id for row in await here.client.query(ListSessions(str(workspace)))
        ]


async def test_a_maker_whose_log_cannot_be_read_is_taken_for_one_that_plans(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": "Hello."}]) as here:
        session = await here.open(mode=Mode.AGENT)
        await here.turn("Hello", session)
        assert here.app.parts.tasking.creator_mode(session) is Mode.AGENT
    async with harness(home, workspace, []) as here:
        tasking = here.app.parts.tasking
        assert tasking.creator_mode(session) is Mode.AGENT
        (home / "sessions" / session / "log.jsonl").write_text("no log\n")
        assert tasking.creator_mode(session) is Mode.PLAN
        (home / "sessions" / session / "log.jsonl").unlink()
        assert tasking.creator_mode(session) is Mode.YOLO, "what it was made with bounds it then"


async def test_a_lease_that_cannot_be_extended_ends_the_turn(home: Path, workspace: Path) -> None:
    (home / "config.toml").write_text((home / "config.toml").read_text().replace("600.0", "1.0"))
    turns = {"Make": [call("task_create", prompt="Wait"), {"text": "made"}], "Wait": [{"text": "late", "delay": 6_049}]}
    async with harness(home, workspace, model(turns)) as here:
        task = await made(here)
        async with working(here) as said, asyncio.timeout(HANG):
            await until(here, task, "running")
            (home / "journal").rename(home / "aside")
            await here.client.query(ListTasks())  # another is begun in its place
            while not any(line.startswith(f"{task} is not this process") for line in said):  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def test_waiting_for_an_idle_journal_ends_where_it_cannot_be_read(home: Path, workspace: Path) -> None:
    (home / "config.toml").write_text((home / "config.toml").read_text().replace("600.0", "1.0"))
    async with harness(home, workspace, []) as here:
        (home / "journal").mkdir()
        (home / "journal" / "journal.sqlite3").mkdir()
        with pytest.raises(CodeWhaleError, match="journal"):
            await asyncio.wait_for(here.app.parts.tasking.idle(), HANG)


async def test_a_task_does_no_more_than_its_maker_may_by_then(home: Path, workspace: Path) -> None:
    turns = {
        "Make": [call("task_create", prompt="Write", allow_shell=False), {"text": "made"}],
        "Write": [call("write_file", path="out.txt", content="x"), call("exec_shell", command="touch ran"),
                  {"text": "tried"}],
    }  # fmt: skip
    async with harness(home, workspace, model(turns)) as here:
        session = await here.open(mode=Mode.AGENT)
        finished = result(await here.turn("Make", session), "task_create")
        task = json.loads(finished.content)["task"]["id"]
        await here.client.submit(SetMode(session, Mode.PLAN))
        async with working(here):
            record = await until(here, task, "failed", "completed")
    assert list(workspace.iterdir()) == []
    assert [line.text.partition(":")[0] for line in record.timeline if line.kind == "failed"] == [
        "write_file", "exec_shell",
    ]  # fmt: skip


async def test_what_runs_unasked_is_what_a_person_allowed(home: Path, workspace: Path) -> None:
    """A yes to the very call counts; a rule that lets the call through, or nobody there, does not."""
    turns = {
        "Make": [call("task_create", prompt="Run", auto_approve=True, on_death="resume"), {"text": "made"}],
        "Run": [call("exec_shell", command="echo ran > ran.txt"), {"text": "ran"}],
    }
    async with harness(home, workspace, model(turns)) as here:
        person = await here.open(mode=Mode.AGENT, authority=Authority.PERSON, approval=Approval.SUGGEST)
        heard = asyncio.ensure_future(collect(answered(here, person)))
        await asyncio.sleep(0)
        await here.client.submit(SendMessage(person, "Make"))
        finished = result([one.event for one in await heard], "task_create")
        view = json.loads(finished.content)["task"]
        assert (view["auto_approve"], view["on_death"]) == (True, "resume")
        async with working(here):
            assert (await until(here, view["id"], "completed", "failed")).task.answer == "ran"
        assert (workspace / "ran.txt").read_text() == "ran\n"
    (home / "permissions.toml").write_text(ALLOWED)
    async with harness(home, workspace, model(turns)) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.HEADLESS, approval=Approval.SUGGEST)
        refused = result(await here.turn("Make", session), "task_create")
        assert not refused.ok and "auto_approve" in refused.content
    (home / "permissions.toml").unlink()
    async with harness(home, workspace, model(turns)) as here:
        session = await here.open(mode=Mode.AGENT, approval=Approval.AUTO)
        here.app.engine.session(session).emit(CallFinished("call_9", "fetch_url", True, "x", origin=Origin.WEB))
        refused = result(await here.turn("Make", session), "task_create")
        assert not refused.ok and "auto_approve" in refused.content  # these may be the words of a web page


async def answered(here: Harness, session: str) -> AsyncIterator[Any]:
    """The events of a session whose person says yes."""
    async for envelope in here.client.events(session, -1):
        if isinstance(envelope.event, ApprovalAsked):
            await here.client.submit(Answer(session, envelope.event.request_id, allowed=True))
        yield envelope


async def test_a_task_is_cancelled_at_once_or_by_its_worker(home: Path, workspace: Path) -> None:
    turns: dict[str, list[Turn]] = {
        "Make": [call("task_create", prompt="Sleep"), {"text": "made"}],
        "Again": [call("task_create", prompt="Sleep"), {"text": "made"}],
        "Sleep": [{"text": "late", "delay": 600}],
    }
    async with harness(home, workspace, model(turns)) as here:
        first, second = await made(here), await made(here, "Again")
        gone = await here.client.submit(CancelTask(second))
        assert gone.status == "cancelled"
        async with working(here):
            running = await until(here, first, "running")
            stopping = await here.client.submit(CancelTask(running.task.id[:9]))
            assert stopping.stopping
            assert (await until(here, first, "cancelled")).task.attempt == 1


async def test_what_was_running_when_its_process_died_waits_for_a_person(home: Path, workspace: Path) -> None:
    turns = {
        "Make": [call("task_create", prompt="Write"), {"text": "made"}],
        "Write": [call("write_file", path="out.txt", content="x"), {"text": "written"}],
    }
    async with harness(home, workspace, model(turns)) as here:
        task = await made(here)
        other = SqliteJournal(str(home))
        assert other.runs.claim("task", "another process", 0.001) is not None
        async with working(here) as said:
            record = await until(here, task, "interrupted")
            assert "resume" in record.task.error and said == []
            assert (await here.client.submit(ResumeTask(task))).status == "queued"
            record = await until(here, task, "completed")
        other.close()
        asked = here.provider.requests[-1].decode()
    assert record.task.attempt == 2 and "attempt 2 of the durable task" in asked


BAD = [
    ({"prompt": "x", "mode": "yolo"}, "mode"),
    ({"prompt": "x", "auto_approve": True}, "auto_approve"),
    ({"prompt": "x", "on_death": "resume"}, "on_death"),
    ({"prompt": "x", "workspace": "/"}, "workspace"),
    ({"prompt": "x", "workspace": "../elsewhere"}, "workspace"),
    ({"prompt": "x", "workspace": "nowhere"}, "workspace"),
    ({"prompt": "  "}, "prompt"),
]
BAD_IDS = ["../../etc", "task_zz", "task_00000000", "", "task_"]


async def test_bad_input_names_the_field_and_a_call_that_works(home: Path, workspace: Path) -> None:
    wrong = [("task_create", arguments, field) for arguments, field in BAD]
    wrong += [("task_read", {"task_id": name}, "task_id") for name in BAD_IDS]
    calls = [{"name": name, "arguments": arguments} for name, arguments, _ in wrong]
    (workspace.parent / "elsewhere").mkdir()
    (home / "permissions.toml").write_text(ALLOWED)
    async with harness(home, workspace, model({"Try": [{"calls": calls}, {"text": "tried"}]})) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.HEADLESS, approval=Approval.SUGGEST)
        events = await here.turn("Try", session)
    results = [event for event in events if isinstance(event, CallFinished)]
    assert len(results) == len(wrong)
    for finished, (name, arguments, field) in zip(results, wrong, strict=True):
        assert not finished.ok and f"`{field}`" in finished.content, (name, arguments, finished.content)


async def test_an_ambiguous_beginning_names_those_that_it_could_be(home: Path, workspace: Path) -> None:
    calls = [call("task_create", prompt=f"Task {one}")["calls"][0] for one in range(17)]
    async with harness(home, workspace, model({"Make": [{"calls": calls}]})) as here:
        await here.turn("Make", await here.open())
        board = await here.client.query(ListTasks(100))
        assert board.counts == {"queued": 17}
        digit, count = Counter(view.id[5] for view in board.tasks).most_common(1)[0]  # of 16, so two share one
        with pytest.raises(TaskError, match=rf"{count} tasks: .*codewhale tasks cancel task_") as caught:
            await here.client.submit(CancelTask(digit))
        assert caught.value.field == "task_id" and caught.value.task[5] == digit
        with pytest.raises(TaskError, match=r"queued.*codewhale tasks list"):
            await here.client.submit(ResumeTask(board.tasks[0].id))


async def test_what_tools_write_goes_into_the_task_that_they_work_for(home: Path, workspace: Path) -> None:
    """A gate of the task itself and one of its sub-agent, found again by whoever reads it."""
    turns = {
        "Make": [call("task_create", prompt="Check", auto_approve=True), {"text": "made"}],
        "Check": [call("task_gate_run", gate="custom", command="true"),
                  call("agent_open", prompt="Look too", name="helper"), {"text": "checked"}, {"text": "checked"}],
        "Look": [call("task_gate_run", gate="custom", command="false"), {"text": "SUMMARY: looked"}],
    }  # fmt: skip
    (home / "config.toml").write_text(f'{LEASE}[tools]\nalways_load = ["task_create", "task_gate_run"]\n')
    async with harness(home, workspace, model(turns)) as here:
        task = await made(here)
        async with working(here):
            record = await until(here, task, "completed", "failed", "interrupted")
    assert record.task.status == "completed", record.task
    gates = record.updates["gate"]
    assert [(gate["status"], gate["task_id"]) for gate in gates] == [("passed", task), ("failed", task)]  # type: ignore[index]


async def test_a_folder_that_is_not_trusted_configures_no_task(home: Path, workspace: Path) -> None:
    turns = {
        "Make": [call("task_create", prompt="Write", workspace="part"), {"text": "made"}],
        "Write": [call("write_file", path="out.txt", content="x"), {"text": "written"}],
    }
    settings = workspace / "part/.codewhale"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text('[tools]\ndisabled = ["write_file"]\n')
    async with harness(home, workspace, model(turns)) as here:
        task = await made(here)
        async with working(here):
            record = await until(here, task, "completed", "failed")
    assert (record.task.status, (workspace / "part/out.txt").exists()) == ("completed", True)
    assert record.task.workspace == str(workspace / "part")
