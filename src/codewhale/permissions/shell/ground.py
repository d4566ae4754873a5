"""What lies on the disk where a line would run: where a path really leads, what a pattern stands for, links and odd
names below a folder. Looks are bounded; what is beyond a bound is not known."""

import fnmatch
import functools
import os
import re
from collections.abc import Callable, Iterator, Sequence

# Entries that a pattern may meet, and that a look through folders may.
MOST_NAMES = 500
MOST_ENTRIES = 40_000
_GLOB = re.compile(r"[*?\[]")
_ODD = re.compile(r"[\s'\"\\]|^[-@]")


@functools.lru_cache(maxsize=1024)
def real(path: str) -> str:
    """Where a path really leads; kept until one look at a line is over."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


def program_in(inside: str, name: str) -> str:
    """The file below a folder that is found under a program's name, or would be: PATH names its folder. "" for none."""
    paths = (os.path.join(folder, name) for folder in _own_folders(os.environ.get("PATH", ""), inside))
    return next(filter(os.path.lexists, paths), "")


@functools.lru_cache(maxsize=16)
def _own_folders(path: str, inside: str) -> list[str]:
    own = [folder for folder in path.split(os.pathsep) if not os.path.isabs(folder) or _beneath(folder, inside)]
    own += [folder for folder in path.split(os.pathsep) if _beneath(real(folder), real(inside))]
    return [os.path.join(inside, folder) for folder in own]


def _beneath(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def is_folder(path: str) -> bool:
    """Whether a folder is there."""
    try:
        return os.path.isdir(path)
    except ValueError:
        return False


def content(path: str, most: int = 65_536) -> bytes | None:
    """What a regular file holds, None where there is none or it is larger."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    with os.fdopen(handle, "rb") as file:
        try:
            data = file.read(most + 1)
        except OSError:
            return None
    return data if len(data) <= most else None


def expand(pattern: str, folder: str) -> list[str] | None:
    """The names that a pattern stands for there, the pattern itself where there are none; None when too many would have
    to be looked at. A bracket counts as any character, so that there may be more names than the shell takes."""
    left = MOST_ENTRIES
    names = ["/" if pattern.startswith("/") else ""]
    for part in filter(None, pattern.split("/")):
        if not _GLOB.search(part):
            names = [f"{name}{part}/" for name in names if os.path.lexists(os.path.join(folder, name, part))]
            continue
        wanted = re.compile(fnmatch.translate(re.sub(r"\[[^]]+\]", "?", part)))
        met: list[str] = []
        for name in names:
            for entry in _entries(os.path.join(folder, name)):
                left -= 1
                if wanted.match(entry.name) and entry.name.startswith(".") <= part.startswith("."):
                    met.append(f"{name}{entry.name}/")
            if left < 0 or len(met) > MOST_NAMES:
                return None
        names = met
    tail = "/" if pattern.endswith("/") else ""
    return sorted(name.rstrip("/") + tail for name in names if name not in ("", "/")) or [pattern]


def trouble_below(
    roots: Sequence[str],
    inside: str,
    names: str = "",
    linked: bool = True,
    avoided: Callable[[str], bool] = lambda path: False,
) -> str:
    """Why going through folders may lead elsewhere: with `linked`, a link out of `inside`; a name that is not surely
    one word and no option, or a path that is `avoided`; files of other names do not count. "" for none."""
    wanted = re.compile(fnmatch.translate(names or "*"))
    left = MOST_ENTRIES
    waiting, seen = set(roots), set()
    while waiting:
        seen.add(folder := waiting.pop())
        for entry in _entries(folder):
            left -= 1
            if left < 0:
                return f"there are more than {MOST_ENTRIES} files to look at"
            folder_there = entry.is_dir(follow_symlinks=False)
            if not folder_there and not wanted.match(entry.name):
                continue
            if names and _ODD.search(entry.name):
                return f"{entry.name!r} is an odd name for a file"
            if names and not folder_there and avoided(entry.path):
                return f"{entry.name} may hold a secret"
            if linked and entry.is_symlink():
                target = real(entry.path)
                if not _beneath(target, inside):
                    return f"{entry.path} is a link that leads out"
                waiting |= {target} - seen
            elif folder_there and (entry.name != ".git" or names == "*"):
                waiting |= {entry.path} - seen
    return ""


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            yield from found
    except (OSError, ValueError):
        return
