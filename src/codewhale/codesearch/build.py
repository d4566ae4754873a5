"""Making an index true of its tree: from nothing, or of what has changed. One way for both: what is not known as it is
now is read again, segment by segment, and what is in is in."""

import asyncio
import contextlib
import fcntl
import os
import stat
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from codewhale.codesearch import fresh, grammars, history
from codewhale.codesearch.indexing import FAILED, Segment, Task, indexed, read
from codewhale.codesearch.languages import Languages
from codewhale.codesearch.model import Commit
from codewhale.codesearch.source import Sources, digest
from codewhale.codesearch.stamps import Stamp, Stamps
from codewhale.codesearch.store import (
    CODE,
    DamagedError,
    Store,
    database_path,
    discard,
    open_store,
    set_aside,
)
from codewhale.codesearch.workers import segments
from codewhale.lib.files import private_dir
from codewhale.process.repository import find_repository, read_head

FEW = 64  # files that are read in this process
_FEW_BYTES = 1 << 20
_TASK_BYTES = 4 << 20
_LEAST_TASK = 256 << 10
_TASK_FILES = 1500
_SEGMENT_BYTES = (6 << 20, 12 << 20)  # of sources in a segment, more in a larger tree
_SEGMENTS = 6
_WAIT = 0.05
# Segments of at most so many files: how many of them may stand before they become few.
_TIERS = ((24, 40), (1500, 24))
_LOOKED_AFTER = 8  # so many new segments, at the least, one looks whether there are too many
_LEFT = 40  # so many segments more than wanted may be left for a quiet moment
_MOST_COUNTED, _EACH_COUNTS = 2 << 20, 1024  # bytes: what a file counts at most, and beside its size

Progress = Callable[[int, int], None]


class Report(Struct, frozen=True):
    """What a refresh did: files read again and forgotten, seconds, and whether the index knows every file now."""

    indexed: int
    forgotten: int
    seconds: float
    complete: bool


class BusyError(Exception):
    """Another process is building this index."""


class Index:
    """The index of one worktree. `state` is the person's state directory; `workers` bounds the processes used."""

    def __init__(self, root: str, state: str, *, workers: int = 2) -> None:
        self.root = os.path.realpath(root)
        self.path = database_path(state, self.root)
        self.grammar_folder = os.path.join(state, "index", "grammars")
        self.workers = workers
        self.is_waiting = False  # for another process that builds
        self.enough = 0  # before there are so many segments one need not look whether they are too many
        self.has_holes = False  # files were forgotten since one looked
        self.is_prepared = False  # the grammars of all its languages are loaded
        self._sources: Sources | None = None
        self._known: tuple[int, Stamps] | None = None
        self._rolled: tuple[int, int, int] | None = None  # the generation, and what `fresh.roll` makes of it

    def sources(self) -> Sources:
        """What this process reads files with, made at the first need."""
        if self._sources is None:
            self._sources = Sources(self.grammar_folder)
        return self._sources

    def open(self) -> Store:
        """Open the store, new where there is none."""
        return open_store(self.path, self.root)

    def discard(self) -> None:
        """Remove the database: the next refresh begins anew."""
        discard(self.path)
        self.forget_stamps()

    def stamps(self, store: Store) -> Stamps:
        """What the store knows of every file; read again only when it has changed."""
        generation = store.generation()
        if self._known is None or self._known[0] != generation:
            self._known = (generation, store.stamps())
        return self._known[1]

    def roll(self, store: Store) -> str:
        """What tells the set of files in the store from another; counted again only when the store has changed."""
        generation = store.generation()
        if self._rolled is None or self._rolled[0] != generation:
            self._rolled = (generation, *fresh.roll(self.stamps(store)))
        return "{1} {2}".format(*self._rolled)

    def knows_all(self, store: Store) -> bool:
        """Whether the index was complete, and holds the very files it held then."""
        return bool(store.meta("complete")) and store.meta("held") == self.roll(store)

    def note(self, generation: int, found: Mapping[str, Stamp], gone: Iterable[str] = ()) -> None:
        """The store has other stamps of some files, and knows others no more, by what this process wrote into it."""
        if self._known is None or generation - self._known[0] not in (0, 1):
            self._known = None  # somebody else has written as well
            return
        before, stamps = self._known
        came, went = [path for path in found if path not in stamps], [path for path in gone if path in stamps]
        if len(came) + len(went) > FEW:
            self._known = None  # so many are read again, which puts neighbours together
            return
        stamps.update(found)
        for path in went:
            del stamps[path]
        self._known = (generation, stamps)
        if self._rolled is not None and self._rolled[0] == before:
            more, less = fresh.roll(came), fresh.roll(went)
            self._rolled = (generation, self._rolled[1] + more[0] - less[0], self._rolled[2] + more[1] - less[1])

    def forget_stamps(self) -> None:
        """The stamps in the store may be others, and so may its segments."""
        self.enough = 0
        self._known = None
        self._rolled = None


