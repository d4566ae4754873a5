"""A model on loopback for several conversations at once: the words of a conversation choose what is played in it."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.loopserver import LoopServer
from support.patience import HANG
from support.program import codewhale_program
from support.wire import answer, delta, sse, stream

Turn = dict[str, Any]
LEASE = "[tasks]\nlease_seconds = 600.0\n"  # whoever is only slow keeps it


def call(tool: str, /, **arguments: Any) -> Turn:
    return {"calls": [(tool, arguments)]}


@dataclass
class TaskServer(LoopServer):
    """`tasks` are turns by the first word of a message of the person: {"text"} or {"calls": [(tool, arguments)]}, with
    "hold" not before `go_on` was called with that name. A conversation whose turns are over says that it is done."""

    tasks: Mapping[str, Sequence[Turn]]
    held: dict[str, asyncio.Event] = field(default_factory=dict)
    _played: dict[str, int] = field(default_factory=dict)
    _loop: asyncio.AbstractEventLoop | None = None

    def go_on(self, name: str) -> None:
        """Let the turns that are held by this name be answered; from any thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._hold(name).set)

    def _hold(self, name: str) -> asyncio.Event:
        return self.held.setdefault(name, asyncio.Event())

    def configure(self, home: Path, more: str = "") -> None:
        """Let the program ask this model, which begins each conversation anew."""
        self._played.clear()
        home.mkdir(mode=0o700, exist_ok=True)
        (home / "config.toml").write_text(
            f'provider = "tasks"\nmodel = "m"\n[tui]\nnotify = "off"\n{more}\n[providers.tasks]\n'
            f'dialect = "openai-chat"\nbase_url = "http://{self.address}/v1"\ncontext_window = 100000\n'
        )

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        self._loop = asyncio.get_running_loop()
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            headers = {name.lower(): value for name, _, value in (x.partition(": ") for x in head.split("\r\n")[1:])}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            if not head.startswith("POST"):
                writer.write(answer(200, json.dumps({"object": "list", "data": [{"id": "m"}]}).encode()))
                continue
            turn = self._turn(json.loads(body))
            if "hold" in turn:
                await self._hold(turn["hold"]).wait()
            writer.write(stream(_streamed(turn)))
            await writer.drain()

    def _turn(self, request: dict[str, Any]) -> Turn:
        said = [_text(one) for one in request["messages"] if one["role"] == "user"]
        key = next((key for key in self.tasks if any(text.startswith(key) for text in said)), "")
        at = self._played.get(key, 0)
        self._played[key] = at + 1
        turns = self.tasks.get(key, ())
        return turns[at] if at < len(turns) else {"text": "Done."}


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def _streamed(turn: Turn) -> bytes:
    parts = [delta(content=turn["text"])] if turn.get("text") else []
    calls = [
        {"index": at, "id": f"call_{time.monotonic_ns()}_{at}", "type": "function",
         "function": {"name": tool, "arguments": json.dumps(arguments)}}
        for at, (tool, arguments) in enumerate(turn.get("calls", ()))
    ]  # fmt: skip
    end = [delta(tool_calls=calls), delta("tool_calls")] if calls else [delta("stop")]
    usage = {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}}
    return sse(*parts, *end, usage, "[DONE]")


@contextmanager
def serving(tasks: Mapping[str, Sequence[Turn]]) -> Iterator[TaskServer]:
    """The server in a thread of its own, for programs that are waited for."""
    server, ready, loop = TaskServer(tasks), threading.Event(), asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        async with server:
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(HANG)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


def add_task(place: Path, line: str) -> str:
    """Queue a task from the folder `place`/work by the program; the beginning of its id."""
    done = codewhale_program(place, "exec", "--auto", f"/task add {line}", cwd=place / "work")
    assert done.returncode == 0 and "is queued" in done.stdout, done.stderr
    return done.stdout.split()[0]


def shown_task(place: Path, task: str) -> dict[str, Any]:
    """What the program shows of a task, and with it its timeline, as JSON."""
    done = codewhale_program(place, "tasks", "show", task, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
