"""Whole turns: what a model says, what runs, what it is told, how the turn ends."""

import json
from pathlib import Path

import pytest

from codewhale.protocol.events import (
    AnswerDropped,
    CallStarted,
    ContextAppended,
    FileChanged,
    RepairRecorded,
    RequestSent,
    TextStreamed,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.ops import CloseSession
from codewhale.protocol.stream import CallDelta, Finished, TextDelta
from codewhale.testing import harness
from support.scenes import DeltaProvider, ending, only, results, scene, sent, watching


def call(name: str, arguments: object = None) -> dict[str, object]:
    """A call of a script."""
    return {"name": name, "arguments": {} if arguments is None else arguments}


async def test_read_edit_answer(home: Path, workspace: Path) -> None:
    (workspace / "greet.py").write_text('print("helo")\n')
    script = [
        {"calls": [call("read_file", {"path": "greet.py"})]},
        {"calls": [call("edit_file", {"path": "greet.py", "search": "helo", "replace": "hello"})]},
        {"text": "I corrected the greeting."},
    ]
    async with harness(home, workspace, script) as stage:
        events = await stage.turn("Fix the typo")
    assert (workspace / "greet.py").read_text() == 'print("hello")\n'
    assert isinstance(events[0], TurnStarted) and isinstance(events[-1], TurnFinished)
    assert [item.ok for item in results(events)] == [True, True]
    (change,) = only(events, FileChanged)
    result = ending(events).result
    assert (result["status"], result["exit_code"], result["answer"]) == ("done", 0, "I corrected the greeting.")
    assert [(tool["name"], tool["ok"]) for tool in result["tools"]] == [("read_file", True), ("edit_file", True)]
    assert result["changes"] == [
        {"path": "greet.py", "before_sha256": change.change.before, "after_sha256": change.change.after}
    ]
    assert "".join(item.text for item in only(events, TextStreamed)) == "I corrected the greeting."
    assert len(only(events, RequestSent)) == 3


async def test_reads_side_by_side_are_answered_in_the_order_of_their_calls(home: Path, workspace: Path) -> None:
    (workspace / "small.txt").write_text("small\n")
    (workspace / "large.txt").write_text("x" * 79 + "\n" + "large\n" * 40_000)
    calls = [call("grep_files", {"pattern": "large"})] + [call("read_file", {"path": "small.txt"})] * 2
    calls += [call("read_file", {"path": "large.txt", "max_lines": 1}), call("list_dir")]
    async with harness(home, workspace, [{"calls": calls}, {"text": "Read."}]) as stage:
        events = await stage.turn("Look around")
    names = ["grep_files", "read_file", "read_file", "read_file", "list_dir"]
    assert [item.name for item in results(events)] == names
    assert [item.call_id for item in results(events)] == [f"call_{number}" for number in range(1, 6)]
    said = sent(stage)
    assert [message["tool_call_id"] for message in said if message["role"] == "tool"] == [
        tool_call["id"] for tool_call in said[-6]["tool_calls"]
    ]


async def test_what_is_not_parallel_runs_alone_and_in_order(home: Path, workspace: Path) -> None:
    calls = [
        call("write_file", {"path": "a.txt", "content": "one\n"}),
        call("read_file", {"path": "a.txt"}),
        call("write_file", {"path": "a.txt", "content": "two\n"}),
        call("read_file", {"path": "a.txt"}),
    ]
    async with harness(home, workspace, [{"calls": calls}, {"text": "Written."}]) as stage:
        events = await stage.turn("Write twice")
    assert "one" in results(events)[1].content
    assert "two" in results(events)[3].content
    order = [(type(event).__name__, event.call_id) for event in events if isinstance(event, CallStarted)]
    assert order == [("CallStarted", f"call_{number}") for number in range(1, 5)]


async def test_an_empty_answer_is_nudged_once_and_then_fails(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": ""}, {"reasoning": "hm"}, {"text": "too late"}]) as stage:
        events = await stage.turn("Do something")
    assert len(only(events, RequestSent)) == 2
    assert [item.kind for item in only(events, ContextAppended)].count("nudge") == 1
    assert ending(events).status == "failed"
    assert "neither an answer nor a tool call" in ending(events).reason
    assert "neither an answer nor a tool call" in sent(stage)[-1]["content"]


async def test_an_answer_after_the_nudge_is_an_answer(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": " \n"}, {"text": "Here it is."}]) as stage:
        events = await stage.turn("Do something")
    assert ending(events).status == "done"
    assert ending(events).result["answer"] == "Here it is."


IMITATION = '<tool_call>{"name": "write_file", "arguments": {"path": "a", "content": "b"}}</tool_call>'


async def test_a_call_that_is_all_of_an_answer_is_run_as_a_call(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": IMITATION}, {"text": "Done."}]) as stage:
        events = await stage.turn("Write the file")
    assert (workspace / "a").read_text() == "b"
    (repair,) = only(events, RepairRecorded)
    assert repair.codes == ("T2",) and not repair.lossy
    (said,) = sent(stage)[-2]["tool_calls"]
    assert json.loads(said["function"]["arguments"]) == {"path": "a", "content": "b"}
    assert "<tool_call>" not in (sent(stage)[-2].get("content") or "")
    assert ending(events).status == "done"


@pytest.mark.parametrize("text", ["<tool_call>write the file</tool_call>", "[TOOL_CALL]"])
async def test_a_call_written_as_text_that_cannot_be_read_is_told(home: Path, workspace: Path, text: str) -> None:
    async with harness(home, workspace, [{"text": text}] * 4) as stage:
        events = await stage.turn("Write the file")
    assert not (workspace / "a").exists()
    assert "wrote a tool call as text" in sent(stage)[-1]["content"]
    assert ending(events).status == "failed"
    assert "tool calls as text" in ending(events).reason


async def test_a_call_written_as_text_that_is_cut_is_refused_as_cut(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": IMITATION[:-20]}, {"text": "Sorry."}]) as stage:
        events = await stage.turn("Write the file")
    assert not (workspace / "a").exists()
    (result,) = results(events)
    assert (result.ok, result.error) == (False, "invalid_input") and "may be cut" in result.content


@pytest.mark.parametrize("text", [f"Models write\n```\n{IMITATION}\n```\nat times.", "The tag is `<tool_call>`."])
async def test_a_call_quoted_in_prose_is_an_answer(home: Path, workspace: Path, text: str) -> None:
    async with harness(home, workspace, [{"text": text}]) as stage:
        events = await stage.turn("Explain")
    assert ending(events).status == "done"
    assert ending(events).result["answer"] == text


async def test_nothing_runs_of_an_answer_that_hit_its_length_limit(home: Path, workspace: Path) -> None:
    calls = [call("write_file", {"path": "a", "content": "cut"}), call("list_dir")]
    script = [{"calls": calls, "finish": "length"}, {"text": "I will write less."}]
    async with harness(home, workspace, script) as stage:
        events = await stage.turn("Write")
    assert not (workspace / "a").exists()
    assert only(events, CallStarted) == []
    assert [item.error for item in results(events)] == ["invalid_input", "invalid_input"]
    assert "length limit" in results(events)[0].content
    assert ending(events).status == "done"


async def test_a_bare_answer_cut_at_its_length_fails_with_what_came(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": "This is only the beg", "finish": "length"}]) as stage:
        events = await stage.turn("Explain")
    assert (ending(events).status, ending(events).result["answer"]) == ("failed", "This is only the beg")


@pytest.mark.parametrize(
    ("name", "arguments", "error", "words"),
    [
        ("peruse_document", {"path": "a"}, "not_available", "There is no tool named"),
        ("", {}, "not_available", "empty name"),
        ("read_file", '{"path": "a', "invalid_input", "end before they are complete"),
        ("read_file", '{"path": = "a"}', "invalid_input", "not valid JSON at character"),
        ("read_file", "[1]", "invalid_input", "are an array, not an object"),
        ("read_file", {"pth": "a"}, "missing_field", "`path` is missing"),
        ("read_file", {"path": "a", "max_lines": "five"}, "invalid_input", "got the string 'five'"),
        ("read_file", {"path": "../a"}, "path_escape", "leads out"),
    ],
)
async def test_a_bad_call_is_answered_with_what_is_wrong_and_itself_made_right(
    home: Path, workspace: Path, name: str, arguments: object, error: str, words: str
) -> None:
    async with harness(home, workspace, [{"calls": [call(name, arguments)]}, {"text": "Sorry."}]) as stage:
        events = await stage.turn("Read")
    (result,) = results(events)
    assert (result.ok, result.error) == (False, error)
    assert words in result.content
    fix = result.metadata["error"]["fix"]
    assert fix is None or (fix["name"], f"\nNext call: {name} " in result.content) == (name, True)
    (wire,) = sent(stage)[-2]["tool_calls"]
    assert isinstance(json.loads(wire["function"]["arguments"]), dict)
    assert wire["function"]["name"]
    assert ending(events).status == "done"


async def test_one_bad_call_does_not_stop_its_neighbours(home: Path, workspace: Path) -> None:
    calls = [call("list_dir"), call("list_dir", "{"), call("write_file", {"path": "a", "content": "b"})]
    async with harness(home, workspace, [{"calls": calls}, {"text": "Done."}]) as stage:
        events = await stage.turn("Go")
    assert [item.ok for item in results(events)] == [True, False, True]
    assert (workspace / "a").read_text() == "b"


async def test_missing_and_repeated_ids_become_unique_and_stay_paired(home: Path, workspace: Path) -> None:
    def listing(index: int, call_id: str) -> CallDelta:
        return CallDelta(index, call_id, "list_dir", "{}")

    answers = [
        [listing(0, ""), listing(1, "same"), listing(2, "same"), Finished("tool_calls")],
        [listing(0, "same"), listing(1, "call_1"), Finished("stop")],
        [TextDelta("Listed."), Finished("stop")],
    ]
    async with scene(home, workspace, DeltaProvider(answers)) as stage:
        events = await stage.turn("List")
    ids = [item.call_id for item in results(events)]
    assert len(ids) == len(set(ids)) == 5
    assert ids[1] == "same"
    said = sent(stage)
    asked = [tool_call["id"] for message in said for tool_call in message.get("tool_calls", ())]
    assert asked == [message["tool_call_id"] for message in said if message["role"] == "tool"] == ids
    assert ending(events).status == "done"


async def test_an_alias_runs_and_says_so_where_it_is_deprecated(home: Path, workspace: Path) -> None:
    todos = {"todos": [{"content": "look", "status": "pending"}]}
    script = [{"calls": [call("todo_write", todos), call("checklist_write", todos)]}, {"text": "Noted."}]
    async with harness(home, workspace, script) as stage:
        events = await stage.turn("Plan")
    old, new = results(events)
    assert (old.name, new.name) == ("checklist_write", "checklist_write")
    assert old.metadata["_deprecation"]["use_instead"] == "checklist_write"
    assert "_deprecation" not in new.metadata
    assert "deprecated" not in old.content + new.content
    (said, other) = [message["content"] for message in sent(stage) if message["role"] == "tool"]
    assert "'todo_write' is deprecated" in said and "deprecated" not in other


async def test_a_model_call_that_failed_ends_the_turn_and_is_not_sent_back(home: Path, workspace: Path) -> None:
    script = [{"text": "So far so", "error": {"kind": "server", "message": "503 overloaded"}}, {"text": "Again."}]
    async with harness(home, workspace, script) as stage:
        session = await stage.open()
        events = await stage.turn("Go", session)
        assert (ending(events).status, ending(events).result["exit_code"]) == ("infra", 75)
        assert "503 overloaded" in ending(events).result["error"]
        assert ending(events).result["answer"] == ""
        assert [(item.text, item.attempt) for item in only(events, AnswerDropped)] == [("So far so", 0)]
        assert ending(await stage.turn("Once more", session)).status == "done"
    assert [message["role"] for message in sent(stage)] == ["system", "user", "user"]


async def test_a_fault_of_ours_ends_the_turn_and_not_the_session(home: Path, workspace: Path) -> None:
    def broken(request: dict[str, object]) -> dict[str, object]:
        raise RuntimeError("out of order")

    async with harness(home, workspace, [broken, {"text": "Fine."}]) as stage:
        session = await stage.open()
        events = await stage.turn("Go", session)
        assert ending(events).status == "failed"
        assert "out of order" in ending(events).reason
        async with watching(stage, session) as watch:
            assert ending(await stage.turn("Again", session)).status == "done"
            await stage.client.submit(CloseSession(session))
            assert await watch.ended() is None
