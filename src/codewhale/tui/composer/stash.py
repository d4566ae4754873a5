"""Parked drafts: put aside with a key, taken back with the same one, and the place where cleared text goes."""

import os
import time

import msgspec
from msgspec import Struct

from codewhale.display.drafts.drafts import Draft
from codewhale.display.drafts.folder import Folder
from codewhale.lib.files import atomic_write

MOST_PARKED = 100
_MOST_BYTES = 16_000_000


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

    def park(self, draft: Draft) -> None:
        """Put a draft on top; an empty one is not kept, one that is there already comes up."""
        if not draft:
            return
        parked = Parked(time.time(), draft)
        try:
            with self._folder.alone():
                self._put_damaged_aside()
                rows = [row for row in self._read() if row.draft.text != draft.text or row.draft.chips != draft.chips]
                self._write([*rows, parked])
        except OSError:
            self._unkept.append(parked)
            raise

    def rows(self) -> list[Parked]:
        """What is parked, the latest first."""
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
