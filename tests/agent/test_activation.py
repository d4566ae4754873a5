"""Tools that become known in the middle of a session: once, in order, bounded, and the same after a resume."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from codewhale.agent.activation import MOST_NAMES, activation, array
from codewhale.catalog.registry import Catalog
from codewhale.cli.offline.stored_sessions import request_body
from codewhale.protocol.events import CallFinished, CallStarted, Event, HeaderPinned, PrefixInvalidated, ToolActivated
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import CloseSession, SetModel
from codewhale.protocol.tools import ToolSpec
from codewhale.session.state import tool_name
from codewhale.testing import Harness, harness
from support.scenes import only, results
from support.stage import Stage, staged

DONE = {"text": "Done."}
NOTE = {"name": "note", "arguments": {"content": "keep"}}


def search(query: str, **more: Any) -> dict[str, Any]:
    """A call of the search by need."""
    return {"name": "tool_search_tool_bm25", "arguments": {"query": query, **more}}


def tools(stage: Harness, number: int) -> list[str]:
    """The names of the array of request `number` (from 0)."""
    return [tool_name(wire) for wire in json.loads(stage.provider.requests[number])["tools"]]


def activated(events: list[Event]) -> list[str]:
    """What became known, in order."""
    return [event.name for event in only(events, ToolActivated)]


async def test_what_search_finds_joins_the_array_behind_the_head_and_may_be_called(home: Path, workspace: Path) -> None:
    script = [{"calls": [search("jot down a remark for later", max_results=1)]}, {"calls": [NOTE]}, DONE]
    async with harness(home, workspace, script) as stage:
        session = await stage.open()
        events = await stage.turn("Note it.", session)
        first, second, third = (tools(stage, number) for number in range(3))
        sent = list(stage.provider.requests)
        assert [request_body(str(home), session, number) for number in (1, 2, 3)] == sent
    assert second == [*first, "note"] == third
    assert activated(events) == ["note"]
    assert [edge.reason for edge in only(events, PrefixInvalidated)] == ["activation"]
    found, noted = results(events)
    (reference,) = json.loads(found.content)["tool_references"]
    assert reference["tool_name"] == "note" and reference["schema"]["required"] == ["content"]
    assert found.metadata["tool_references"] == ["note"] and noted.ok
    assert (workspace / ".codewhale" / "notes.md").read_text().endswith("keep\n")
    # What came before the new tool has not moved, and neither has the conversation.
    heads = [json.loads(body) for body in sent]
    assert heads[1]["tools"][: len(first)] == heads[0]["tools"]
    assert sent[2].startswith(sent[1][: sent[1].rindex(b'}],"') - 1])
    assert heads[1]["messages"][: len(heads[0]["messages"])] == heads[0]["messages"]


async def test_the_head_never_moves_and_later_tools_stand_in_the_order_of_time(home: Path, workspace: Path) -> None:
    orders = (
        ["validate a toml file", "the last commit of each line, as blame tells it"],
        ["the last commit of each line, as blame tells it", "validate a toml file"],
    )
    seen = []
    for number, order in enumerate(orders):
        script = [*({"calls": [search(query, max_results=1)]} for query in order), DONE]
        async with harness(home / str(number), workspace, script) as stage:
            await stage.turn("Look.")
            seen.append([json.loads(body)["tools"] for body in stage.provider.requests])
    (one, other) = seen
    size = len(one[0])
    assert one[0] == other[0] and all(wires[:size] == one[0] for wires in (*one, *other))
    tails = [[tool_name(wire) for wire in wires[2][size:]] for wires in seen]
    assert tails == [["validate_data", "git_blame"], ["git_blame", "validate_data"]]


async def test_a_search_of_what_is_known_changes_nothing(home: Path, workspace: Path) -> None:
    script = [{"calls": [search("edit a file")]}, {"calls": [search("edit a file", max_results=2)]}, DONE]
    async with harness(home, workspace, script) as stage:
        events = await stage.turn("Look.")
        assert tools(stage, 1) == tools(stage, 2)
    assert len(only(events, PrefixInvalidated)) <= 1
    again = json.loads(results(events)[1].content)["tool_references"]
    assert all(reference["known"] for reference in again)


async def test_a_resume_and_a_fork_go_on_with_the_same_array(home: Path, workspace: Path) -> None:
    script = [{"calls": [search("jot down a remark for later", max_results=1)]}, DONE, DONE, DONE]
    async with harness(home, workspace, script) as stage:
        session = await stage.open()
        await stage.turn("Look.", session)
        await stage.client.submit(CloseSession(session))
        for way in ("resume", "fork"):
            again = await stage.open(**{way: session})
            events = await stage.turn("Go on.", again)
            assert only(events, HeaderPinned) == [] and "note" in tools(stage, -1)
            await stage.client.submit(CloseSession(again))
        arrays = {json.dumps(json.loads(body)["tools"]) for body in stage.provider.requests[1:]}
    assert len(arrays) == 1


async def test_another_model_is_sent_what_was_known(home: Path, workspace: Path) -> None:
    script = [{"calls": [search("jot down a remark for later", max_results=1)]}, DONE, DONE]
    async with harness(home, workspace, script) as stage:
        session = await stage.open()
        await stage.turn("Look.", session)
        await stage.client.submit(SetModel(session, "other"))
        await stage.turn("Go on.", session)
        assert tools(stage, 2) == tools(stage, 1)


async def test_where_tools_need_not_be_declared_the_array_stays(home: Path, workspace: Path) -> None:
    script = [{"calls": [search("jot down a remark for later", max_results=1)]}, {"calls": [NOTE]}, DONE]
    async with harness(home, workspace, script, facts={"calls_undeclared_tools": True}) as stage:
        events = await stage.turn("Note it.")
        assert tools(stage, 0) == tools(stage, 2) and "note" not in tools(stage, 2)
    assert activated(events) == ["note"] and only(events, PrefixInvalidated) == []
    assert [result.ok for result in results(events)] == [True, True]


# ------------------------------------------------------------------ called without a search


async def test_a_sound_call_that_only_reads_runs_at_once(home: Path, workspace: Path) -> None:
    (workspace / "a.json").write_text("{}")
    calls = [{"name": "validate_data", "arguments": {"path": "a.json"}}, {"name": "checklist_list", "arguments": {}}]
    async with harness(home, workspace, [{"calls": calls}, DONE]) as stage:
        events = await stage.turn("Check.")
        assert tools(stage, 0) == tools(stage, 1)
    assert [result.ok for result in results(events)] == [True, True]
    assert activated(events) == [] and len(only(events, CallStarted)) == 2


async def test_a_sound_call_that_changes_something_is_answered_with_the_schema(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"calls": [NOTE]}, {"calls": [NOTE]}, DONE]) as stage:
        events = await stage.turn("Note it.")
        assert "note" in tools(stage, 1)
    shown, noted = results(events)
    assert shown.ok and '"required":["content"]' in shown.content and "send it again unchanged" in shown.content
    wanted = {
        "event": "tool.schema_hydrated", "tool": "note", "tool_name": "note", "executed": False, "retry_required": True,
        "reason": "deferred_tool_first_use", "deferred_tool_loaded": True, "received_fields": ["content"],
        "missing_required_fields": [], "unexpected_fields": [], "likely_corrections": [],
        "expected_fields": [{"name": "content", "type": "string", "required": True}],
    }  # fmt: skip
    assert {key: shown.metadata[key] for key in wanted} == wanted
    assert noted.ok and "executed" not in noted.metadata
    assert [started.call_id for started in only(events, CallStarted)] == [noted.call_id]
    ended = events[-1].result["tools"]  # type: ignore[union-attr]
    assert [row["ok"] for row in ended] == [False, True]


async def test_a_wrong_call_is_refused_with_the_schema(home: Path, workspace: Path) -> None:
    wrong = {"name": "note", "arguments": {"contents": "x", "volume": 3}}
    async with harness(home, workspace, [{"calls": [wrong]}, {"calls": [NOTE]}, DONE]) as stage:
        events = await stage.turn("Note it.")
    refused, noted = results(events)
    assert not refused.ok and refused.error in ("missing_field", "invalid_input") and noted.ok
    assert refused.metadata["executed"] is False and refused.metadata["unexpected_fields"]
    assert '"required":["content"]' in refused.content and refused.metadata["error"]["fix"]


@pytest.mark.parametrize(("mode", "rule"), [(Mode.PLAN, "mode.plan"), (Mode.AGENT, "authority.headless")])
async def test_what_policy_denies_is_denied_and_not_shown(mode: Mode, rule: str, home: Path, workspace: Path) -> None:
    call = {"name": "run_verifiers", "arguments": {}}
    async with harness(
        home, workspace, [{"calls": [call, search("run linters and type checks at once")]}, DONE]
    ) as stage:
        events = await stage.turn("Check.", await stage.open(mode=mode, authority=Authority.HEADLESS))
    denied, found = results(events)
    assert denied.error == "permission_denied" and rule in denied.content
    assert "run_verifiers" not in activated(events)
    closed = json.loads(found.content)["unavailable_tool_references"]
    assert "run_verifiers" in [row["tool_name"] for row in closed]


# ------------------------------------------------------------------ bounds


def made_up(name: str, size: int) -> ToolSpec:
    """A tool whose description is long."""
    return ToolSpec(name, "obedient", "x" * size, {"type": "object", "properties": {}}, ())


def become_known(stage: Stage, *rows: ToolSpec) -> list[str]:
    """Let tools become known in a session of this stage; the tail of its array."""
    session = next(iter(stage.engine.at(os.path.realpath(stage.workspace))))
    session.emit(*activation(session, rows))
    assert session.state.header is not None
    return [name for name, _ in array(session.state.header) if name.startswith("t")]


async def test_at_most_eight_are_kept_and_the_least_used_leave(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        rows = [made_up(f"t{number}", 10) for number in range(10)]
        assert become_known(stage, *rows[:8]) == [f"t{number}" for number in range(8)]
        session.emit(CallFinished("c1", "t0", True, "", metadata={}))
        assert become_known(stage, rows[8]) == ["t0", *(f"t{number}" for number in range(2, 9))]
        assert len(session.state.activated) == MOST_NAMES
        session.emit(CallFinished("c2", "tool_search_tool_bm25", True, "", metadata={"tool_references": ["t2"]}))
        assert "t2" in become_known(stage, rows[9]) and "t3" not in session.state.activated
        assert activation(session, rows[9:]) == []


async def test_what_takes_more_than_sixteen_kilobytes_makes_the_others_leave(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        stage.open()
        become_known(stage, made_up("t1", 6000), made_up("t2", 6000))
        assert become_known(stage, made_up("t3", 7000)) == ["t2", "t3"]
        assert become_known(stage, made_up("t4", 20_000)) == ["t4"]
        assert become_known(stage, made_up("t5", 9000), made_up("t6", 9000)) == ["t5"]


def test_every_tool_of_a_pinned_array_is_listed_with_its_bytes() -> None:
    rows = Catalog.load().head
    wire = "[" + ",".join(f'{{"type":"function","function":{{"name":"{row.name}"}}}}' for row in rows) + "]"
    header = HeaderPinned("openai-chat", "p", "m", "", wire, "")
    assert [name for name, _ in array(header)] == [row.name for row in rows]
    assert sum(size for _, size in array(header)) + len(rows) + 1 == len(wire)
