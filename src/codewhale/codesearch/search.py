"""Questions answered from the index of a folder: it is made true first, within a time, and what could not be is said.

A folder whose index is not there yet is answered from names and plain text while the index is built beside it.
"""

import asyncio
import contextlib
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from codewhale.codesearch.build import BusyError, CodeIndex, Progress, is_unlocked, prepare, refresh
from codewhale.codesearch.exact import exact_lines
from codewhale.codesearch.fallback import fallback_hits
from codewhale.codesearch.model import Touch
from codewhale.codesearch.query import read_query
from codewhale.codesearch.rank import Filter, Hit, Ranker, Weights
from codewhale.codesearch.reader import IndexReader
from codewhale.codesearch.reasons import EXACT
from codewhale.codesearch.scan import too_few
from codewhale.codesearch.scorers import CORE, POOL, Scorers
from codewhale.codesearch.store import IndexDamagedError, database_path, open_existing
from codewhale.codesearch.suggestions import empty_answer_hint
from codewhale.codesearch.terms import Terms

T = TypeVar("T")

MOST_ROOTS = 4
PATIENCE = 2.0  # seconds that a question waits for its index
_QUIET = 1.0  # seconds after a question: then what can wait is done
_WARM_SECONDS = 120.0  # for an index that nobody has asked for yet
_COLD_PATIENCE = 1.5  # and one that names and plain text can answer
OFF = f"The code index is switched off ({CORE} = false)"


class SearchAnswer(Struct, frozen=True):
    """The best places for a query. `backend` names the signals that spoke; `exact` of the hits hold the query as it
    is; `age` is the seconds since the index was last made true, None without one; `coverage` the share of the folder's
    files that are in; `notes` is what must be known before the answer is trusted; `hint` what to ask instead where
    nothing was found."""

    hits: tuple[Hit, ...]
    backend: str
    exact: int
    age: float | None
    coverage: float
    notes: tuple[str, ...] = ()
    hint: str = ""


class _Asked(Struct, frozen=True):
    query: str
    limit: int
    only: Filter | None
    touched: tuple[str, ...]


class _Folder:
    """One folder: its index, the ranker of what the index last was, and the building of it that is under way."""

    def __init__(self, root: str, state: str) -> None:
        self.index = CodeIndex(root, state, workers=max(1, min(4, os.cpu_count() or 1)))
        self.ranker: Ranker | None = None
        self.terms: Terms | None = None
        self.building: asyncio.Task[None] | None = None
        self.preparing: asyncio.Task[None] | None = None
        self.warmed = False
        self.problem = ""
        self.lock = asyncio.Lock()
        self.closed = False

    def close(self) -> "list[asyncio.Task[None]]":
        """Stop building and let go of the database. Returns what is still coming to its end."""
        self.closed = True
        tasks = [task for task in (self.building, self.preparing) if task is not None]
        for task in tasks:
            task.cancel()
        self.forget()
        return [task for task in tasks if not task.done()]

    def forget(self) -> None:
        """Let go of the ranker: the next question makes another."""
        if self.ranker is not None:
            self.ranker.reader.close()
            self.ranker = None


