"""Refused calls say what would be allowed, and the call they suggest is one that is."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codewhale.agent.pending_call import PendingCall
from codewhale.agent.refusals import completed, denied, repeated
from codewhale.catalog.registry import Catalog
from codewhale.permissions.policy import decide
from codewhale.protocol.decisions import DecisionRequest
from codewhale.protocol.errors import Corrected, Look, NextCall, ToolError
from codewhale.protocol.messages import ToolCall
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.tools import Effect
from codewhale.testing import ScriptedProvider
from support.scenes import results, scene
from support.schemavalues import sample

CATALOG = Catalog.load()
CHANGING = [spec.name for spec in CATALOG.rows.values() if set(spec.effects) - {Effect.READS}]
HERE = [(mode, who) for mode in (Mode.PLAN, Mode.AGENT) for who in Authority]


def verdict(mode: Mode, who: Authority, disabled: frozenset[str], tool: str) -> str:
    spec = CATALOG.rows[tool]
    return decide(DecisionRequest(tool, spec.effects, (), mode, who, "s"), disabled).verdict


def refused(
    tool: str, arguments: dict[str, Any], mode: Mode, who: Authority, disabled: frozenset[str] = frozenset()
) -> ToolError:
    prepared = PendingCall(ToolCall("c", tool, "{}"), CATALOG.rows[tool], arguments)
    error = ToolError("permission_denied", "Not here.")
    return denied(error, prepared, lambda name: verdict(mode, who, disabled, name) == "allow")


@pytest.mark.parametrize("tool", CHANGING)
def test_a_call_that_is_not_allowed_has_no_next_call(tool: str) -> None:
    arguments = sample(CATALOG.rows[tool].parameters)
    for mode, who in HERE:
        error = refused(tool, arguments, mode, who)
        assert error.fix is None and error.look is None
        assert error.expected and tool in error.received


def test_what_a_command_would_have_shown_is_said_where_it_may_be_read() -> None:
    call = ("exec_shell", {"command": "cat a.py"}, Mode.PLAN, Authority.HEADLESS)
    error = refused(*call)
    assert error.fix is None and error.look == Look("read_file", {"path": "a.py"})
    assert error.received == "exec_shell, which runs a program"
    assert refused(*call, frozenset({"read_file"})).look is None


def test_a_refusal_that_has_its_parts_keeps_them() -> None:
    fix = NextCall("note", {"content": "x"})
    prepared = PendingCall(ToolCall("c", "exec_shell", "{}"), CATALOG.rows["exec_shell"], {})
    error = ToolError("permission_denied", "No.", expected="rest", received="work", fix=fix)
    told = denied(error, prepared, partial(lambda name: True))
    assert (told.fix, told.expected, told.received) == (fix, "rest", "work")


def test_a_blocked_repeat_has_no_next_call() -> None:
    told = repeated("read_file", 5)
    assert "read_file was not run" in told.content and told.metadata["error"]["fix"] is None


async def test_the_model_reads_it(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    calls = [{"name": "exec_shell", "arguments": '{"command": "ls"}'}]
    turns = [{"calls": calls}, {"calls": [{"name": "list_dir", "arguments": '{"path": "."}'}]}, {"text": "done"}]
    async with scene(tmp_path / "home", tmp_path / "work", ScriptedProvider(turns)) as stage:
        session = await stage.open(mode=Mode.PLAN, authority=Authority.HEADLESS)
        first, second = results(await stage.turn("look", session))
    assert first.error == "permission_denied"
    assert "Next call" not in first.content
    assert "agent mode" in first.content
    assert first.metadata["error"]["fix"] is None
    assert second.ok


def test_an_error_gets_the_parts_that_its_tool_left_out() -> None:
    prepared = PendingCall(ToolCall("c", "run_tests", '{"args": "-q"}'), CATALOG.rows["run_tests"], {"args": "-q"})
    error = completed(ToolError("timeout", "Too slow."), prepared)
    assert (error.expected, error.received) == ("a call that ends in time", 'run_tests {"args": "-q"}')
    assert error.fix is None
    told = completed(ToolError("invalid_input", "x", field="path", expected="a", received="b", fix=error.fix), prepared)
    assert (told.expected, told.received) == ("a", "b")
    assert completed(ToolError("missing_field", "x", field="path"), prepared).received == ""


@pytest.mark.parametrize(
    ("tool", "sure", "wanted"), [("read_file", False, True), ("write_file", False, False), ("write_file", True, True)]
)
def test_a_correction_becomes_the_same_call_where_it_must_succeed(tool: str, sure: bool, wanted: bool) -> None:
    given = {"path": "`a`"} if tool == "read_file" else {"path": "`a`", "content": "x"}
    prepared = PendingCall(ToolCall("c", tool, "{}"), CATALOG.rows[tool], given)
    fix = completed(ToolError("execution_failed", "x", fix=Corrected({"path": "a"}, sure)), prepared).fix
    assert fix == (NextCall(tool, {**given, "path": "a"}) if wanted else None)
