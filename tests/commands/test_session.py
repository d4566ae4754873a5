"""/mode, /model, /retry, /status and /sessions against a whole application."""

import asyncio
import json
from pathlib import Path

from codewhale.protocol.events import ContextAppended, Event, HeaderPinned, ModeChanged, RequestSent, TurnFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import CommandOutput, Interrupt, OpenSession, RunCommand, SendMessage
from codewhale.testing import Harness, collect, harness
from support.scenes import DeltaProvider, only, scene, watching

DONE = {"text": "That is all."}


async def run(stage: Harness, session: str, line: str) -> CommandOutput:
    """What a command says."""
    output: CommandOutput = await stage.client.submit(RunCommand(session, line))
    return output


async def test_mode_is_shown_and_changed(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [DONE]) as stage:
        session = await stage.open(mode=Mode.AGENT)
        assert (await run(stage, session, "/mode")).text == "mode: agent (one of plan|agent|yolo)"
        async with watching(stage, session) as watch:
            assert await run(stage, session, "/mode plan") == CommandOutput("mode: plan")
            await watch.until(ModeChanged)
        assert (await run(stage, session, "/mode")).text.startswith("mode: plan")
        told = only(await stage.turn("Go", session), ContextAppended)
        assert any(item.text.startswith("Mode: plan") for item in told)


async def test_an_unknown_mode_changes_nothing(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, []) as stage:
        session = await stage.open(mode=Mode.AGENT)
        output = await run(stage, session, "/mode YOLO")
        assert (output.ok, output.text) == (False, "Unknown mode 'YOLO'; choose one of plan|agent|yolo.")
        assert (await run(stage, session, "/mode")).text.startswith("mode: agent")


async def test_model_is_shown_and_changed(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [DONE]) as stage:
        session = await stage.open()
        assert (await run(stage, session, "/model")).text == "model: scripted at scripted"
        assert (await run(stage, session, "/model large")).text == "model: large at scripted"
        async with watching(stage, session) as watch:
            assert (await run(stage, session, "/model scripted vendor/huge")).text == "model: vendor/huge at scripted"
            assert (await watch.until(HeaderPinned)).model == "vendor/huge"
        await stage.turn("Go", session)
        assert b'"model":"vendor/huge"' in stage.provider.requests[0]


async def test_a_provider_that_is_not_configured_is_refused_with_those_that_are(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, []) as stage:
        session = await stage.open()
        output = await run(stage, session, "/model nowhere large")
        assert not output.ok
        assert "nowhere" in output.text and "scripted" in output.text
        assert (await run(stage, session, "/model")).text == "model: scripted at scripted"


async def test_while_a_turn_runs_nothing_changes_and_status_says_what_it_waits_for(home: Path, workspace: Path) -> None:
    async with scene(home, workspace, DeltaProvider([[asyncio.Event()]])) as stage:
        session = await stage.open()
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Go"))
            await watch.until(RequestSent)
            for line in ("/mode plan", "/model large"):
                output = await run(stage, session, line)
                assert not output.ok and "a turn is running" in output.text
            assert "state         waiting for the model" in (await run(stage, session, "/status")).text
            await stage.client.submit(Interrupt(session))


