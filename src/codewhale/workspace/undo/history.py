"""What a session has done to a workspace, turn by turn, and what of it was taken back: a fold over the history."""

import asyncio
import contextlib
import fcntl
import os
import re
import shutil
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager

import msgspec
from msgspec import Struct

from codewhale.lib.beneath import Root
from codewhale.lib.clock import Clock
from codewhale.lib.files import DISK, atomic_write, private_dir
from codewhale.process.repository import find_repository
from codewhale.process.sandbox.gitfiles import read_small
from codewhale.workspace.undo.journal import (
    Change,
    Journal,
    JournalContent,
    JournalDamagedError,
    JournalEntry,
    SnapshotError,
    as_written,
)
from codewhale.workspace.undo.scan import (
    FileLook,
    FileScanner,
    KnownFile,
    TooLongError,
    TooMuchError,
    change_of,
    ignored_before,
    is_rule_file,
)
from codewhale.workspace.walk import Walker


class UndoTurn(Struct, frozen=True):
    """What a session's calls of one turn changed: from entry `since` on, at `at` (seconds since the epoch), by these
    tools, in these files. `number` is 0 for the last undo, which can be taken back like a turn."""

    since: int
    number: int
    at: float
    tools: tuple[str, ...]
    paths: tuple[str, ...]


def live_turns(entries: Sequence[JournalEntry], session: str) -> list[UndoTurn]:
    live: list[UndoTurn] = []
    earlier: dict[int, list[UndoTurn]] = {}
    for entry in entries:
        if entry.session != session:
            continue
        earlier[entry.number] = list(live)
        if entry.kind == "undo":
            live = earlier.get(entry.since, [turn for turn in live if turn.since < entry.since])
        elif live and live[-1].number == entry.turn:
            live[-1] = _joined(live[-1], entry)
        else:
            live.append(_turn(entry, entry.turn))
    return live[::-1]


def last_undo(entries: Sequence[JournalEntry], session: str) -> UndoTurn | None:
    """The undo that was the last thing the session did to the workspace."""
    own = [entry for entry in entries if entry.session == session]
    return _turn(own[-1], 0) if own and own[-1].kind == "undo" else None


def _turn(entry: JournalEntry, number: int) -> UndoTurn:
    return UndoTurn(entry.number, number, entry.at, (entry.tool,), tuple(change.path for change in entry.changes))


def _joined(turn: UndoTurn, entry: JournalEntry) -> UndoTurn:
    tools = (*turn.tools, *(() if entry.tool in turn.tools else (entry.tool,)))
    paths = {**dict.fromkeys(turn.paths), **dict.fromkeys(change.path for change in entry.changes)}
    return UndoTurn(turn.since, turn.number, entry.at, tools, tuple(paths))


LOCK_SECONDS = 10.0
_NEVER = re.compile(r"(?:^|/)(?:\.git|\.codewhale|git~1)(?:/|$)", re.IGNORECASE)
_SLACK = 50_000_000  # a file's ctime may lag behind the clock (nanoseconds)
_PICTURE = "picture"
_REFUSED = "refused"
_DAY = 86_400.0


class Bounds(Struct, frozen=True):
    """What a history may take: files and bytes of the workspace, seconds of one look at it, bytes on the disk before
    fewer turns are kept, turns and days that are kept."""

    files: int = 200_000
    bytes: int = 2 << 30
    seconds: float = 20.0
    disk: int = 500 << 20
    turns: int = 50
    days: float = 7.0


BOUNDS = Bounds()


class _Picture(Struct):
    """What is known of the files when the journal stands at `head`; `full`: all of them were looked at."""

    head: str = ""
    full: bool = False
    files: dict[str, KnownFile] = {}


class PriorScan(Struct, frozen=True):
    """What was seen before a call and is not written down yet: looks, each with what was known before it, and whose
    doing the difference is."""

    looks: tuple[tuple[FileLook, KnownFile | None], ...] = ()
    author: JournalEntry | None = None


