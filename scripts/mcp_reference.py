"""The public reference servers of MCP (everything, filesystem, memory), each driven through whole turns by a scripted
model: found by search, approved, called, its resources and prompts read. NPM=folder of an installation of them."""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codewhale.app.mcpparts import open_servers
from codewhale.protocol.events import CallFinished
from codewhale.protocol.modes import Mode
from codewhale.protocol.ops import RunCommand
from codewhale.testing import Harness, harness

Step = tuple[str, dict[str, Any], Callable[[str], bool]]


def has(*texts: str) -> Callable[[str], bool]:
    """Whether a result holds all of these."""
    return lambda content: all(text in content for text in texts)


def steps(work: Path) -> dict[str, list[Step]]:
    """What is called of each server, and what must be in the result."""
    note = str(work / "note.txt")
    entity = {"name": "Ann", "entityType": "person", "observations": ["likes tea"]}
    return {
        "everything": [
            ("tool_search_tool_bm25", {"query": "add two numbers"}, has("mcp_everything_get")),
            ("mcp_everything_echo", {"message": "hello"}, has("hello")),
            ("mcp_everything_get-sum", {"a": 2, "b": 40}, has("42")),
            ("mcp_everything_get-tiny-image", {}, has("image")),
            ("mcp_everything_get-structured-content", {"location": "Chicago"}, has("temperature")),
            ("mcp_everything_trigger-long-running-operation", {"duration": 1, "steps": 4}, has("completed")),
            ("mcp_everything_get-annotated-message", {"messageType": "error"}, has("Error")),
            ("list_mcp_resources", {"server": "everything"}, has("demo://")),
            ("mcp_get_prompt", {"server": "everything", "name": "simple-prompt"}, has("prompt")),
        ],
        "filesystem": [
            ("mcp_filesystem_write_file", {"path": note, "content": "milk\n"}, has("wrote")),
            ("mcp_filesystem_read_text_file", {"path": note}, has("milk")),
            ("mcp_filesystem_list_directory", {"path": str(work)}, has("note.txt")),
            ("mcp_filesystem_read_text_file", {"path": "/etc/passwd"}, lambda content: "root:" not in content),
        ],
        "memory": [
            ("mcp_memory_create_entities", {"entities": [entity]}, has("Ann")),
            ("mcp_memory_search_nodes", {"query": "tea"}, has("Ann")),
            ("mcp_memory_read_graph", {}, has("likes tea")),
        ],
    }


def approve(home: Path, work: Path, name: str) -> None:
    """Let a server be approved as it is now."""
    service = open_servers(str(home), str(work), str(home / "mcp.json"), os.environ)
    pending = service.pending(name)
    if pending is not None:
        service.approve(name, pending.fingerprint)


def name_server(npm: Path, home: Path, work: Path, name: str) -> None:
    """The person's file: one of the three programs as its package starts it; all tools of one fit behind the head."""
    modules = npm / "node_modules" / "@modelcontextprotocol"
    program = str(modules / f"server-{name}" / "dist" / "index.js")
    folders = [str(work)] if name == "filesystem" else []
    row: dict[str, Any] = {"command": str(npm / "node_modules" / ".bin" / "node"), "args": [program, *folders]}
    row["env"] = {"MEMORY_FILE_PATH": str(home / "graph.jsonl")}
    (home / "mcp.json").write_text(json.dumps({"servers": {name: row}}))


async def drive(stage: Harness, server: str, wanted: list[Step]) -> list[str]:
    """The faults of one server's calls."""
    first = await stage.open()
    shown = await stage.client.submit(RunCommand(first, f"/mcp reload {server}"))
    print(f"{server}: {shown.text.strip().splitlines()[0]}")
    session = await stage.open(mode=Mode.YOLO)  # it has the tools that are known by now
    events = await stage.turn("Go", session, seconds=300)
    found = [event for event in events if isinstance(event, CallFinished)]
    faults = []
    for (tool, arguments, right), result in zip(wanted, found, strict=True):
        faults += [] if right(result.content) else [f"{server}: {tool} {arguments}: {result.content[:300]}"]
    return faults


async def main(npm: Path) -> int:
    """Drive all three; the number of faults."""
    faults = list[str]()
    with tempfile.TemporaryDirectory() as top:
        home, work = Path(os.path.realpath(top)) / "home", Path(os.path.realpath(top)) / "work"
        home.mkdir(mode=0o700)
        work.mkdir()
        for server, wanted in steps(work).items():
            name_server(npm, home, work, server)
            approve(home, work, server)
            script = [{"calls": [{"name": tool, "arguments": arguments}]} for tool, arguments, _ in wanted]
            async with harness(home, work, [*script, {"text": "Done."}]) as stage:
                faults += await drive(stage, server, wanted)
    calls = sum(map(len, steps(work).values()))
    print(*faults, f"{calls} calls of three servers, {len(faults)} faults", sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    place = Path(os.environ.get("NPM", ""))
    if not (place / "node_modules" / "@modelcontextprotocol" / "server-everything").is_dir():
        print("skipped: NPM names no folder in which the three reference servers are installed")
        sys.exit(0)
    sys.exit(asyncio.run(main(place)))
