"""Several files beneath a root replaced or deleted together: all new bytes are on disk under hidden names before
the first name changes, and a failure halfway puts every name back."""

import errno
import os
import secrets
import stat
from contextlib import suppress

from codewhale.lib.beneath import Root


class Slot:
    """One name in an open directory, with what stood there when it was looked at."""

    def __init__(self, path: str, folder: int, name: str) -> None:
        self.path = path
        self.folder = folder
        self.name = name
        self.before: bytes | None = None
        self.temp = ""
        self.found = self._look()

    def unchanged(self) -> bool:
        """Whether the name still leads to the very file that was looked at."""
        return _identity(self.found) == _identity(self._look())

    def _look(self) -> os.stat_result | None:
        try:
            return os.lstat(self.name, dir_fd=self.folder)
        except FileNotFoundError:
            return None


class Staging:
    """One set of changes. `slot` looks, `replace` and `delete` prepare, `commit` makes all of it or raises
    OSError with nothing changed; `close` in any case. `at` is the path being worked on, for error texts."""

    def __init__(self, root: Root) -> None:
        self.at = "."
        self._root = root
        self._slots: list[Slot] = []
        self._planned: list[Slot] = []
        self._done: list[Slot] = []
        self._made: list[str] = []
        self._committed = False

    def slot(self, path: str, *, create: bool) -> Slot:
        """The slot of a path without links; `create` makes the folders that are missing."""
        folder, name = os.path.split(path)
        if create:
            self._make(folder)
        slot = Slot(path, self._root.open_dir(folder or ".", links=False), name)
        self._slots.append(slot)
        return slot

    def replace(self, slot: Slot, before: bytes | None, data: bytes, mode: int) -> None:
        """Plan new bytes; `before` is what a rollback writes back, None for a new file."""
        slot.before = before
        slot.temp = _write_temp(slot, data, mode)
        self._planned.append(slot)

    def link(self, slot: Slot, target: bytes) -> None:
        """Plan a symlink."""
        slot.temp = f".{secrets.token_hex(12)}.tmp"
        os.symlink(target, slot.temp, dir_fd=slot.folder)
        self._planned.append(slot)

    def delete(self, slot: Slot, before: bytes | None) -> None:
        """Plan a deletion."""
        slot.before = before
        self._planned.append(slot)

    def commit(self) -> None:
        """Change every name, or none. Raises OSError; EBUSY when a file is no longer the one looked at."""
        try:
            for slot in self._planned:
                self.at = slot.path
                if not slot.unchanged():
                    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), slot.path)
                _switch(slot)
                self._done.append(slot)
            for slot in self._planned:
                os.fsync(slot.folder)
        except OSError:
            self._roll_back()
            raise
        self._committed = True

    def close(self) -> None:
        """Remove what was not committed and close every folder."""
        for slot in self._slots:
            if slot.temp:
                with suppress(OSError):
                    os.unlink(slot.temp, dir_fd=slot.folder)
            os.close(slot.folder)
        self._slots.clear()
        while self._made and not self._committed:
            folder, name = os.path.split(self._made.pop())
            with suppress(OSError, ValueError):
                fd = self._root.open_dir(folder or ".", links=False)
                try:
                    os.rmdir(name, dir_fd=fd)
                finally:
                    os.close(fd)

    def _make(self, folder: str) -> None:
        """Make a folder and those above it, noting each one made."""
        if not folder:
            return
        try:
            os.close(self._root.open_dir(folder, links=False))
        except FileNotFoundError:
            self._make(os.path.dirname(folder))
            self._made.append(folder)
            os.close(self._root.open_dir(folder, True, links=False))

    def _roll_back(self) -> None:
        for slot in reversed(self._done):
            with suppress(OSError):
                if slot.before is None:
                    os.unlink(slot.name, dir_fd=slot.folder)
                    continue
                assert slot.found is not None
                temp = _write_temp(slot, slot.before, stat.S_IMODE(slot.found.st_mode))
                os.rename(temp, slot.name, src_dir_fd=slot.folder, dst_dir_fd=slot.folder)


def _switch(slot: Slot) -> None:
    if slot.temp:
        os.rename(slot.temp, slot.name, src_dir_fd=slot.folder, dst_dir_fd=slot.folder)
        slot.temp = ""
    else:
        os.unlink(slot.name, dir_fd=slot.folder)


def _identity(found: os.stat_result | None) -> tuple[int, ...] | None:
    if found is None:
        return None
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _write_temp(slot: Slot, data: bytes, mode: int) -> str:
    """Write `data` beside the slot under a name nobody can guess, private until it is complete and on disk; it
    then takes the owner of the file it is to replace."""
    name = f".{secrets.token_hex(12)}.tmp"
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=slot.folder)
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            if slot.found is not None and (slot.found.st_uid, slot.found.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(OSError):
                    os.fchown(fd, slot.found.st_uid, slot.found.st_gid)
            os.fchmod(fd, mode)
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError:
        with suppress(OSError):
            os.unlink(name, dir_fd=slot.folder)
        raise
    return name
