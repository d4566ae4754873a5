"""Files that a single name leads to, so that nobody changes them by another one."""

import contextlib
import os
import shutil
import stat


def make_alone(folder: str, device: int) -> None:
    """Give each file below a folder that has further names on this device an inode of its own. What may not be written
    is left as it is: nobody else of this user may write it either."""
    for place, _, names in os.walk(folder):
        for path in (os.path.join(place, name) for name in names):
            with contextlib.suppress(OSError):
                if has_others(path, device):
                    _part(path)


def has_others(path: str, device: int) -> bool:
    """Whether a file has further names on a device."""
    about = os.lstat(path)
    return stat.S_ISREG(about.st_mode) and about.st_nlink > 1 and about.st_dev == device


def _part(path: str) -> None:
    about, draft = os.lstat(path), f"{path}.{os.getpid()}"
    try:
        shutil.copy2(path, draft)
        os.chown(draft, about.st_uid, about.st_gid)
        os.replace(draft, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
