"""A few real SIGKILLs at named points and a few full disks through the front door; `make crash` does the many."""

import json
import sys
from pathlib import Path

import pytest

from codewhale.cli.offline.stored_sessions import envelopes
from codewhale.protocol.events import Notice
from codewhale.protocol.ops import SessionStatus
from codewhale.testing import harness
from support.house import ROOT
from support.machine import MAKES_FILES
from support.scenes import ending

sys.path.insert(0, str(ROOT / "scripts"))
from aftermath import Door, Life, body_faults, doubled, effect, judge, log_faults, lost
from crash import AIMS, Aim, one, run_all
from disasters import full_case


@pytest.mark.slow
@MAKES_FILES
def test_kills_at_named_points() -> None:
    """Some of the aims, each point at an early hit so that every process does die there."""
    single = [aim for aim in AIMS if len(aim.lives) == 1 and "artifact" not in aim.name]
    double = [aim for aim in AIMS if len(aim.lives) == 2]
    chosen = [*single[1::2], *double[::3]]
    early = [
        Aim(aim.name, tuple((option, point, min(most, 12)) for option, point, most in aim.lives)) for aim in chosen
    ]
    fates = list(run_all(one, ((seed, (0.0, 0.0), aim) for seed, aim in enumerate(early)), 2))
    assert [fate.faults for fate in fates if fate.faults] == []
    assert sorted(len(fate.kills) for fate in fates) == sorted(len(aim.lives) for aim in chosen)


@pytest.mark.slow
@MAKES_FILES
def test_full_disks() -> None:
    cases = [(1, ""), (9, "+"), (26, ""), (40, "+"), (63, "")]
    assert [fault for found in run_all(full_case, iter(cases), 2) for fault in found] == []


@MAKES_FILES
def test_a_call_that_ran_has_its_result_recorded_though_the_disk_was_full(tmp_path: Path) -> None:
    """One write fails: that of the result. The refusal frees the reserve, so result and end are told all the same."""
    for folder in ("whole", "full"):
        (tmp_path / folder).mkdir()
    whole, full = Door(tmp_path / "whole"), Door(tmp_path / "full")
    for door in (whole, full):
        door.configure([{"calls": [effect("once")]}, {"text": "Done."}])
    (finished,) = [row for row in whole.live("Do it.").rows if row["event"]["type"] == "call_finished"]
    life = full.live("Do it.", failpoints=f"log.append.before=enospc@{finished['seq']}")
    result, end = (row["event"] for row in life.rows[-2:])
    assert (result["type"], result["ok"], result.get("error")) == ("call_finished", True, None)
    assert (end["type"], end["status"], life.code) == ("turn_finished", "infra", 75)
    assert "disk is full" in end["reason"]
    faults, _ = judge(full, full.begun()[0], [life])
    assert faults == []


async def test_a_session_whose_first_record_is_damaged_goes_on(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": "Kept."}]) as stage:
        await stage.turn("Begin")
    (log,) = home.glob("sessions/*/log.jsonl")
    log.write_bytes(b"#" + log.read_bytes()[1:])
    async with harness(home, workspace, [{"text": "Going on."}]) as stage:
        events = await stage.turn("Go on", await stage.open(resume=log.parent.name))
        fork = await stage.open(fork=log.parent.name)
        status = await stage.client.query(SessionStatus(fork))
        told = json.loads(stage.provider.requests[-1])["messages"]
    assert ending(events).status == "done"
    assert [message["content"] for message in told if message["role"] == "assistant"] == ["Kept."]
    notices = [item.event for item in envelopes(str(home), log.parent.name) if isinstance(item.event, Notice)]
    assert notices[0].level == "warning" and f"continues in {workspace} with scripted" in notices[0].text
    assert (status.provider, status.workspace) == ("scripted", str(workspace))


def test_the_first_error_of_an_opening_is_told_not_that_of_its_end(tmp_path: Path) -> None:
    door = Door(tmp_path)
    door.configure([])
    life = door.live("Do it.", "--provider", "nobody", failpoints="log.sync.before=eio@1")
    assert (life.code, "there is no provider 'nobody'" in life.said) == (2, True), life.said
    assert "Traceback" not in life.said


def row(seq: int, **event: object) -> dict[str, object]:
    """A printed line."""
    return {"seq": seq, "event": event}


def test_the_judge_sees_what_is_wrong(tmp_path: Path) -> None:
    """A check that cannot fail shows nothing."""
    rows = [row(1, type="session_opened"), row(2, type="turn_started")]
    assert lost(rows, rows) == []
    assert lost(rows, rows[:1]) and lost(rows, [rows[0], row(2, type="other")])
    assert doubled([*rows, rows[1]]) == [2]
    asked = row(3, type="message_added", message={"parts": [{"type": "tool_call", "id": "call_1"}]})
    answered = row(4, type="call_finished", call_id="call_1", ok=True, content="x")
    assert log_faults([*rows, asked, answered]) == []
    assert log_faults([*rows, asked]) and log_faults([rows[1]])
    assert log_faults([*rows, asked, answered, {**answered, "seq": 5}])
    said = b'{"messages":[{"role":"assistant","tool_calls":[{"id":"a"}]},%b{"role":"user"}]}'
    assert body_faults(said % b"") and body_faults(said % b'{"role":"tool","tool_call_id":"b"},')
    assert body_faults(said % b'{"role":"tool","tool_call_id":"a"},') == []
    door = Door(tmp_path)
    faults, _ = judge(door, "20260101-000000-00000000", [Life(b'{"seq":1}\n', "", 0, 0.0, False)])
    assert any("cannot be opened" in fault for fault in faults)
