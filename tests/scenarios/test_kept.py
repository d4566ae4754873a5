"""What a turn leaves on disk: large outputs whole, secrets nowhere."""

import json
from pathlib import Path

import pytest

from codewhale.protocol.events import FileChanged, ListChanged
from codewhale.session.outputs import INLINE_LIMIT
from codewhale.testing import harness
from support.scenes import ending, only, results, sent

DONE = {"text": "That is all."}
SECRET = 'sk-"quoted"\\0123456789'


def shell(command: str) -> dict[str, object]:
    """A turn that runs a command."""
    return {"calls": [{"name": "exec_shell", "arguments": {"command": command}}]}


def retrieve(**arguments: object) -> dict[str, object]:
    """A turn that reads a kept output."""
    return {"calls": [{"name": "retrieve_tool_result", "arguments": arguments}]}


def everything(home: Path) -> bytes:
    """All bytes that are kept in a home."""
    return b"".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())


async def test_a_large_output_is_cut_kept_whole_and_can_be_read_back(home: Path, workspace: Path) -> None:
    def read_back(request: dict[str, object]) -> dict[str, object]:
        (handle,) = {word for word in json.dumps(request).replace("\\", "").split('"') if word.startswith("art_")}
        return retrieve(ref=handle, mode="lines", lines="700-702")

    script = [shell("seq -f 'number %g of many' 1 1200"), read_back, retrieve(ref="call_1", mode="tail", line_count=1)]
    async with harness(home, workspace, [*script, DONE], window=128_000) as stage:
        events = await stage.turn("Count")
    large, lines, tail = results(events)
    assert len(large.content.encode()) <= INLINE_LIMIT
    assert "number 1 of many" in large.content and "number 1200 of many" in large.content
    assert "number 700 of many" not in large.content
    assert large.metadata["artifact_bytes"] > INLINE_LIMIT
    assert "700: number 700 of many" in json.loads(lines.content)["excerpt"]
    assert "number 1200 of many" in tail.content
    assert ending(events).status == "done"
    assert next(message["content"] for message in sent(stage) if message["role"] == "tool") == large.content


async def test_a_turn_goes_on_where_nothing_can_be_kept(home: Path, workspace: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "artifacts").write_text("no folder")
    script = [shell("seq -f 'number %g of many' 1 1200"), retrieve(ref="call_1"), DONE]
    async with harness(home, workspace, script, window=128_000) as stage:
        events = await stage.turn("Count")
    large, gone = results(events)
    assert large.ok and len(large.content.encode()) <= INLINE_LIMIT
    assert "number 1 of many" in large.content and "number 1200 of many" in large.content
    assert "could not be kept" in large.content and "retrieve_tool_result" not in large.content
    assert large.metadata["kept"] is False and "artifact_id" not in large.metadata
    assert not gone.ok and "This session has kept no output" in gone.content
    assert ending(events).status == "done"


async def test_a_kept_output_is_found_by_its_call_after_a_resume(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [shell("seq 10001 14000"), DONE], window=128_000) as stage:
        session = await stage.open()
        await stage.turn("Count", session)
    async with harness(home, workspace, [retrieve(ref="call_1", mode="tail", line_count=1), DONE]) as stage:
        await stage.open(resume=session)
        events = await stage.turn("Once more", session)
        child = await stage.open(fork=session)
        assert stage.app.parts.artifacts.recall(child, "call_1") is not None
    assert results(events)[0].ok
    assert "14000" in results(events)[0].content


async def test_a_calls_id_stands_for_all_that_its_program_printed(home: Path, workspace: Path) -> None:
    """Not for the part of it that was shown, neither at once nor after a resume."""
    whole = retrieve(ref="call_1", mode="lines", lines="6000-6001")
    async with harness(home, workspace, [shell("seq -f 'number %g of many' 1 12000"), whole, DONE]) as stage:
        session = await stage.open()
        events = await stage.turn("Count", session)
    assert "number 6000 of many" not in results(events)[0].content
    assert "number 6000 of many" in results(events)[1].content
    async with harness(home, workspace, [whole, DONE]) as stage:
        await stage.open(resume=session)
        events = await stage.turn("Once more", session)
    assert "number 6000 of many" in results(events)[0].content


