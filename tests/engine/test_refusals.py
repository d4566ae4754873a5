"""Refused calls say what would be allowed, and the call they suggest is one that is."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import check, sample
from codewhale.context.guard import BLOCK_AT
from codewhale.engine.prepare import Prepared
from codewhale.engine.refusals import completed, denied, repeated
from codewhale.policy.decide import decide
from codewhale.protocol.decisions import DecisionRequest
from codewhale.protocol.errors import NextCall, ToolError
from codewhale.protocol.events import ApprovalAsked, QuestionAsked, TurnFinished
from codewhale.protocol.messages import ToolCall
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Answer, SendMessage
from codewhale.protocol.tools import Effect
from codewhale.testing import ScriptedProvider
from support.scenes import results, scene, watching

CATALOG = Catalog.load()
CHANGING = [spec.name for spec in CATALOG.rows.values() if set(spec.effects) - {Effect.READS}]
HERE = [(mode, who) for mode in (Mode.PLAN, Mode.AGENT) for who in Authority]


def verdict(mode: Mode, who: Authority, disabled: frozenset[str], tool: str) -> str:
    spec = CATALOG.rows[tool]
    return decide(DecisionRequest(tool, spec.effects, (), mode, who, "s"), disabled).verdict


def refused(
    tool: str, arguments: dict[str, Any], mode: Mode, who: Authority, disabled: frozenset[str] = frozenset()
) -> ToolError:
    prepared = Prepared(ToolCall("c", tool, "{}"), CATALOG.rows[tool], arguments)
    error = ToolError("permission_denied", "Not here.")
    return denied(error, prepared, who, lambda name: verdict(mode, who, disabled, name) == "allow")


@pytest.mark.parametrize("tool", CHANGING)
@pytest.mark.parametrize("disabled", [frozenset[str](), frozenset({"list_dir", "read_file", "request_user_input"})])
def test_every_refusal_suggests_a_call_that_fits_and_is_allowed(tool: str, disabled: frozenset[str]) -> None:
    arguments = sample(CATALOG.rows[tool].parameters)
    for mode, who in HERE:
        error = refused(tool, arguments, mode, who, disabled)
        assert error.fix is not None
        assert error.expected
        assert tool in error.received
        spec = CATALOG.rows[error.fix.name]
        assert check(error.fix.arguments, spec.parameters) == []
        assert error.fix.name not in disabled
        assert verdict(mode, who, disabled, spec.name) == "allow"
        asks = spec.name == "request_user_input"
        assert asks == (who is Authority.PERSON and not disabled)


def test_a_file_that_may_not_be_edited_can_be_read() -> None:
    error = refused("edit_file", {"path": "a.py", "search": "x", "replace": "y"}, Mode.PLAN, Authority.HEADLESS)
    assert error.fix == NextCall("read_file", {"path": "a.py"})
    assert error.received == "edit_file, which writes"


def test_a_refusal_that_has_its_parts_keeps_them() -> None:
    fix = NextCall("note", {"content": "x"})
    prepared = Prepared(ToolCall("c", "exec_shell", "{}"), CATALOG.rows["exec_shell"], {})
    error = ToolError("permission_denied", "No.", expected="rest", received="work", fix=fix)
    told = denied(error, prepared, Authority.PERSON, partial(lambda name: True))
    assert (told.fix, told.expected, told.received) == (fix, "rest", "work")


@pytest.mark.parametrize("tool", ["list_dir", "read_file"])
def test_a_blocked_repeat_has_a_next_call_of_another_tool(tool: str) -> None:
    error = repeated(tool, BLOCK_AT).metadata["error"]
    assert error["fix"]["name"] != tool
    assert check(error["fix"]["arguments"], CATALOG.rows[error["fix"]["name"]].parameters) == []


async def test_the_model_reads_it(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    calls = [{"name": "exec_shell", "arguments": '{"command": "ls"}'}]
    turns = [{"calls": calls}, {"calls": [{"name": "list_dir", "arguments": '{"path": "."}'}]}, {"text": "done"}]
    async with scene(tmp_path / "home", tmp_path / "work", ScriptedProvider(turns)) as stage:
        session = await stage.open(mode=Mode.PLAN, authority=Authority.HEADLESS)
        first, second = results(await stage.turn("look", session))
    assert first.error == "permission_denied"
    assert first.content.endswith('\nNext call: list_dir {"path":"."}')
    assert "agent mode" in first.content
    assert first.metadata["error"]["fix"] == {"name": "list_dir", "arguments": {"path": "."}}
    assert second.ok


def test_an_error_gets_the_parts_that_its_tool_left_out() -> None:
    prepared = Prepared(ToolCall("c", "run_tests", '{"args": "-q"}'), CATALOG.rows["run_tests"], {"args": "-q"})
    error = completed(ToolError("timeout", "Too slow."), prepared)
    assert (error.expected, error.received) == ("a call that ends in time", 'run_tests {"args": "-q"}')
    assert error.fix == NextCall("list_dir", {"path": "."})
    told = completed(ToolError("invalid_input", "x", field="path", expected="a", received="b", fix=error.fix), prepared)
    assert (told.expected, told.received) == ("a", "b")
    assert completed(ToolError("missing_field", "x", field="path"), prepared).received == ""


async def test_after_a_no_the_suggested_call_asks_the_person(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    shell = {"name": "exec_shell", "arguments": '{"command": "make all"}'}
    fix = refused("exec_shell", {"command": "make all"}, Mode.AGENT, Authority.PERSON).fix
    assert fix is not None
    turns = [{"calls": [shell]}, {"calls": [{"name": fix.name, "arguments": fix.arguments}]}, {"text": "done"}]
    async with scene(tmp_path / "home", tmp_path / "work", ScriptedProvider(turns)) as stage:
        session = await stage.open(mode=Mode.AGENT, authority=Authority.PERSON)
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "go"))
            asked = await watch.until(ApprovalAsked)
            await stage.client.submit(Answer(session, asked.request_id, allowed=False))
            question = await watch.until(QuestionAsked)
            answers = ({"id": "next", "label": "Stop here", "value": "Stop here"},)
            await stage.client.submit(Answer(session, question.request_id, answers=answers))
            await watch.until(TurnFinished)
    first, second = results(watch.events)
    assert first.metadata["error"]["fix"] == {"name": fix.name, "arguments": fix.arguments}
    assert (first.error, second.ok) == ("permission_denied", True)
    assert "make" not in str(question.questions)