async def test_status_shows_how_the_session_stands(home: Path, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("Use tabs.\n")
    async with harness(home, workspace, [DONE]) as stage:
        session = await stage.open(mode=Mode.AGENT, authority=Authority.HEADLESS)
        await stage.turn("Go", session)
        lines = (await run(stage, session, "/status")).text.splitlines()
    rows = {line[:13].strip(): line[14:] for line in lines}
    assert rows["session"] == session
    assert rows["workspace"] == str(workspace)
    assert rows["mode"] == "agent (headless, approval suggest)"
    assert rows["model"] == "scripted at scripted"
    assert rows["turns"] == "1, 2 messages, 1 model calls"
    assert rows["instructions"] == "AGENTS.md (10 bytes)"
    assert rows["state"] == "idle"
    assert rows["tokens"].endswith(" out") and not rows["tokens"].startswith("0")


async def test_sessions_of_this_workspace_or_of_all(home: Path, workspace: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with harness(home, elsewhere, [DONE]) as stage:
        other = await stage.open()
        await stage.turn("Over there", other)
    async with harness(home, workspace, [DONE]) as stage:
        session = await stage.open()
        await stage.turn("Right here", session)
        here = (await run(stage, session, "/sessions")).text
        everywhere = (await run(stage, session, "/sessions all")).text
    assert session in here and "Right here" in here and other not in here
    assert session in everywhere and other in everywhere


async def retried(stage: Harness, session: str) -> list[Event]:
    """The events of the turn that /retry begins."""
    waiting = asyncio.ensure_future(collect(stage.client.events(session, from_seq=-1)))
    await asyncio.sleep(0)
    output = await run(stage, session, "/retry")
    assert output.ok and output.turn, output.text
    return [envelope.event for envelope in await waiting]


def users(stage: Harness) -> list[str]:
    messages = json.loads(stage.provider.requests[-1])["messages"]
    return [str(message["content"]) for message in messages if message["role"] == "user"]


async def test_retry_asks_a_message_again_that_nothing_has_answered(home: Path, workspace: Path) -> None:
    failing = {"error": {"kind": "server", "message": "overloaded"}}
    async with harness(home, workspace, [failing, {"text": "half", **failing}, DONE]) as stage:
        session = await stage.open()
        await stage.turn("Say it once.", session)
        for status in ("infra", "done"):
            end = (await retried(stage, session))[-1]
            assert isinstance(end, TurnFinished) and end.status == status
            assert len([text for text in users(stage) if "Say it once." in text]) == 1
        assert end.turn == 3 and "half" not in stage.provider.requests[-1].decode()


async def test_retry_says_a_message_again_where_calls_have_run_since(home: Path, workspace: Path) -> None:
    look = {"calls": [{"name": "list_dir", "arguments": {"path": "."}}]}
    async with harness(home, workspace, [look, {"error": {"kind": "connect", "message": "gone"}}, DONE]) as stage:
        session = await stage.open()
        await stage.turn("Look twice.", session)
        end = (await retried(stage, session))[-1]
        assert isinstance(end, TurnFinished) and end.status == "done"
        assert len([text for text in users(stage) if "Look twice." in text]) == 2
        opened = await stage.client.submit(OpenSession(str(workspace), fork=session))
        again = (await retried(stage, opened))[-1]
        assert isinstance(again, TurnFinished) and again.status == "done"


async def test_retry_after_an_interruption_and_where_there_is_nothing_to_ask(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": "late", "delay": 60}, DONE]) as stage:
        session = await stage.open()
        assert "no message to retry" in (await run(stage, session, "/retry")).text
        assert not (await run(stage, session, "/retry now")).ok
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Go"))
            await watch.until(RequestSent)
            refused = await run(stage, session, "/retry")
            assert not refused.ok and "a turn is running" in refused.text
            await stage.client.submit(Interrupt(session))
            await watch.until(TurnFinished)
        end = (await retried(stage, session))[-1]
        assert isinstance(end, TurnFinished) and end.status == "done"
        assert len([text for text in users(stage) if text.startswith("Go")]) == 1


async def test_a_session_is_renamed_and_exported(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [DONE]) as stage:
        session = await stage.open()
        await stage.turn("Hello", session)
        assert (await run(stage, session, "/rename Fix the parser")).text == "Renamed to Fix the parser"
        assert stage.app.parts.sessions.summary(session).title == "Fix the parser"
        for title in ("", "x" * 10_000, "a\x1b[2J"):
            output = await run(stage, session, f"/rename {title}")
            assert not output.ok and "a title" in output.text and "\x1b" not in output.text
        output = await run(stage, session, "/export")
        assert output.ok and (workspace / f"codewhale-{session}.md").read_text().startswith("# Fix the parser")
        assert (await run(stage, session, '/export "my notes.html"')).ok
        assert (workspace / "my notes.html").read_text().startswith("<!doctype html>")
        assert not (await run(stage, session, '/export "my notes.html"')).ok
        assert (await run(stage, session, '/export "my notes.html" --force')).ok
        (workspace / "link.md").symlink_to(workspace / "elsewhere")
        for args in ("'open", "a b", "--what", ".", "a.txt", "link.md", "no/folder.md", "x.md --format pdf"):
            assert not (await run(stage, session, f"/export {args}")).ok, args
        assert not (workspace / "elsewhere").exists()
        assert stage.app.parts.sessions.summary(session).title == "Fix the parser"
