"""Making an index true of its tree: from nothing, or of what has changed. One way for both: what is not known as it is
now is read again, batch by batch, and what is in is in."""

import asyncio
import contextlib
import fcntl
import os
import stat
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from codewhale.codesearch import grammars, history, scan
from codewhale.codesearch.indexing import FAILED, Batch, ReadTask, read_file, read_files
from codewhale.codesearch.languages import Languages
from codewhale.codesearch.model import Commit, Stamp
from codewhale.codesearch.source import SourceReader, digest
from codewhale.codesearch.store import IndexDamagedError, Store, database_path, discard, open_store, set_aside
from codewhale.codesearch.terms import Terms
from codewhale.codesearch.workers import batches
from codewhale.lib.files import private_dir
from codewhale.process.repository import find_repository, read_head

FEW = 64  # files that are read in this process
_FEW_BYTES = 1 << 20
_TASK_BYTES = 1 << 20
_WAIT = 0.05
_MOST_COUNTED, _EACH_COUNTS = 2 << 20, 1024  # bytes: what a file counts at most, and beside its size

Progress = Callable[[int, int], None]


class RefreshReport(Struct, frozen=True):
    """What a refresh did: files read again and forgotten, seconds, and whether the index knows every file now."""

    indexed: int
    forgotten: int
    seconds: float
    complete: bool


class BusyError(Exception):
    """Another process is building this index."""


class CodeIndex:
    """The index of one worktree. `state` is the person's state directory; `workers` bounds the processes used."""

    def __init__(self, root: str, state: str, *, workers: int = 2) -> None:
        self.root = os.path.realpath(root)
        self.path = database_path(state, self.root)
        self.grammar_folder = os.path.join(state, "index", "grammars")
        self.workers = workers
        self.is_waiting = False  # for another process that builds
        self.is_prepared = False  # the grammars of all its languages are loaded
        self._sources: SourceReader | None = None
        self._known: tuple[int, dict[str, Stamp]] | None = None

    def sources(self) -> SourceReader:
        """What this process reads files with, made at the first need."""
        if self._sources is None:
            self._sources = SourceReader(self.grammar_folder)
        return self._sources

    def open(self) -> Store:
        """Open the store, new where there is none."""
        return open_store(self.path, self.root)

    def discard(self) -> None:
        """Remove the database: the next refresh builds a new one."""
        discard(self.path)
        self.forget_stamps()

    def stamps(self, store: Store) -> dict[str, Stamp]:
        """What the store knows of every file; read again only when it has changed."""
        generation = store.generation()
        if self._known is None or self._known[0] != generation:
            self._known = (generation, store.stamps())
        return self._known[1]

    def update_stamps(self, generation: int, stamps: Mapping[str, Stamp], gone: Iterable[str] = ()) -> None:
        """The store has other stamps of some files, and knows others no more, by what this process wrote into it."""
        if self._known is None or generation - self._known[0] not in (0, 1):
            self._known = None  # somebody else has written as well
            return
        known = self._known[1]
        known.update(stamps)
        for path in gone:
            known.pop(path, None)
        self._known = (generation, known)

    def forget_stamps(self) -> None:
        """The stamps in the store may be others."""
        self._known = None


async def refresh(
    index: CodeIndex,
    *,
    progress: Progress | None = None,
    commits: Sequence[Commit] | None = None,
    wait_seconds: float = 600.0,
    rebuild: bool = False,
) -> RefreshReport:
    """Make the index true of its tree. `commits` are taken as its history in the place of what git says. `progress` is
    told (files done, files to do). A damaged database is set aside and rebuilt. `rebuild`: begin from nothing.

    Raises BusyError when another process is still building after `wait_seconds`, OSError when nothing can be written.
    """
    async with _alone(index, wait_seconds):
        if rebuild:
            index.discard()
        for attempt in range(2):
            store = index.open()
            try:
                return await _Refresh(index, store, progress or (lambda done, total: None)).run(commits)
            except IndexDamagedError:
                if attempt:
                    raise
                store.close()
                set_aside(index.path)
                index.forget_stamps()
            finally:
                store.close()
    raise AssertionError("unreachable")


