"""One run of a hook: what it is told, what it says, and what becomes of one that fails."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from codewhale.services.hooks.config import Hook, HookMoment
from codewhale.services.hooks.run import HookAnswer, parse_answer, run_hook
from support.machine import MAKES_FILES
from support.scenes import appears


def plain(text: str) -> str:
    return text


def hook(command: str, **fields: Any) -> Hook:
    return Hook("tool_call_before", command, "h", "c.toml", **{"sandbox": "none", **fields})


async def said(workspace: Path, command: str, **fields: Any) -> HookAnswer:
    arguments = {"command": "ls $HOME", "secret": "hunter2hunter2"}
    moment = HookMoment("tool_call_before", "s1", str(workspace), "agent", "exec_shell", arguments)
    facts = {"MODEL": "m"}
    return await run_hook(hook(command, **fields), moment, facts, lambda text: text.replace("hunter2hunter2", "[x]"))


async def test_it_reads_one_json_object_and_variables(workspace: Path) -> None:
    await said(workspace, "cat > told.json; env > env.txt")
    told = json.loads((workspace / "told.json").read_text())
    assert told == {
        "event": "tool_call_before", "session": "s1", "workspace": str(workspace), "mode": "agent",
        "tool": "exec_shell", "arguments": {"command": "ls $HOME", "secret": "[x]"}, "model": "m",
    }  # fmt: skip
    env = (workspace / "env.txt").read_text()
    for name in ("CODEWHALE_TOOL_NAME=exec_shell", "DEEPSEEK_TOOL_NAME=exec_shell", "CODEWHALE_MODE=agent"):
        assert f"{name}\n" in env
    assert "hunter2" not in env and f"DEEPSEEK_WORKSPACE={workspace}\n" in env


@pytest.mark.parametrize(
    ("code", "stdout", "stderr", "wanted"),
    [
        (0, "", "", HookAnswer()),
        (0, "all fine\n", "", HookAnswer(output="all fine\n")),
        (0, "{not json", "", HookAnswer(output="{not json")),
        (2, "no pushing\nmore", "err", HookAnswer("deny", "no pushing")),
        (2, "", "\nnot today", HookAnswer("deny", "not today")),
        (2, "", "", HookAnswer("deny", "no reason was given")),
        (0, '{"decision":"deny","reason":"r"}', "", HookAnswer("deny", "r", output='{"decision":"deny","reason":"r"}')),
        (0, '{"verdict":"ASK"}', "", HookAnswer("ask", output='{"verdict":"ASK"}')),
        (0, '{"decision":"approve"}', "", HookAnswer("allow", output='{"decision":"approve"}')),
    ],
)
def test_what_its_end_says(code: int, stdout: str, stderr: str, wanted: HookAnswer) -> None:
    assert parse_answer(code, stdout, stderr, plain) == wanted


def test_what_a_json_object_may_hold() -> None:
    told = {
        "hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"a": 1}, "additionalContext": "c" * 9999}
    }
    found = parse_answer(0, json.dumps(told), "", plain)
    assert (found.verdict, found.arguments, len(found.context)) == ("allow", {"a": 1}, 4096)
    assert "not allow, ask or deny" in parse_answer(0, '{"decision": "maybe"}', "", plain).fault
    assert parse_answer(1, "", "broken\n", plain).fault == "it ended with exit code 1: broken"
    odd = parse_answer(0, '{"updatedInput": 3, "context": [], "text": 4, "reason": null}', "", plain)
    assert (odd.arguments, odd.context, odd.text) == (None, "", None)


async def test_what_goes_wrong_is_a_fault(workspace: Path) -> None:
    assert (await said(workspace, "sleep 60", seconds=0.3)).fault == "it did not end within 0.3 seconds"
    assert "exit code 127" in (await said(workspace, "no-such-program-anywhere")).fault
    assert "could not be started" in (await said(workspace / "gone", "true")).fault
    assert (await said(workspace, "true <&-; exit 0")).fault == ""
    flood = await said(workspace, "yes | head -c 3000000")
    assert flood.fault == "" and len(flood.output) <= 70_000


async def test_given_up_it_leaves_nothing(workspace: Path) -> None:
    task = asyncio.create_task(said(workspace, "echo $$ > p; mv p pid; sleep 600"))
    await appears(workspace / "pid")
    text = (workspace / "pid").read_text()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(int(text), 0)


@MAKES_FILES
async def test_it_is_held_in_the_sandbox(workspace: Path) -> None:
    outside = workspace.parent / "outside.txt"
    found = await said(workspace, f"echo x > in.txt; echo x > {outside}", sandbox="workspace-write")
    assert not outside.exists()
    assert "no working sandbox" in found.fault or (workspace / "in.txt").read_text() == "x\n"
    inside = await said(workspace, f"echo x > {outside.parent}/../also.txt || exit 2", sandbox="read-only")
    assert (
        inside.verdict == "deny" or "no working sandbox" in inside.fault or not (workspace.parent / "also.txt").exists()
    )
