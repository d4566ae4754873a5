"""Attached sources in sessions: what is checked of their paths, and which version of one a session has read."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping

from codewhale.lib.clock import Clock
from codewhale.memory.external import AttachedSource, Sources, changed_since
from codewhale.memory.layers import MemoryRefused
from codewhale.memory.places import Places
from codewhale.permissions.folders import folder_to_fill, path_to_attach, real_outside
from codewhale.process.rowfile import RowFile, is_own
from codewhale.process.sandbox.profiles import beneath
from codewhale.protocol.decisions import CallView, Opinion
from codewhale.protocol.errors import ConfigError, SessionError
from codewhale.protocol.events import Event, SourceRead, UnknownEvent
from codewhale.protocol.replays import ReplayedSource
from codewhale.protocol.tools import PathSubject, ToolResult
from codewhale.session.session import Session

PATIENCE = 0.25  # seconds that a call may wait for the version of what it reads
_MOST_KNOWN = 4096


def open_sources(home: str, places: Places, clock: Clock) -> Sources:
    """The attached sources of a home."""
    path = os.path.join(home, "memory", "sources.json")

    def refuse(status: os.stat_result) -> None:
        if not is_own(status):
            raise ConfigError(f"{path}: does not belong to you")

    rows = RowFile(path, "sources", AttachedSource, refuse, again="attach the sources again")
    return Sources(home, rows, _PathChecks(home, places), clock)


def replayed_sources(log: Iterable[Event | UnknownEvent]) -> list[ReplayedSource]:
    """The attached sources that a session read, each in the version that it read last, beside what is there now."""
    read = {event.path: event for event in log if isinstance(event, SourceRead)}
    return [
        ReplayedSource(one.name, one.path, one.sha256, changed_since(one.path, one.sha256)) for one in read.values()
    ]


def placed(arguments: dict[str, object], path: str, places: Mapping[str, str]) -> dict[str, object]:
    """The arguments, with the path of a source where they say `path`, which begins with its name."""
    name, _, rest = path.partition("/")
    if name not in places:
        return arguments
    return {key: os.path.join(places[name], rest) if value == path else value for key, value in arguments.items()}


class _PathChecks:
    """Implements memory.external.SourceChecks."""

    def __init__(self, home: str, places: Places) -> None:
        self._home = home
        self._places = places
        self.workspace_id = places.folder

    def remember(self, workspace: str) -> None:
        try:
            self._places.remember(workspace)
        except MemoryRefused as error:
            raise ConfigError(str(error)) from None

    def attachable(self, path: str, workspace: str) -> str:
        return path_to_attach(path, workspace, self._home)

    def fillable(self, path: str, workspace: str) -> str:
        return folder_to_fill(path, workspace, self._home)


class SourceReads:
    """Implements agent.call_hooks.CallHook: records which version of a source a session reads, the first time in each
    turn, and again only where it is another one."""

    def __init__(self, sources: Sources, session: Callable[[str], Session]) -> None:
        self._sources = sources
        self._session = session
        self._known: dict[tuple[str, str], int] = {}
        self._looking: set[asyncio.Task[None]] = set()

    async def judge(self, call: CallView) -> Opinion | None:
        """The path of a source, where a call reads by its name and the workspace has nothing so called."""
        for subject in call.subjects:
            if not isinstance(subject, PathSubject) or subject.write:
                continue
            if os.path.lexists(os.path.join(call.workspace, subject.path.partition("/")[0])):
                continue
            places = {one.name: one.path for one in self._sources.readable(call.workspace)}
            meant = placed(call.arguments, subject.path, places)
            if meant != call.arguments:
                return Opinion("", "source.name", "", arguments=meant)
        return None

    async def before(self, call: CallView) -> str | None:
        """Have the version recorded before the call reads; where that takes longer, that a source was read, and the
        version as soon as it is known."""
        paths = [one.path for one in call.subjects if isinstance(one, PathSubject)]
        real = [path for path in (real_outside(path, call.workspace) for path in paths) if path]
        sources = self._sources.readable(call.workspace) if real else ()
        met = [one for one in sources if any(beneath(path, one.path) for path in real)]
        looks = {look: one for one in met if (look := self._look(call.session, one)) is not None}
        late = (await asyncio.wait(looks, timeout=PATIENCE))[1] if looks else ()
        for one in (looks[look] for look in late):
            if one.path not in self._session(call.session).state.sources:
                self._emit(call.session, SourceRead(one.name, one.path, 0, ""))
        return None

    async def after(self, call: CallView, result: ToolResult | None) -> str | None:
        return None

    async def aclose(self) -> None:
        for task in self._looking:
            task.cancel()
        if self._looking:
            await asyncio.wait(self._looking)

    def _look(self, session: str, source: AttachedSource) -> asyncio.Task[None] | None:
        turn = self._session(session).state.turns
        if self._known.get((session, source.path)) == turn:
            return None
        self._known[session, source.path] = turn
        while len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        task = asyncio.ensure_future(self._record(session, source))
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)
        return task

    async def _record(self, session: str, source: AttachedSource) -> None:
        try:
            version = await self._sources.version(source)
            self._emit(session, SourceRead(source.name, source.path, version.bytes, version.id))
        except ConfigError:
            self._emit(session, SourceRead(source.name, source.path, 0, ""))

    def _emit(self, session: str, read: SourceRead) -> None:
        try:
            known = self._session(session)
        except SessionError:
            return
        if known.state.sources.get(read.path) != read:
            known.emit(read)