async def prepare(index: CodeIndex) -> None:
    """Load the grammars of the tree's languages, so that the next change need not wait for it."""
    if not index.is_prepared:
        await asyncio.to_thread(_prepare, index)


async def is_stale(index: CodeIndex, store: Store) -> bool:
    """Whether anything in the tree is not as the index knows it. Looks at every known file and folder, and reads what
    does not look as it did."""
    watched = scan.FolderTimes.unpacked(store.meta("watched"))
    stamps = index.stamps(store)
    if watched is None or not store.meta("complete"):
        return True
    changed, moved = await asyncio.to_thread(scan.changes, index.root, stamps, watched)
    if changed and len(await asyncio.to_thread(_same, index.root, store, changed)) < len(changed):
        return True
    if not moved:
        return False
    return set((await scan.list_tree(index.root)).files) != set(stamps)


def _same(root: str, store: Store, paths: Sequence[str]) -> dict[str, Stamp]:
    """Those of the files whose content is what it was, with the stamp they have now."""
    found: dict[str, Stamp] = {}
    for path, sha in store.shas(paths).items():
        read = read_file(f"{root}/{path}")
        if read is not None and read[0] is not None and digest(read[0]) == sha:
            found[path] = Stamp(*read[1:])
    return found


class _Refresh:
    """One refresh, while nobody else writes."""

    def __init__(self, index: CodeIndex, store: Store, progress: Progress) -> None:
        self._index = index
        self._store = store
        self._progress = progress
        self._begun = time.monotonic()
        self._indexed = self._forgotten = 0
        self._done = 0

    async def run(self, commits: Sequence[Commit] | None) -> RefreshReport:
        """Find out what has changed, read it again, and remember how the tree stood."""
        watched = scan.FolderTimes.unpacked(self._store.meta("watched"))
        stamps = self._index.stamps(self._store)
        changed, moved = await asyncio.to_thread(scan.changes, self._index.root, stamps, watched)
        rules = any(path.rpartition("/")[2] in (".gitignore", ".ignore") for path in changed)
        moved = moved or rules or not self._store.meta("complete")
        listing = await scan.list_tree(self._index.root) if moved else None
        pending = await self._pending(stamps, changed, listing)
        if pending:
            await self._read(pending)
        complete = True
        if pending or self._forgotten or listing is not None:
            if listing is not None:
                self._remember_listing(listing)
            if listing is not None or commits is not None:
                await self._history(commits)
            complete = await self._conclude(listing)
        return RefreshReport(self._indexed, self._forgotten, time.monotonic() - self._begun, complete)

    async def _conclude(self, listing: scan.TreeListing | None) -> bool:
        """Remember which files are in. The index is complete when each listed file has its row or is there no more."""
        stamps = self._index.stamps(self._store)
        missing = [] if listing is None else [path for path in listing.files if path not in stamps]
        there = await asyncio.to_thread(_there, self._index.root, missing) if missing else []
        self._store.remember(complete=int(not there), built_at=time.time_ns())
        return not there

    async def _pending(
        self, stamps: Mapping[str, Stamp], changed: list[str], listing: scan.TreeListing | None
    ) -> list[str]:
        """The files to read again. Those that only look changed get their new stamp; those gone are forgotten."""
        present = stamps.keys() if listing is None else set(listing.files)
        gone = [] if listing is None else sorted(stamps.keys() - present)
        if gone:
            self._store.forget(gone)
            self._index.update_stamps(self._store.generation(), {}, gone)
            self._forgotten += len(gone)
        looking = [path for path in changed if path in present]
        same = await asyncio.to_thread(_same, self._index.root, self._store, looking) if looking else {}
        if same:
            self._store.restamp(same.items())
            self._index.update_stamps(self._store.generation(), same)
        again = ({path for path in changed if path in present} | (present - stamps.keys())) - same.keys()
        return sorted(again, key=_by_ending)

    async def _read(self, pending: list[str]) -> None:
        """Read files again, a few here, many by worker processes."""
        self._progress(0, len(pending))
        if len(pending) <= FEW and not self._have_failed(pending):
            few = await asyncio.to_thread(_few, self._index, self._store, pending)
            if few is not None:
                self._take(few, len(pending))
                return
        await asyncio.to_thread(_unpack, self._index, pending)
        tasks = await asyncio.to_thread(_tasks, self._index.root, pending)
        async with contextlib.aclosing(batches(tasks, self._index.grammar_folder, self._index.workers)) as found:
            async for batch in found:
                await asyncio.to_thread(self._take, batch, len(pending))
        await asyncio.to_thread(self._store.checkpoint)

    def _have_failed(self, paths: Sequence[str]) -> bool:
        """Whether worker processes died of any of the files: this process is not to."""
        found = (self._store.rows("SELECT state FROM files WHERE path = ?", (path,)) for path in paths)
        return any(state == FAILED for rows in found for (state,) in rows)

    def _take(self, batch: Batch, total: int) -> None:
        if batch.failed:
            batch = read_files(self._index.sources(), ReadTask(self._index.root, batch.failed, failed=True))
        self._store.put(batch)
        stamps = {row.path: Stamp(row.size, row.mtime_ns, row.ctime_ns) for row in batch.files}
        self._index.update_stamps(self._store.generation(), stamps, batch.gone)
        self._indexed += len(batch.files)
        self._forgotten += len(batch.gone)
        self._done += len(batch.files) + len(batch.gone)
        self._progress(self._done, total)

    async def _history(self, commits: Sequence[Commit] | None) -> None:
        """Take over what git says; what is known of before stands where git cannot answer."""
        head = "given" if commits is not None else await history.head_commit(self._index.root)
        if head is None or (commits is None and head == (self._store.meta("history") or "")):
            return
        found = commits if commits is not None else await history.read_history(self._index.root) if head else []
        if found is not None:
            terms = Terms()
            self._store.put_history(list(found), [terms.count(commit.subject) for commit in found])
            self._index.update_stamps(self._store.generation(), {})
        self._store.remember(history=head)  # a history that git cannot say in time is not asked for at every change

    def _remember_listing(self, listing: scan.TreeListing) -> None:
        repository = find_repository(self._index.root)
        self._store.remember(
            watched=listing.watched.packed(),
            listed=len(listing.files),
            left_out=msgspec.json.encode(listing.left_out),
            truncated=int(listing.truncated),
            branch=(read_head(repository) or "") if repository is not None else "",
        )


