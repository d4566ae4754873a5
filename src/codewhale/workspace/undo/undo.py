"""Undo: watches the calls that change a workspace, and takes back what they did.

What lies between the looks before and after a call is the agent's; everything else is somebody else's and stays. A
call that writes named files is looked at there alone, one that runs programs everywhere, a reading one not at all.
"""

import asyncio
import hashlib
import os
import time
from collections.abc import Callable, Sequence
from itertools import accumulate

from msgspec import Struct

from codewhale.lib.beneath import PathRefused
from codewhale.lib.clock import Clock
from codewhale.lib.threads import run_to_end
from codewhale.permissions.folders import real_outside
from codewhale.process.launch import settle
from codewhale.protocol.decisions import CallView, Opinion
from codewhale.protocol.events import Event, Notice
from codewhale.protocol.files import FileChange
from codewhale.protocol.tools import Effect, PathSubject, ToolResult
from codewhale.workspace.ignore import CACHES
from codewhale.workspace.undo.history import FileHistory, PriorScan, UndoTurn, last_undo, live_turns
from codewhale.workspace.undo.journal import Change, FileState, JournalEntry, SnapshotError, blob_id
from codewhale.workspace.undo.resolve import NOT_KEPT, Revision, UndoRefusal, resolve
from codewhale.workspace.undo.restore import remove_empty, write_back
from codewhale.workspace.undo.scan import TooLongError, TooMuchError

LOOK_SECONDS = 60.0
READ_AT_ONCE = 32 << 20
SHOWN_FILES = 40
_REMEMBERED = 100
_LISTED, _HASHED_BYTES = 100, 16 << 20
SHOWN_BYTES, ROOM = 256 << 10, 256 << 10
TOO_MANY = "{} changed too many files at once to be undone"


class UndoneFile(Struct, frozen=True):
    """One file of a plan: as it is and as it will be (None: no file); `data` are its new bytes where those are not
    kept under `then.blob`."""

    path: str
    now: FileState | None
    then: FileState | None
    data: bytes | None = None


class UndoPlan(Struct, frozen=True):
    """What is to be taken back for a session: all that it did from entry `since` on. Nothing is done yet."""

    session: str
    workspace: str
    since: int
    files: tuple[UndoneFile, ...]
    refused: tuple[UndoRefusal, ...]


class UndoResult(Struct, frozen=True):
    changes: tuple[FileChange, ...]
    refused: tuple[UndoRefusal, ...]


class _Window(Struct, frozen=True):
    """A call that runs: where it may change something (None: anywhere), since when (nanoseconds), and what was seen
    there before."""

    author: JournalEntry
    paths: frozenset[str] | None
    begun: int
    former: PriorScan = PriorScan()


