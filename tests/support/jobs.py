"""What tests of jobs share: the service with what its listener heard, and the shell tools over it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codewhale.lib.clock import SystemClock
from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import ToolError
from codewhale.protocol.events import Event
from codewhale.protocol.tools import ToolResult
from codewhale.services.jobs import JobSpec, ShellJobs
from codewhale.services.jobs.artifacts import LogArchive
from codewhale.tools.base import bound
from codewhale.tools.shell import ShellTools
from codewhale.tools.taskshell import TaskShellTools
from support.running import context

SECRET = "sk-0123456789abcdef"


async def _env(session: str, workspace: str) -> dict[str, str]:
    return {"SESSION_NAME": session}


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at


class Rig:
    """Jobs in a folder, with what the listener heard."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.heard: list[tuple[str, Event]] = []
        self.clock = Clock()
        self.jobs = ShellJobs(lambda session, event: self.heard.append((session, event)), self.clock, str(folder))

    async def start(self, command: str, session: str = "one", **more: object) -> str:
        fields = {"argv": ("/bin/sh", "-c", command), "cwd": str(self.folder), "background": True, **more}
        spec = JobSpec(command, **fields)  # type: ignore[arg-type]
        return (await self.jobs.start(session, spec)).id

    def events(self, kind: type) -> list[Event]:
        return [event for _, event in self.heard if isinstance(event, kind)]


class Shell:
    """The shell tools by name, arguments as a model gives them."""

    def __init__(self, workspace: Path, jobs: ShellJobs | None = None) -> None:
        self.workspace = workspace
        self.profile = "none"
        self.jobs = jobs or ShellJobs(lambda session, event: None)
        self.artifacts = ArtifactStore(str(workspace.parent / "artifacts"))
        logs = LogArchive(self.jobs, self.artifacts, lambda session: lambda text: text.replace(SECRET, "[redacted]"))
        gates = TaskShellTools(self.jobs, logs, SystemClock(), _env, lambda session: "")
        families = (ShellTools(self.jobs, logs, _env, self), gates)
        self.tools = {name: tool for family in families for name, tool in bound(family).items()}

    def attended(self, session: str) -> bool:
        """Whether a person is there."""
        return session == "attended"

    async def question(
        self, session: str, questions: Sequence[dict[str, Any]], seconds: float
    ) -> tuple[dict[str, Any], ...]:
        """Nobody answers."""
        raise AssertionError("nothing is asked here")

    async def call(self, name: str, session: str = "one", **arguments: Any) -> ToolResult:
        tool = self.tools[name]
        here = msgspec.structs.replace(context(self.workspace, session), profile=self.profile)
        result = await tool.run(msgspec.convert(arguments, tool.args), here)
        assert isinstance(result, ToolResult)
        return result

    async def refused(self, name: str, **arguments: Any) -> ToolError:
        """The error of a call; its next call, where it has one, proved by making it."""
        with pytest.raises(ToolError) as caught:
            await self.call(name, **arguments)
        error = caught.value
        assert error.message and error.expected is not None
        if error.correction is not None and error.correction.sure:
            assert (await self.call(name, **{**arguments, **error.correction.arguments})).ok, error.correction
        if error.fix is not None:
            assert error.fix.name == name
            assert (await self.call(name, **error.fix.arguments)).ok, error.fix
        return error