async def refresh(
    index: Index,
    *,
    progress: Progress | None = None,
    commits: Sequence[Commit] | None = None,
    wait_seconds: float = 600.0,
    anew: bool = False,
    settled: bool = True,
) -> Report:
    """Make the index true of its tree. `commits` are taken as its history in the place of what git says. `progress` is
    told (files done, files to do). A damaged database is set aside and made anew. `anew`: begin from nothing. Not
    `settled`: what can wait is left to `settle`.

    Raises BusyError when another process is still building after `wait_seconds`, OSError when nothing can be written.
    """
    async with _alone(index, wait_seconds):
        if anew:
            index.discard()
        for attempt in range(2):
            store = index.open()
            try:
                return await _Refresh(index, store, progress or _unheard, settled).run(commits)
            except DamagedError:
                if attempt:
                    raise
                store.close()
                set_aside(index.path)
                index.forget_stamps()
            finally:
                store.close()
    raise AssertionError("unreachable")


async def settle(index: Index) -> None:
    """Do what refreshing left, so that the next change need not wait for it: merge segments, load the grammars of the
    tree's languages. Raises as `refresh` does."""
    await refresh(index)
    if not index.is_prepared:
        await asyncio.to_thread(_prepare, index)


async def is_stale(index: Index, store: Store) -> bool:
    """Whether anything in the tree is not as the index knows it. Looks at every known file and folder, and reads what
    does not look as it did."""
    watched = fresh.Watched.unpacked(store.meta("watched"))
    stamps = index.stamps(store)
    if watched is None or not index.knows_all(store):
        return True
    changed, moved = await asyncio.to_thread(fresh.look_at, index.root, stamps, watched)
    if changed and len(await asyncio.to_thread(_same, index.root, store, changed)) < len(changed):
        return True
    if not moved:
        return False
    return set((await fresh.listed(index.root)).files) != set(stamps)


def _same(root: str, store: Store, paths: Sequence[str]) -> dict[str, Stamp]:
    """Those of the files whose content is what it was, with the stamp they have now."""
    found: dict[str, Stamp] = {}
    for path, sha in store.shas(paths).items():
        told = read(f"{root}/{path}")
        if told is not None and told[0] is not None and digest(told[0]) == sha:
            found[path] = Stamp(*told[1:])
    return found