class Undo:
    """The histories of the workspaces of one process. `home` is the state directory; `turn_of` tells
    whose turn a session works in (itself, or for a child the session that it works for) and which it is, `tell` sends a
    session an event."""

    def __init__(
        self, home: str, clock: Clock, turn_of: Callable[[str], tuple[str, int]], tell: Callable[[str, Event], None]
    ) -> None:
        self._home = os.path.realpath(home)
        self._clock = clock
        self._turn_of = turn_of
        self._tell = tell
        self._histories: dict[str, FileHistory] = {}
        self._open: dict[str, dict[tuple[str, str], _Window]] = {}
        self._unwatched: set[str] = set()
        self._told: set[tuple[str, str]] = set()
        self._writing: dict[str, asyncio.Task[None]] = {}
        self._changed: dict[tuple[str, str], tuple[FileChange, ...]] = {}

    def changed_files(self, session: str, call_id: str) -> tuple[FileChange, ...]:
        """The files, the first hundred, that one of the last calls of a program was seen to change; a hash is "" where
        the bytes are not kept."""
        return self._changed.get((session, call_id), ())

    async def judge(self, call: CallView) -> Opinion | None:
        return None

    async def before(self, call: CallView) -> str | None:
        """Look at what the call may change. Never stands in its way."""
        root, paths = os.path.realpath(call.workspace), _scope(call)
        for away in sorted(filter(None, (real_outside(path, root) for path in paths or ()))):
            self._tell_once(call, os.path.dirname(away), "it is outside the workspace")
        history = self._history(root)
        if paths is None and (root in self._unwatched or (reason := history.refusal())):
            if root not in self._unwatched:
                self._give_up(call, root, TooLongError(reason))
            return None
        if paths is not None:
            paths = frozenset(_resolved(history, path) for path in paths)
        open_here, former = self._open.setdefault(root, {}), PriorScan()
        await self._settled(root)
        try:
            async with asyncio.timeout(LOOK_SECONDS), history.held():
                if paths is None:
                    await history.look(None, _elsewhere(open_here), leave=_named(open_here))
                else:
                    former = await history.peek(paths, _elsewhere(open_here))
        except (SnapshotError, TooMuchError, TimeoutError, OSError) as error:
            self._give_up(call, root, error)
            return None
        author = JournalEntry(0, 0.0, "call", *self._turn_of(call.session), call.call_id, call.tool)
        open_here[call.session, call.call_id] = _Window(author, paths, time.time_ns(), former)
        return None

    async def after(self, call: CallView, result: ToolResult | None) -> str | None:
        """Look at what the call changed. What was seen of named files is written down beside whatever comes next; all
        that is done here waits for it."""
        root = os.path.realpath(call.workspace)
        open_here, key = self._open.get(root, {}), (call.session, call.call_id)
        window = open_here.get(key)
        if window is None:
            return None
        if window.paths is None:
            del open_here[key]
        history = self._history(root)
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                if window.paths is not None:
                    later = await history.peek(window.paths, window.author, window.former)
                    await self._settled(root)
                    write = self._write_down(call, root, (window.former, later))
                    self._writing[root] = asyncio.create_task(write, name=f"undo {call.call_id}")
                    return None
                await self._settled(root)
                async with history.held():
                    seen = await history.look(None, window.author, window.begun, _named(open_here))
                    mine = (one for entry in seen if entry.call == call.call_id for one in entry.changes)
                    changed = [one for one in mine if CACHES.isdisjoint(one.path.split("/"))]
                    files = await _hashed(history, changed[:_LISTED])
                self._changed = dict([*self._changed.items(), *([(key, files)] if files else [])][-_REMEMBERED:])
        except (SnapshotError, TooMuchError, TimeoutError, OSError) as error:
            open_here.pop(key, None)
            self._give_up(call, root, error)
        except asyncio.CancelledError:
            open_here.pop(key, None)
            raise
        return None

    async def _write_down(self, call: CallView, root: str, seen: Sequence[PriorScan]) -> None:
        history = self._history(root)
        try:
            async with asyncio.timeout(LOOK_SECONDS), history.held():
                await history.write(seen)
        except (SnapshotError, TooMuchError, TimeoutError, OSError) as error:
            self._give_up(call, root, error)
        finally:
            self._open[root].pop((call.session, call.call_id), None)

    async def _settled(self, root: str) -> None:
        while (task := self._writing.get(root)) is not None:
            await asyncio.wait([task])
            if self._writing.get(root) is task:
                del self._writing[root]

    async def turns(self, session: str, workspace: str) -> tuple[UndoTurn, ...]:
        """The session's turns that changed files here and still stand, newest first. Raises SnapshotError."""
        history = await self._present(workspace)
        async with history.held():
            return tuple(live_turns(history.entries, session))

    async def since_turn(self, session: str, workspace: str, turn: int) -> int | None:
        """The first entry that stands of what the session did in `turn` and later, None for nothing. Raises
        SnapshotError."""
        turns = await self.turns(session, workspace)
        return next((one.since for one in reversed(turns) if one.number >= turn), None)

    async def last_undo(self, session: str, workspace: str) -> UndoTurn | None:
        """The undo that was the last thing the session did here. Raises SnapshotError."""
        history = await self._present(workspace)
        async with history.held():
            return last_undo(history.entries, session)

    async def plan(self, session: str, workspace: str, since: int) -> UndoPlan:
        """What taking back all that the session did from entry `since` on comes to. Raises SnapshotError."""
        history = await self._present(workspace)
        async with history.held():
            running = _elsewhere(self._open.get(history.root.path, {}))
            await self._look(history, _paths(history.entries, session, since), running)
            return await _plan(history, session, history.root.path, since)

    async def contents(self, plan: UndoPlan) -> tuple[tuple[str, bytes | None, bytes | None], ...]:
        """(path, bytes now, bytes then) of a plan's first forty files, to be shown; larger ones are left out."""
        history = self._history(plan.workspace)
        shown = [one for one in plan.files[:SHOWN_FILES] if max(_size(one.now), _size(one.then)) <= SHOWN_BYTES]
        states = [state for one in shown for state in (one.now, one.then) if state is not None and state.blob]
        kept = await history.journal.read({state.blob: state.size for state in states})

        def data(state: FileState | None) -> bytes | None:
            return None if state is None else kept.get(state.blob, b"")

        return tuple((one.path, data(one.now), data(one.then) if one.data is None else one.data) for one in shown)

    async def carry_out(self, plan: UndoPlan) -> UndoResult:
        """Do what a plan says, and write it down; a cancel waits for its end. What has changed since the plan was made
        is refused. Raises SnapshotError."""
        done: list[UndoResult] = []

        async def work() -> None:
            done.append(await self._carry_out(plan))

        await settle(work())
        return done[0]

    async def aclose(self) -> None:
        """Write down what is left to be, and keep what is known of the files for the next process."""
        for root, history in self._histories.items():
            await self._settled(root)
            await history.save()

    async def _carry_out(self, plan: UndoPlan) -> UndoResult:
        history = await self._present(plan.workspace)
        refused, changes = list(plan.refused), list[FileChange]()
        turn = self._turn_of(plan.session)[1]
        author = JournalEntry(0, 0.0, "undo", plan.session, turn, tool="undo", since=plan.since)
        size = ROOM + sum(1_000 + len(one.data or b"") for one in plan.files)
        async with history.held():
            await asyncio.to_thread(history.journal.check_room, size)
            # Deletions first: a file may be in the way of a folder, and a folder in that of a file.
            for one in plan.files:
                if one.then is None:
                    await self._take(history, one, {}, changes, refused)
            for change in changes:
                await asyncio.to_thread(remove_empty, history.root, os.path.dirname(change.path))
            for some in _portions([one for one in plan.files if one.then is not None]):
                kept = await history.journal.read({one.then.blob: one.then.size for one in some if one.then})
                for one in some:
                    await self._take(history, one, kept, changes, refused)
            paths = [change.path for change in changes]
            await self._look(history, paths, author)
        return UndoResult(tuple(changes), tuple(refused))

    async def _take(
        self,
        history: FileHistory,
        one: UndoneFile,
        kept: dict[str, bytes],
        changes: list[FileChange],
        refused: list[UndoRefusal],
    ) -> None:
        data = one.data
        if data is None and one.then is not None and not _same_bytes(one):
            data = kept.get(one.then.blob)
            if data is None:
                refused.append(UndoRefusal(one.path, NOT_KEPT))
                return
        if not history.is_ours(one.path):
            refused.append(UndoRefusal(one.path, "it is a protected path, which is never written"))
            return
        written = await run_to_end(write_back, history.root, one.path, one.now, one.then, data)
        if written.reason:
            refused.append(UndoRefusal(one.path, written.reason))
        else:
            changes.append(FileChange(one.path, written.before, written.after))

    async def _look(self, history: FileHistory, paths: Sequence[str], author: JournalEntry | None = None) -> None:
        try:
            await history.look(paths, author)
        except TooMuchError as error:
            raise SnapshotError(f"the files cannot be read: {error}") from error

    async def _present(self, workspace: str) -> FileHistory:
        root = os.path.realpath(workspace)
        await self._settled(root)
        return self._history(root)

    def _history(self, root: str) -> FileHistory:
        if root not in self._histories:
            name = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
            inside = os.path.relpath(self._home, root)
            apart = () if inside.startswith("..") else (inside,)
            folder = os.path.join(self._home, "snapshots", name)
            self._histories[root] = FileHistory(root, folder, self._clock, apart)
        return self._histories[root]

    def _give_up(self, call: CallView, root: str, error: Exception) -> None:
        """Tell the person, once, that a call's changes cannot be taken back."""
        reason = str(error) or "it took too long"
        if isinstance(error, TooMuchError | TimeoutError):
            self._unwatched.add(root)
            if not isinstance(error, TooLongError):  # which goes on where it ended, next time
                self._history(root).refuse(reason)
        self._tell_once(call, root, reason)

    def _tell_once(self, call: CallView, root: str, reason: str) -> None:
        if (root, reason) not in self._told:
            self._told.add((root, reason))
            text = f"What {call.tool} changes in {root} cannot be undone: {reason}."
            self._tell(call.session, Notice("warning", text, "undo_unavailable"))