class CodeSearch:
    """The indexes of the folders that are asked about, at most four open at a time."""

    def __init__(
        self,
        state: str,
        touched: Callable[[str], list[str]] | None = None,
        settings: Mapping[str, Any] | None = None,
        on_progress: Callable[[str, int, int], None] | None = None,
        weights: Weights | None = None,
    ) -> None:
        """`state` is the person's state directory; `touched(root)` gives the paths that tools have looked at or
        changed in a folder since it was last asked; `settings` are configuration keys: whether there is an index at
        all, and what fills the slots for models; `on_progress(root, files done, files in all)` hears how far the
        building of an index has come, unless whoever asks listens; `weights` rank instead of those that ship."""
        self._state = state
        self._touched = touched or _nothing
        self._on_progress = on_progress
        self.is_on = bool((settings or {}).get(CORE, True))
        self._scorers = Scorers(settings or {})
        self._weights = weights or Weights.shipped()
        self._folders: OrderedDict[str, _Folder] = OrderedDict()

    async def search(
        self,
        root: str,
        query: str,
        limit: int = 10,
        *,
        only: Filter | None = None,
        patience: float | None = PATIENCE,
        progress: Progress | None = None,
    ) -> SearchAnswer:
        """SearchAnswer a query about a folder. `patience` bounds the seconds given to its index, None waits until it is
        true. Raises OSError when the index cannot be written and IndexDamagedError when it cannot be made."""
        folder = self._folder(root)
        hits: list[Hit] | None = None
        if not self.is_on:
            hits = await fallback_hits(folder.index.root, query, limit, only or Filter())
            note = f"{OFF}; this answer comes from file names and plain text alone."
            return SearchAnswer(tuple(hits), "path+text", 0, None, 0.0, (note, *_unapplied(only)))
        begun = time.monotonic()
        if patience is not None and folder.ranker is None and await asyncio.to_thread(_is_cold, folder.index):
            hits = await fallback_hits(folder.index.root, query, limit, only or Filter())
            patience = max(0.0, min(patience, _COLD_PATIENCE) - (time.monotonic() - begun))
        current = await self._renewed(folder, patience, progress)
        async with folder.lock:
            ranker = await asyncio.to_thread(self._ranker, folder)
            if ranker is None:
                if hits is None:
                    hits = await fallback_hits(folder.index.root, query, limit, only or Filter())
                notes = (*self._notes(folder, None, current), *_unapplied(only))
                return SearchAnswer(tuple(hits), "path+text", 0, None, 0.0, notes)
            most = max(limit, POOL) if self._scorers else limit
            asked = _Asked(query, most, only, tuple(self._touched(root)))
            exact = await exact_lines(ranker.reader, folder.index.root, read_query(query, ranker.terms), ranker.terms)
            answer = await asyncio.to_thread(self._ranked, folder, ranker, asked, exact, current)
        return await self._scored(folder.index.root, query, answer, limit) if self._scorers else answer

    async def read(
        self,
        root: str,
        work: Callable[[IndexReader], T],
        *,
        patience: float | None = PATIENCE,
        progress: Progress | None = None,
    ) -> tuple[T | None, tuple[str, ...]]:
        """What `work` finds in the index of a folder, None where there is none to read yet, and what must be known
        of that index. `work` runs in a thread; times and errors are those of `search`."""
        folder = self._folder(root)
        if not self.is_on:
            return None, (f"{OFF}.",)
        current = await self._renewed(folder, patience, progress)
        async with folder.lock:
            ranker = await asyncio.to_thread(self._ranker, folder)
            if ranker is None:
                return None, (f"There is no index yet: {folder.problem or 'it is being built'}. Ask again.",)
            found = await asyncio.to_thread(work, ranker.reader)
            return found, self._notes(folder, ranker.reader, current)

    def warm(self, root: str) -> bool:
        """Begin to build the index of a folder that has none, for two minutes at most. Whether it was begun."""
        if not self.is_on or self.is_indexed(root):
            return False
        folder = self._folder(root)
        if folder.warmed or folder.building is not None:
            return False
        folder.warmed = True
        folder.building = asyncio.create_task(_warm(folder, self._progress(folder)))
        return True

    def is_built_elsewhere(self, root: str) -> bool:
        """Whether another process is building the index of a folder just now."""
        folder = self._folder(root)
        return self.is_on and (folder.building is None or folder.building.done()) and not is_unlocked(folder.index)

    def is_indexed(self, root: str) -> bool:
        """Whether there is an index of the folder, be it old, and it may be read."""
        return self.is_on and os.path.exists(self._folder(root).index.path)

    def open_reader(self, root: str) -> IndexReader | None:
        """A reader of a folder's index as it is, to be closed by the caller; None where none was completed.
        Raises OSError and IndexDamagedError."""
        place = os.path.realpath(root)
        store = open_existing(database_path(self._state, place), place) if self.is_on else None
        if store is None:
            return None
        with contextlib.ExitStack() as opened:
            opened.callback(store.close)
            reader = IndexReader(store)
            if not reader.meta("complete"):
                return None
            opened.pop_all()
        return reader

    async def aclose(self) -> None:
        """Stop what is being built and close every index."""
        waiting = [task for folder in self._folders.values() for task in folder.close()]
        await asyncio.gather(*waiting, return_exceptions=True)
        self._folders.clear()
        await self._scorers.aclose()

    async def _scored(self, root: str, query: str, answer: SearchAnswer, limit: int) -> SearchAnswer:
        """The answer when the slots for models have had their say."""
        hits, signals, problems = await self._scorers.scored(root, query, answer.hits, limit)
        exact = sum(any(reason.signal == EXACT for reason in hit.reasons) for hit in hits)
        backend, notes = "+".join((answer.backend, *signals)), (*answer.notes, *problems)
        return replace(answer, hits=hits, backend=backend, exact=exact, notes=notes)

    def _folder(self, root: str) -> _Folder:
        real = os.path.realpath(root)
        if real not in self._folders:
            self._folders[real] = _Folder(real, self._state)
        self._folders.move_to_end(real)
        while len(self._folders) > MOST_ROOTS:
            self._folders.popitem(last=False)[1].close()
        return self._folders[real]

    def _progress(self, folder: _Folder) -> Progress | None:
        """Reports from any thread, on the loop of the caller."""
        report, root, loop = self._on_progress, folder.index.root, asyncio.get_running_loop()

        def tell(done: int, total: int) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(report, root, done, total)  # type: ignore[arg-type]

        return None if report is None else tell

    async def _renewed(self, folder: _Folder, patience: float | None, progress: Progress | None) -> bool:
        """Whether the index is true of the folder now, given that long."""
        if folder.building is None or folder.building.done():
            folder.building = asyncio.create_task(_renew(folder, progress or self._progress(folder)))
        if patience is None:
            await asyncio.shield(folder.building)
        else:
            await asyncio.wait((folder.building,), timeout=patience)
        if not folder.building.done():
            return False
        folder.building.result()
        return not folder.problem

    def _ranker(self, folder: _Folder) -> Ranker | None:
        """The ranker of the index as it is, None where there is none to answer from."""
        if not os.path.exists(folder.index.path):
            return None
        with contextlib.ExitStack() as opened:
            store = folder.index.open()
            opened.callback(store.close)
            if folder.ranker is not None and folder.ranker.reader.generation == store.generation():
                return folder.ranker
            reader = IndexReader(store)
            if not reader.meta("complete") and not (reader.files and reader.meta("built_at")):
                return None
            folder.forget()
            folder.ranker = Ranker(reader, folder.terms, self._weights)
            folder.terms = folder.ranker.terms
            opened.pop_all()
        return folder.ranker

    def _ranked(
        self, folder: _Folder, ranker: Ranker, asked: _Asked, exact: Mapping[str, Sequence[int]], current: bool
    ) -> SearchAnswer:
        reader = ranker.reader
        touches, now = _touches(folder.index, asked.touched), time.time_ns()
        found = ranker.search(asked.query, asked.limit, only=asked.only, exact=exact, now_ns=now, touches=touches)
        built = reader.meta("built_at")
        listed = int(reader.meta("listed") or 0)
        return SearchAnswer(
            hits=tuple(found.hits),
            backend="+".join(found.signals) or "lexical",
            exact=found.exact,
            age=None if built is None else max(0.0, time.time() - built / 1e9),
            coverage=1.0 if reader.meta("complete") or not listed else min(1.0, len(reader.files) / listed),
            notes=self._notes(folder, reader, current),
            hint="" if found.hits else empty_answer_hint(reader, asked.only or Filter()),
        )

    def _notes(self, folder: _Folder, reader: IndexReader | None, current: bool) -> tuple[str, ...]:
        notes = []
        if reader is None:
            who = "Another process is building the index" if folder.index.is_waiting else "The index is being built"
            notes.append(f"{who}; this answer comes from file names and plain text alone. Ask again.")
        elif not current:
            notes.append(
                f"The index could not be brought up to date: {folder.problem}."
                if folder.problem
                else "The index is being brought up to date; files that changed just now may be missing. Ask again."
            )
        if reader is not None and (few := too_few(len(reader.files), reader.meta("left_out"))):
            notes.append(f"{few[0].upper()}{few[1:]}.")
        if reader is not None and reader.meta("truncated"):
            notes.append("The folder has more files than can be indexed; search in a folder inside it.")
        return tuple(notes)


