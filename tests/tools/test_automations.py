"""Automations through the front door: what a model schedules, what a person allows, and what runs by the clock."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from codewhale.automations.model import AUTOMATION_KIND
from codewhale.journal.model import Schedule
from codewhale.protocol.blocks import TableBlock
from codewhale.protocol.events import ApprovalAsked, CallFinished, Event
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.ops import Answer, SendMessage
from codewhale.protocol.tasks import GetTask, TaskRecord
from codewhale.tasks.book import NOBODY
from codewhale.testing import Harness, collect, harness
from support.patience import HANG

GOOD: dict[str, Any] = {"name": "nightly", "prompt": "Check the links", "rrule": "FREQ=HOURLY;INTERVAL=6"}
WEEKLY = "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9"


@pytest.fixture(autouse=True)
def tools(home: Path) -> None:
    """The tools stand in the array from the start."""
    home.mkdir(exist_ok=True)
    names = """automation_create automation_list automation_read automation_update automation_pause automation_resume
    automation_delete automation_run""".split()
    shown = json.dumps([*names, "handle_read", "task_gate_run", "task_read", "task_create", "task_cancel"])
    (home / "config.toml").write_text(f"[tasks]\nlease_seconds = 600.0\n[tools]\nalways_load = {shown}\n")


def echo(request: dict[str, Any]) -> dict[str, Any]:
    """A model that makes the call that it was told."""
    message = request["messages"][-1]
    said = message["content"] if isinstance(message["content"], str) else message["content"][0]["text"]
    if message["role"] != "user" or not said.startswith("CALL "):
        return {"text": "done"}
    _, name, arguments = said.split("\n")[0].split(" ", 2)
    return {"calls": [{"name": name, "arguments": json.loads(arguments)}]}


def told(tool: str, /, **arguments: Any) -> str:
    return f"CALL {tool} {json.dumps(arguments)}"


def last(events: Sequence[Event]) -> CallFinished:
    return [event for event in events if isinstance(event, CallFinished)][-1]


async def done(here: Harness, session: str, tool: str, /, **arguments: Any) -> Any:
    """What a call that worked gave."""
    finished = last(await here.turn(told(tool, **arguments), session))
    assert finished.ok, finished.content
    return json.loads(finished.content)


async def over(here: Harness, task: str) -> TaskRecord:
    async with asyncio.timeout(HANG):
        while True:
            record = await here.client.query(GetTask(task))
            if record.task.over:
                return record
            await asyncio.sleep(0.05)


async def answered(here: Harness, session: str, cards: list[ApprovalAsked]) -> AsyncIterator[Any]:
    """The events of a session whose person says yes."""
    async for envelope in here.client.events(session, -1):
        if isinstance(envelope.event, ApprovalAsked):
            cards.append(envelope.event)
            await here.client.submit(Answer(session, envelope.event.request_id, allowed=True))
        yield envelope


async def test_a_run_is_a_durable_task_whose_evidence_and_artifacts_are_its_own(home: Path, workspace: Path) -> None:
    prompt = told("task_gate_run", gate="custom", command="echo fine")
    async with harness(home, workspace, echo) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.AUTO)
        made = await done(here, session, "automation_create", **{**GOOD, "prompt": prompt}, allow_shell=True)
        one = made["automation"]["id"]
        assert made["notice"] == NOBODY == (await done(here, session, "automation_list"))["notice"]
        task = (await done(here, session, "automation_run", automation_id=one[:9]))["recent_runs"][0]["task_id"]
        async with here.app.parts.tasking.working(here.client, "test", 1, lambda said: None):
            record = await over(here, task)
            assert "notice" not in await done(here, session, "automation_list")
        (gate,) = record.updates["gate"]
        assert isinstance(gate, dict) and (gate["task_id"], gate["status"]) == (task, "passed")
        assert (record.task.status, record.task.by) == ("completed", f"automation {one}")
        handle = f"{task}/{gate['id']}.log"
        read = last(await here.turn(told("handle_read", handle=handle, range={"start": 1, "end": 1}), session))
        assert read.ok and "fine" in read.content
        runs = (await done(here, session, "automation_read", automation_id=one))["recent_runs"]
        assert [(run["status"], run["by"], run["task_id"]) for run in runs] == [("completed", "model", task)]


async def test_the_card_shows_what_may_run_unasked_and_a_rule_allows_no_such_thing(home: Path, workspace: Path) -> None:
    cards: list[ApprovalAsked] = []
    async with harness(home, workspace, echo) as here:
        person = await here.open(mode=Mode.AGENT, authority=Authority.PERSON, approval=Approval.SUGGEST)
        heard = asyncio.ensure_future(collect(answered(here, person, cards)))
        await asyncio.sleep(0)
        await here.client.submit(SendMessage(person, told("automation_create", **{**GOOD, "rrule": WEEKLY})))
        assert last([one.event for one in await heard]).ok
        (card,) = cards
        (table,) = [block for block in card.display if isinstance(block, TableBlock)]
        rows = dict(table.rows)
        assert (
            rows["runs unasked"] == "all that no rule asks about; no programs" and rows["each run"] == "Check the links"
        )
        assert card.rule == "mode.agent.later" and not card.held, "no sandbox of this turn holds it"
        assert list(rows)[-1] == "runs unasked", "which a card that has little room shows"
        assert rows["first runs"].count("09:00") == 3 and rows["when"].startswith(WEEKLY)
        view = here.app.parts.tasking.automations.board().automations[0]
        assert (view.auto_approve, view.allow_shell, view.mode) == (True, False, "agent")
    (home / "permissions.toml").write_text('[[rules]]\naction = "allow"\ntool = "automation_create"\n')
    async with harness(home, workspace, echo) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.HEADLESS, approval=Approval.SUGGEST)
        refused = last(await here.turn(told("automation_create", **GOOD), session))
        assert not refused.ok and refused.error == "permission_denied" and "auto_approve" in refused.content
        assert (await done(here, session, "automation_create", **GOOD, auto_approve=False))["automation"]
        plan = await here.open(mode=Mode.PLAN, authority=Authority.AUTO)
        assert last(await here.turn(told("automation_create", **GOOD, auto_approve=False), plan)).error


async def test_who_is_asked_only_outside_the_sandbox_is_asked_about_work_of_later(home: Path, workspace: Path) -> None:
    cards: list[ApprovalAsked] = []
    async with harness(home, workspace, echo) as here:
        person = await here.open(mode=Mode.AGENT, authority=Authority.PERSON, approval=Approval.SANDBOX)
        for number, name in enumerate(("task_create", "automation_create"), 1):
            arguments = {"prompt": "Check"} if name == "task_create" else {**GOOD, "auto_approve": False}
            heard = asyncio.ensure_future(collect(answered(here, person, cards)))
            await asyncio.sleep(0)
            await here.client.submit(SendMessage(person, told(name, **arguments)))
            assert last([one.event for one in await heard]).ok
            assert [card.rule for card in cards] == ["mode.agent.later"] * number


BAD: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("automation_create", {**GOOD, "rrule": f"{WEEKLY};BYSECOND=1"}, "rrule"),
    ("automation_create", {**GOOD, "rrule": "FREQ=HOURLY;INTERVAL=0"}, "rrule"),
    ("automation_create", {**GOOD, "rrule": "FREQ=DAILY"}, "rrule"),
    ("automation_create", {**GOOD, "timezone": "Europe/Berlim"}, "timezone"),
    ("automation_create", {**GOOD, "cwds": ["../.."]}, "cwds"),
    ("automation_create", {**GOOD, "cwds": ["gone"]}, "cwds"),
    ("automation_create", {**GOOD, "name": "a\u0007b"}, "name"),
    ("automation_read", {"automation_id": "auto_1/../2"}, "automation_id"),
    ("automation_run", {"automation_id": "auto_99999999"}, "automation_id"),
    ("automation_pause", {"automation_id": "all of them"}, "automation_id"),
    ("automation_update", {"automation_id": "AMBIGUOUS", "name": "x"}, "automation_id"),
    ("automation_update", {"automation_id": "FIRST", "timezone": "Mars/Olympus"}, "timezone"),
    ("task_gate_run", {"gate": "tests", "command": "true"}, "gate"),
    ("task_gate_run", {"gate": "test", "command": "true", "cwd": "../.."}, "cwd"),
    ("task_gate_run", {"gate": "test", "command": "true", "timeout_ms": 0}, "timeout_ms"),
    ("task_read", {"task_id": "task_1/2"}, "task_id"),
)


MORE: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("automation_create", {**GOOD, "rrule": "FREQ=HOURLY;INTERVAL=6;COUNT=0;UNTIL=20300101"}, "rrule"),
    ("automation_create", {**GOOD, "rrule": "FREQ=SECONDLY"}, "rrule"),
    ("automation_create", {**GOOD, "rrule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"}, "rrule"),
    ("automation_create", {**GOOD, "rrule": f"FREQ=HOURLY;INTERVAL={10**30}"}, "rrule"),
    ("automation_create", {**GOOD, "rrule": "0 9 * * 1"}, "rrule"),
    ("automation_create", {**GOOD, "timezone": "berlin"}, "timezone"),
    ("automation_create", {**GOOD, "timezone": "CEST"}, "timezone"),
    ("automation_create", {**GOOD, "cwds": ["a\0b"]}, "cwds"),
    ("automation_create", {**GOOD, "name": "\u202e\x1b[31m"}, "name"),
    ("automation_create", {**GOOD, "name": "\N{SPOUTING WHALE}" * 90}, "name"),
    ("automation_create", {**GOOD, "priority": 9}, "priority"),
    ("automation_list", {"limit": 10**30}, "limit"),
    ("automation_update", {"automation_id": "FIRST"}, "name"),
    ("automation_update", {"automation_id": "FIRST", "cwds": ["gone"]}, "cwds"),
    ("automation_delete", {"automation_id": "\N{SPOUTING WHALE}"}, "automation_id"),
    ("task_create", {"prompt": "x", "workspace": "a\0b"}, "workspace"),
    ("task_create", {"prompt": "x", "model": "a\0b\x1b[31m"}, "model"),
    ("task_cancel", {"task_id": "task_00000000\0"}, "task_id"),
    ("task_gate_run", {"gate": "test", "command": " \n# nothing"}, "command"),
    ("task_gate_run", {"gate": "test", "command": "true", "timeout_ms": -1}, "timeout_ms"),
    ("task_gate_run", {"gate": "test", "command": "true", "timeout_ms": 10**9}, "timeout_ms"),
    ("task_gate_run", {"gate": "test", "command": "true", "cwd": "gone"}, "cwd"),
    ("handle_read", {"handle": "TASK/../../config.toml"}, "handle"),
)
NAMED = re.compile(r"^(?:Next call|To see what is there): (\w+) (\{.*\})$", re.MULTILINE)
EXACT = {"FREQ=SECONDLY": "FREQ=HOURLY;INTERVAL=1", "berlin": "Europe/Berlin", "CEST": "UTC"}


async def test_bad_inputs_name_the_field_and_a_call_that_works(home: Path, workspace: Path) -> None:
    """Sixteen and some more; each call that an error names is made, and must do what it says."""
    async with harness(home, workspace, echo) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.AUTO)
        ids: list[str] = []
        while len({one[:6] for one in ids}) == len(ids):  # two that begin alike
            ids.append((await done(here, session, "automation_create", **GOOD))["automation"]["id"])
        alike = next(one[:6] for one in ids if [each[:6] for each in ids].count(one[:6]) > 1)
        task = await _task(here, session, ids[0])
        words = {"AMBIGUOUS": alike, "FIRST": ids[0], "TASK/../../config.toml": f"{task}/../../config.toml"}
        for tool, arguments, field in (*BAD, *MORE):
            given = {key: words.get(str(value), value) for key, value in arguments.items()}
            refused = last(await here.turn(told(tool, **given), session))
            assert not refused.ok and refused.metadata["error"]["field"] == field, (tool, refused.content)
            assert f"`{field}`" in refused.content and "The tool itself failed" not in refused.content
            named = NAMED.search(refused.content)
            assert named is not None, (tool, given, refused.content)
            fixed = json.loads(named[2])
            again = last(await here.turn(told(named[1], **fixed), session))
            assert again.ok, (tool, given, named[0], again.content)
            if (wanted := EXACT.get(str(arguments.get(field)))) is not None:
                assert fixed[field] == wanted, named[0]
        before = len(here.app.parts.tasking.automations.board(100).automations)
        await done(here, session, "automation_pause", automation_id=ids[0])
        assert (await done(here, session, "automation_resume", automation_id=ids[0]))["automation"][
            "status"
        ] == "active"
        await done(here, session, "automation_delete", automation_id=ids[0])
        assert len(here.app.parts.tasking.automations.board(100).automations) == before - 1


async def test_one_that_cannot_be_read_is_told_of_and_can_be_deleted(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, echo) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.AUTO)
        one = (await done(here, session, "automation_create", **GOOD))["automation"]["id"]
        broken = Schedule("auto_00000bad", AUTOMATION_KIND, {"name": 7}, 1.0)
        assert here.app.parts.tasking.book.journal.schedules.put(broken)
        listed = await done(here, session, "automation_list")
        assert [row["id"] for row in listed["automations"]] == [one] and broken.id in listed["notice"]
        refused = last(await here.turn(told("automation_read", automation_id=broken.id), session))
        assert not refused.ok and "is not what was written" in refused.content
        assert broken.id in (await done(here, session, "automation_delete", automation_id=broken.id))["summary"]
        assert broken.id not in (await done(here, session, "automation_list"))["notice"]


async def test_one_whose_folder_is_gone_can_wait_and_says_what_is_wrong(home: Path, workspace: Path) -> None:
    (workspace / "part").mkdir()
    async with harness(home, workspace, echo) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.AUTO)
        one = (await done(here, session, "automation_create", **GOOD, cwds=["part"]))["automation"]["id"]
        (workspace / "part").rmdir()
        task = (await done(here, session, "automation_run", automation_id=one))["recent_runs"][0]["task_id"]
        async with here.app.parts.tasking.working(here.client, "test", 1, lambda said: None):
            failed = (await over(here, task)).task
        assert failed.status == "failed" and "part was moved or deleted" in failed.error
        assert (await done(here, session, "automation_pause", automation_id=one))["automation"]["status"] == "paused"
        refused = last(await here.turn(told("automation_resume", automation_id=one), session))
        assert not refused.ok and "`cwds`: there is no folder" in refused.content
        (workspace / "part").mkdir()
        assert (await done(here, session, "automation_resume", automation_id=one))["automation"]["status"] == "active"
        assert await done(here, session, "automation_delete", automation_id=one)


async def _task(here: Harness, session: str, automation: str) -> str:
    record = await done(here, session, "automation_run", automation_id=automation)
    return str(record["recent_runs"][0]["task_id"])