async def _hashed(history: FileHistory, changes: Sequence[Change]) -> tuple[FileChange, ...]:
    """Changes with the sha256 of what was kept of them, as far as that can be read in a moment."""
    states = (state for change in changes for state in (change.after, change.before) if state is not None)
    sizes = {state.blob: state.size for state in states if state.blob}
    within = zip(sizes, accumulate(sizes.values()), strict=True)
    kept = await history.journal.read({blob: sizes[blob] for blob, total in within if total <= _HASHED_BYTES})
    sums = {blob: hashlib.sha256(data).hexdigest() for blob, data in kept.items()}

    def sha(state: FileState | None) -> str | None:
        return None if state is None else sums.get(state.blob, "")

    return tuple(FileChange(change.path, sha(change.before), sha(change.after)) for change in changes)


async def _plan(history: FileHistory, session: str, root: str, since: int) -> UndoPlan:
    moves: dict[str, list[Revision]] = {}
    refused: list[UndoRefusal] = []
    for entry in history.entries:
        if entry.number < since:
            continue
        mine = entry.session == session
        if mine and entry.unlisted:
            refused.append(UndoRefusal("", TOO_MANY.format(entry.tool)))
        for change in entry.changes:
            chain = moves.setdefault(change.path, [])
            if chain and chain[-1].after != change.before:
                chain.append(Revision(False, chain[-1].after, change.before))
            if mine or chain:
                chain.append(Revision(mine, change.before, change.after))
    files = []
    for path, chain in sorted(moves.items()):
        if not chain:
            continue
        wanted = await resolve(path, chain, history.journal)
        refused += wanted.refused
        now, then = chain[-1].after, wanted.state
        if then is not None and wanted.data is not None:
            then = FileState(then.mode, blob_id(wanted.data), then.size)
        if now is not None and not now.blob and (then is None or then.blob):
            refused.append(UndoRefusal(path, NOT_KEPT))
        elif now != then:
            files.append(UndoneFile(path, now, then, wanted.data))
    return UndoPlan(session, root, since, tuple(files), tuple(refused))


