"""The server of the program as clients reach it: the official library's client over stdio, and a wire by hand."""

import gc
import json
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from support.program import environment

LEGACY, MODERN = "legacy", "2026-07-28"
Person = Callable[[str], dict[str, Any] | None]


def command(workspace: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "codewhale", "mcp", "serve", "-w", str(workspace), *arguments]


@asynccontextmanager
async def over_stdio(
    home: Path, workspace: Path, *arguments: str, mode: str = LEGACY, person: Person | None = None
) -> AsyncIterator[Any]:
    """A client of a server of its own; `person` fills forms (None: declines), without one the client cannot ask."""
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters

    line = command(workspace, *arguments)
    server = StdioServerParameters(command=line[0], args=line[1:], env=environment(home), cwd=str(workspace))
    async with Client(server, mode=mode, elicitation_callback=_asked(person)) as client:
        yield client
    with warnings.catch_warnings():  # the library leaves its pipes to the collector
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def _asked(person: Person | None) -> Any:
    import mcp_types as types

    if person is None:
        return None

    async def ask(context: Any, params: Any) -> Any:
        content = person(params.message)
        return types.ElicitResult(action="decline" if content is None else "accept", content=content)

    return ask


def said(result: Any) -> str:
    return "".join(part.text for part in result.content if part.type == "text")


class Wire:
    """A server over stdio, driven frame by frame."""

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        self.child = child
        self.ids = 0

    def send(self, method: str, params: dict[str, Any] | None = None, notify: bool = False) -> int:
        """Send a request or a notification; the id of the request."""
        self.ids += 1
        frame = {"jsonrpc": "2.0", "method": method, "params": params or {}, **({} if notify else {"id": self.ids})}
        self.raw(json.dumps(frame).encode() + b"\n")
        return self.ids

    def raw(self, data: bytes) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(data)
        self.child.stdin.flush()

    def answer(self, number: int) -> dict[str, Any]:
        """The answer to a request; what comes before it is passed over."""
        assert self.child.stdout is not None
        for line in self.child.stdout:
            frame: dict[str, Any] = json.loads(line)
            if frame.get("id") == number and "method" not in frame:
                return frame
        raise AssertionError(f"the server ended before it answered {number}")

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return self.answer(self.send(method, params))

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", {"name": name, "arguments": arguments})


@contextmanager
def wired(home: Path, workspace: Path, *arguments: str) -> Iterator[Wire]:
    """A server over stdio that has been initialized; killed at the end where it still runs."""
    with subprocess.Popen(
        command(workspace, *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=workspace, env=environment(home),
    ) as child:  # fmt: skip
        wire = Wire(child)
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        wire.ask("initialize", hello)
        wire.send("notifications/initialized", notify=True)
        try:
            yield wire
        finally:
            if child.poll() is None:
                child.kill()
