"""Text that must not get lost, in files: the draft of each session, the history of what was sent, drafts put aside."""

import contextlib
import os
import re
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from codewhale.display.attachments import QUICK, Chip, Folder
from codewhale.lib.files import DISK, atomic_write, write_all
from codewhale.lib.process import ProcessMark, alive, mark

_MOST_BYTES = 16_000_000
_MOST_ORPHANS = 200
_VERSION = 1
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}\.json")
MOST_ENTRIES = 1_000
MOST_BYTES = 4_000_000
# A file that grew beyond this is read from its end.
_READ_BYTES = 4 * MOST_BYTES
_ENTRY_BYTES = 1_000_000
MOST_PARKED = 100
_MEMORY = re.compile(r"\s*/memory\s")


class Draft(Struct, frozen=True, omit_defaults=True):
    """What a person has written and not sent. `cursor` is a character offset in `text`."""

    text: str = ""
    cursor: int = 0
    chips: tuple[Chip, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything that could be lost."""
        return bool(self.text.strip() or self.chips)


def fact_of(draft: Draft) -> str:
    """The fact that is to be remembered where this is sent: one line that begins with # and a blank. "" for all else,
    such as a heading in a longer message, or behind a blank."""
    line = draft.text.rstrip()
    return line[2:].strip() if line.startswith("# ") and "\n" not in line and not draft.chips else ""


class StoredDraft(Struct, frozen=True, omit_defaults=True):
    """A draft's file: who wrote it, when (Unix seconds) and for which session."""

    version: int
    session: str
    at: float
    draft: Draft
    process: ProcessMark = ProcessMark()


class Drafts:
    """The drafts of one workspace, a file for each session. Methods raise OSError when the disk does not take it."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._mark = mark()

    def save(self, session: str, draft: Draft, *, sync: bool = False) -> None:
        """Replace the session's draft; an empty one has no file. With `sync` it is on disk on return."""
        path = self._path(session)
        if not draft:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            return
        self._folder.make("drafts")
        kept = StoredDraft(_VERSION, session, time.time(), draft, self._mark)
        atomic_write(path, msgspec.json.encode(kept), ops=DISK if sync else QUICK)

    def load(self, session: str) -> Draft:
        """The session's draft, empty when it has none that can be read."""
        kept = self._read(os.path.basename(self._path(session)))
        return _sendable(kept.draft) if kept else Draft()

    def orphans(self, session: str) -> list[Draft]:
        """Take the drafts of other sessions whose process is gone, the latest last; their files go."""
        found: list[tuple[float, str, Draft]] = []
        for name in self._names():
            kept = self._read(name)
            if kept is not None and kept.session != session and alive(kept.process) is False:
                found.append((kept.at, name, _sendable(kept.draft)))
        for _, name, _ in found:
            with contextlib.suppress(OSError):
                os.unlink(self._folder.path("drafts", name))
        return [draft for _, _, draft in sorted(found, key=lambda row: row[0]) if draft]

    def _names(self) -> list[str]:
        try:
            names = os.listdir(self._folder.path("drafts"))
        except OSError:
            return []
        return [name for name in sorted(names, reverse=True) if _NAME.fullmatch(name)][:_MOST_ORPHANS]

    def _read(self, name: str) -> StoredDraft | None:
        data = self._folder.read(_MOST_BYTES, "drafts", name)
        try:
            kept = msgspec.json.decode(data, type=StoredDraft) if data else None
        except msgspec.DecodeError:
            return None
        return kept if kept is not None and kept.version == _VERSION else None

    def _path(self, session: str) -> str:
        # Before there is a session each process has a file of its own.
        safe = re.sub(r"[^A-Za-z0-9_-]", "_", session)[:90] or f"none-{os.getpid()}"
        return self._folder.path("drafts", f"{safe}.json")


def _sendable(draft: Draft) -> Draft:
    chips = tuple(chip for chip in draft.chips if chip.there)
    return msgspec.structs.replace(draft, chips=chips, cursor=max(0, min(draft.cursor, len(draft.text))))


class HistoryEntry(Struct, frozen=True, omit_defaults=True):
    """A line of the file."""

    text: str
    session: str = ""
    chips: tuple[Chip, ...] = ()

    def draft(self) -> Draft:
        """To be edited and sent again, with those of its attachments that are still there."""
        return Draft(self.text, len(self.text), tuple(chip for chip in self.chips if chip.there))


class PromptHistory:
    """The history of one workspace, oldest first, at most MOST_ENTRIES and MOST_BYTES. Any number of processes add to
    it; each sees what it read at its start and what it added. What was said to memory is walked to in this process,
    and stands in no file."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._facts: set[str] = set()
        self._entries: list[HistoryEntry] | None = None

    @property
    def entries(self) -> list[HistoryEntry]:
        """All of them; read at the first time. A line that cannot be read is left out."""
        if self._entries is None:
            self._entries = _bounded(_entries(self._data()))
        return self._entries

    def add(self, draft: Draft, session: str = "", *, fact: bool = False) -> None:
        """Add what was sent, unless it is the same as the last. Raises OSError when it cannot be kept; it can be
        walked to all the same. A `fact` was sent to memory."""
        if fact:
            self._facts.add(draft.text)
        entry = HistoryEntry(draft.text, session, draft.chips)
        last = self.entries[-1] if self.entries else HistoryEntry("")
        if not draft or (last.text, last.chips) == (entry.text, entry.chips):
            return
        line = msgspec.json.encode(entry) + b"\n"
        self._entries = _bounded([*self.entries, entry])
        if len(line) <= _ENTRY_BYTES and not self.withholds(draft):
            with self._folder.alone():
                self._append(line)

    def withholds(self, draft: Draft) -> bool:
        """Whether it must stand in no file, for memory can be cleared: a line of /memory, or a fact that was sent."""
        return _MEMORY.match(draft.text) is not None or (draft.text in self._facts and not draft.chips)

    def search(self, letters: str, limit: int = 50) -> list[HistoryEntry]:
        """The latest entries in which every word of `letters` stands, whatever its case; no text twice."""
        words = letters.lower().split()
        found: dict[str, HistoryEntry] = {}
        for entry in reversed(self.entries):
            low = entry.text.lower()
            if entry.text not in found and all(word in low for word in words):
                found[entry.text] = entry
                if len(found) == limit:
                    break
        return list(found.values())

    def _append(self, line: bytes) -> None:
        fd = DISK.open(self._folder.path("history.jsonl"), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            size = os.fstat(fd).st_size
            # A line that was cut off ends here, so that it costs itself alone.
            cut = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            write_all(DISK, fd, b"\n" + line if cut else line)
            size += len(line)
        finally:
            os.close(fd)
        if size > 2 * MOST_BYTES:
            kept = _bounded(_entries(self._data()))
            data = b"".join(msgspec.json.encode(entry) + b"\n" for entry in kept)
            atomic_write(self._folder.path("history.jsonl"), data)

    def _data(self) -> bytes:
        with contextlib.suppress(OSError):
            fd = os.open(self._folder.path("history.jsonl"), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(fd, "rb") as file:
                file.seek(max(0, os.fstat(fd).st_size - _READ_BYTES))
                return file.read(_READ_BYTES)
        return b""


class HistoryWalk:
    """A way through the history and back. What was being written, and what was changed on the way, stays where it
    was left until the walk ends."""

    def __init__(self, entries: Callable[[], list[HistoryEntry]]) -> None:
        self._entries = entries
        self._seen: list[HistoryEntry] = []
        self._at = 0
        self._left: dict[int, Draft] = {}

    @property
    def walking(self) -> bool:
        """Whether an entry of the history is shown."""
        return bool(self._left) and self._at < len(self._seen)

    def untouched(self, now: Draft) -> bool:
        """Whether `now` is an entry as it stands in the history."""
        return self.walking and now.text == self._seen[self._at].text

    def up(self, now: Draft) -> Draft | None:
        """The entry before, None at the oldest; `now` is what stands in the composer."""
        if not self._left:
            self._seen = list(self._entries())
            self._at = len(self._seen)
        return self._step(-1, now)

    def down(self, now: Draft) -> Draft | None:
        """The entry after, at last what was being written; None there."""
        return self._step(1, now) if self._left else None

    def end(self) -> list[Draft]:
        """Forget the way; returns what was written and stands nowhere else: the draft that the walk began with and
        changed entries, unless they are shown."""
        unsaved = [draft for at, draft in self._left.items() if at != self._at and draft and self._changed(at, draft)]
        self._left, self._seen, self._at = {}, [], 0
        return unsaved

    def _changed(self, at: int, draft: Draft) -> bool:
        return at == len(self._seen) or draft.text != self._seen[at].text

    def _step(self, by: int, now: Draft) -> Draft | None:
        to = self._at + by
        if not 0 <= to <= len(self._seen):
            return None
        self._left[self._at] = now
        self._at = to
        if to in self._left:
            return self._left[to]
        return self._seen[to].draft()


def _entries(data: bytes) -> list[HistoryEntry]:
    found = []
    for line in data.split(b"\n"):
        with contextlib.suppress(msgspec.DecodeError):
            found.append(msgspec.json.decode(line, type=HistoryEntry))
    return found


def _bounded(entries: list[HistoryEntry]) -> list[HistoryEntry]:
    kept: list[HistoryEntry] = []
    room = MOST_BYTES
    for entry in reversed(entries[-MOST_ENTRIES:]):
        room -= len(entry.text.encode("utf-8", "replace")) + 50
        if room < 0:
            break
        kept.append(entry)
    return kept[::-1]


class Parked(Struct, frozen=True, omit_defaults=True):
    """A draft and when it was parked (Unix seconds)."""

    at: float
    draft: Draft


class Stash:
    """The parked drafts of one workspace, shared by every process there. The oldest go beyond MOST_PARKED. Methods
    raise OSError when the disk does not take it."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        # What a disk that is full or read-only did not take stays here until the process ends.
        self._unkept: list[Parked] = []

    def park(self, draft: Draft, *, withheld: bool = False) -> None:
        """Put a draft on top; an empty one is not kept, one that is there already comes up. One that is `withheld` is
        there until the process ends."""
        if not draft:
            return
        parked = Parked(time.time(), draft)
        if withheld:
            self._unkept = [*(row for row in self._unkept if row.draft.text != draft.text), parked]
            return
        try:
            with self._folder.alone():
                self._put_damaged_aside()
                rows = [row for row in self._read() if row.draft.text != draft.text or row.draft.chips != draft.chips]
                self._write([*rows, parked])
        except OSError:
            self._unkept.append(parked)
            raise

    def rows(self) -> list[Parked]:
        return sorted([*self._read(), *self._unkept], key=lambda row: row.at, reverse=True)

    def take(self, row: Parked) -> Draft | None:
        """Take one back; None when another process took it meanwhile."""
        if row in self._unkept:
            self._unkept.remove(row)
            return row.draft
        with self._folder.alone():
            rows = self._read()
            if row not in rows:
                return None
            rows.remove(row)
            self._write(rows)
        return row.draft

    def _read(self) -> list[Parked]:
        return self._decoded() or []

    def _decoded(self) -> list[Parked] | None:
        """The rows of the file, None when they cannot be read."""
        data = self._folder.read(_MOST_BYTES, "stash.json")
        try:
            return msgspec.json.decode(data, type=list[Parked]) if data else []
        except msgspec.DecodeError:
            return None

    def _put_damaged_aside(self) -> None:
        if self._decoded() is None:
            os.replace(self._folder.path("stash.json"), self._folder.path("stash.json.damaged"))

    def _write(self, rows: list[Parked]) -> None:
        rows = rows[-MOST_PARKED:]
        data = msgspec.json.encode(rows)
        while len(data) > _MOST_BYTES and len(rows) > 1:
            rows = rows[1:]
            data = msgspec.json.encode(rows)
        atomic_write(self._folder.path("stash.json"), data)
