"""What a workspace looked like around each call: a git repository of our own in the state directory.

Its one branch is a journal: each commit is one entry, with the files it changed as they were and as they became. The
workspace's own repository is never opened; no work tree, index, hook, filter or attribute takes part.
"""

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from codewhale.lib.files import atomic_write, private_dir
from codewhale.process.launch import Child, Completed, Launch, run, settle, start
from codewhale.process.programs import find_program, not_installed

BRANCH = "refs/heads/journal"
BATCH = 8 << 20
MOST_LISTED = 20_000
SECONDS = 120.0
_LOG_LIMIT = 256 << 20
_FATAL = 128  # how git ends when it cannot make sense of a repository
_DIFF_LIMIT = 16 << 20
_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "none",
    "LC_ALL": "C",
}
_CONFIG = (
    "core.attributesFile=" + os.devnull,
    "core.hooksPath=" + os.devnull,
    "core.fsmonitor=false",
    "core.compression=1",
    "pack.compression=1",
    "pack.threads=1",
    "gc.auto=0",
    "gc.packRefs=false",
)
_IMPORT = ("fast-import", "--quiet", "--done", "--depth=0")

LineRange = tuple[int, int, int, int]


class SnapshotError(Exception):
    """The journal cannot be read or written; the text says why, for a person."""


class JournalDamagedError(SnapshotError):
    """What is in the journal is no longer what was written."""


class FileState(Struct, frozen=True, array_like=True):
    """A file as it stood: `mode` is its st_mode (type and permission bits), `blob` the git id of its bytes, of a
    symlink's target; "" when it is not kept. `size` is in bytes."""

    mode: int
    blob: str
    size: int = 0

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def is_coarse(self) -> bool:
        """Whether its permission bits are not known, but for the owner's execute bit."""
        return not self.is_link and not self.mode & 0o677


class Change(Struct, frozen=True, array_like=True):
    """One path before and after; None where there was no file."""

    path: str
    before: FileState | None
    after: FileState | None


class JournalEntry(Struct, frozen=True, omit_defaults=True):
    """One step of a workspace's history.

    `kind`: "call" is what a call of `session` did, "undo" what was taken back for it from entry `since` on, "other"
    what anybody else did, "found" what was there when it was first looked at. `number` counts from 1, `at` is
    seconds since the epoch. `unlisted` counts changes that are not listed: of "found", and when they were too many.
    """

    number: int
    at: float
    kind: Literal["call", "undo", "other", "found"]
    session: str = ""
    turn: int = 0
    call: str = ""
    tool: str = ""
    since: int = 0
    unlisted: int = 0
    changes: tuple[Change, ...] = ()


class JournalContent(Struct, frozen=True):
    """One changed path on its way into the journal; `data` None where nothing is to be kept."""

    change: Change
    data: bytes | None


def blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


