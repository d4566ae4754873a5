"""Servers through the broker: real programs, of which one does what no server should."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from codewhale.mcp.servers import McpServers
from codewhale.mcp.terms import CallOutcome, ServerFailed, ServerSpec
from codewhale.process.launcher import descendants

HERE = Path(__file__).parent
PATIENCE = 90.0


class Asked:
    """A caller that writes down what it hears, and answers what it is asked."""

    def __init__(self, answer: dict[str, Any] | None = None) -> None:
        self.answer = answer or {"action": "accept", "content": {"name": "Ann"}}
        self.heard: list[tuple[Any, ...]] = []

    async def elicit(self, server: str, message: str, schema: dict[str, Any], url: str) -> dict[str, Any]:
        self.heard.append(("elicit", server, message, sorted(schema.get("properties", {})), url))
        return self.answer

    async def sample(self, server: str, request: dict[str, Any]) -> dict[str, Any]:
        self.heard.append(("sample", server, request["messages"][0]["content"]["text"]))
        if not self.answer:
            raise ServerFailed("refused", "not allowed here")
        return {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "scripted"}

    def progress(self, server: str, done: float, total: float | None, text: str) -> None:
        self.heard.append(("progress", done, total, text))

    def log(self, server: str, level: str, text: str) -> None:
        self.heard.append(("log", level, text))


def rude(name: str = "rude", *arguments: str, **fields: Any) -> ServerSpec:
    """The server that does what no server should, in the older revision."""
    argv = (sys.executable, "-S", str(HERE / "rude_server.py"), *arguments)
    return ServerSpec(name, argv, **{"folder": str(HERE), "connect_seconds": PATIENCE, **fields})


async def until(true: Callable[[], Any]) -> None:
    """Wait for something to become true."""
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def first(outcome: CallOutcome) -> str:
    """The text of its first piece."""
    return outcome.pieces[0].text


@pytest.fixture
async def servers() -> AsyncIterator[McpServers]:
    """Servers that are ended, with nothing left of them."""
    made = McpServers()
    yield made
    before = descendants(os.getpid())
    await made.shut()
    await until(lambda: not set(before) & set(descendants(os.getpid())))


async def test_a_server_of_the_newer_revision_from_end_to_end(servers: McpServers) -> None:
    argv = (sys.executable, str(HERE / "echo_server.py"))
    spec = ServerSpec("little", argv, env={"ONE": "1"}, folder=str(HERE), connect_seconds=PATIENCE)
    asked = Asked({"action": "accept", "content": {"age": 40}})
    offer = await servers.open(spec)
    assert (offer.protocol, offer.instructions, offer.left_out) == ("2026-07-28", "Say what you need.", ())
    assert [tool.name for tool in offer.tools][:2] == ["add", "note"]
    assert offer.tools[0].input_schema["required"] == ["a", "b"]
    assert (offer.prompts[0].arguments, offer.resources[0].uri) == ((("name", "", True),), "note://one")
    assert (await servers.call("little", "add", {"a": 1, "b": 2}, asked)).structured == {"result": 3}
    assert (await servers.call("little", "fail", {}, asked)).error
    assert first(await servers.read("little", "note://one", asked)) == "the first note"
    prompt = await servers.prompt("little", "greet", {"name": "Ann"}, asked)
    assert (first(prompt), prompt.pieces[0].role) == ("Greet Ann.", "user")
    assert first(await servers.call("little", "talk", {}, asked)) == "accept age=40"
    assert asked.heard == [
        ("elicit", "little", "How old?", ["age"], ""), ("progress", 1.0, 2.0, "half"), ("log", "info", "a line"),
    ]  # fmt: skip


async def test_what_servers_ask_in_the_older_revision(servers: McpServers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("NODE_ENV", "production")
    asked, changed = Asked(), list[str]()
    servers.changed = changed.append
    offer = await servers.open(rude(env={"ONE": "1"}, roots=(str(HERE),), sampling=True))
    assert offer.protocol == "2025-11-25"
    found = json.loads(first(await servers.call("rude", "ask", {}, asked)))
    assert found == {"action": "accept", "content": {"age": 7, "name": "Ann"}}
    assert asked.heard == [("elicit", "rude", "How old?", ["age", "name"], "")]
    assert json.loads(first(await servers.call("rude", "sample", {}, asked)))["content"]["text"] == "yes"
    refusing = Asked()
    refusing.answer = {}
    assert "not allowed" in first(await servers.call("rude", "sample", {}, refusing))
    assert json.loads(first(await servers.call("rude", "roots", {}, asked)))["roots"][0]["uri"] == HERE.as_uri()
    environment = json.loads(first(await servers.call("rude", "environment", {}, asked)))
    assert environment["ONE"] == "1" and "SOME_API_KEY" not in environment and "NODE_ENV" not in environment
    with pytest.raises(ServerFailed, match="no such argument") as refused:
        await servers.call("rude", "refuse", {}, asked)
    assert refused.value.kind == "refused"
    await servers.call("rude", "grow", {}, asked)
    await until(lambda: changed == ["rude"])
    assert [tool.name for tool in (await servers.offer("rude")).tools][-1] == "grown0"
    assert servers.state("rude").state == "ready"
    await servers.close("rude")
    with pytest.raises(ServerFailed, match="not open"):
        await servers.call("rude", "add", {"a": 1, "b": 2}, asked)


async def test_a_question_that_may_be_of_several_calls_is_refused_and_each_is_told(
    servers: McpServers, tmp_path: Path
) -> None:
    await servers.open(rude(sampling=True))
    one, other, path = Asked(), Asked(), tmp_path / "noted"
    held = asyncio.create_task(servers.call("rude", "hold", {"path": str(path)}, one))
    await until(path.exists)
    for name in ("ask", "sample"):
        refused = json.loads(first(await servers.call("rude", name, {}, other)))
        assert refused["code"] == -32600 and "several calls are under way" in refused["message"]
    await servers.call("rude", "note", {"path": str(path)}, other)
    assert first(await held) == "no longer held"
    assert [row[:2] for row in one.heard] == [("log", "warning")] * 2 and one.heard == other.heard
    assert "question was refused" in one.heard[0][2]
    assert json.loads(first(await servers.call("rude", "ask", {}, other)))["action"] == "accept"


async def test_a_call_that_is_cut_off_answers_what_its_server_asked(servers: McpServers) -> None:
    class Thinking(Asked):
        asked, over = asyncio.Event(), asyncio.Event()

        async def elicit(self, server: str, message: str, schema: dict[str, Any], url: str) -> dict[str, Any]:
            self.asked.set()
            try:
                return await asyncio.Future()
            finally:
                self.over.set()

    await servers.open(rude(call_seconds=PATIENCE))
    call = asyncio.create_task(servers.call("rude", "ask", {}, caller := Thinking()))
    await asyncio.wait_for(caller.asked.wait(), PATIENCE)
    call.cancel()
    await asyncio.wait_for(caller.over.wait(), PATIENCE)
    assert first(await servers.call("rude", "add", {"a": 1, "b": 2}, Asked())) == "3", "it waits for its answer else"


async def test_results_of_any_size_and_kind_are_bounded(servers: McpServers) -> None:
    asked = Asked()
    await servers.open(rude())
    huge = await servers.call("rude", "huge", {"size": 5_000_000}, asked)
    assert (huge.pieces[0].size, len(huge.pieces[0].text)) == (5_000_000, 4096)
    assert Path(huge.pieces[0].path).read_bytes() == b"x" * 5_000_000
    many = await servers.call("rude", "many", {"count": 20_000}, asked)
    assert len(many.pieces) == 256 and many.left_out == ("19,745 of 20,000 parts are joined into one text",)
    assert Path(many.pieces[-1].path or "/dev/null").read_text() or many.pieces[-1].text.count("y") == 19_745
    assert first(await servers.call("rude", "broken", {}, asked)) == "a\ufffd\ufffdb"
    assert first(await servers.call("rude", "halves", {}, asked)) == "a?b"
    assert first(await servers.call("rude", "noise", {}, asked)) == "after the noise"
    image, link, inside = (await servers.call("rude", "image", {}, asked)).pieces
    assert (image.kind, image.mime, Path(image.path).read_bytes()) == ("image", "image/png", b"\x89PNG\r\n\x1a\n")
    assert (link.kind, link.uri, inside.kind, inside.text) == ("link", "file:///x", "resource", "inside")


async def test_an_answer_without_end_ends_the_server(servers: McpServers) -> None:
    await servers.open(rude())
    with pytest.raises(ServerFailed) as lost:
        await servers.call("rude", "endless", {}, Asked())
    assert (lost.value.kind, lost.value.sent) == ("lost", True)
    assert "a message of more than" in servers.state("rude").stderr
    await servers.open(rude())
    assert first(await servers.call("rude", "add", {"a": 1, "b": 2}, Asked())) == "3"


async def test_slow_and_dead_servers_hold_up_nobody(servers: McpServers, tmp_path: Path) -> None:
    slow = asyncio.create_task(servers.open(rude("slow", "600")))
    silent = asyncio.create_task(servers.open(rude("silent", "600", connect_seconds=0.5)))
    missing = ServerSpec("missing", (str(tmp_path / "nothing"),), folder=str(tmp_path))
    with pytest.raises(ServerFailed, match=r"could not be started.*No such file"):
        await servers.open(missing)
    assert (servers.state("missing").state, servers.state("nobody").state) == ("failed", "idle")
    await servers.open(rude())
    assert first(await servers.call("rude", "add", {"a": 1, "b": 2}, Asked())) == "3"
    with pytest.raises(ServerFailed, match=r"did not connect within 0.5 seconds") as late:
        await silent
    assert late.value.kind == "timeout"
    assert servers.state("slow").state == "starting"
    slow.cancel()


async def test_a_call_ends_with_its_time_or_its_cancel(servers: McpServers, tmp_path: Path) -> None:
    await servers.open(rude(call_seconds=0.3))
    waiting = {"seconds": 600, "path": str(tmp_path / "notes")}
    with pytest.raises(ServerFailed, match=r"did not answer wait within 0.3 seconds.*execute_timeout") as late:
        await servers.call("rude", "wait", waiting, Asked())
    assert (late.value.kind, late.value.sent) == ("timeout", True)
    await servers.close("rude")
    await servers.open(rude(call_seconds=600.0))
    call = asyncio.create_task(servers.call("rude", "wait", waiting, Asked()))
    await until(lambda: (tmp_path / "notes").read_text() == "done\n" * 2)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_a_server_that_dies_in_a_call_is_not_asked_twice(servers: McpServers, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    await servers.open(rude())
    with pytest.raises(ServerFailed, match="It may have been done") as lost:
        await servers.call("rude", "die", {"path": str(notes)}, Asked())
    assert (lost.value.kind, lost.value.sent, notes.read_text()) == ("lost", True, "done\n")
    assert servers.state("rude").state == "failed" and "I am gone" in servers.state("rude").stderr
    for ask in (servers.call("rude", "add", {"a": 1, "b": 2}, Asked()), servers.offer("rude")):
        with pytest.raises(ServerFailed, match=r"does not run\. Nothing was sent") as lost:
            await ask
        assert (lost.value.kind, lost.value.sent) == ("lost", False)
    await servers.open(rude())
    assert first(await servers.call("rude", "add", {"a": 1, "b": 2}, Asked())) == "3"
    assert servers.state("rude").state == "ready"


@pytest.mark.timeout(240)
async def test_killed_brokers_lose_no_call_and_repeat_none(servers: McpServers, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    for count in range(1, 4):
        await servers.open(rude())
        tree = descendants(servers.broker)
        waiting = {"seconds": 600, "path": str(notes)}
        call = asyncio.create_task(servers.call("rude", "wait", waiting, Asked()))
        await until(lambda count=count: notes.exists() and notes.read_text() == "done\n" * count)  # type: ignore[misc]
        os.kill(servers.broker, 9)
        with pytest.raises(ServerFailed, match=r"The broker of MCP servers ended. It may have been done"):
            await call
        assert servers.state("rude").state == "failed"
        await until(lambda tree=tree: not set(tree) & set(descendants(os.getpid())))  # type: ignore[misc]
    assert notes.read_text() == "done\n" * 3
    await servers.open(rude())
    assert first(await servers.call("rude", "add", {"a": 1, "b": 2}, Asked())) == "3"
