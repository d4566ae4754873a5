"""What a listing says of a session: a fold over its records, kept beside the log so that only what was added
since is read again. The result always equals a fold from the beginning."""

import contextlib
import os
from typing import BinaryIO

import msgspec
from msgspec import Struct

from codewhale.lib.files import DISK, FileOps, atomic_write
from codewhale.lib.text import one_line
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import FileChanged, MessageAdded, ModelChanged, SessionOpened, TitleSet
from codewhale.protocol.messages import Text
from codewhale.protocol.views import SessionSummary
from codewhale.session import records
from codewhale.session.log import LOG_FILE
from codewhale.session.records import Record

LISTING_FILE = "listing.json"
TITLE_LIMIT = 80
_VERSION = 3
MOST_FILES = 1000


class Fold(Struct):
    """A session's listing as far as its records have been read."""

    title: str = ""
    created: str = ""
    updated: str = ""
    workspace: str = ""
    turns: int = 0
    messages: int = 0
    model: str = ""
    parent: str = ""
    owner: str = ""
    kind: str = ""
    name: str = ""
    role: str = ""
    files: set[str] = msgspec.field(default_factory=set)

    def take(self, record: Record) -> None:
        """Fold one record in; only the few events that show in a listing are decoded."""
        self.created = self.created or record.at
        self.updated = max(self.updated, record.at)
        match record.type:
            case "turn_started":
                self.turns += 1
            case "message_added":
                self.messages += 1
                if not self.title:
                    self._decode(record)
            case "session_opened" | "model_changed" | "title_set" | "file_changed":
                self._decode(record)

    def _decode(self, record: Record) -> None:
        try:
            event = records.decode_event(record.event)
        except msgspec.ValidationError:
            return  # a later version's form of it: the listing does without
        match event:
            case SessionOpened() if not self.workspace:
                self.workspace, self.model, self.parent = event.workspace, event.model, event.parent
                self.owner, self.kind, self.name = event.owner, event.kind, event.name
                self.role = event.scope.role if event.scope is not None else ""
            case ModelChanged():
                self.model = event.model
            case TitleSet():
                self.title = one_line(event.title, TITLE_LIMIT)
            case FileChanged(change=change) if len(self.files) < MOST_FILES:
                self.files.add(change.path)
            case MessageAdded(message=message) if message.role == "user":
                self.title = _first_line(message.parts)


def checked_title(text: str) -> str:
    """A title as it can stand in a list. Raises SessionError for an empty one, a long one, and one that holds more
    than plain text on one line."""
    title = text.strip()
    if not title:
        raise SessionError("a title needs at least one word")
    if len(title) > TITLE_LIMIT:
        raise SessionError(f"a title has at most {TITLE_LIMIT} characters, this one has {len(title):,}")
    if one_line(title, TITLE_LIMIT) != " ".join(title.split()) or "\n" in title:
        raise SessionError("a title is plain text on one line, without control characters")
    return one_line(title, TITLE_LIMIT)


def _first_line(parts: tuple[object, ...]) -> str:
    for part in parts:
        if isinstance(part, Text) and part.source == "person" and part.text.strip():
            return one_line(part.text.strip().split("\n", 1)[0], TITLE_LIMIT)
    return ""


class Listing(Struct):
    """A fold and the place in the log it has come to: the offset after the last record folded, that record's own
    offset, seq and crc, and the damage met on the way."""

    version: int = _VERSION
    offset: int = 0
    last: int = 0
    seq: int = 0
    crc: str = ""
    mtime: int = 0
    damaged: bool = False
    fold: Fold = msgspec.field(default_factory=Fold)

    def advance(self, file: BinaryIO) -> None:
        """Fold the records after `offset`. Raises NewerFormatError."""
        index = records.scan(file, self.offset)
        first = index.position(self.seq + 1)
        self.damaged = bool(self.damaged or first or index.skipped or index.duplicates)
        for line in records.lines(file, index, first, len(index.seqs)):
            self.fold.take(records.decode_record(line))
            self.crc = line[8:16].decode()
        if index.last > self.seq:
            self.seq, self.last = index.last, index.starts[-1]
        self.offset = index.end


def summarise(folder: str, *, ops: FileOps = DISK) -> tuple[Fold, bool]:
    """The fold of the session in `folder` and whether its log is damaged. Raises OSError when there is no log,
    NewerFormatError; the cache is read, brought up to date and written where it can be."""
    cache = os.path.join(folder, LISTING_FILE)
    with open(os.path.join(folder, LOG_FILE), "rb") as file:
        found = os.fstat(file.fileno())
        listing = _cached(cache)
        if listing.mtime == found.st_mtime_ns and listing.offset == found.st_size:
            return listing.fold, listing.damaged
        if not _continues(listing, file):
            listing = Listing()
        before = listing.offset
        listing.advance(file)
        if before and listing.damaged:  # records may stand out of order: only the whole log tells
            listing = Listing()
            listing.advance(file)
        torn = listing.offset < found.st_size
        listing.mtime = 0 if torn else found.st_mtime_ns
    if listing.offset > before or not torn:
        with contextlib.suppress(OSError):
            atomic_write(cache, msgspec.json.encode(listing), ops=ops, point="listing")
    # A torn first record is a session that never began, not one that is damaged.
    return listing.fold, listing.damaged or (torn and bool(listing.seq))


def _cached(path: str) -> Listing:
    try:
        with open(path, "rb") as file:
            listing = msgspec.json.decode(file.read(), type=Listing)
    except (OSError, msgspec.DecodeError):
        return Listing()
    return listing if listing.version == _VERSION else Listing()


def _continues(listing: Listing, file: BinaryIO) -> bool:
    """Whether the log still holds the last record folded where it was, with nothing damaged after it."""
    if not listing.seq or listing.damaged:
        return False
    file.seek(listing.last)
    line = file.read(listing.offset - listing.last)
    return line[8:16].decode("latin-1") == listing.crc and records.checked_seq(line.rstrip(b"\n")) == listing.seq


def summary(session: str, fold: Fold, state: str) -> SessionSummary:
    """The row of a listing."""
    return SessionSummary(
        id=session,
        title=fold.title,
        created=fold.created,
        updated=fold.updated,
        workspace=fold.workspace,
        turns=fold.turns,
        messages=fold.messages,
        model=fold.model,
        state=state,
        parent=fold.parent,
        owner=fold.owner,
        kind=fold.kind,
        name=fold.name,
        files=len(fold.files),
        role=fold.role,
    )