class Journal:
    """The journal in `folder` of the workspace at `root`. One writer at a time: the caller's business. Raises
    SnapshotError."""

    def __init__(self, folder: str, root: str = "") -> None:
        self.folder = folder
        self._root = root
        self._program = ""

    async def open(self) -> None:
        program = find_program("git", self._root)
        if program is None:
            raise SnapshotError(not_installed("git"))
        self._program = program
        if not os.path.isfile(os.path.join(self.folder, "HEAD")):
            private_dir(self.folder)
            owner = ("--shared=0600", "--object-format=sha1")  # whatever the umask, only the owner reads it
            await self._git("init", "--quiet", "--bare", "--template=", *owner, self.folder)
            await self._git("symbolic-ref", "HEAD", BRANCH)
        for name in os.listdir(self.folder):
            if name.startswith("fast_import_crash_"):
                os.unlink(os.path.join(self.folder, name))

    def head(self) -> str:
        try:
            with open(os.path.join(self.folder, BRANCH), "rb") as ref:
                return ref.read(64).decode("ascii", "replace").strip()
        except OSError:
            return ""

    async def entries(self) -> list[tuple[str, JournalEntry]]:
        """Every (commit id, entry), oldest first."""
        if not self.head():
            return []
        done = await self._git("log", "--first-parent", "--reverse", "--format=%H%n%B%x00", BRANCH, limit=_LOG_LIMIT)
        entries = []
        for record in done.stdout.split(b"\0"):
            commit, _, text = record.strip(b"\n").partition(b"\n")
            if commit:
                entries.append((commit.decode(), _entry(text)))
        return entries

    async def files(self) -> dict[str, FileState]:
        """The files of the last commit by path. Of their permission bits git knows one: see `FileState.is_coarse`."""
        if not self.head():
            return {}
        done = await self._git("ls-tree", "-r", "-z", "--long", "--full-tree", BRANCH, limit=_LOG_LIMIT)
        states = {}
        for row in done.stdout.split(b"\0"):
            facts, _, path = row.partition(b"\t")
            if path:
                mode, _, blob, size = facts.split()
                states[os.fsdecode(path)] = FileState(int(mode, 8) & ~0o677, blob.decode(), int(size))
        return states

    async def record(
        self, contents: Iterator[JournalContent], settle_on: Callable[[list[Change]], Awaitable[Sequence[JournalEntry]]]
    ) -> None:
        """Take the contents (worked out in a thread, piece by piece) and write the entries that `settle_on` makes of
        their changes, in one step: all of it is in the journal, or nothing."""
        importing: Child | None = None
        changes: list[Change] = []
        coming = asyncio.ensure_future(asyncio.to_thread(_batch, contents))
        try:
            while pieces := await coming:
                coming = asyncio.ensure_future(asyncio.to_thread(_batch, contents))
                changes += [piece.change for piece in pieces]
                importing = importing or await start(self._launch(*_IMPORT, stdin=True))
                await importing.write(b"".join(_blob(piece.data) for piece in pieces if piece.data is not None))
            entries = await settle_on(changes)
            if entries:
                importing = importing or await start(self._launch(*_IMPORT, stdin=True))
                await importing.write(_commits(entries, bool(self.head())))
                await importing.close_stdin()
                _checked(await importing.wait())
        except (OSError, BrokenPipeError) as error:
            raise SnapshotError(f"the changes of a call cannot be stored in {self.folder}: {error}") from error
        finally:
            coming.cancel()
            if importing is not None:
                await settle(importing.kill())

    async def read(self, states: Mapping[str, int]) -> dict[str, bytes]:
        """The bytes by blob id, for ids with their sizes. What is no longer there is left out."""
        contents: dict[str, bytes] = {}
        if states:
            asked = "".join(f"{blob}\n" for blob in states).encode()
            room = sum(states.values()) + 100 * len(states)
            data = (await self._git("cat-file", "--batch", stdin=asked, limit=2 * room)).stdout
            at = 0
            while at < len(data):
                line = data[at : data.index(b"\n", at)]
                at += len(line) + 1
                words = line.split()
                if len(words) == 3:
                    size = int(words[2])
                    contents[words[0].decode()] = data[at : at + size]
                    at += size + 1
        return contents

    async def hunks(self, before: str, after: str) -> tuple[LineRange, ...] | None:
        """How two kept files differ by lines: (old begin, old end, new begin, new end), from 0, ends left out. None
        where that is too much to say."""
        done = await self._git(
            "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--text", "--unified=0", "--histogram",
            before, after, limit=_DIFF_LIMIT,
        )  # fmt: skip
        if done.stdout_gap >= 0:
            return None
        return tuple(_hunk(match) for match in _HUNK.finditer(done.stdout))

    def size(self) -> int:
        total = 0
        for folder, _, names in os.walk(os.path.join(self.folder, "objects")):
            for name in names:
                try:
                    total += os.lstat(os.path.join(folder, name)).st_size
                except OSError:
                    continue
        return total

    def check_room(self, size: int) -> None:
        """Raise where so many bytes cannot be written, before anything is done that is to be written down."""
        try:
            atomic_write(os.path.join(self.folder, "room"), bytes(size))
            os.unlink(os.path.join(self.folder, "room"))
        except OSError as error:
            raise SnapshotError(f"there is no room for it in {self.folder}: {error.strerror or error}") from error

    async def cut(self, oldest: str) -> None:
        """Forget all that was before commit `oldest`, and give its room back."""
        atomic_write(os.path.join(self.folder, "shallow"), f"{oldest}\n".encode())
        await self._git("gc", "--quiet", "--prune=now")

    def _launch(self, *args: str, stdin: bool = False, data: bytes = b"", limit: int = 1 << 20) -> Launch:
        settings = tuple(word for setting in _CONFIG for word in ("-c", setting))
        return Launch(
            argv=(self._program, "--no-pager", *settings, *args),
            cwd=self.folder,
            profile="none",  # it writes the journal alone, which no sandbox profile opens
            workspace=self._root or self.folder,
            env={**_ENVIRONMENT, "GIT_DIR": self.folder},
            stdin=data,
            keep_stdin=stdin,
            seconds=SECONDS,
            output_limit=limit,
            supervised=False,
            own=True,
        )

    async def _git(self, *args: str, stdin: bytes = b"", limit: int = 1 << 20) -> Completed:
        try:
            return _checked(await run(self._launch(*args, data=stdin, limit=limit)))
        except OSError as error:
            raise SnapshotError(f"git cannot work in {self.folder}: {error}") from error


