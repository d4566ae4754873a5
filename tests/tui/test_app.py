"""The app: panels laid out, events and messages routed, keys where they hold, and what happens when something fails."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from codewhale.display.setup import Setup, TuiSettings
from codewhale.protocol.errors import ConfigError, SessionError
from codewhale.protocol.events import (
    Compacted,
    Event,
    MessageAdded,
    ModeChanged,
    Notice,
    ProgressShown,
    RequestSent,
    SessionOpened,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.messages import Message, Text
from codewhale.protocol.modes import Approval, Mode
from codewhale.protocol.ops import (
    CommandOutput,
    DemoStarted,
    Interrupt,
    ListSessions,
    OpenSession,
    RunCommand,
    RunShell,
    SendMessage,
    SessionStatus,
    SetEffort,
    SetMode,
    StartDemo,
)
from codewhale.protocol.views import ListProviders, ProviderRow, SessionSummary
from codewhale.tui.app import CodeWhaleApp
from codewhale.tui.keys import ACTIONS
from codewhale.tui.screens.table import SCREENS
from codewhale.tui.transcript.view import Transcript
from support.tuiapp import ANSWERS, AT_ONCE, FOLDER, STATUS, recorded, running
from support.tuirecord import RecordedClient

OPENED = SessionOpened(1, FOLDER, Mode.AGENT, "deepseek", "deepseek-v4")
SAID = MessageAdded(Message("user", (Text("Why does the login fail?"),)))


def ops(client: Any, kind: type) -> list[Any]:
    """The operations of a kind."""
    return [op for op in client.ops if isinstance(op, kind)]


async def test_one_key_asks_about_every_command_again(tmp_path: Path) -> None:
    chosen = {SessionStatus: replace(STATUS, approval=Approval.SANDBOX), RunCommand: CommandOutput("approval: suggest")}
    async with recorded(tmp_path, [OPENED], answers={**ANSWERS, **chosen}) as stage:
        await stage.until("asks outside the sandbox")
        await stage.pilot.press("f6")
        await stage.until("approval: suggest")
        assert [op.line for op in ops(stage.client, RunCommand)] == ["/approval suggest"]
    async with recorded(tmp_path, [OPENED]) as stage:
        await stage.until("asks first")
        await stage.pilot.press("f6")
        await stage.until("already asks")
        assert ops(stage.client, RunCommand) == []


async def test_a_machine_without_a_sandbox_is_warned_of_once(tmp_path: Path) -> None:
    bare = {SessionStatus: replace(STATUS, sandbox="")}
    async with recorded(tmp_path, [OPENED], answers={**ANSWERS, **bare}) as stage:
        await stage.until("This machine has no working sandbox.")
        await stage.until("how to get a sandbox")
    async with recorded(tmp_path, [OPENED]) as stage:
        await stage.until("sandboxed")
        assert "no working sandbox" not in stage.text


async def test_panels_stand_one_above_the_other(tmp_path: Path) -> None:
    async with recorded(tmp_path, [OPENED, TurnStarted(1), SAID]) as stage:
        await stage.until("Why does the login fail?")
        await stage.until("main")
        app = stage.app
        tops = [panel.region.y for panel in (app.transcript, app.composer, app.status)]
        assert tops == sorted(tops) and app.status.region.bottom == 24
        assert "Waiting for the model" in stage.text and "─ agent ─" in stage.text
        assert app.focused is app.composer.text


async def test_what_is_typed_before_the_engine_is_open_is_sent_when_it_is(tmp_path: Path) -> None:
    client = RecordedClient((), ANSWERS)
    gate = asyncio.Event()

    @asynccontextmanager
    async def connect() -> AsyncIterator[Any]:
        await gate.wait()
        yield client

    setup = Setup(connect, OpenSession(FOLDER), str(tmp_path), TuiSettings(), {}, AT_ONCE)
    async with running(setup, client) as stage:
        await stage.until("Opening the session")
        await stage.type("hello")
        await stage.pilot.press("enter")
        assert not client.ops
        gate.set()
        await stage.until(lambda: ops(client, SendMessage))
        sent = ops(client, SendMessage)[0]
        assert (sent.text, sent.session) == ("hello", client.session)


@pytest.mark.parametrize("error", [ConfigError("config.toml: provider: no such"), OSError(13, "Permission denied")])
async def test_what_cannot_be_opened_is_said_in_words(tmp_path: Path, error: Exception) -> None:
    @asynccontextmanager
    async def connect() -> AsyncIterator[Any]:
        raise error
        yield

    async with running(Setup(connect, OpenSession(FOLDER), str(tmp_path), environ={}), None) as stage:
        await stage.until("Could not open the session.")
        await stage.until("No session")
        assert "Traceback" not in stage.text and str(error).split(":")[0] in stage.text
        await stage.type("kept")
        await stage.pilot.press("enter")
        await stage.until("kept")


async def test_a_message_that_cannot_be_sent_stands_in_the_composer_again(tmp_path: Path) -> None:
    async def refuse(op: object) -> None:
        raise SessionError("the disk is full")

    async with recorded(tmp_path, [OPENED], answers={SendMessage: refuse}) as stage:
        await stage.until("main")
        await stage.type("precious")
        await stage.pilot.press("enter")
        await stage.until("the disk is full")
        await stage.until(lambda: stage.app.composer.text.content == "precious")


async def test_slash_commands_shell_lines_modes_and_efforts_are_operations(tmp_path: Path) -> None:
    said = {RunCommand: lambda op: CommandOutput("one\ntwo [bold]\x1b[2J" if op.line == "/status" else "done", True)}
    async with recorded(tmp_path, [OPENED], answers=said) as stage:
        await stage.until("main")
        for line in ("/status", "/title x", "!ls"):
            await stage.type(line)
            await stage.pilot.press("enter")
        await stage.until("two [bold]\\x1b[2J")
        await stage.until("done")
        await stage.until(lambda: ops(stage.client, RunShell))
        await stage.pilot.press("alt+i")
        await stage.until(lambda: ops(stage.client, SetEffort))
        session = stage.client.session
        assert ops(stage.client, RunCommand) == [RunCommand(session, "/status"), RunCommand(session, "/title x")]
        assert ops(stage.client, RunShell) == [RunShell(session, "ls")]


async def test_keys_switch_between_plan_and_agent_alone(tmp_path: Path) -> None:
    async with recorded(tmp_path, [OPENED]) as stage:
        await stage.until("─ agent ─")
        modes = []
        for _ in range(5):
            await stage.pilot.press("tab", "shift+tab")
            await stage.until(lambda: len(ops(stage.client, SetMode)) > len(modes))
            mode = ops(stage.client, SetMode)[-1].mode
            stage.client.feed(ModeChanged(mode, Mode(stage.app.status.facts.mode)))
            modes.append(mode)
            await stage.until(f"─ {mode.value} ─")
        assert modes == [Mode.PLAN, Mode.AGENT, Mode.PLAN, Mode.AGENT, Mode.PLAN]
        stage.client.feed(ModeChanged(Mode.YOLO, Mode.PLAN))
        await stage.until("─ yolo ─")
        await stage.until("never asks")
        await stage.pilot.press("tab", "shift+tab")
        await stage.until(lambda: ops(stage.client, SetMode)[-1].mode is Mode.AGENT)
        assert len(ops(stage.client, SetMode)) == 6


async def test_the_first_ctrl_c_stops_the_turn_and_the_second_ends_the_app(tmp_path: Path) -> None:
    async with recorded(tmp_path, [OPENED, TurnStarted(1)]) as stage:
        await stage.until("Waiting for the model")
        await stage.pilot.press("ctrl+c")
        await stage.until("stopping; ctrl+c again quits")
        assert ops(stage.client, Interrupt) == [Interrupt(stage.client.session)]
        stage.client.feed(TurnFinished(1, "interrupted"))
        await stage.until(lambda: not stage.app.status.facts.busy)
        await stage.pilot.press("ctrl+c")
        await stage.until(lambda: not stage.app.is_running)
        assert stage.app.return_code == 0


def answers() -> list[Event]:
    """More turns than a screen holds."""
    found: list[Event] = [OPENED]
    for number in range(1, 30):
        words = Message("assistant", (Text(f"answer {number}", "model"),))
        found += [TurnStarted(number), MessageAdded(words), TurnFinished(number, "done")]
    return found


@pytest.mark.parametrize("line", ["more", "/status", "!ls"])
async def test_sending_goes_to_the_end(tmp_path: Path, line: str) -> None:
    async with recorded(tmp_path, answers()) as stage:
        await stage.until("answer 29")
        await stage.pilot.press("ctrl+home")
        await stage.until(lambda: "answer 29" not in stage.text)
        await stage.type(line)
        await stage.pilot.press("enter")
        await stage.until("answer 29")
        assert stage.app.transcript.follow


async def test_after_a_compaction_nothing_is_said_to_go_on(tmp_path: Path) -> None:
    async with recorded(tmp_path, [OPENED]) as stage:
        await stage.until("main")
        stage.client.feed(RequestSent(1, 9000, "", 2, purpose="compaction"))
        await stage.until("Compacting the conversation")
        stage.client.feed(Compacted(1, "asked", (), 9000, 700))
        await stage.until(lambda: "Compacting" not in stage.text)


async def test_after_a_compaction_that_failed_nothing_is_said_to_go_on(tmp_path: Path) -> None:
    status = {SessionStatus: lambda query: replace(STATUS, seq=9)}
    async with recorded(tmp_path, [OPENED], answers=status) as stage:
        await stage.until("main")
        stage.client.feed(RequestSent(1, 9000, "", 2, purpose="compaction"))
        await stage.type("/status")
        await stage.pilot.press("enter")
        await stage.until(lambda: "Compacting" not in stage.text)


async def test_ctrl_d_ends_the_app_only_where_nothing_is_written(tmp_path: Path) -> None:
    async with recorded(tmp_path, [OPENED]) as stage:
        await stage.until("main")
        await stage.type("ab")
        await stage.pilot.press("home", "ctrl+d")
        assert stage.app.is_running
        await stage.pilot.press("backspace", "delete", "delete", "ctrl+d")
        await stage.until(lambda: not stage.app.is_running)


async def test_selected_text_is_copied_not_lost(tmp_path: Path) -> None:
    async with recorded(tmp_path, [OPENED]) as stage:
        await stage.until("main")
        await stage.type("abc")
        await stage.pilot.press("alt+a", "ctrl+c")
        await stage.until("copied")
        assert stage.app.clipboard == "abc" and stage.app.is_running


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (TuiSettings(theme="nowhere"), "there is no theme 'nowhere'"),
        (TuiSettings(keys={"composer.sent": "ctrl+y"}), "there is no action 'composer.sent'"),
    ],
)
async def test_settings_that_cannot_be_used_are_said_and_ours_hold(
    tmp_path: Path, settings: TuiSettings, said: str
) -> None:
    async with recorded(tmp_path, [OPENED], size=(160, 24), settings=settings) as stage:
        await stage.until(said)
        assert stage.app.palette.name == "dark"


async def test_keys_of_ones_own(tmp_path: Path) -> None:
    keys = {"app.theme": "f9", "composer.send": "alt+p"}
    async with recorded(tmp_path, [OPENED], settings=TuiSettings(keys=keys)) as stage:
        await stage.until("main")
        await stage.pilot.press("f9")
        await stage.until("theme light")
        await stage.type("hi")
        await stage.pilot.press("alt+p")
        await stage.until(lambda: ops(stage.client, SendMessage))


async def test_chinese_is_spoken(tmp_path: Path) -> None:
    async with recorded(tmp_path, [OPENED, TurnStarted(1)], settings=TuiSettings(language="zh-Hans")) as stage:
        await stage.until("等待模型")
        await stage.until("代理")


async def test_a_provider_that_cannot_be_asked_leads_to_connecting_one(tmp_path: Path) -> None:
    row = ProviderRow("deepseek", "openai-chat", "https://api.deepseek.com", False, "no key", current=True)
    demo = DemoStarted("s-demo", "/tmp/demo", "Fix it.")
    async with recorded(tmp_path, [OPENED], answers={ListProviders: (row,), StartDemo: demo}) as stage:
        await stage.until("Connect a model")
        await stage.pilot.press("escape")
        await stage.until(lambda: len(stage.app.screen_stack) == 1)
        await stage.app.overlays.demo()
        await stage.until("Fix it.")
        assert stage.app.link.session == "s-demo"


async def test_app_keys_do_not_reach_under_an_open_screen(tmp_path: Path) -> None:
    async with recorded(tmp_path, [OPENED]) as stage:
        await stage.until("main")
        await stage.pilot.press("f2")
        await stage.until(lambda: len(stage.app.screen_stack) == 2)
        await stage.until(lambda: stage.app.screen.focused is not None)
        await stage.pilot.press("f1", "ctrl+k", "pageup", "pagedown")
        assert len(stage.app.screen_stack) == 2
        await stage.pilot.press("escape")
        await stage.until(lambda: len(stage.app.screen_stack) == 1)
        await stage.until(lambda: stage.app.focused is stage.app.composer.text)


@pytest.mark.parametrize("name", ["palette", "sessions", "models", "jobs", "help", "keys"])
async def test_each_screen_key_opens_its_screen(tmp_path: Path, name: str) -> None:
    key = next(row.keys.split(",")[0] for row in ACTIONS if row.id == f"app.{name}")
    async with recorded(tmp_path, [OPENED]) as stage:
        await stage.until("main")
        await stage.pilot.press(key)
        await stage.until(lambda: len(stage.app.screen_stack) == 2)


def test_every_row_of_the_app_has_its_action() -> None:
    rows = [row for row in ACTIONS if row.panel == "app"]
    for row in rows:
        name, _, other = (row.does or row.name).replace("'", "").rstrip(")").partition("(")
        assert callable(getattr(CodeWhaleApp, f"action_{name}", None)), row.id
        if name in ("transcript", "reading"):
            assert callable(getattr(Transcript, f"action_{other}", None)), row.id
        elif name == "open_screen":
            assert other in SCREENS, row.id


async def test_keys_of_the_transcript_hold_while_something_is_written(tmp_path: Path) -> None:
    events = [OPENED, *[Notice("info", f"line {number}") for number in range(100)]]
    async with recorded(tmp_path, events) as stage:
        await stage.until("line 99")
        await stage.type("text")
        await stage.pilot.press("pageup")
        await stage.until(lambda: "line 99" not in stage.text)
        await stage.pilot.press("ctrl+end")
        await stage.until("line 99")
        await stage.pilot.press("ctrl+home")
        await stage.until("line 0")
        await stage.pilot.press("ctrl+p", "alt+c", "alt+b", "alt+up", "alt+down", "pagedown")
        assert stage.app.composer.text.content == "text"
        await stage.pilot.press("alt+t")
        await stage.until(lambda: stage.app.focused is stage.app.transcript)
        await stage.pilot.press("escape")
        await stage.until(lambda: stage.app.focused is stage.app.composer.text)


async def test_bars_come_with_progress_and_go(tmp_path: Path) -> None:
    async with recorded(tmp_path, [OPENED]) as stage:
        await stage.until("main")
        stage.client.feed(ProgressShown("index", 30, 120, "src/a.py"))
        await stage.until("25 %")
        stage.client.feed(ProgressShown("index", 120, 120))
        await stage.until(lambda: "25 %" not in stage.text)


async def test_a_fault_of_the_program_leaves_a_file_without_content(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with pytest.raises(RuntimeError):
        async with recorded(home, [OPENED]) as stage:
            await stage.until("main")
            stage.app.broke(RuntimeError("what somebody wrote"))
            await stage.until(lambda: not stage.app.is_running)
    text = (home / "crash.txt").read_text()
    assert "builtins.RuntimeError" in text and "somebody" not in text
    assert stage.app.return_code == 1


async def test_a_session_that_ends_early_is_said(tmp_path: Path) -> None:
    async with recorded(tmp_path, [OPENED, TurnStarted(1), TurnFinished(1, "done")]) as stage:
        await stage.until("main")
        stage.app.failed(SessionError("the disk is full"), opening=False)
        await stage.until("The session ended early.")
        await stage.until("the disk is full")


async def test_a_terminal_that_is_gone_ends_the_app(tmp_path: Path) -> None:
    async with recorded(tmp_path, [OPENED]) as stage:
        await stage.until("main")
        await stage.type("draft")
        stage.app.hung_up()
        stage.app.hung_up()
        await stage.until(lambda: not stage.app.is_running)
    assert stage.app.gone and stage.app.link.over
    async with recorded(tmp_path, [OPENED]) as again:
        await again.until("draft")


async def test_a_new_session_shows_how_it_stands_until_its_first_message(tmp_path: Path) -> None:
    async with recorded(tmp_path, [OPENED], size=(100, 30)) as stage:
        await stage.until("Model         deepseek-v4 · deepseek")
        await stage.until("/home/ada/shop  main, 2 files changed")
        assert "f1 shows all keys" in stage.text and "Continue" not in stage.text
        stage.client.feed(TurnStarted(1))
        await stage.until(lambda: "f1 shows all keys" not in stage.text)
        assert "deepseek-v4 (deepseek) in /home/ada/shop" in stage.text


async def test_enter_on_nothing_goes_on_with_the_last_session(tmp_path: Path) -> None:
    at = "2026-03-02T09:00:00Z"
    last = SessionSummary("s-last", "Fix the discount", at, at, FOLDER, 3, 9, "m", "idle", "")
    async with recorded(tmp_path, [OPENED], answers={ListSessions: [last]}) as stage:
        await stage.until("Fix the discount")
        await stage.pilot.press("enter")
        await stage.until(lambda: ops(stage.client, OpenSession)[-1].resume == "s-last")


@pytest.mark.parametrize(("mode", "colour"), [(Mode.PLAN, "link"), (Mode.AGENT, "muted"), (Mode.YOLO, "error")])
async def test_the_edge_of_the_composer_has_the_name_and_the_colour_of_the_mode(
    tmp_path: Path, mode: Mode, colour: str
) -> None:
    answers = {SessionStatus: replace(STATUS, mode=mode)}
    async with recorded(tmp_path, [replace(OPENED, mode=mode)], answers=answers) as stage:
        await stage.until(f"─ {mode} ─")
        wanted = getattr(stage.app.palette, colour).upper()
        await stage.until(lambda: stage.app.composer.styles.border_top[1].hex == wanted)


async def test_hints_stand_on_the_edge_only_while_nothing_is_written(tmp_path: Path) -> None:
    async with recorded(tmp_path, [OPENED]) as stage:
        await stage.until("f1 help")
        await stage.pilot.press("a")
        await stage.until(lambda: "f1 help" not in stage.text)
        await stage.pilot.press("backspace")
        await stage.until("f1 help")
        stage.client.feed(TurnStarted(1))
        await stage.until(lambda: "f1 help" not in stage.text)


async def test_what_was_said_goes_with_what_it_was_about(tmp_path: Path) -> None:
    async with recorded(tmp_path, [OPENED, TurnStarted(1)]) as stage:
        await stage.until("Waiting for the model")
        await stage.pilot.press("ctrl+c")
        await stage.until("stopping; ctrl+c again quits")
        stage.client.feed(TurnFinished(1, "interrupted"))
        await stage.until(lambda: "ctrl+c again quits" not in stage.text)


async def test_a_hint_about_nothing_goes_when_something_is_written(tmp_path: Path) -> None:
    async with recorded(tmp_path, [OPENED]) as stage:
        await stage.until("─ agent ─")
        await stage.type("draft")
        await stage.pilot.press("escape")
        await stage.until("draft stashed")
        await stage.pilot.press("a")
        await stage.until(lambda: "draft stashed" not in stage.text)
