"""Plan mode to its end: the card, one Enter, the plan carried over; and all the ways on which it stays a plan."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.events import (
    ListChanged,
    MessageAdded,
    ModeChanged,
    QuestionAnswered,
    QuestionAsked,
    TurnFinished,
)
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.ops import Answer, CommandOutput, RunCommand, SessionStatus, SetMode
from codewhale.session.plans import written_steps
from codewhale.testing import Harness, collect, harness
from support.patience import HANG
from support.program import codewhale_program
from support.program import scripted as scripted_program
from support.tuiapp import scripted

STEPS = [{"step": "Fix basket.py", "status": "pending"}, {"step": "Run the tests", "status": "pending"}]
PLAN: dict[str, Any] = {"text": "Two steps.", "calls": [{"name": "update_plan", "arguments": {"plan": STEPS}}]}
WRITE: dict[str, Any] = {"calls": [{"name": "write_file", "arguments": {"path": "made.txt", "content": "x\n"}}]}
DONE: dict[str, Any] = {"text": "Both steps are done."}
PERSON: dict[str, Any] = {"mode": Mode.PLAN, "authority": Authority.PERSON}


def recorded(here: Harness, session: str, kind: type) -> list[Any]:
    log = here.app.engine.session(session).log
    return [envelope.event for envelope in log.read() if isinstance(envelope.event, kind)]


async def question(here: Harness, session: str) -> Any:
    """What is asked behind the end of a turn, once it is."""
    async with asyncio.timeout(HANG):
        while True:
            over = {one.request_id for one in recorded(here, session, QuestionAnswered)}
            if waiting := [one for one in recorded(here, session, QuestionAsked) if one.request_id not in over]:
                return waiting[-1]
            await asyncio.sleep(0.01)


async def answered(here: Harness, session: str, label: str, **more: str) -> bool:
    asked = await question(here, session)
    answers = ({"id": "plan", "label": label, **more},) if label else ()
    taken: bool = await here.client.submit(Answer(session, asked.request_id, answers=answers))
    return taken


async def followed(here: Harness, session: str, label: str, **more: str) -> None:
    """Answer, and follow the turn that this begins."""
    turns = here.app.engine.session(session).state.turns
    assert await answered(here, session, label, **more)
    async for envelope in here.client.events(session):
        if isinstance(envelope.event, TurnFinished) and envelope.event.turn > turns:
            return


async def test_one_enter_carries_the_plan_over(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    async with scripted(tmp_path / "home", folder, [PLAN, WRITE, DONE], mode=Mode.PLAN) as stage:
        await stage.type("Plan the fix")
        await stage.pilot.press("enter")
        await stage.until("Carry out this plan (2 steps)?")
        await stage.until(lambda: stage.app.asking.card is not None and stage.app.asking.card.has_focus)
        await stage.until("Approve and run")
        assert "keep asking" not in stage.text  # it asks already
        assert not (folder / "made.txt").exists()
        await stage.pilot.press("enter")
        await stage.until("Both steps are done.")
        await stage.until(lambda: stage.app.asking.card is None and not stage.app.status.facts.busy)
        assert stage.app.status.facts.mode == "agent"
        assert (folder / "made.txt").read_text() == "x\n"


@pytest.mark.parametrize(
    "text", ["1. Fix basket.py\n2. Run the tests", "The plan:\n- Fix basket.py\n- Run the tests\n"]
)
async def test_a_plan_that_was_only_written_is_carried_over_too(home: Path, workspace: Path, text: str) -> None:
    async with harness(home, workspace, [{"text": text}, WRITE, DONE]) as here:
        session = await here.open(**PERSON)
        await here.turn("Plan it", session)
        await followed(here, session, "Approve and run")
        (change,) = recorded(here, session, ModeChanged)
        assert change.mode is Mode.AGENT
        (checklist,) = [event for event in recorded(here, session, ListChanged) if event.kind == "checklist"]
        assert [item["content"] for item in checklist.items] == ["Fix basket.py", "Run the tests"]
        sent = json.loads(here.provider.requests[1])["messages"]
        assert "1. Fix basket.py\n2. Run the tests" in json.dumps(sent).encode().decode("unicode_escape")
        assert (workspace / "made.txt").exists()


async def test_approved_with_asking_asks_again_whatever_was_set(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [PLAN, DONE]) as here:
        session = await here.open(**PERSON, approval=Approval.AUTO)
        await here.turn("Plan it", session)
        await followed(here, session, "Approve, keep asking")
        now = await here.client.query(SessionStatus(session))
        assert (now.mode, now.approval) == (Mode.AGENT, Approval.SUGGEST)


async def test_kept_planning_changes_nothing_and_words_go_on_with_the_plan(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [PLAN, PLAN, DONE]) as here:
        session = await here.open(**PERSON)
        await here.turn("Plan it", session)
        first = (await question(here, session)).request_id
        assert await answered(here, session, "Keep planning")
        assert not await here.client.submit(Answer(session, first, answers=({"label": "Approve and run"},)))
        await here.turn("Plan again", session)
        assert await answered(here, session, "")
        await here.turn("And again?", session)  # no plan in this one
        assert len(recorded(here, session, QuestionAsked)) == 2
        assert [bool(event.answers) for event in recorded(here, session, QuestionAnswered)] == [True, False]
        assert recorded(here, session, ModeChanged) == []


async def test_words_of_ones_own_are_sent_in_plan_mode(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [PLAN, WRITE, DONE]) as here:
        session = await here.open(**PERSON)
        await here.turn("Plan it", session)
        await followed(here, session, "Other", value="Leave the tests alone")
        said = [event.message.text for event in recorded(here, session, MessageAdded) if event.message.role == "user"]
        assert said[-1] == "Leave the tests alone"
        assert not (workspace / "made.txt").exists()
        assert (await here.client.query(SessionStatus(session))).mode is Mode.PLAN


async def test_an_offer_ends_with_the_next_message(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [PLAN, {"text": "No.", "delay": 0.5}]) as here:
        session = await here.open(**PERSON)
        await here.turn("Plan it", session)
        late = Answer(session, (await question(here, session)).request_id, answers=({"label": "Approve and run"},))
        tries = list[asyncio.Future[Any]]()  # one as the turn's end is recorded, before anything is done about it
        here.app.engine.at_end(lambda _: tries.append(asyncio.ensure_future(here.client.submit(late))))
        await here.turn("Never mind", session)
        assert not await tries[0] and not await here.client.submit(late)
        assert recorded(here, session, ModeChanged) == []


@pytest.mark.parametrize("fields", [{"mode": Mode.PLAN, "authority": Authority.HEADLESS}, {"mode": Mode.PLAN}])
async def test_without_a_person_it_stays_a_plan(home: Path, workspace: Path, fields: dict[str, Any]) -> None:
    async with harness(home, workspace, [PLAN, WRITE]) as here:
        session = await here.open(**fields)
        await here.turn("Plan it", session)
        assert recorded(here, session, QuestionAsked) == []
        refused: CommandOutput = await here.client.submit(RunCommand(session, "/plan run"))
        assert not refused.ok and "only you can approve a plan" in refused.text
        assert (await here.client.query(SessionStatus(session))).mode is Mode.PLAN


async def test_a_failed_turn_offers_nothing_and_agent_mode_never_does(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{**PLAN, "error": {"kind": "auth", "message": "no"}}, PLAN, DONE]) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)
        await here.turn("Do it", session)
        await here.turn("Do it", session)
        assert recorded(here, session, QuestionAsked) == []


async def test_the_command_shows_and_runs_the_plan(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [PLAN, WRITE, DONE]) as here:
        session = await here.open(**PERSON)
        for line, said in (
            ("/plan", "There is no plan yet."),
            ("/plan run", "there is no plan"),
            ("/plan x", "Use /plan"),
        ):
            output: CommandOutput = await here.client.submit(RunCommand(session, line))
            assert said in output.text
        await here.turn("Plan it", session)
        output = await here.client.submit(RunCommand(session, "/plan"))
        assert output.text.startswith("  1. Fix basket.py\n  2. Run the tests")
        events = here.client.events(session, -1)
        waiting = asyncio.ensure_future(collect(events))
        await asyncio.sleep(0)
        output = await here.client.submit(RunCommand(session, "/plan run"))
        assert output.turn
        await waiting
        assert (workspace / "made.txt").exists()


async def test_a_plan_of_earlier_work_is_not_offered_again(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [PLAN, DONE, {"text": "It adds."}]) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)
        await here.turn("Do it", session)
        await here.client.submit(SetMode(session, Mode.PLAN))
        await here.turn("What does it do?", session)
        assert recorded(here, session, QuestionAsked) == []


def test_line_by_line_the_first_row_is_chosen_by_its_number(tmp_path: Path) -> None:
    script = scripted_program(tmp_path, *(json.dumps(turn) for turn in (PLAN, WRITE, DONE)))
    done = codewhale_program(tmp_path, "--plain", "--mode", "plan", stdin=b"Plan it\n1\n")
    assert "Plan: Carry out this plan (2 steps)?\n1. Approve and run" in done.stdout, (done.stdout, script)
    assert done.stdout.rstrip().endswith("Both steps are done.") or "Both steps are done." in done.stdout
    assert (tmp_path / "made.txt").exists()


async def test_the_plan_outlives_the_process(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [PLAN]) as here:
        session = await here.open(**PERSON)
        await here.turn("Plan it", session)
    async with harness(home, workspace, [DONE]) as here:
        await here.open(**PERSON, resume=session)
        output: CommandOutput = await here.client.submit(RunCommand(session, "/plan"))
        assert "2. Run the tests" in output.text


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("It adds two numbers.", ()),
        ("It does:\n- this\n- that", ()),
        ("1. only one", ()),
        ("1) a\n2) b", ("a", "b")),
        ("计划：\n* 甲\n* 乙", ("甲", "乙")),
        ("In 2020. and 2021. things", ()),
    ],
)
def test_what_counts_as_a_written_plan(text: str, steps: tuple[str, ...]) -> None:
    assert written_steps(text) == steps
