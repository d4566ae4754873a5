"""A few real SIGKILLs at named points and a few full disks through the front door; `make crash` does the many."""

import sys
from pathlib import Path

import pytest

from support.house import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from aftermath import Door, Life, body_faults, doubled, judge, log_faults, lost
from crash import AIMS, Aim, one, run_all
from disasters import full_case


@pytest.mark.slow
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
def test_full_disks() -> None:
    cases = [(1, ""), (9, "+"), (26, ""), (40, "+"), (63, "")]
    assert [fault for found in run_all(full_case, iter(cases), 2) for fault in found] == []


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
