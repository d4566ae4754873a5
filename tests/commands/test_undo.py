"""/undo and /restore through the client, with the agent's changes made by real calls."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codewhale.protocol.events import ContextAppended, FileChanged
from codewhale.protocol.modes import Authority
from codewhale.protocol.ops import CommandOutput, RunCommand, SendMessage, SessionStatus
from codewhale.testing import Harness, harness
from support.machine import MAKES_FILES
from support.patience import HANG


def turn(*calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """A turn of the model: these calls, then a word."""
    return [{"calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}, {"text": "Done."}]


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": content}


def shell(command: str) -> tuple[str, dict[str, Any]]:
    return "exec_shell", {"command": command}


async def run(agent: Harness, session: str, line: str) -> CommandOutput:
    output: CommandOutput = await agent.client.submit(RunCommand(session, line))
    return output


async def play(agent: Harness, session: str, *words: str) -> None:
    for word in words:
        await agent.turn(word, session)


def script(*turns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [step for steps in turns for step in steps]


@MAKES_FILES
async def test_the_last_turn_goes_and_the_model_is_told(home: Path, git_workspace: Path) -> None:
    (git_workspace / "mine").write_text("mine\n")
    steps = script(turn(write("a", "1\n")), turn(write("a", "2\n"), shell("echo x > made; rm mine")), [{"text": "Ok."}])
    async with harness(home, git_workspace, steps) as agent:
        session = await agent.open()
        await play(agent, session, "One", "Two")
        output = await run(agent, session, "/undo")
        assert output.ok and output.text.startswith("Undone in 3 files.") and "removed: made" in output.text
        assert (git_workspace / "a").read_text() == "1\n" and (git_workspace / "mine").read_text() == "mine\n"
        assert not (git_workspace / "made").exists()
        events = [envelope.event for envelope in agent.app.engine.session(session).log.read()]
        changed = [event.change.path for event in events if isinstance(event, FileChanged) and event.call_id == "undo"]
        assert sorted(changed) == ["a", "made", "mine"]
        assert sum(isinstance(event, ContextAppended) and event.kind == "undo" for event in events) == 1
        await play(agent, session, "Three")
        assert b"The user undid file changes that you made: made, a, mine." in agent.provider.requests[-1]


async def test_turns_are_listed_and_taken_back_from_any_on_and_brought_back(home: Path, workspace: Path) -> None:
    steps = script(*(turn(write("a", f"{n}\n"), write(f"f{n}", "x\n")) for n in (1, 2, 3)), [{"text": "Nothing."}])
    async with harness(home, workspace, steps) as agent:
        session = await agent.open()
        assert (await run(agent, session, "/restore")).text == "No turn of this session has changed a file."
        await play(agent, session, "One", "Two", "Three", "Four")
        listed = (await run(agent, session, "/restore")).text.splitlines()
        assert listed[0] == "  1  turn 3 (write_file): a, f3" and len(listed) == 3
        assert (await run(agent, session, "/restore 2")).ok
        assert sorted(path.name for path in workspace.iterdir()) == ["a", "f1"]
        assert "back  brings back what was undone last" in (await run(agent, session, "/restore")).text
        assert (await run(agent, session, "/restore back")).ok
        assert (workspace / "a").read_text() == "3\n" and (workspace / "f2").exists()
        assert (await run(agent, session, "/undo 3")).ok and not list(workspace.iterdir())
        assert not (await run(agent, session, "/undo")).ok


async def test_a_preview_changes_nothing_and_a_person_sees_it_first(home: Path, workspace: Path) -> None:
    (workspace / "a").write_text("0\n")
    async with harness(home, workspace, turn(write("a", "1\n"))) as agent:
        session = await agent.open(authority=Authority.PERSON)
        await play(agent, session, "One")
        for line in ("/undo preview", "/undo"):
            shown = await run(agent, session, line)
            assert shown.ok and "-1\n+0" in shown.text and "Use /undo 1 yes" in shown.text
            assert (workspace / "a").read_text() == "1\n"
        (workspace / "a").write_text("mine\n")
        output = await run(agent, session, "/undo 1 yes")
        assert not output.ok and "a: it was changed just now" in output.text
        assert (workspace / "a").read_text() == "mine\n"


async def test_what_a_person_touched_is_left_and_listed(home: Path, workspace: Path) -> None:
    (workspace / "a").write_text("1\n2\n3\n4\n5\n")
    async with harness(home, workspace, turn(write("a", "one\n2\n3\n4\nfive\n"))) as agent:
        session = await agent.open()
        await play(agent, session, "One")
        (workspace / "a").write_text("one\n2\n3\n4\nfive and mine\n")
        output = await run(agent, session, "/undo")
        assert output.ok and "not undone: a, line 5: these lines were changed since" in output.text
        assert (workspace / "a").read_text() == "1\n2\n3\n4\nfive and mine\n"


async def test_nonsense_and_what_is_too_far_are_told(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, turn(write("a", "1\n"))) as agent:
        session = await agent.open()
        assert "No turn of this session" in (await run(agent, session, "/undo")).text
        await play(agent, session, "One")
        for line in ("/undo x", "/undo 1 2", "/undo back", "/undo -1", "/restore 1 now", "/undo ²", "/undo 99999"):
            output = await run(agent, session, line)
            assert not output.ok and output.text.startswith("Use /undo"), line
        for line in ("/undo 2", "/undo 0", "/restore 9"):
            assert "give 1 to 1" in (await run(agent, session, line)).text
        assert "Nothing to redo" in (await run(agent, session, "/restore back")).text


async def test_while_a_turn_runs_nothing_is_taken_back(home: Path, workspace: Path) -> None:
    steps = script(turn(write("a", "1\n")), turn(shell("until [ -e go ]; do sleep 0.05; done")))
    async with harness(home, workspace, steps) as agent:
        session = await agent.open()
        await play(agent, session, "One")
        await agent.client.submit(SendMessage(session, "Two"))
        output = await run(agent, session, "/undo")
        assert not output.ok and "A turn is running" in output.text
        assert (await run(agent, session, "/undo preview")).ok and (workspace / "a").exists()
        (workspace / "go").touch()
        async with asyncio.timeout(HANG):
            while (await agent.client.query(SessionStatus(session))).busy:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
