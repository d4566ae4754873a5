"""The receipt of a log: what was verified on which files, and what was only claimed."""

from msgspec.structs import replace

from codewhale.protocol.events import GateRecorded, ListChanged, SessionOpened, TurnFinished
from codewhale.protocol.gates import GateRecord, standing
from codewhale.protocol.modes import Mode
from codewhale.session.receipts import MOST_GATES, receipt

GATE = GateRecord(
    "gate_1", "test", "make test", ".", 0, "passed", "passed", 5, "3 passed", "/log", "2026-01-01T00:00:00.000Z",
    "shell_1", None, "t1", "t1", "t1",
)  # fmt: skip
CHANGED = replace(GATE, id="gate_2", tree_after="t2", workspace_tree_sha256=None)


def test_a_gate_stands_as_long_as_the_files_do() -> None:
    assert [standing(GATE, tree) for tree in ("t1", "t2", "")] == ["holds", "stale", "unbound"]
    assert [standing(CHANGED, tree) for tree in ("t1", "t2", "")] == ["stale", "unbound", "unbound"]


def test_what_was_verified_and_what_was_claimed() -> None:
    failed = replace(GATE, id="gate_3", status="failed", exit_code=1)
    items = ({"content": "Write it", "status": "completed"}, {"content": "Ship it", "status": "pending"})
    log = [
        SessionOpened(1, "/work", Mode.AGENT, "scripted", "scripted"),
        *(GateRecorded(gate) for gate in (GATE, CHANGED, failed)),
        ListChanged("checklist", items),
        TurnFinished(1, "done", result={"answer": "All is green.\n"}),
        TurnFinished(2, "failed", result={"answer": "No."}),
    ]
    now = receipt(log, "t1")
    assert (now.workspace, now.claimed) == ("/work", ("Write it", "All is green."))
    assert [(one.gate.id, one.standing) for one in now.gates] == [
        ("gate_1", "holds"), ("gate_2", "stale"), ("gate_3", "holds"),
    ]  # fmt: skip
    assert [one.gate.id for one in now.verified] == ["gate_1"] and receipt(log, "t3").verified == ()


def test_of_many_gates_the_latest_are_listed() -> None:
    log = [GateRecorded(replace(GATE, id=f"gate_{number}")) for number in range(MOST_GATES + 5)]
    gates = receipt(log, "t1").gates
    assert (len(gates), gates[-1].gate.id) == (MOST_GATES, f"gate_{MOST_GATES + 4}")