def _checked(done: Completed) -> Completed:
    if done.exit_code != 0:
        reason = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        kind = JournalDamagedError if done.exit_code == _FATAL else SnapshotError
        raise kind(f"git failed on the record of changes: {reason or f'exit code {done.exit_code}'}")
    return done


def _entry(text: bytes) -> JournalEntry:
    try:
        return msgspec.json.decode(text, type=JournalEntry)
    except msgspec.MsgspecError as error:
        raise JournalDamagedError(f"an entry of the record of changes cannot be read: {error}") from error


def _batch(contents: Iterator[JournalContent]) -> list[JournalContent]:
    pieces, size = [], 0
    for piece in contents:
        pieces.append(piece)
        size += len(piece.data or b"")
        if size >= BATCH:
            break
    return pieces


def _blob(data: bytes) -> bytes:
    return b"blob\ndata %d\n%b\n" % (len(data), data)


def _commits(entries: Sequence[JournalEntry], later: bool) -> bytes:
    """The entries as commits, the first one on top of what is there (`later`)."""
    out = []
    for index, entry in enumerate(entries):
        text = msgspec.json.encode(as_written(entry))
        stamp = b"codewhale <> %d +0000" % int(entry.at)
        out.append(b"commit %b\ncommitter %b\ndata %d\n%b\n" % (BRANCH.encode(), stamp, len(text), text))
        if later and index == 0:
            out.append(b"from %b^0\n" % BRANCH.encode())
        kept = [(one.path, one.after) for one in entry.changes if one.after is not None and one.after.blob]
        gone = {one.path for one in entry.changes} - {path for path, _ in kept}
        out += [b"D %b\n" % _quoted(path) for path in sorted(gone)]
        out += [_placed(path, state) for path, state in kept]
        out.append(b"\n")
    return b"".join((*out, b"done\n"))


def as_written(entry: JournalEntry) -> JournalEntry:
    """The entry as it is written: of what was found, and of too much, the number alone."""
    if entry.kind == "found" or len(entry.changes) > MOST_LISTED:
        return msgspec.structs.replace(entry, changes=(), unlisted=len(entry.changes))
    return entry


def _placed(path: str, state: FileState) -> bytes:
    mode = b"120000" if state.is_link else b"100755" if state.mode & 0o100 else b"100644"
    return b"M %b %b %b\n" % (mode, state.blob.encode(), _quoted(path))


def _quoted(path: str) -> bytes:
    raw = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"%b"' % raw


def _hunk(match: re.Match[bytes]) -> LineRange:
    old, old_count, new, new_count = (int(part) if part is not None else 1 for part in match.groups())
    first = old - 1 if old_count else old
    then = new - 1 if new_count else new
    return first, first + old_count, then, then + new_count
