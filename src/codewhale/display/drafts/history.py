"""What was sent from a workspace before: kept in a file, walked with up and down, searched by letters."""

import contextlib
import os
from collections.abc import Callable

import msgspec
from msgspec import Struct

from codewhale.display.drafts.attachments import Chip
from codewhale.display.drafts.drafts import Draft
from codewhale.display.drafts.folder import Folder
from codewhale.lib.files import DISK, atomic_write, write_all

MOST_ENTRIES = 1_000
MOST_BYTES = 4_000_000
# A file that grew beyond this is read from its end.
_READ_BYTES = 4 * MOST_BYTES
_ENTRY_BYTES = 1_000_000


class Entry(Struct, frozen=True, omit_defaults=True):
    """A line of the file."""

    text: str
    session: str = ""
    chips: tuple[Chip, ...] = ()

    def draft(self) -> Draft:
        """To be edited and sent again, with those of its attachments that are still there."""
        return Draft(self.text, len(self.text), tuple(chip for chip in self.chips if chip.there))


class History:
    """The history of one workspace, oldest first, at most MOST_ENTRIES and MOST_BYTES. Any number of processes add to
    it; each sees what it read at its start and what it added."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._entries: list[Entry] | None = None

    @property
    def entries(self) -> list[Entry]:
        """All of them; read at the first time. A line that cannot be read is left out."""
        if self._entries is None:
            self._entries = _bounded(_entries(self._data()))
        return self._entries

    def add(self, draft: Draft, session: str = "") -> None:
        """Add what was sent, unless it is the same as the last. Raises OSError when it cannot be kept; it can be
        walked to all the same."""
        entry = Entry(draft.text, session, draft.chips)
        last = self.entries[-1] if self.entries else Entry("")
        if not draft or (last.text, last.chips) == (entry.text, entry.chips):
            return
        line = msgspec.json.encode(entry) + b"\n"
        self._entries = _bounded([*self.entries, entry])
        if len(line) <= _ENTRY_BYTES:
            with self._folder.alone():
                self._append(line)

    def search(self, letters: str, limit: int = 50) -> list[Entry]:
        """The latest entries in which every word of `letters` stands, whatever its case; no text twice."""
        words = letters.lower().split()
        found: dict[str, Entry] = {}
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


class Walk:
    """A way through the history and back. What was being written, and what was changed on the way, stays where it
    was left until the walk ends."""

    def __init__(self, entries: Callable[[], list[Entry]]) -> None:
        self._entries = entries
        self._seen: list[Entry] = []
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


def _entries(data: bytes) -> list[Entry]:
    found = []
    for line in data.split(b"\n"):
        with contextlib.suppress(msgspec.DecodeError):
            found.append(msgspec.json.decode(line, type=Entry))
    return found


def _bounded(entries: list[Entry]) -> list[Entry]:
    kept: list[Entry] = []
    room = MOST_BYTES
    for entry in reversed(entries[-MOST_ENTRIES:]):
        room -= len(entry.text.encode("utf-8", "replace")) + 50
        if room < 0:
            break
        kept.append(entry)
    return kept[::-1]