def _scope(call: CallView) -> frozenset[str] | None:
    """The paths that a call may write, as it names them; None for anything."""
    if Effect.EXECUTES in call.effects:
        return None
    return frozenset(one.path for one in call.subjects if isinstance(one, PathSubject) and one.write)


def _resolved(history: FileHistory, path: str) -> str:
    try:
        return history.root.resolve(path)
    except (PathRefused, OSError):
        return ".git"  # refused by whoever writes; never looked at


def _elsewhere(windows: dict[tuple[str, str], _Window]) -> JournalEntry | None:
    """Whose doing it is what is found before a call: that of the longest running other one, if there is any."""
    return next((window.author for window in windows.values() if window.paths is None), None)


def _named(windows: dict[tuple[str, str], _Window]) -> frozenset[str]:
    """The files that running calls may write by name: each is looked at when its own call has ended."""
    return frozenset().union(*(window.paths for window in windows.values() if window.paths is not None))


def _paths(entries: Sequence[JournalEntry], session: str, since: int) -> list[str]:
    own = (entry for entry in entries if entry.session == session and entry.number >= since)
    return sorted({change.path for entry in own for change in entry.changes})


def _size(state: FileState | None) -> int:
    return 0 if state is None else state.size


def _same_bytes(one: UndoneFile) -> bool:
    return one.now is not None and one.then is not None and one.now.blob == one.then.blob and not one.then.is_link


def _portions(files: Sequence[UndoneFile]) -> list[list[UndoneFile]]:
    portions: list[list[UndoneFile]] = [[]]
    room = READ_AT_ONCE
    for one in files:
        room -= _size(one.then)
        if room < 0 and portions[-1]:
            portions.append([])
            room = READ_AT_ONCE - _size(one.then)
        portions[-1].append(one)
    return portions
