"""/context attach, detach, sources and export: what is owned elsewhere and can be searched where it is."""

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Protocol

from codewhale.commands.base import CommandContext, misuse
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.events import Event, ProgressShown
from codewhale.protocol.ops import CommandOutput

VERBS = ("attach", "detach", "sources", "export")
USAGE = "attach PATH [as NAME] [--global] | detach NAME | sources | export NAME FOLDER"
_WORD = r"""("[^"]*"|'[^']*'|.*?\S)"""
_ATTACH = re.compile(rf"(--global\s+)?{_WORD}(?:\s+as\s+(\S+))?(\s+--global)?", re.S)
_EXPORT = re.compile(rf"(\S+)\s+{_WORD}", re.S)


class Attached(Protocol):
    """A source, and how it stands in a line."""

    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def line(self) -> str: ...


class SourceStore(Protocol):
    """What is attached; every method raises ConfigError."""

    def of(self, workspace: str) -> Sequence[Attached]: ...
    def detach(self, workspace: str, name: str) -> Attached: ...
    async def export(self, workspace: str, name: str, folder: str) -> str: ...
    async def attach(
        self, workspace: str, path: str, name: str, everywhere: bool, tell: Callable[[int, int], None]
    ) -> Attached: ...


class SourceCommands:
    """The actions of /context that concern attached sources."""

    def __init__(self, sources: SourceStore, tell: Callable[[str, Event], None]) -> None:
        self._sources = sources
        self._tell = tell

    async def run(self, line: str, context: CommandContext) -> CommandOutput | None:
        """What a line such as "attach ~/data as data" comes to; None for one that is not about sources."""
        verb, _, rest = line.removeprefix("external ").strip().partition(" ")
        if verb not in VERBS:
            return None
        try:
            return await self._do(verb, rest.strip(), context)
        except CodeWhaleError as error:
            return CommandOutput(str(error), ok=False)

    async def _do(self, verb: str, rest: str, context: CommandContext) -> CommandOutput:
        workspace = context.workspace
        if verb == "sources" and not rest:
            rows = await asyncio.to_thread(lambda: [one.line for one in self._sources.of(workspace)])
            return CommandOutput("\n".join(rows) or "No sources are attached. Use /context attach PATH [as NAME].")
        if verb == "detach" and rest:
            source = self._sources.detach(workspace, rest)
            return CommandOutput(f"Detached {source.name}: {source.path} itself is as it was.")
        if verb == "attach" and (words := _ATTACH.fullmatch(rest)):
            return await self._attach(words, context)
        if verb == "export" and (words := _EXPORT.fullmatch(rest)):
            return CommandOutput(await self._sources.export(workspace, words[1], words[2].strip("\"'")))
        return misuse(f"Use /context {USAGE}.")

    async def _attach(self, words: re.Match[str], context: CommandContext) -> CommandOutput:
        loop = asyncio.get_running_loop()

        def tell(done: int, total: int) -> None:
            shown = ProgressShown("source", done, total, "bytes hashed")
            loop.call_soon_threadsafe(self._tell, context.session, shown)

        everywhere = bool(words[1] or words[4])
        source = await self._sources.attach(context.workspace, words[2].strip("\"'"), words[3] or "", everywhere, tell)
        return CommandOutput(
            f"Attached {source.line}\nNothing of it is sent by itself; tools read it, and never write."
        )