def is_unlocked(index: CodeIndex) -> bool:
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
    """Files of a language side by side: a worker then needs few grammars."""
    return path.rpartition("/")[2].rpartition(".")[2], path


def _few(index: CodeIndex, store: Store, paths: Sequence[str]) -> Batch | None:
    """A few files, read in this process; None when they are too large for that."""
    if sum(_sizes(index.root, paths)) > _FEW_BYTES:
        return None
    return read_files(index.sources(), ReadTask(index.root, list(paths), known=store.words(paths)))


def _prepare(index: CodeIndex) -> None:
    store = index.open()
    try:
        index.sources().prepare(lang for (lang,) in store.rows("SELECT DISTINCT lang FROM files"))
    finally:
        store.close()
    index.is_prepared = True


def _unpack(index: CodeIndex, paths: Sequence[str]) -> None:
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


def _tasks(root: str, paths: Sequence[str]) -> list[ReadTask]:
    """Files as tasks, neighbours together."""
    tasks, taken = [ReadTask(root, [])], 0
    for path, size in zip(paths, _sizes(root, paths), strict=True):
        if taken >= _TASK_BYTES:
            tasks.append(ReadTask(root, []))
            taken = 0
        tasks[-1].paths.append(path)
        taken += min(size, _MOST_COUNTED) + _EACH_COUNTS
    return tasks


@contextlib.asynccontextmanager
async def _alone(index: CodeIndex, wait_seconds: float) -> AsyncIterator[None]:
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