class _Refresh:
    """One refresh, while nobody else writes."""

    def __init__(self, index: Index, store: Store, progress: Progress, settled: bool) -> None:
        self._index = index
        self._store = store
        self._progress = progress
        self._settled = settled
        self._begun = time.monotonic()
        self._indexed = self._forgotten = 0
        self._done = 0

    async def run(self, commits: Sequence[Commit] | None) -> Report:
        """Find out what has changed, read it again, and remember how the tree stood."""
        watched = fresh.Watched.unpacked(self._store.meta("watched"))
        stamps = self._index.stamps(self._store)
        changed, moved = await asyncio.to_thread(fresh.look_at, self._index.root, stamps, watched)
        moved = moved or not self._index.knows_all(self._store) or _rules_changed(changed)
        listed = await fresh.listed(self._index.root) if moved else None
        pending = await self._pending(stamps, changed, listed)
        if pending:
            await self._read(pending)
        if listed is not None:
            self._remember_listing(listed)
        complete, touched = True, bool(pending or self._forgotten or listed is not None)
        if touched or self._settled:
            touched = await self._merge() or touched
        if touched:
            if listed is not None or commits is not None:
                await self._history(commits)
            complete = await self._conclude(listed)
        return Report(self._indexed, self._forgotten, time.monotonic() - self._begun, complete)

    async def _conclude(self, listed: "fresh.Listed | None") -> bool:
        """Remember which files are in. The index is complete when each listed file has its row or is there no more."""
        stamps = self._index.stamps(self._store)
        missing = [] if listed is None else [path for path in listed.files if path not in stamps]
        there = await asyncio.to_thread(_there, self._index.root, missing) if missing else []
        self._remember(complete=int(not there), held=self._index.roll(self._store), built_at=time.time_ns())
        return not there

    async def _pending(self, stamps: Stamps, changed: list[str], listed: "fresh.Listed | None") -> list[str]:
        """The files to read again. Those that only look changed get their new stamp; those gone are forgotten."""
        present = stamps.keys() if listed is None else set(listed.files)
        gone = [] if listed is None else sorted(stamps.keys() - present)
        if gone:
            self._store.forget(gone)
            self._index.note(self._store.generation(), {}, gone)
            self._forgotten += len(gone)
        looking = [path for path in changed if path in present]
        same = await asyncio.to_thread(_same, self._index.root, self._store, looking) if looking else {}
        if same:
            self._store.restamp(same.items())
            self._index.note(self._store.generation(), same)
        new = set() if listed is None else set(listed.files) - stamps.keys()
        again = ({path for path in changed if path in present} | new) - same.keys()
        return sorted(again, key=_by_ending)

    async def _read(self, pending: list[str]) -> None:
        """Read files again, a few here, many by worker processes."""
        self._progress(0, len(pending))
        if len(pending) <= FEW and not self._have_failed(pending):
            few = await asyncio.to_thread(_few, self._index, pending)
            if few is not None:
                self._take(few, len(pending))
                return
        self._remember(complete=0)
        await asyncio.to_thread(_unpack, self._index, pending)
        sizes = await asyncio.to_thread(_sizes, self._index.root, pending)
        tasks, shown = _tasks(self._index.root, pending, sizes, self._index.workers), 0
        async with contextlib.aclosing(segments(tasks, self._index.grammar_folder, self._index.workers)) as found:
            async for segment in found:
                if segment.held:
                    shown = max(shown, self._done + segment.held)
                    self._progress(shown, len(pending))
                else:
                    await asyncio.to_thread(self._take, segment, len(pending))
        await asyncio.to_thread(self._store.checkpoint)

    def _have_failed(self, paths: Sequence[str]) -> bool:
        """Whether worker processes died of any of the files: this process is not to."""
        found = (self._store.rows("SELECT state FROM files WHERE path = ?", (path,)) for path in paths)
        return any(state == FAILED for rows in found for (state,) in rows)

    def _take(self, segment: Segment, total: int) -> None:
        if segment.failed:
            segment = indexed(self._index.sources(), Task(self._index.root, segment.failed, failed=True))
        self._store.put(segment)
        stamps = {row.path: Stamp(row.size, row.mtime_ns, row.ctime_ns) for row in segment.files}
        self._index.note(self._store.generation(), stamps, segment.gone)
        self._indexed += len(segment.files)
        self._forgotten += len(segment.gone)
        self._done += len(segment.files) + len(segment.gone)
        self._progress(self._done, total)

    async def _merge(self) -> bool:
        """Read segments anew that are too many, or hold little but what is gone; whether there were such."""
        ((count,),) = self._store.rows("SELECT count(*) FROM segments")
        self._index.has_holes |= self._forgotten > 0
        if self._settled:
            if count < self._index.enough and not self._index.has_holes:
                return False
        elif count < self._index.enough + _LEFT:
            return False
        rows = self._store.rows(
            "SELECT id, segments.chunks, held, live, weight FROM segments JOIN (SELECT segment, count(*) AS held, "
            "sum(chunks) AS live, sum(min(size, ?) + ?) AS weight FROM files GROUP BY segment) ON segment = id "
            "WHERE kind = ?",
            (_MOST_COUNTED, _EACH_COUNTS, CODE),
        )
        again = {number for number, chunks, _, live, _ in rows if chunks > 200 and live * 2 < chunks}
        least, room = 0, max(allowed for _, allowed in _TIERS)
        for most, allowed in _TIERS:
            small = {
                number: weight
                for number, _, held, _, weight in rows
                if least < held <= most and weight < _SEGMENT_BYTES[0] // 2
            }
            room = min(room, allowed - len(small))
            if len(small) > allowed:
                again |= small.keys()
            least = most
        if again:
            known = self._store.rows("SELECT path, segment FROM files")
            before = self._indexed
            await self._read(sorted((path for path, number in known if number in again), key=_by_ending))
            self._indexed = before
            ((count,),) = self._store.rows("SELECT count(*) FROM segments")
        self._index.enough = count + max(_LOOKED_AFTER, room + 1)
        self._index.has_holes = False
        return bool(again)

    async def _history(self, commits: Sequence[Commit] | None) -> None:
        head = "given" if commits is not None else await history.head_commit(self._index.root)
        if commits is None and head == (self._store.meta("history") or ""):
            return
        found = list(commits) if commits is not None else await history.read_history(self._index.root) if head else []
        rows, blocks = await asyncio.to_thread(history.segment_of, found)
        self._store.put_history(found, msgspec.msgpack.encode(rows), blocks)
        self._index.note(self._store.generation(), {})
        self._remember(history=head)

    def _remember_listing(self, listed: "fresh.Listed") -> None:
        repository = find_repository(self._index.root)
        self._remember(
            watched=listed.watched.packed(),
            listed=len(listed.files),
            left_out=msgspec.json.encode(listed.left_out),
            truncated=int(listed.truncated),
            branch=(read_head(repository) or "") if repository is not None else "",
        )

    def _remember(self, **values: object) -> None:
        self._store.remember(**values)


