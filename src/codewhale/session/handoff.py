"""The relay of a session as a file of its workspace: written whole and never through a link, read with a bound, and
which of them this home has written or told of."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.bounded import read_regular
from codewhale.lib.staging import Slot, Staging
from codewhale.lib.text import head_tail, sanitise
from codewhale.process.rowfile import RowFile, is_own
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.files import HANDOFFS
from codewhale.protocol.marks import inert

HANDOFF, PREVIOUS = HANDOFFS[0], ".codewhale/handoff.previous.md"
TITLE = "# Session relay"
LIMIT = 32 << 10  # bytes of a relay
MOST_TOLD = 12_000  # characters of one that a session is told
_READ_LIMIT = 1 << 20
_MOST_ROWS = 500


class Handoff(Struct, frozen=True):
    """A file as it was read, and its path in the workspace."""

    path: str
    text: str
    sha256: str


class HandoffRow(Struct, frozen=True, omit_defaults=True):
    """What a home knows of a workspace's file: the hash of what it wrote, by which session, when (Unix seconds), at
    which commit, with which files changed (their hash); and the file that a session was told of, and which session."""

    sha256: str = ""
    session: str = ""
    at: float = 0.0
    commit: str = ""
    tree: str = ""
    told: str = ""
    told_to: str = ""


def handoff_at(workspace: str) -> str:
    """The path of the workspace's file, "" where there is none."""
    return next((path for path in HANDOFFS if os.path.lexists(os.path.join(workspace, path))), "")


def read_handoff(workspace: str, path: str) -> Handoff:
    """Raises OSError for what is no regular file, a link, or larger than 1 MiB."""
    try:
        data = read_regular(Root(workspace).open(path, os.O_RDONLY | os.O_NONBLOCK, links=False), _READ_LIMIT)
    except PathRefused as refused:
        raise OSError(errno.EPERM, refused.reason) from None
    if data is None:
        raise OSError(errno.EFBIG, "it is not a regular file of at most 1 MiB")
    return Handoff(path, data.decode("utf-8", "replace"), hashlib.sha256(data).hexdigest())


def check_place(workspace: str) -> None:
    """Raises OSError where a relay could not be written."""
    _staged(workspace, None)


def write_handoff(workspace: str, text: str) -> tuple[str, bool]:
    """Write the relay; what stood there before becomes the previous one. The hash of the bytes, and whether there was
    another. Raises OSError, and then nothing has changed."""
    data = text.encode("utf-8", "replace")
    return hashlib.sha256(data).hexdigest(), _staged(workspace, data)


def _staged(workspace: str, data: bytes | None) -> bool:
    staging = Staging(Root(workspace))
    try:
        slots = [staging.slot(path, create=True) for path in (PREVIOUS, HANDOFF)]
        former = [_content(slot) for slot in slots]
        if not os.access(".", os.W_OK, dir_fd=slots[0].folder):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        kept = former[1] is not None and former[1] != data
        if data is not None:
            if kept and former[1] is not None:
                staging.replace(slots[0], former[0], former[1], 0o644)
            staging.replace(slots[1], former[1], data, 0o644)
            staging.commit()
        return kept
    except PathRefused as refused:
        raise OSError(errno.EPERM, refused.reason) from None
    finally:
        staging.close()


def _content(slot: Slot) -> bytes | None:
    if slot.found is None:
        return None
    data = None
    if stat.S_ISREG(slot.found.st_mode):
        data = read_regular(
            os.open(slot.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=slot.folder), _READ_LIMIT
        )
    if data is None:
        raise OSError(errno.EPERM, f"{slot.path} is a link, no regular file, or larger than 1 MiB; move it away")
    return data


class Handoffs:
    """`handoffs.json` of a state directory, by the real path of the workspace."""

    def __init__(self, home: str) -> None:
        self._home = home
        path = os.path.join(home, "handoffs.json")
        self._rows = RowFile(path, "handoffs", HandoffRow, self._refuse_foreign, again="write the relay again")

    def change(self, workspace: str, change: Callable[[HandoffRow], HandoffRow]) -> HandoffRow:
        """Change a workspace's row under the lock; the row as it was. Raises ConfigError, and nothing has changed."""
        root = os.path.realpath(workspace)
        with self._rows.changing(self._home) as rows:
            before = rows.get(root, HandoffRow())
            rows[root] = change(before)
            for name in sorted(rows, key=lambda name: (name == root, rows[name].at))[:-_MOST_ROWS]:
                del rows[name]
        return before

    def claim(self, workspace: str, sha256: str, session: str, told: bool = True) -> tuple[HandoffRow, bool]:
        """Whether this session is the one to be told of a file: none was yet, or it was itself and got no further.
        Where it is not `told` yet, nothing changes."""

        def claimed(row: HandoffRow) -> HandoffRow:
            mine = row.told != sha256 and row.session != session
            return replace(row, told=sha256, told_to=session) if mine else row

        known = {} if told else self._rows.read()
        row = self.change(workspace, claimed) if told else known.get(os.path.realpath(workspace), HandoffRow())
        return row, (row.told != sha256 or row.told_to == session) and row.session != session

    def _refuse_foreign(self, status: os.stat_result) -> None:
        if not is_own(status):
            raise ConfigError(f"{self._rows.path}: does not belong to you")


def told_text(handoff: Handoff, preface: str, room: int = MOST_TOLD) -> str:
    """What a session is told of a file: data in a block that nothing in it can close, in `room` characters at most."""
    text = inert(sanitise(handoff.text)).strip()
    head, tail, left = head_tail(text, max(0, room - len(preface) - 200))
    body = head + (f"\n[... {left:,} bytes left out; the whole is in {handoff.path}]\n{tail}" if left else "")
    return f'{preface}\n<session_relay file="{handoff.path}">\n{body}\n</session_relay>'
