"""Writing files back: beneath the root, through no link, each one whole or not at all, and only over what was looked
at."""

import errno
import hashlib
import os
import stat

from msgspec import Struct

from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.bounded import read_regular
from codewhale.lib.staging import Slot, Staging
from codewhale.workspace.undo.journal import FileState, blob_id
from codewhale.workspace.undo.scan import FILE_LIMIT

CHANGED = "it was changed just now"
THROUGH_LINK = "its folder is a link"
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileRestore(Struct, frozen=True):
    """What became of a file: `reason` why it was left as it was, "" when it was written; the sha256 of what stood there
    and of what stands there now, None for nothing or a link."""

    reason: str = ""
    before: str | None = None
    after: str | None = None


def write_back(root: Root, path: str, now: FileState | None, then: FileState | None, data: bytes | None) -> FileRestore:
    """Make `path`, which must be as `now`, what `then` says, with these bytes (None: it changes its mode alone)."""
    staging = Staging(root)
    try:
        slot = staging.slot(path, create=then is not None)
        old = _standing(slot, now)
        _stage(staging, slot, then, old, data)
        staging.commit()
    except _DiffersError:
        return FileRestore(CHANGED)
    except PathRefused as refused:
        return FileRestore(refused.reason)
    except FileNotFoundError:
        return FileRestore("" if now is None else CHANGED)
    except OSError as error:
        linked = error.errno in (errno.ENOTDIR, errno.ELOOP)
        return FileRestore(THROUGH_LINK if linked else (error.strerror or str(error)).lower())
    finally:
        staging.close()
    new = data if data is not None and then is not None else old if then is not None else None
    return FileRestore("", _sha256(old), _sha256(new))


class _DiffersError(Exception):
    """The file is not what it was when it was looked at."""


def _standing(slot: Slot, now: FileState | None) -> bytes | None:
    """The bytes of the file in the slot, which must be in the state `now`."""
    info = slot.found
    if info is None or now is None:
        if info is not None or now is not None:
            raise _DiffersError
        return None
    if info.st_mode != now.mode and not (_is_link(slot) and now.is_link):
        raise _DiffersError
    if now.is_link:
        data: bytes | None = os.fsencode(os.readlink(slot.name, dir_fd=slot.folder))
    else:
        data = read_regular(os.open(slot.name, _OPEN, dir_fd=slot.folder), FILE_LIMIT)
    same = info.st_size == now.size if not now.blob else data is not None and blob_id(data) == now.blob
    if not same:
        raise _DiffersError
    return data


def _stage(staging: Staging, slot: Slot, then: FileState | None, old: bytes | None, data: bytes | None) -> None:
    if then is None:
        staging.delete(slot, None if _is_link(slot) else old)
    elif then.is_link:
        staging.link(slot, data or b"")
    elif data is not None:
        staging.replace(slot, None if _is_link(slot) else old, data, _mode(slot, then))
    else:
        fd = os.open(slot.name, _OPEN, dir_fd=slot.folder)
        try:
            os.fchmod(fd, _mode(slot, then))
        finally:
            os.close(fd)


def _is_link(slot: Slot) -> bool:
    return slot.found is not None and stat.S_ISLNK(slot.found.st_mode)


def _mode(slot: Slot, then: FileState) -> int:
    """Its permission bits; where they are not known those of the file that stands there, or of any new one."""
    if not then.is_coarse:
        return stat.S_IMODE(then.mode)
    if slot.found is not None and stat.S_ISREG(slot.found.st_mode):
        return stat.S_IMODE(slot.found.st_mode) & ~0o100 | then.mode & 0o100
    return 0o755 if then.mode & 0o100 else 0o644


def _sha256(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


def remove_empty(root: Root, folder: str) -> None:
    while folder:
        above, name = os.path.split(folder)
        try:
            fd = root.open_dir(above or ".", links=False)
        except (PathRefused, OSError):
            return
        try:
            os.rmdir(name, dir_fd=fd)
        except OSError:
            return
        finally:
            os.close(fd)
        folder = above
