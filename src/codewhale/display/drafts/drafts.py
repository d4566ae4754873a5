"""Drafts on disk: what stands in the composer is in a file at every key, so that no end of the process loses it."""

import contextlib
import os
import re
import time

import msgspec
from msgspec import Struct

from codewhale.display.drafts.attachments import Chip
from codewhale.display.drafts.folder import QUICK, Folder
from codewhale.lib.files import DISK, atomic_write
from codewhale.lib.process import ProcessMark, alive, mark

_MOST_BYTES = 16_000_000
_MOST_ORPHANS = 200
_VERSION = 1
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}\.json")


class Draft(Struct, frozen=True, omit_defaults=True):
    """What a person has written and not sent. `cursor` is a character offset in `text`."""

    text: str = ""
    cursor: int = 0
    chips: tuple[Chip, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything that could be lost."""
        return bool(self.text.strip() or self.chips)


class Kept(Struct, frozen=True, omit_defaults=True):
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
        kept = Kept(_VERSION, session, time.time(), draft, self._mark)
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

    def _read(self, name: str) -> Kept | None:
        data = self._folder.read(_MOST_BYTES, "drafts", name)
        try:
            kept = msgspec.json.decode(data, type=Kept) if data else None
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