@pytest.mark.parametrize("large", [False, True])
async def test_a_secret_in_an_output_reaches_neither_model_nor_log_nor_artifacts(
    home: Path, workspace: Path, large: bool
) -> None:
    (workspace / "secret").write_text(f"key: {SECRET}\n" + "filler line\n" * (5000 if large else 1))
    (workspace / "copy.json").write_text(json.dumps({"key": SECRET}))
    script = [shell("cat secret; cat secret | tail -n +1"), shell("cat copy.json"), DONE]
    async with harness(home, workspace, script, {"SERVICE_TOKEN": SECRET}) as stage:
        events = await stage.turn(f"The key is {SECRET}, use it")
    assert "[redacted SERVICE_TOKEN]" in results(events)[0].content
    kept = everything(home) + b"".join(stage.provider.requests) + repr(events).encode()
    for form in (SECRET, json.dumps(SECRET)[1:-1], json.dumps(json.dumps(SECRET)[1:-1])[1:-1]):
        assert form.encode() not in kept
    assert b"[redacted SERVICE_TOKEN]" in kept


async def test_a_secret_in_a_call_is_used_but_not_written_down(home: Path, workspace: Path) -> None:
    script = [{"calls": [{"name": "write_file", "arguments": {"path": ".netrc", "content": SECRET}}]}, DONE]
    async with harness(home, workspace, script, {"SERVICE_TOKEN": SECRET}) as stage:
        events = await stage.turn("Write it")
    assert results(events)[0].ok
    assert (workspace / ".netrc").read_text() == SECRET
    assert b"0123456789" not in everything(home)
    (call,) = sent(stage)[-2]["tool_calls"]
    assert json.loads(call["function"]["arguments"])["content"] == "[redacted SERVICE_TOKEN]"


async def test_files_changed_and_lists_are_in_the_log(home: Path, workspace: Path) -> None:
    (workspace / "old.txt").write_text("old\n")
    todos = {"todos": [{"content": "look", "status": "in_progress"}]}
    calls = [
        {"name": "checklist_write", "arguments": todos},
        {"name": "write_file", "arguments": {"path": "old.txt", "content": "new\n"}},
        {"name": "write_file", "arguments": {"path": "new.txt", "content": "new\n"}},
        {"name": "update_plan", "arguments": {"plan": [{"step": "Look", "status": "pending"}], "explanation": "Why"}},
    ]
    async with harness(home, workspace, [{"calls": calls}, DONE]) as stage:
        events = await stage.turn("Go")
        old, new = (item.change for item in only(events, FileChanged))
        assert (old.path, new.path, new.before) == ("old.txt", "new.txt", None)
        assert old.before is not None
        assert stage.app.parts.artifacts.get(old.before) == b"old\n"
    checklist, plan = only(events, ListChanged)
    assert (checklist.kind, checklist.items[0]["content"]) == ("checklist", "look")
    assert (plan.kind, plan.items[0]["step"], plan.explanation) == ("plan", "Look", "Why")


async def test_a_checklist_is_there_again_after_a_resume(home: Path, workspace: Path) -> None:
    todos = {"todos": [{"content": "look", "status": "pending"}]}
    write = {"calls": [{"name": "checklist_write", "arguments": todos}]}
    async with harness(home, workspace, [write, DONE]) as stage:
        session = await stage.open()
        await stage.turn("Plan", session)
    show = {"calls": [{"name": "checklist_list", "arguments": {}}]}
    async with harness(home, workspace, [show, DONE]) as stage:
        await stage.open(resume=session)
        assert "look" in results(await stage.turn("Show", session))[0].content
