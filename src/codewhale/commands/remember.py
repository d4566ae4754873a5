"""A line that the person wants kept: appended to the instructions that sessions begin with, and taken back again."""

import asyncio
import errno
import os
import stat

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.lib.files import DISK, write_all
from codewhale.lib.text import one_line
from codewhale.protocol.ops import CommandOutput

NAME = "AGENTS.md"
LIMIT = 32 << 10
LONGEST = 2000
_USAGE = "Use /remember workspace TEXT or /remember own TEXT; /remember undo removes the last added line."
_OPEN = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK


class RememberCommand:
    """/remember. `home` holds the person's own instructions."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._added: dict[str, tuple[str, bytes]] = {}

    @command("/remember", "workspace|own TEXT | undo")
    async def remember(self, args: str, context: CommandContext) -> CommandOutput:
        """Append a line to AGENTS.md of the workspace, or to your own; undo takes the last one back."""
        where, _, text = args.partition(" ")
        text = one_line(text.strip(), LONGEST + 1)
        own = where == "own"
        try:
            if args == "undo":
                return await asyncio.to_thread(self._undo, context.session)
            if where not in ("workspace", "own") or not text:
                return misuse(_USAGE)
            if len(text) > LONGEST:
                return misuse(f"A line may have {LONGEST:,} characters. Shorten it, or edit {NAME}.")
            path = os.path.join(self._home if own else context.workspace, NAME)
            added = await asyncio.to_thread(_append, path, text, own)
        except OSError as error:
            reason = error.strerror or str(error)
            return CommandOutput(f"Nothing was changed: {NAME}: {reason}. Edit the file yourself.", ok=False)
        self._added[context.session] = (path, added)
        shown = path if own else NAME
        return CommandOutput(f"Added to {shown}; new sessions read it. /remember undo takes it back.")

    def _undo(self, session: str) -> CommandOutput:
        path, added = self._added.pop(session, ("", b""))
        if not path:
            return CommandOutput("Nothing was added in this session.", ok=False)
        fd = os.open(path, _OPEN)
        try:
            data = os.pread(fd, LIMIT + 1, 0)
            if not data.endswith(added):
                return CommandOutput(f"{path} has changed since. Edit it yourself.", ok=False)
            os.ftruncate(fd, len(data) - len(added))
            if data == added:
                os.unlink(path)
        finally:
            os.close(fd)
        return CommandOutput(f"Removed from {path}.")


def _append(path: str, text: str, links: bool) -> bytes:
    """Append the text as a list item; the bytes that were added. Raises OSError, and nothing was added then."""
    fd = os.open(path, _OPEN | os.O_CREAT | (0 if links else os.O_NOFOLLOW), 0o644)
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or (info.st_nlink != 1 and not links):
            raise OSError(errno.EPERM, "it must be a regular file without other hard links")
        data = os.pread(fd, LIMIT + 1, 0)
        added = (b"" if not data or data.endswith(b"\n") else b"\n") + f"- {text}\n".encode("utf-8", "replace")
        if len(data) + len(added) > LIMIT:
            raise OSError(errno.EFBIG, f"it would pass {LIMIT >> 10} KiB, more than sessions read")
        try:
            write_all(DISK, fd, added)
            os.fsync(fd)
        except OSError:
            os.ftruncate(fd, len(data))
            raise
    finally:
        os.close(fd)
    return added