def is_unlocked(index: Index) -> bool:
    """Whether no process is building the index now."""
    try:
        fd = os.open(index.path + ".lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def _by_ending(path: str) -> tuple[str, str]:
    """Files of a language side by side: a worker then needs few grammars, and a segment holds few words."""
    return path.rpartition("/")[2].rpartition(".")[2], path


def _rules_changed(paths: Sequence[str]) -> bool:
    return any(path.rpartition("/")[2] in (".gitignore", ".ignore") for path in paths)


def _few(index: Index, paths: Sequence[str]) -> Segment | None:
    """The segment of a few files, read in this process; None when they are too large for that."""
    if sum(_sizes(index.root, paths)) > _FEW_BYTES:
        return None
    return indexed(index.sources(), Task(index.root, list(paths)))


def _prepare(index: Index) -> None:
    store = index.open()
    try:
        index.sources().prepare(lang for (lang,) in store.rows("SELECT DISTINCT lang FROM files"))
    finally:
        store.close()
    index.is_prepared = True


def _unpack(index: Index, paths: Sequence[str]) -> None:
    """Have the grammars ready, for all workers, that files will need by their names."""
    folder, languages = index.grammar_folder, Languages()
    names = {languages.of(path, b"") for path in paths}
    with contextlib.suppress(OSError):  # then files are read without
        grammars.unpack(folder, languages, names | {"cpp"} if "c" in names else names)


def _sizes(root: str, paths: Sequence[str]) -> list[int]:
    found = []
    for path in paths:
        try:
            found.append(os.lstat(f"{root}/{path}").st_size)
        except OSError:
            found.append(0)
    return found


def _there(root: str, paths: Sequence[str]) -> list[str]:
    """Those of the paths that are regular files."""
    found = []
    for path in paths:
        with contextlib.suppress(OSError):
            found += [path] if stat.S_ISREG(os.lstat(f"{root}/{path}").st_mode) else []
    return found


def _tasks(root: str, paths: Sequence[str], sizes: Sequence[int], workers: int) -> list[Task]:
    """Files as tasks, neighbours together; smaller towards the end, so that the workers end together."""
    tasks: list[Task] = []
    weights = [min(size, _MOST_COUNTED) + _EACH_COUNTS for size in sizes]
    left = sum(weights)
    hold = max(_SEGMENT_BYTES[0], min(_SEGMENT_BYTES[1], left // _SEGMENTS))
    start = taken = 0
    for at, weight in enumerate(weights):
        taken += weight
        wanted = max(_LEAST_TASK, min(_TASK_BYTES, left // (3 * workers)))
        if taken >= wanted or at + 1 - start >= _TASK_FILES:
            tasks.append(Task(root, list(paths[start : at + 1]), hold=hold))
            left -= taken
            start, taken = at + 1, 0
    if start < len(paths):
        tasks.append(Task(root, list(paths[start:]), hold=hold))
    return tasks


@contextlib.asynccontextmanager
async def _alone(index: Index, wait_seconds: float) -> AsyncIterator[None]:
    """While this lasts no other process builds the index."""
    private_dir(os.path.dirname(index.path))
    fd = os.open(index.path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                index.is_waiting = True
                if time.monotonic() > until:
                    raise BusyError(f"another process is building the index of {index.root}") from None
                await asyncio.sleep(_WAIT)
        index.is_waiting = False
        yield
    finally:
        index.is_waiting = False
        os.close(fd)


def _unheard(done: int, total: int) -> None:
    pass
