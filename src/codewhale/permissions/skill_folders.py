"""Which files are those of skills, and which other files belong to them."""

import os
import time
from collections.abc import Iterator

FILES = ("SKILL.md", "skill.md")
_BESIDE = 250


def is_skill(path: str) -> bool:
    """Whether a path is that of a skill's file: a command or a role may have the same name."""
    folder, name = os.path.split(path)
    return name in FILES and not folder.endswith(("/.codewhale/commands", "/.codewhale/agents"))


def settled(info: os.stat_result) -> bool:
    """Whether a file's last change is so long ago that another one would show in its times."""
    return time.time_ns() - info.st_ctime_ns > 50_000_000


def companions(folder: str) -> Iterator[str]:
    """The other files of a skill's folder in no order, hidden folders left out and links not followed. Raises
    ValueError where there are more files and folders than can be kept apart."""
    todo, left = [""], _BESIDE
    while todo:
        beneath = todo.pop()
        try:
            entries = os.scandir(os.path.join(folder, beneath))
        except OSError:
            continue
        with entries:
            for entry in entries:
                path = os.path.join(beneath, entry.name)
                left -= 1
                if left < 0:
                    raise ValueError(f"more than {_BESIDE} files and folders stand beside it")
                if not entry.is_dir(follow_symlinks=False):
                    yield from () if path in FILES else (path,)
                elif entry.name[0] != ".":
                    todo.append(path)
