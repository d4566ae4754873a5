"""Fifty mixed edits by the agent's tools, its commands and a person, then /undo through the front door: the agent's are
gone, the person's are all there, byte for byte and in order, and what could not go is listed."""

import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.testing import Harness, harness
from support.repos import make_repo, raw_git

TEXTS = ("plain.txt", "crlf.txt", "deep/er/code.py")
OTHERS = {"picture.bin": b"\x00\x01\x02" * 50, "tool.sh": b"#!/bin/sh\necho\n", "notes.md": b"# Notes\n\nend"}


class Land:
    """The workspace, and a model and a person whose every line says who wrote it."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.dice = random.Random(seed)
        self.count = 0
        self.script: list[dict[str, Any]] = []
        self.gone_for_good = set[bytes]()

    def lines(self, name: str) -> list[bytes]:
        return (self.root / name).read_bytes().splitlines(keepends=True)

    def edited(self, name: str, who: str) -> bytes:
        """A file after edits in one or two places."""
        lines = self.lines(name)
        end = b"\r\n" if name.startswith("crlf") else b"\n"
        for _ in range(self.dice.randint(1, 2)):
            place, come = self.dice.randint(0, len(lines)), self.dice.randint(0, 2)
            gone = slice(place, place + self.dice.choice((0, 0, 1, 1, 2)))
            self.gone_for_good |= set(lines[gone]) if who == "person" else set()
            lines[gone] = [f"{who} {self.count + n}".encode() + end for n in range(come)]
            self.count += come
        return b"".join(lines)

    async def agent(self, session: Harness, id: str, *calls: tuple[str, dict[str, Any]]) -> None:
        """A turn with these calls."""
        self.script += [{"calls": [{"name": name, "arguments": given} for name, given in calls]}, {"text": "Done."}]
        await session.turn("Go on.", id)

    async def by_tool(self, agent: Harness, id: str) -> None:
        name = self.dice.choice(TEXTS)
        content = self.edited(name, "agent").decode()
        await self.agent(agent, id, ("read_file", {"path": name}), ("write_file", {"path": name, "content": content}))

    async def by_command(self, agent: Harness, id: str) -> None:
        name = self.dice.choice(TEXTS)
        data = self.edited(name, "agent")
        (self.root.parent / "next").write_bytes(data)
        odd = self.dice.choice(("true", "echo more >> notes.md", "chmod 755 notes.md", "echo agent > made.txt"))
        command = f"printf %s {shlex.quote(data.decode())} > {name}; {odd}"
        await self.agent(agent, id, ("exec_shell", {"command": command}))

    def by_person(self) -> None:
        name = self.dice.choice(TEXTS)
        (self.root / name).write_bytes(self.edited(name, "person"))


def script(land: Land, count: int) -> list[Any]:
    """The model plays what the land comes up with."""
    return [lambda request, n=n: land.script[n] for n in range(count)]


@pytest.mark.parametrize("seed", [7])
async def test_fifty_mixed_edits_are_told_apart(home: Path, workspace: Path, seed: int) -> None:
    make_repo(workspace, {name: "".join(f"base {name} {n}\n" for n in range(30)) for name in TEXTS})
    (workspace / "crlf.txt").write_bytes(b"".join(b"base crlf %d\r\n" % n for n in range(30)))
    for name, data in OTHERS.items():
        (workspace / name).write_bytes(data)
    (workspace / "mine.txt").write_bytes(b"a person's, in no repository\n")
    land = Land(workspace, seed)
    steps = ["tool"] * 16 + ["command"] * 16 + ["person"] * 18
    land.dice.shuffle(steps)
    async with harness(home, workspace, script(land, 200)) as agent:
        id = await agent.open()
        await land.agent(
            agent, id, ("exec_shell", {"command": "mv picture.bin moved.bin; chmod 700 tool.sh; ln -s x l"})
        )
        for step in steps:
            match step:
                case "tool":
                    await land.by_tool(agent, id)
                case "command":
                    await land.by_command(agent, id)
                case _:
                    land.by_person()
        head, before = raw_git(workspace, "rev-parse", "HEAD"), {name: land.lines(name) for name in TEXTS}
        listed: CommandOutput = await agent.client.submit(RunCommand(id, "/restore"))
        turns = int(listed.text.splitlines()[-1].split()[0])
        done: CommandOutput = await agent.client.submit(RunCommand(id, f"/undo {turns}"))
    assert done.ok, done.text
    assert {path.name for path in workspace.iterdir()} == {*OTHERS, ".git", "deep", "mine.txt", *TEXTS[:2]}
    assert {name: (workspace / name).read_bytes() for name in OTHERS} == OTHERS
    assert {(workspace / name).stat().st_mode & 0o777 for name in OTHERS} == {0o644}
    assert raw_git(workspace, "rev-parse", "HEAD") == head
    told = re.findall(r"not undone: (\S+), lines? (\d+)(?: to (\d+))?", done.text)
    for name in TEXTS:
        kept = land.lines(name)
        rest = iter(kept)
        assert all(line in rest for line in before[name] if not line.startswith(b"agent")), name
        assert not land.gone_for_good & set(kept) and len(set(kept)) == len(kept)
        places = {n for at, first, last in told if at == name for n in range(int(first), int(last or first) + 1)}
        assert {n for n, line in enumerate(kept, 1) if line.startswith(b"agent")} <= places


async def test_every_tool_that_writes_can_be_taken_back(home: Path, workspace: Path) -> None:
    files = {"a.txt": b"one\ntwo\n", "b.txt": b"b\r\n", "gone.txt": b"gone", "kept/real.txt": b"real\n"}
    for name, data in files.items():
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_bytes(data)
    (workspace / "link.txt").symlink_to("kept/real.txt")
    (workspace / "build").mkdir()
    (workspace / ".gitignore").write_text("build/\n")
    patch = (
        "*** Begin Patch\n*** Update File: b.txt\n*** Move to: moved/c.txt\n@@\n-b\n+B\n*** Delete File: gone.txt\n"
        "*** Add File: added.txt\n+added\n*** End Patch\n"
    )
    calls = [
        ("edit_file", {"path": "a.txt", "search": "two", "replace": "2"}),
        ("apply_patch", {"patch": patch}),
        ("write_file", {"path": "link.txt", "content": "through the link\n"}),
        ("write_file", {"path": "build/out.txt", "content": "ignored, but written by name\n"}),
        ("run_tests", {}),
    ]
    script = [{"calls": [{"name": name, "arguments": given} for name, given in calls]}, {"text": "Done."}]
    async with harness(home, workspace, script) as agent:
        id = await agent.open()
        await agent.turn("Go.", id)
        assert (workspace / "kept/real.txt").read_bytes() == b"through the link\n"
        assert (workspace / "moved/c.txt").read_bytes() == b"B\r\n" and not (workspace / "gone.txt").exists()
        done: CommandOutput = await agent.client.submit(RunCommand(id, "/undo"))
    assert done.ok and "not undone" not in done.text, done.text
    assert {name: (workspace / name).read_bytes() for name in files} == files
    assert (workspace / "link.txt").is_symlink() and not list(workspace.rglob("*out*")) + list(workspace.glob("moved"))
    assert not (workspace / "added.txt").exists()