def _is_cold(index: CodeIndex) -> bool:
    """Whether there is nothing yet to answer from."""
    try:
        store = open_existing(index.path, index.root)
    except IndexDamagedError:
        return True
    if store is None:
        return True
    try:
        return store.meta("built_at") is None
    except IndexDamagedError:
        return True
    finally:
        store.close()


def _unapplied(only: Filter | None) -> tuple[str, ...]:
    """What a filter asks for that names and plain text cannot say."""
    if only is None or not only.kind:
        return ()
    return (f"Without the index, kind is not applied: these files may not define a {only.kind}.",)


def _nothing(root: str) -> list[str]:
    return []


def _touches(index: CodeIndex, paths: Sequence[str]) -> list[Touch] | None:
    """What sessions touched, these files among it now; None where that cannot be written down or read."""
    store = index.open()
    try:
        files = _files_in(index.root, paths)
        if files:
            store.touch(files)
        return store.touches()
    except (IndexDamagedError, OSError):
        return None
    finally:
        store.close()


def _files_in(root: str, paths: Sequence[str]) -> list[str]:
    """The files among paths as models write them, relative to the root as the index knows them."""
    found = []
    for path in paths:
        place = os.path.normpath(os.path.join(root, path))
        if "\0" not in place and os.path.isfile(place):
            real = os.path.realpath(place)
            if real.startswith(f"{root}/"):
                found.append(os.path.relpath(real, root))
    return list(dict.fromkeys(found))


async def _renew(folder: _Folder, progress: Progress | None) -> None:
    folder.problem = ""
    try:
        report = await refresh(folder.index, progress=progress, wait_seconds=600.0)
    except BusyError as error:
        folder.problem = str(error) or "another process is building it"
        return
    if report.indexed and (folder.preparing is None or folder.preparing.done()):
        folder.preparing = asyncio.create_task(_prepare(folder.index))


async def _warm(folder: _Folder, progress: Progress | None) -> None:
    with contextlib.suppress(IndexDamagedError, OSError):  # a time-out too; whoever asks meets the others again
        async with asyncio.timeout(_WARM_SECONDS):
            await _renew(folder, progress)


async def _prepare(index: CodeIndex) -> None:
    await asyncio.sleep(_QUIET)
    with contextlib.suppress(IndexDamagedError, OSError):  # the next question meets it again, and says so
        await prepare(index)
