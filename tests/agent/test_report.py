"""What a turn adds up to for programs."""

from pathlib import Path

from codewhale.agent.pending_call import PendingCall
from codewhale.agent.report import EXIT_CODES, Report
from codewhale.protocol.decisions import FOR_THE_MODEL
from codewhale.protocol.events import Event, FileChanged, RequestSent, UsageReported
from codewhale.protocol.files import FileChange
from codewhale.protocol.messages import ToolCall
from codewhale.protocol.stream import Usage
from support.stage import staged


def changed(path: str, before: str | None, after: str | None) -> FileChanged:
    """A change of a file."""
    return FileChanged("call_1", FileChange(path, before, after))


def outcome(name: str, *events: Event, ok: bool = True, denied: str = "") -> PendingCall:
    """What came of a call."""
    return PendingCall(ToolCall("call_1", name, "{}"), events=events, ok=ok, denied=denied, ms=7)


async def test_the_object_has_its_fields_in_their_order(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        report = Report(session)
        report.add(outcome("read_file"))
        report.answer = "Read."
        result = report.result("done", "")
    assert list(result) == [
        "schema_version", "session_id", "status", "exit_code", "answer", "tools", "changes", "usage", "error",
    ]  # fmt: skip
    assert result["schema_version"] == 1
    assert result["session_id"] == session.id
    assert result["tools"] == [{"id": "call_1", "name": "read_file", "ok": True, "ms": 7}]
    assert (result["answer"], result["error"]) == ("Read.", None)
    assert list(result["usage"]) == ["input", "output", "cache_hit", "cache_miss", "cost", "currency"]


def test_every_status_has_its_exit_code() -> None:
    assert EXIT_CODES == {"done": 0, "failed": 1, "denied": 3, "budget": 4, "infra": 75, "interrupted": 130}


async def test_changes_of_one_file_are_one_from_its_first_state_to_its_last(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        report = Report(stage.open())
        report.add(outcome("write_file", changed("a", "1", "2"), changed("b", None, "5"), changed("c", "7", "8")))
        report.add(outcome("write_file", changed("a", "2", "3"), changed("b", "5", None), changed("c", "8", "7")))
        changes = report.result("done", "")["changes"]
    assert changes == [{"path": "a", "before_sha256": "1", "after_sha256": "3"}]


async def test_a_refusal_stands_until_the_same_tool_succeeds(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        report = Report(stage.open())
        assert not report.denied
        report.add(outcome("exec_shell", ok=False, denied=f"It needs a yes.{FOR_THE_MODEL} (rule a.b)"))
        report.add(outcome("read_file"))
        assert report.denied == "exec_shell was refused: It needs a yes. (rule a.b)"
        report.add(outcome("exec_shell", ok=False))
        assert report.denied
        report.add(outcome("exec_shell"))
        assert not report.denied


async def test_usage_is_this_turns_alone(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        session.emit(RequestSent(1, 10, "0", 1), UsageReported(1, Usage(100, 10, 50, 50, 0, 1.0)))
        report = Report(session)
        session.emit(RequestSent(2, 10, "0", 1), UsageReported(2, Usage(200, 20, 150, 50, 0, 0.5)))
        usage = report.result("done", "")["usage"]
    assert usage == {
        "input": 200, "output": 20, "cache_hit": 150, "cache_miss": 50, "cost": 0.5, "currency": "USD",
    }  # fmt: skip
