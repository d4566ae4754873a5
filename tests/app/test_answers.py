"""What an interface asks and tells to do, through the client of a whole application."""

import asyncio
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.errors import ConfigError, SessionError
from codewhale.protocol.events import (
    CallFinished,
    Envelope,
    MessageAdded,
    ProgressShown,
    QueueChanged,
    ShellOutput,
    ShellRan,
    TurnFinished,
    whole_output,
)
from codewhale.protocol.messages import Image, Text
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import (
    Attachment,
    ChangeSetting,
    ConnectProvider,
    DemoStarted,
    EditQueue,
    Interrupt,
    NoteFile,
    RunCommand,
    RunShell,
    SendMessage,
    SessionStatus,
    StartDemo,
)
from codewhale.protocol.views import (
    CompleteCommand,
    FindFiles,
    FindLocal,
    GetContext,
    GetDiff,
    GetQueue,
    GetSettings,
    GetTools,
    GetWorkspace,
    ListCommands,
    ListJobs,
    ListModels,
    ListProviders,
    PreviewSession,
    PreviewUndo,
    ReadOutput,
)
from codewhale.testing import Harness, collect, harness
from support.loopserver import LoopServer
from support.machine import MAKES_FILES
from support.modelserver import ModelServer as AnsweringServer
from support.patience import HANG

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


def edit(path: str, old: str, new: str) -> dict[str, object]:
    """A turn that edits a file."""
    return {"calls": [{"name": "edit_file", "arguments": {"path": path, "search": old, "replace": new}}]}