class FileHistory:
    """The history of the workspace at `root`, kept under `folder`; `apart` are folders in it that are none of its
    business. Raises SnapshotError and TooMuchError."""

    def __init__(
        self, root: str, folder: str, clock: Clock, apart: Sequence[str] = (), bounds: Bounds = BOUNDS
    ) -> None:
        self.root = Root(root)
        self.journal = Journal(folder, root)
        self.entries: list[JournalEntry] = []
        self._clock = clock
        self._bounds = bounds
        self._apart = frozenset(apart)
        self._picture: _Picture | None = None
        self._gone: set[str] = set()  # paths of files that were once deleted: what stands there again is not new
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Alone with the journal, which is read again if another process wrote to it. Not to be entered twice."""
        async with self._lock:
            try:
                private_dir(self.journal.folder)
                fd = DISK.open(os.path.join(self.journal.folder, "lock"), os.O_RDWR | os.O_CREAT)
            except OSError as error:
                raise SnapshotError(f"the record of changes cannot be written: {error}") from error
            try:
                await _locked(fd)
                if self._picture is None or self._picture.head != self.journal.head():
                    await self._load()
                yield
            finally:
                os.close(fd)

    async def peek(
        self, paths: Iterable[str], author: JournalEntry | None = None, former: PriorScan | None = None
    ) -> PriorScan:
        """What is different at these paths (against `former`, where that came before), by the doing of `author` or of
        somebody else: kept in memory, to be written down later. Only while `held`, or right behind `former`."""
        assert self._picture is not None
        names = [path for path in paths if self.is_ours(path)]
        known = {path: one for path in names if (one := self._picture.files.get(path)) is not None}
        known = _with(known, (look for look, _ in former.looks)) if former else known
        looker = FileScanner(self.root, self._bounds.seconds)
        try:
            looks = await asyncio.to_thread(lambda: list(looker.all(names, known)))
        finally:
            looker.stop.set()
        return PriorScan(tuple((look, known.get(look.path)) for look in looks), author)

    async def write(self, formers: Sequence[PriorScan]) -> tuple[JournalEntry, ...]:
        """Write down what was seen, in this order, but for files of which something was written down since. Only while
        `held`."""
        assert self._picture is not None
        files = self._picture.files
        known = {look.path: files.get(look.path) for former in formers for look, _ in former.looks}
        looks: list[FileLook] = []
        made: list[JournalEntry] = []
        groups: list[tuple[JournalEntry | None, list[Change]]] = []

        def contents() -> Iterator[JournalContent]:
            for former in formers:
                groups.append((former.author, []))
                for look, was in former.looks:
                    if change_of(FileLook(look.path, was), known[look.path]) is None:
                        known[look.path] = look.known
                        looks.append(look)
                        content = change_of(look, was)
                        if content is not None:
                            groups[-1][1].append(content.change)
                            yield content

        async def settle(changes: list[Change]) -> Sequence[JournalEntry]:
            for author, done in groups:
                new = set() if author else {one.path for one in done if one.before is None} - self._gone
                made.extend(self._entries(done, author, new, len(made)))
            return made

        await self.journal.record(contents(), settle)
        self._absorb(looks, made, False)
        return tuple(made)

    async def look(
        self,
        paths: Iterable[str] | None,
        author: JournalEntry | None = None,
        begun: int = 0,
        leave: frozenset[str] = frozenset(),
    ) -> tuple[JournalEntry, ...]:
        """Write down what is different at these paths, or (None) anywhere but at those of `leave`; the entries that
        came of it. It is the `author`'s doing (an entry without changes), but for files that no one had seen and that
        are older than `begun` (nanoseconds since the epoch); without an author it is somebody else's. Only while
        `held`."""
        assert self._picture is not None
        known, everywhere = self._picture.files, paths is None
        names = await self._everywhere() if paths is None else {path for path in paths if self.is_ours(path)}
        names -= leave
        looker = FileScanner(self.root, self._bounds.seconds, discreet=True)
        looks: list[FileLook] = []
        made: list[JournalEntry] = []
        late: list[TooLongError] = []

        def contents() -> Iterator[JournalContent]:
            try:
                for look in looker.all(names, known):
                    looks.append(msgspec.structs.replace(look, data=None))
                    content = change_of(look, known.get(look.path))
                    if content is not None:
                        yield content
            except TooLongError as error:
                late.append(error)

        async def settle(changes: list[Change]) -> Sequence[JournalEntry]:
            new = await self._were_there(changes, author, {look.path: look for look in looks}, begun)
            made.extend(self._entries(changes, author, new, 0))
            return made

        try:
            await self.journal.record(contents(), settle)
        finally:
            looker.stop.set()
        self._absorb(looks, made, everywhere and not late)
        if late:
            raise late[0]
        return tuple(made)

    def is_ours(self, path: str) -> bool:
        """Whether a path is of those whose history is kept."""
        if _NEVER.search(path):
            return False
        return not self._apart or not any(path == one or path.startswith(one + "/") for one in self._apart)

    def refusal(self) -> str:
        """Why the whole workspace is not looked at today, "" when it is."""
        path = os.path.join(self.journal.folder, _REFUSED)
        with contextlib.suppress(OSError):
            if time.time() - os.stat(path).st_mtime < _DAY:
                return (read_small(path) or b"").decode("utf-8", "replace")
        return ""

    def refuse(self, reason: str) -> None:
        """Do not look at the whole workspace again today."""
        with contextlib.suppress(OSError):
            atomic_write(os.path.join(self.journal.folder, _REFUSED), reason.encode())

    async def save(self) -> None:
        """Keep what is known of the files, so that the next process need not read them all."""
        picture = self._picture
        if picture is None:
            return
        async with self._lock:
            with contextlib.suppress(OSError):
                path = os.path.join(self.journal.folder, _PICTURE)
                await asyncio.to_thread(atomic_write, path, msgspec.msgpack.encode(picture))

    async def _everywhere(self) -> set[str]:
        """Every path to look at: what is not ignored now, and what was known before."""
        assert self._picture is not None
        bounds = self._bounds
        listing = await Walker(self.root.path, limit=bounds.files, seconds=bounds.seconds).files()
        if listing.truncated:
            raise TooMuchError(f"it has more than {bounds.files:,} files, or they take too long to list")
        if not self._picture.full:
            room = await asyncio.to_thread(_room, self.root.path, listing.files)
            if room > bounds.bytes:
                raise TooMuchError(f"its files take {room >> 20:,} MiB, more than {bounds.bytes >> 20:,}")
        self._apart |= await asyncio.to_thread(_git_folders, self.root)
        return {*filter(self.is_ours, listing.files), *filter(self.is_ours, listing.links), *self._picture.files}

    def _entries(
        self, changes: Sequence[Change], author: JournalEntry | None, new: set[str], made: int
    ) -> Iterator[JournalEntry]:
        """The changes as entries, behind `made` others that are not yet remembered."""
        number, at = made + (self.entries[-1].number if self.entries else 0), self._clock.now()
        first_seen = tuple(one for one in changes if one.path in new)
        rest = tuple(one for one in changes if one.path not in new)
        if first_seen:
            number += 1
            yield JournalEntry(number, at, "found", changes=first_seen)
        if rest:
            kept = author or JournalEntry(0, 0.0, "other")
            yield msgspec.structs.replace(kept, number=number + 1, at=at, changes=rest)

    async def _were_there(
        self, changes: Sequence[Change], author: JournalEntry | None, looks: dict[str, FileLook], begun: int
    ) -> set[str]:
        """The files seen for the first time that had been there all along: older than the call, or hidden before it,
        and not moved with a folder."""
        left = {(one.before.blob, os.path.basename(one.path)) for one in changes if one.before and not one.after}
        fresh = [one for one in changes if one.before is None and one.path not in self._gone]
        new = [one.path for one in fresh if one.after and (one.after.blob, os.path.basename(one.path)) not in left]
        if author is None or not begun:
            return set(new) if author is None else set()
        rules = {one.path: one.before for one in changes if is_rule_file(one.path)}
        kept = await self.journal.read({state.blob: state.size for state in rules.values() if state and state.blob})
        former = {path: kept.get(state.blob, b"") if state else b"" for path, state in rules.items()}
        old = {path for path in new if (known := looks[path].known) and known.born < begun - _SLACK}
        return old | (await asyncio.to_thread(ignored_before, self.root, new, former) if new else set())

    def _absorb(self, looks: Iterable[FileLook], made: Sequence[JournalEntry], everywhere: bool) -> None:
        assert self._picture is not None
        _with(self._picture.files, looks)
        self._picture.full = self._picture.full or everywhere
        self._picture.head = self.journal.head()
        self._remember(made)

    def _remember(self, entries: Iterable[JournalEntry]) -> None:
        for entry in entries:
            self.entries.append(as_written(entry))
            self._gone |= {change.path for change in entry.changes if change.after is None}

    async def _load(self) -> None:
        """Read the journal, and what was known of the files when it was last written."""
        await self.journal.open()
        self.entries, self._gone = [], set()
        try:
            self._remember(await self._kept())
            head = self.journal.head()
            picture = await asyncio.to_thread(_kept_picture, os.path.join(self.journal.folder, _PICTURE))
            if picture is None or picture.head != head:
                files = await self.journal.files()
                picture = _Picture(head, False, {path: KnownFile(state, ()) for path, state in files.items()})
        except JournalDamagedError as error:
            aside = await asyncio.to_thread(_set_aside, self.journal.folder)
            raise SnapshotError(f"{error}; the old history is moved to {aside}, and a new one is started") from error
        self._picture = picture

    async def _kept(self) -> list[JournalEntry]:
        """The entries, once those are forgotten that are older than a week or fifty turns; ten where the journal takes
        too much room on the disk."""
        entries = await self.journal.entries()
        large = await asyncio.to_thread(self.journal.size) > self._bounds.disk
        turns = self._bounds.turns // 5 if large else self._bounds.turns
        since = self._clock.now() - self._bounds.days * _DAY
        oldest = _oldest_kept([entry for _, entry in entries], since, turns)
        if oldest:
            await self.journal.cut(entries[oldest][0])
        return [entry for _, entry in entries[oldest:]]


def _with(known: dict[str, KnownFile], looks: Iterable[FileLook]) -> dict[str, KnownFile]:
    for look in looks:
        if look.known is None:
            known.pop(look.path, None)
        else:
            known[look.path] = look.known
    return known


def _oldest_kept(entries: Sequence[JournalEntry], since: float, turns: int) -> int:
    """The index of the first entry to keep; 0 while not enough has gathered for it to be worth the while."""
    seen: set[tuple[str, int]] = set()
    oldest = 0
    for index in reversed(range(len(entries))):
        entry = entries[index]
        if entry.turn:
            seen.add((entry.session, entry.turn))
        if len(seen) > turns or entry.at < since:
            oldest = index + 1
            break
    return min(oldest, len(entries) - 1) if oldest > max(20, len(entries) // 5) else 0


def _room(root: str, files: Iterable[str]) -> int:
    total = 0
    for path in files:
        with contextlib.suppress(OSError):
            total += os.lstat(f"{root}/{path}").st_size
    return total


def _set_aside(folder: str) -> str:
    """Put a journal that cannot be read out of the way, in place of an earlier one; where it is then."""
    aside = folder + ".damaged"
    shutil.rmtree(aside, ignore_errors=True)
    os.rename(folder, aside)
    return aside


def _kept_picture(path: str) -> _Picture | None:
    try:
        with open(path, "rb") as file:
            return msgspec.msgpack.decode(file.read(), type=_Picture)
    except (OSError, msgspec.MsgspecError):
        return None


def _git_folders(root: Root) -> frozenset[str]:
    """Folders beneath the root that hold the repository itself, wherever a `.git` file points."""
    repository = find_repository(root.path)
    folders = () if repository is None else (repository.gitdir, repository.common)
    real = (os.path.realpath(folder) for folder in folders)
    return frozenset(os.path.relpath(one, root.path) for one in real if one.startswith(root.path.rstrip("/") + "/"))


async def _locked(fd: int) -> None:
    stop = threading.Event()
    try:
        async with asyncio.timeout(LOCK_SECONDS):
            await asyncio.to_thread(_lock, fd, stop)
    except TimeoutError:
        raise SnapshotError("another process is using its history") from None
    finally:
        stop.set()


def _lock(fd: int, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(0.02)
