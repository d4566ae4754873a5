"""Slash commands from Markdown files, through the front door: expanded, listed, trusted, refused."""

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.commands.files import MESSAGE_LIMIT
from codewhale.permissions.markdown_files import FILE_LIMIT
from codewhale.protocol.events import (
    MessageAdded,
    ModeChanged,
    ModelChanged,
    RequestSent,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.ops import CommandOutput, Interrupt, RunCommand, SendMessage, SessionStatus
from codewhale.protocol.stream import Finished, TextDelta
from codewhale.protocol.views import CompleteCommand, ListCommands
from codewhale.testing import Harness, collect, harness
from support.patience import Moment
from support.program import codewhale_program, scripted
from support.scenes import DeltaProvider, scene, watching
from support.tuiapp import scripted as on_screen

DEPLOY = "---\ndescription: Deploy one service\nargument-hint: [service] [place]\n---\nDeploy $1 to $2 ($ARGUMENTS).\n"


def put(folder: Path, name: str, text: str | bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


async def run(here: Harness, session: str, line: str) -> CommandOutput:
    output: CommandOutput = await here.client.submit(RunCommand(session, line))
    return output


async def asked(here: Harness, session: str, line: str) -> str:
    """What the model is asked by a command that begins a turn, once that has ended."""
    waiting = asyncio.ensure_future(collect(here.client.events(session, -1)))
    await asyncio.sleep(0)
    output = await run(here, session, line)
    assert output.turn, output.text
    await waiting
    return last_message(here)


def last_message(here: Harness) -> str:
    messages = json.loads(here.provider.requests[-1])["messages"]
    content: Any = [message["content"] for message in messages if message["role"] == "user"][-1]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.mark.parametrize(
    ("body", "args", "sent"),
    [
        ("Deploy $1 to $2.", 'web "the cloud" now', "Deploy web to the cloud."),
        ("Say: $ARGUMENTS", 'web "the cloud"', 'Say: web "the cloud"'),
        ("[$1][$2][$9]", "one", "[one][][]"),
        ("Costs $10 and $0 and $ARGUMENTSX", "x", "Costs $10 and $0 and $ARGUMENTSX\n\nx"),
        ("No place.", "words here", "No place.\n\nwords here"),
        ("No place.", "", "No place."),
        ("$1 then $2", "$2 last", "$2 then last"),
        ("!`touch made` @file $(touch made) $1", "; touch made", "!`touch made` @file $(touch made) ;"),
        ("$1", "it's", "it's"),
    ],
)
async def test_arguments_take_their_places_once_and_nothing_is_run(
    home: Path, workspace: Path, body: str, args: str, sent: str
) -> None:
    put(home / "commands", "go.md", body)
    async with harness(home, workspace, [{"text": "done"}]) as here:
        assert (await asked(here, await here.open(), f"/go {args}")).startswith(sent)
    assert not (workspace / "made").exists()


async def test_a_projects_commands_wait_for_trust_and_then_come_first(home: Path, workspace: Path) -> None:
    put(home / "commands", "deploy.md", "My own.")
    file = put(workspace / ".codewhale" / "commands", "deploy.md", DEPLOY)
    async with harness(home, workspace, [{"text": "done"}, {"text": "done"}]) as here:
        session = await here.open()
        row = {row.name: row for row in await here.client.query(ListCommands(session))}["/deploy"]
        assert "My own." in row.summary and "hides .codewhale/commands/deploy.md" in row.summary
        assert (await asked(here, session, "/deploy")).startswith("My own.")
        trusted = await run(here, session, "/trust add .codewhale/commands/deploy.md")
        assert trusted.ok, trusted.text
        assert (await asked(here, session, "/deploy web east")).startswith("Deploy web to east (web east).")
        row = {row.name: row for row in await here.client.query(ListCommands(session))}["/deploy"]
        assert (row.usage, row.summary[:18]) == ("[service] [place]", "Deploy one service")
        file.write_text("Changed since.")
        (home / "commands" / "deploy.md").unlink()
        refused = await run(here, session, "/deploy")
        assert refused.misused and "not trusted; to use it: /trust add .codewhale/commands/deploy.md" in refused.text


async def test_names_of_the_program_win_and_say_what_they_hide(home: Path, workspace: Path) -> None:
    for name in ("status.md", "quit.md", "hello.md"):
        put(home / "commands", name, "Words.")
    async with harness(home, workspace, []) as here:
        session = await here.open()
        assert "session" in (await run(here, session, "/status")).text
        text = (await run(here, session, "/help")).text
        assert f"Show the state of the session. (hides {home}/commands/status.md)" in text
        assert "/hello" in text and "/quit" not in text
        choices = await here.client.query(CompleteCommand(session, "/hel"))
        assert [choice.value for choice in choices] == ["/hello", "/help"]


FAULTY: list[tuple[str, str | bytes, str]] = [
    ("x.md", "---\ndescription: a\nno end", "its header does not end"),
    ("x.md", "---\ndescription: [a, b]\n---\nbody", "description is not a text"),
    ("x.md", "---\nmode: yolo\n---\nbody", "mode is 'yolo', not plan or agent"),
    ("x.md", "---\nmodel: a b c\n---\nbody", "model is not MODEL or PROVIDER MODEL"),
    ("x.md", "---\n- just\n- a list\n---\nbody", "its header is not valid YAML"),
    ("x.md", "---\ndescription: a\n---\n \n", "it is empty below the header"),
    ("x.md", "", "it is empty below the header"),
    ("x.md", b"\xff\xfe\x00", "it is not UTF-8"),
    ("x.md", "a" * (FILE_LIMIT + 1), "it must be a readable file of at most 65,536 bytes"),
    ("x.md", "---\n" + "a: b\n" * 5_000 + "---\nbody", "its header is longer than"),
    ("x.md", "---\na: &a [b, b]\nc: *a\n---\nbody", "its header is not valid YAML"),
]


@pytest.mark.parametrize(("name", "text", "why"), FAULTY)
async def test_a_faulty_file_is_listed_and_refused_with_the_reason(
    home: Path, workspace: Path, name: str, text: str | bytes, why: str
) -> None:
    put(home / "commands", name, text)
    async with harness(home, workspace, []) as here:
        session = await here.open()
        refused = await run(here, session, "/x")
        assert refused.misused and why in refused.text and "commands/x.md" in refused.text
        assert why in (await run(here, session, "/help")).text
        assert here.provider.requests == []


async def test_a_bad_name_a_folder_and_a_link_out_are_listed_with_reasons(home: Path, workspace: Path) -> None:
    put(home / "commands", "two words.md", "x")
    (home / "commands" / "folder.md").mkdir()
    secret = put(home / "private", "secret.md", "secret words")
    (workspace / ".codewhale" / "commands").mkdir(parents=True)
    (workspace / ".codewhale" / "commands" / "leak.md").symlink_to(secret)
    async with harness(home, workspace, []) as here:
        text = (await run(here, await here.open(), "/help")).text
    assert "the name must be at most 40" in text and "folder.md: it must be a readable file" in text
    assert "it is a link out of the workspace" in text and "secret words" not in text


async def test_what_arguments_make_of_a_text_is_bounded(home: Path, workspace: Path) -> None:
    put(home / "commands", "grow.md", "$1" * 30_000)
    put(home / "commands", "hint.md", f"---\nargument-hint: {'[a]' * 20}\n---\nbody")
    async with harness(home, workspace, []) as here:
        session = await here.open()
        begun = Moment()
        refused = await run(here, session, "/grow " + "x" * 50_000)
        assert refused.misused and f"{MESSAGE_LIMIT:,}" in refused.text
        assert await here.client.query(CompleteCommand(session, "/hint ")) == ()
        assert not begun.hung


async def test_mode_and_model_hold_for_that_turn_and_never_widen(home: Path, workspace: Path) -> None:
    put(home / "commands", "look.md", "---\nmode: plan\nmodel: other\n---\nLook.")
    put(home / "commands", "act.md", "---\nmode: agent\n---\nAct.")
    write = {"calls": [{"name": "write_file", "arguments": {"path": "made", "content": "x"}}]}
    async with harness(home, workspace, [write, {"text": "a"}, write, {"text": "b"}, {"text": "c"}]) as here:
        session = await here.open(mode="agent")
        await asked(here, session, "/look")
        assert json.loads(here.provider.requests[0])["model"] == "other"
        assert not (workspace / "made").exists()
        now = await here.client.query(SessionStatus(session))
        assert (now.mode, now.model) == ("agent", "scripted")
        await run(here, session, "/mode plan")
        await asked(here, session, "/act")
        assert not (workspace / "made").exists()
        assert (await here.client.query(SessionStatus(session))).mode == "plan"


@pytest.mark.parametrize("named", [{}, {"model": "other"}])
async def test_after_a_crash_in_its_turn_the_session_has_its_own_mode_and_model(
    home: Path, workspace: Path, named: dict[str, str]
) -> None:
    put(home / "commands", "look.md", "---\nmode: plan\nmodel: other\n---\nLook.")
    async with harness(home, workspace, [{"text": "a"}]) as here:
        session = await here.open(mode="agent")
        await asked(here, session, "/look")
    log = home / "sessions" / session / "log.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    end = next(at for at, line in enumerate(lines) if b'"turn_finished"' in line)
    log.write_bytes(b"".join(lines[:end]))  # as a kill before its end leaves it
    for again in ({"resume": session, **named}, {"resume": session}):
        async with harness(home, workspace, []) as here:
            now = await here.client.query(SessionStatus(await here.open(mode="agent", **again)))
            assert (now.mode, now.model) == ("agent", again.get("model", named.get("model", "scripted")))


async def test_a_message_that_waits_behind_one_has_the_mode_and_the_model_of_the_session(
    home: Path, workspace: Path
) -> None:
    put(home / "commands", "look.md", "---\nmode: plan\nmodel: other\n---\nLook.")
    gate = asyncio.Event()
    answers = [[gate, TextDelta("Looked."), Finished("stop")], [TextDelta("Written."), Finished("stop")]]
    async with scene(home, workspace, DeltaProvider(answers)) as here:
        session = await here.open(mode="agent")
        async with watching(here, session) as watch:
            assert (await run(here, session, "/look")).turn
            await here.client.submit(SendMessage(session, "Write it."))
            gate.set()
            await watch.until(TurnFinished, 2)
    kept = (ModeChanged, ModelChanged, TurnStarted, TurnFinished)
    assert [type(event) for event in watch.events if isinstance(event, kept)] == [
        *(ModelChanged, ModeChanged, TurnStarted, TurnFinished),
        *(ModeChanged, ModelChanged, TurnStarted, TurnFinished),
    ]
    assert [event.mode for event in watch.events if isinstance(event, ModeChanged)] == ["plan", "agent"]


async def test_one_is_sent_before_messages_that_an_interrupt_has_left_waiting(home: Path, workspace: Path) -> None:
    put(home / "commands", "look.md", "---\nmode: plan\n---\nLook.")
    async with scene(home, workspace, DeltaProvider([[asyncio.Event()]])) as here:
        session = await here.open(mode="agent")
        async with watching(here, session) as watch:
            await here.client.submit(SendMessage(session, "First"))
            await watch.until(RequestSent)
            await here.client.submit(SendMessage(session, "Second"))
            await here.client.submit(Interrupt(session))
            await watch.until(TurnFinished)
            assert (await run(here, session, "/look")).turn
            await watch.until(TurnFinished, 3)
    modes = [event.mode for event in watch.events if isinstance(event, ModeChanged)]
    asked = [
        event.message.text for event in watch.events if isinstance(event, MessageAdded) if event.message.role == "user"
    ]
    assert (modes, asked) == (["plan", "agent"], ["First", "Look.", "Second"])


def test_exec_runs_one_and_tells_mistakes_on_stderr_with_2(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text":"deployed"}')
    put(tmp_path / "state" / "commands", "deploy.md", DEPLOY)
    done = codewhale_program(tmp_path, "exec", "/deploy web east")
    assert (done.returncode, done.stdout) == (0, "deployed\n")
    wrong = codewhale_program(tmp_path, "exec", "/deplyo web")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "Unknown command '/deplyo'. Did you mean /deploy?" in wrong.stderr and "/status" in wrong.stderr


@pytest.mark.parametrize(
    "line", ["/nope", "/mode nonsense", "/undo x y", "/effort hard", "/quit", "/help nope", "/Status"]
)
def test_a_wrong_line_goes_to_stderr_with_2(tmp_path: Path, line: str) -> None:
    scripted(tmp_path)
    done = codewhale_program(tmp_path, "exec", line)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr
    found = json.loads(codewhale_program(tmp_path, "exec", "--output-format", "json", line).stdout)
    assert (found["status"], found["exit_code"]) == ("failed", 2) and found["error"]


def test_the_lines_of_a_command_are_numbered_in_order(tmp_path: Path) -> None:
    scripted(tmp_path)
    for line in ("/help", "/mode plan", "/nope"):
        text = codewhale_program(tmp_path, "exec", "--output-format", "stream-json", line).stdout
        lines = [json.loads(row) for row in text.splitlines()]
        numbers = [row["seq"] for row in lines]
        assert numbers[0] == 1 and len(numbers) > 1
        assert all(one < other for one, other in itertools.pairwise(numbers)), numbers
        kinds = [row["event"]["type"] for row in lines]
        assert kinds[-1] == "turn_finished" and ("mode_changed" in kinds) is (line == "/mode plan")


async def test_one_is_completed_and_sent_on_the_screen(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    put(tmp_path / "home" / "commands", "deploy.md", DEPLOY)
    async with on_screen(tmp_path / "home", folder, [{"text": "It is deployed."}]) as stage:
        await stage.type("/dep")
        await stage.until("Deploy one service")
        await stage.pilot.press("tab")
        await stage.type("web east")
        await stage.pilot.press("enter")
        await stage.until("Deploy web to east (web east).")
        await stage.until("It is deployed.")