def git(folder: Path, *words: str) -> None:
    """Run git in a folder."""
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.invalid")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with two files and one commit."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "basket.py").write_text("total = 1\n")
    (folder / "notes.md").write_text("first\n")
    (folder / ".gitignore").write_text("dist/\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


class Watch:
    """All events of a session as they come."""

    def __init__(self, agent: Harness, session: str) -> None:
        self.seen: list[Envelope] = []
        self.task = asyncio.create_task(self._follow(agent, session))

    async def _follow(self, agent: Harness, session: str) -> None:
        async for envelope in agent.client.events(session, from_seq=0, durable=False):
            self.seen.append(envelope)

    def of(self, kind: type) -> list[object]:
        """The events of a kind."""
        return [one.event for one in self.seen if isinstance(one.event, kind)]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds. Raises TimeoutError."""
        deadline = time.monotonic() + HANG
        while not condition():
            assert time.monotonic() < deadline, [type(one.event).__name__ for one in self.seen]
            await asyncio.sleep(0.01)


async def test_commands_are_listed_and_completed(tmp_path: Path, shop: Path) -> None:
    async with harness(tmp_path / "home", shop, []) as agent:
        session, ask = await agent.open(), agent.client.query
        names = [row.name for row in await ask(ListCommands(session))]
        assert names == sorted(names) and {"/diff", "/config", "/queue", "/new", "/clear", "/models"} <= set(names)
        assert [one.value for one in await ask(CompleteCommand(session, "/mo"))][:3] == ["/mode", "/model", "/models"]
        assert [one.value for one in await ask(CompleteCommand(session, "/mode "))] == ["plan", "agent", "yolo"]
        assert [one.value for one in await ask(CompleteCommand(session, "/config set tui.the"))] == ["tui.theme"]
        assert [one.value for one in await ask(CompleteCommand(session, "/config set tui.mouse "))] == ["true", "false"]
        assert [one.value for one in await ask(CompleteCommand(session, "/diff bask"))] == ["basket.py"]
        assert await ask(CompleteCommand(session, "/nothing x")) == ()


async def test_files_are_found_and_what_is_mentioned_comes_first(tmp_path: Path, shop: Path) -> None:
    (shop / "dist").mkdir()
    (shop / "dist" / "basket.py").write_text("")
    (shop / "bazaar.py").write_text("")
    async with harness(tmp_path / "home", shop, []) as agent:
        session = await agent.open()
        found = await agent.client.query(FindFiles(session, "ba"))
        assert {one.path for one in found} == {"basket.py", "bazaar.py"}
        last = found[-1].path
        await agent.client.submit(NoteFile(session, last))
        assert (await agent.client.query(FindFiles(session, "ba")))[0].path == last
    async with harness(tmp_path / "home", shop, []) as agent:
        session = await agent.open()
        assert (await agent.client.query(FindFiles(session, "ba")))[0].path == last


async def test_the_workspace_and_its_differences(tmp_path: Path, shop: Path) -> None:
    async with harness(tmp_path / "home", shop, [edit("basket.py", "1", "2"), {"text": "Done."}]) as agent:
        session = await agent.open()
        assert await agent.client.query(GetDiff(session)) == ()
        await agent.turn("Go.", session)
        (shop / "new.txt").write_text("one\ntwo\n")
        here = await agent.client.query(GetWorkspace(session))
        assert (here.root, here.branch, here.changed) == (str(shop), "main", 2)
        changed, new = await agent.client.query(GetDiff(session))
        assert isinstance(changed, DiffBlock) and changed.path == "basket.py" and "+total = 2" in changed.diff
        assert new.path == "new.txt" and "+two" in new.diff
        assert [one.path for one in await agent.client.query(GetDiff(session, "new.txt"))] == ["new.txt"]
        said = await agent.client.submit(RunCommand(session, "/diff basket.py"))
        assert said.ok and "+total = 2" in said.text and "new.txt" not in said.text
        view = await agent.client.query(PreviewUndo(session))
        assert [number for number, _ in view.rows] == [1] and view.files == ("reverted: basket.py",)
        assert "+total = 1" in view.diffs[0].diff
        assert (shop / "basket.py").read_text() == "total = 2\n"


async def test_without_git_the_differences_are_the_agents(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "a.txt").write_text("1\n")
    async with harness(tmp_path / "home", folder, [edit("a.txt", "1", "2"), {"text": "Done."}]) as agent:
        session = await agent.open()
        assert await agent.client.query(GetDiff(session)) == ()
        await agent.turn("Go.", session)
        (block,) = await agent.client.query(GetDiff(session))
        assert block.path == "a.txt" and "-1" in block.diff and "+2" in block.diff


async def test_what_waits_is_seen_changed_moved_and_dropped(tmp_path: Path, shop: Path) -> None:
    script = [{"calls": [{"name": "exec_shell", "arguments": {"command": "sleep 30"}}]}, {"text": "Done."}]
    async with harness(tmp_path / "home", shop, script) as agent:
        session = await agent.open()
        watch, client = Watch(agent, session), agent.client
        await client.submit(SendMessage(session, "Go."))
        status = await client.query(SessionStatus(session))
        await watch.until(lambda: agent.app.engine.turn(session).waiting_for == "exec_shell")
        for text in ("one", "two", "three"):
            await client.submit(SendMessage(session, text, delivery="queue"))
        await client.submit(SendMessage(session, "now", delivery="steer"))
        status = await client.query(SessionStatus(session))
        assert (status.queue, status.waiting_for) == (4, "exec_shell") and status.waiting_since <= time.time()
        assert await client.submit(EditQueue(session, 2, "TWO", was="two")) == "two"
        assert await client.submit(EditQueue(session, 2, "x", was="two")) == ""
        assert await client.submit(EditQueue(session, 1, "")) == "one"
        assert await client.submit(EditQueue(session, 2, "three", delivery="steer")) == "three"
        rows = await client.query(GetQueue(session))
        assert [(row.text, row.delivery) for row in rows] == [("now", "steer"), ("three", "steer"), ("TWO", "queue")]
        said = await client.submit(RunCommand(session, "/queue"))
        assert "  3  queue  TWO" in said.text
        assert (await client.submit(RunCommand(session, "/queue clear"))).text == "Dropped: 3."
        assert await client.query(GetQueue(session)) == ()
        await watch.until(lambda: bool(watch.of(QueueChanged)))
        await client.submit(Interrupt(session))
        await watch.until(lambda: bool(watch.of(TurnFinished)))


async def test_the_persons_own_command_is_told_to_the_model(tmp_path: Path, shop: Path) -> None:
    async with harness(tmp_path / "home", shop, [{"text": "I see."}, {"text": "Yes."}]) as agent:
        session = await agent.open()
        watch = Watch(agent, session)
        assert await agent.client.submit(RunShell(session, "printf '%s' hello; exit 3")) == 3
        (ran,) = watch.of(ShellRan)
        assert isinstance(ran, ShellRan) and (ran.output, ran.exit_code) == ("hello", 3)
        assert [one.text for one in watch.of(ShellOutput) if isinstance(one, ShellOutput)] == ["hello"]
        events = await agent.turn("Look.", session)
        (message,) = [one.message for one in events if isinstance(one, MessageAdded) and one.message.role == "user"]
        assert [part.source for part in message.parts if isinstance(part, Text)] == ["person", "harness"]
        assert "exit code 3" in message.text and "$ printf" in message.text
        events = await agent.turn("Again.", session)
        (message,) = [one.message for one in events if isinstance(one, MessageAdded) and one.message.role == "user"]
        assert message.text == "Again."
        running = asyncio.create_task(agent.client.submit(RunShell(session, "echo begun; sleep 60")))
        await watch.until(lambda: any(getattr(one, "text", "") == "begun\n" for one in watch.of(ShellOutput)))
        with pytest.raises(SessionError, match="your command is still running"):
            await agent.client.submit(RunShell(session, "true"))
        await agent.client.submit(Interrupt(session))
        assert await running is None


async def test_all_of_a_long_output_can_be_read(tmp_path: Path, shop: Path) -> None:
    lines = "".join(f"line {number} {'x' * 40}\n" for number in range(10_000))
    command = (
        'i=0; while [ $i -lt 10000 ]; do echo "line $i xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"; i=$((i+1)); done'
    )
    script = [{"calls": [{"name": "exec_shell", "arguments": {"command": command}}]}, {"text": "Done."}]
    async with harness(tmp_path / "home", shop, script) as agent:
        session = await agent.open(mode=Mode.YOLO)
        watch = Watch(agent, session)
        assert await agent.client.submit(RunShell(session, command)) == 0
        (ran,) = watch.of(ShellRan)
        assert isinstance(ran, ShellRan) and ran.kept and len(ran.output) < 200_000 and "left out" in ran.output
        assert await agent.client.query(ReadOutput(session, kept=ran.kept)) == lines
        events = await agent.turn("Run it.", session)
        (done,) = [event for event in events if isinstance(event, CallFinished)]
        assert done.ok and whole_output(done) and len(done.content) < len(lines) / 2
        assert lines in await agent.client.query(ReadOutput(session, done.call_id))
        assert lines in await agent.client.query(ReadOutput(session, kept=whole_output(done)))
        with pytest.raises(SessionError, match="no longer stored"):
            await agent.client.query(ReadOutput(session, kept="0" * 64))
        assert await agent.client.query(ReadOutput(session, "no such call")) == ""


async def test_keys_in_the_persons_own_command_stay_out_of_the_log(tmp_path: Path, shop: Path) -> None:
    key = "ghp_" + "a1B2c3D4e" * 4
    async with harness(tmp_path / "home", shop, [{"text": "Seen."}]) as agent:
        session = await agent.open()
        watch = Watch(agent, session)
        assert await agent.client.submit(RunShell(session, f"printf 'the key is %s' {key}")) == 0
        (ran,) = watch.of(ShellRan)
        assert isinstance(ran, ShellRan) and ran.output.startswith("the key is ")
        assert key not in ran.output + ran.command
        events = await agent.turn("Look.", session)
        assert not any(key in one.message.text for one in events if isinstance(one, MessageAdded))


async def test_of_two_own_commands_at_once_one_is_refused(tmp_path: Path, shop: Path) -> None:
    async with harness(tmp_path / "home", shop, []) as agent:
        session = await agent.open()
        both = (agent.client.submit(RunShell(session, "true")) for _ in range(2))
        done = await asyncio.gather(*both, return_exceptions=True)
        assert sorted(map(str, done)) == ["0", "your command is still running; stop it or wait until it ends"]


async def test_attachments_become_images_and_fenced_text(tmp_path: Path, shop: Path) -> None:
    async with harness(tmp_path / "home", shop, [{"text": "Seen."}]) as agent:
        session = await agent.open()
        sent = (Attachment("shot.png", data=PNG), Attachment("notes.md", path="notes.md"))
        waiting = asyncio.ensure_future(collect(agent.client.events(session, from_seq=-1)))
        await asyncio.sleep(0)
        await agent.client.submit(SendMessage(session, "Look.", attachments=sent))
        (message,) = [
            one.event.message
            for one in await waiting
            if isinstance(one.event, MessageAdded) and one.event.message.role == "user"
        ]
        (image,) = [part for part in message.parts if isinstance(part, Image)]
        assert (image.media_type, image.bytes) == ("image/png", len(PNG))
        assert "Attached: notes.md\n```\nfirst\n```" in message.text
        assert b"data:image/png;base64," in agent.provider.requests[0]


async def test_an_attachment_that_cannot_be_sent_sends_nothing(tmp_path: Path, shop: Path) -> None:
    async with harness(tmp_path / "home", shop, [], facts={"images": False}) as agent:
        session = await agent.open()
        for one, why in (
            (Attachment("shot.png", data=PNG), "shot.png cannot be sent: scripted cannot read images"),
            (Attachment("x", path="missing.txt"), "x cannot be attached: missing.txt: No such file"),
            (Attachment("blob", data=b"\0\1\2\3" * 100), "blob is neither text nor a supported image"),
        ):
            with pytest.raises(SessionError, match=why):
                await agent.client.submit(SendMessage(session, "Look.", attachments=(one,)))
        assert (await agent.client.query(SessionStatus(session))).turns == 0


async def test_settings_are_shown_with_their_origin_and_changed(tmp_path: Path, shop: Path) -> None:
    home = tmp_path / "home"
    async with harness(home, shop, []) as agent:
        session = await agent.open()
        rows = {row.key: row for row in await agent.client.query(GetSettings(session))}
        assert rows["provider"].origin == "command line" and rows["mcp_config_path"].shown == f'"{home}/mcp.json"'
        assert rows["tui.mouse"].choices == ("true", "false") and "suggest" in rows["approval"].choices
        assert await agent.client.submit(ChangeSetting(session, "tui.theme", "light")) == ""
        assert "command line" in await agent.client.submit(ChangeSetting(session, "provider", "deepseek"))
        with pytest.raises(ConfigError, match="not a known key"):
            await agent.client.submit(ChangeSetting(session, "tui.them", "light"))
        said = await agent.client.submit(RunCommand(session, "/config tui.theme"))
        assert said.text == f'tui.theme = "light"  # {home}/config.toml'


async def test_a_provider_is_connected_and_asked_from_then_on(tmp_path: Path, shop: Path) -> None:
    home = tmp_path / "home"
    async with harness(home, shop, []) as agent:
        session, client = await agent.open(authority=Authority.PERSON), agent.client
        rows = {row.name: row for row in await client.query(ListProviders(session))}
        assert not rows["deepseek"].ready and "DEEPSEEK_API_KEY" in rows["deepseek"].why
        assert rows["ollama"].local and "scripted" not in rows
        assert rows["ollama"].ready or rows["ollama"].why == "nothing answers there now"
        wrong = await client.submit(ConnectProvider(session, "deepseek"))
        assert "DEEPSEEK_API_KEY is not set" in wrong
        assert "not a key" in await client.submit(ConnectProvider(session, "deepseek", key="no key"))
        assert "provider nobody has no base_url" in await client.submit(
            ConnectProvider(session, "nobody", key="k" * 20)
        )
        assert (await client.query(SessionStatus(session))).provider == "scripted"
        key = "sk-" + "a" * 30
        assert "does not answer" in await client.submit(ConnectProvider(session, "box", key, "http://127.0.0.1:9"))
        async with AnsweringServer(["m"], key=key) as server:
            assert await client.submit(ConnectProvider(session, "box", key, server.url)) == ""
            status = await client.query(SessionStatus(session))
            assert (status.provider, status.model) == ("box", "m")
            models = await client.query(ListModels(session))
            assert models[0].current and models[0].ready and models[0].model == "m"
            kept = (home / "secrets" / "keys.json").read_text()
            assert server.address in kept and (home / "secrets" / "keys.json").stat().st_mode & 0o077 == 0
            assert '"provider": "box"' in (home / "choices.json").read_text()
            assert "sk-aaa" not in (home / "config.toml").read_text() + (home / "choices.json").read_text()
        async with AnsweringServer(["m", "n"]) as server:
            assert await client.submit(ConnectProvider(session, "llama-cpp", base_url=server.url, model="n")) == ""
        status = await client.query(SessionStatus(session))
        assert (status.provider, status.model) == ("llama-cpp", "n")


@MAKES_FILES
async def test_the_demonstration_fixes_its_repository(tmp_path: Path, shop: Path) -> None:
    async with harness(tmp_path / "home", shop, []) as agent:
        demo = await agent.client.submit(StartDemo())
        assert isinstance(demo, DemoStarted)
        await agent.client.submit(RunCommand(demo.session, "/approval auto"))
        waiting = asyncio.ensure_future(collect(agent.client.events(demo.session)))
        await agent.client.submit(SendMessage(demo.session, demo.prompt))
        end = (await waiting)[-1].event
        assert isinstance(end, TurnFinished) and end.status == "done"
        assert "Fixed" in end.result["answer"]
        assert "(100 - discount)" in (Path(demo.workspace) / "basket.py").read_text()
        ran = [call["ok"] for call in end.result["tools"] if call["name"] == "run_tests"]
        assert len(ran) == 2
        status = await agent.client.query(SessionStatus(demo.session))
        assert (status.provider, status.model, status.branch != "") == ("demo", "scripted-demo", True)


async def test_jobs_context_tools_sessions_and_new_ones(tmp_path: Path, shop: Path) -> None:
    script = [
        {"calls": [{"name": "exec_shell", "arguments": {"command": "echo up; sleep 60", "background": True}}]},
        {"text": "It runs."},
    ]
    async with harness(tmp_path / "home", shop, script) as agent:
        session = await agent.open(authority=Authority.PERSON, mode=Mode.YOLO)
        watch = Watch(agent, session)
        await agent.turn("Start it.", session)
        await watch.until(lambda: "JobOutput" in str([type(one.event).__name__ for one in watch.seen]))
        (job,) = await agent.client.query(ListJobs(session))
        assert (job.status, job.tail, job.bytes) == ("Running", "up\n", 3)
        status = await agent.client.query(SessionStatus(session))
        assert (status.jobs, status.branch) == (1, "main")
        assert (await agent.client.query(GetContext(session))).model == "scripted"
        assert (await agent.client.query(GetTools(session))).tools
        seen = await agent.client.query(PreviewSession(session[:12], last=2))
        assert seen.summary.id == session and seen.lines[-1] == ("assistant", "It runs.")
        said = await agent.client.submit(RunCommand(session, "/new"))
        assert said.ok and said.session and said.session != session
        fresh = await agent.client.query(SessionStatus(said.session))
        assert (fresh.mode, fresh.authority, fresh.turns) == (Mode.YOLO, Authority.PERSON, 0)


class ModelServer(LoopServer):
    """Lists two models."""

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        head = await reader.readuntil(b"\r\n\r\n")
        body = b'{"data":[{"id":"small"},{"id":"la\\u001b[2Jrge"}]}' if b"/v1/models" in head else b"{}"
        size = str(len(body)).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: " + size
        )
        writer.write(b"\r\n\r\n" + body)
        await writer.drain()


async def test_a_model_server_on_this_machine_is_found_and_chosen(tmp_path: Path, shop: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with ModelServer() as server:
        (home / "config.toml").write_text(f'[providers.ollama]\nbase_url = "http://{server.address}/v1"\n')
        async with harness(home, shop, []) as agent:
            session = await agent.open()
            rows = {row.name: row for row in await agent.client.query(FindLocal(session))}
            assert rows["ollama"].models == ("la\\x1b[2Jrge", "small") and rows["ollama"].local
            models = [row.model for row in await agent.client.query(ListModels(session)) if row.provider == "ollama"]
            assert "small" in models
            said = await agent.client.submit(RunCommand(session, "/models ollama"))
            assert said.ok and "small" in said.text
            assert await agent.client.submit(ConnectProvider(session, "ollama", model="small")) == ""
            status = await agent.client.query(SessionStatus(session))
            assert (status.provider, status.model) == ("ollama", "small")


async def test_the_building_of_an_index_is_told(tmp_path: Path, shop: Path) -> None:
    for number in range(80):
        (shop / f"part{number}.py").write_text(f"def part_{number}():\n    return {number}\n")
    async with harness(tmp_path / "home", shop, []) as agent:
        session = await agent.open()
        watch = Watch(agent, session)
        await agent.client.submit(RunCommand(session, "/search part of a thing"))
        await watch.until(lambda: any(one.done == one.total > 0 for one in watch.of(ProgressShown)))  # type: ignore[attr-defined]
        assert {one.task for one in watch.of(ProgressShown)} == {"index"}  # type: ignore[attr-defined]


async def test_a_long_check_tells_how_far_it_has_come(tmp_path: Path, shop: Path) -> None:
    own = [{"name": name, "program": "true"} for name in ("one", "two")]
    check = {"calls": [{"name": "run_verifiers", "arguments": {"commands": own}}]}
    script = [check, check, {"text": "Done."}]  # the first call is answered with what the tool takes
    async with harness(tmp_path / "home", shop, script) as agent:
        session = await agent.open()
        watch = Watch(agent, session)
        await agent.turn("Check.", session)
        told = [one for one in watch.of(ProgressShown) if isinstance(one, ProgressShown)]
        assert [one.done for one in told] == list(range(told[-1].total + 1)) and told[-1].total >= 2
