"""A workspace that an agent and a person change in turns, with the undo service watching the agent alone."""

import asyncio
import os
import subprocess
from pathlib import Path

from codewhale.lib.clock import SystemClock
from codewhale.protocol.decisions import CallView
from codewhale.protocol.events import Event
from codewhale.protocol.modes import Mode
from codewhale.protocol.tools import CommandSubject, Effect, PathSubject
from codewhale.workspace.undo import Undo, UndoPlan, UndoResult


class Scene:
    """A workspace, a state directory, and one undo service over them."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        self.home = folder / "home"
        self.root.mkdir(exist_ok=True)
        self.turn = 1
        self.calls = 0
        self.told: list[Event] = []
        self.undo = self.fresh()

    def fresh(self) -> Undo:
        """A service as another process would have it."""
        self.undo = Undo(str(self.home), SystemClock(), self.turn_of, self._tell)
        return self.undo

    def turn_of(self, session: str) -> tuple[str, int]:
        """A session called "child of S" works for the session S."""
        return session.removeprefix("child of "), self.turn

    def _tell(self, session: str, event: Event) -> None:
        self.told.append(event)

    def write(self, path: str, data: bytes | str, mode: int | None = None) -> None:
        """A person saves a file."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        if mode is not None:
            file.chmod(mode)

    def read(self, path: str) -> bytes:
        """What stands in a file."""
        return (self.root / path).read_bytes()

    def tree(self) -> dict[str, tuple[str, bytes, int]]:
        """Every file and link, as (kind, content, permission bits), by path."""
        found = {}
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = Path(folder, name)
                inner = str(path.relative_to(self.root))
                if path.is_symlink():
                    found[inner] = ("link", os.fsencode(os.readlink(path)), 0)
                else:
                    found[inner] = ("file", path.read_bytes(), path.stat().st_mode & 0o777)
        return found

    def view(self, tool: str, subject: CommandSubject | PathSubject, session: str = "s") -> CallView:
        """The next call."""
        self.calls += 1
        effect = Effect.EXECUTES if isinstance(subject, CommandSubject) else Effect.WRITES
        return CallView(session, f"c{self.calls}", tool, {}, (effect,), (subject,), str(self.root), Mode.AGENT)

    async def edit(self, path: str, data: bytes | str, session: str = "s") -> None:
        """The agent writes a file, as the writer does: beside it, then in its place."""
        call = self.view("write_file", PathSubject(path, write=True), session)
        await self.undo.before(call)
        file = self.root / path
        mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
        self.write(path + ".new", data, mode)
        os.replace(self.root / (path + ".new"), file)
        await self.undo.after(call, None)

    async def shell(self, command: str, session: str = "s") -> None:
        """The agent runs a command."""
        call = self.view("exec_shell", CommandSubject(command), session)
        await self.undo.before(call)
        await asyncio.to_thread(
            subprocess.run, ["bash", "-c", command], cwd=self.root, check=True, capture_output=True
        )  # fmt: skip
        await self.undo.after(call, None)

    async def plan(self, turns: int = 1, session: str = "s") -> UndoPlan:
        """What taking back the last turns comes to."""
        found = await self.undo.turns(session, str(self.root))
        return await self.undo.plan(session, str(self.root), found[turns - 1].since)

    async def take_back(self, turns: int = 1, session: str = "s") -> UndoResult:
        """Take the last turns back."""
        return await self.undo.carry_out(await self.plan(turns, session))
