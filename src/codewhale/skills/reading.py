"""Files of skills and rules as they were read: each is read again when it has changed."""

import os
from collections.abc import Callable, Mapping
from hashlib import sha256

from msgspec import Struct

from codewhale.lib.text import told_line
from codewhale.permissions.markdown_files import read_markdown
from codewhale.permissions.skill_folders import settled
from codewhale.permissions.trust import Trusted, TrustStore
from codewhale.protocol.errors import ConfigError
from codewhale.skills.model import Skill

FILE_LIMIT = 1 << 20
_MOST_KNOWN, _MOST_PROBLEMS = 2_000, 200


class FileReading(Struct, frozen=True):
    """A file as it was read: what it is known by, its skill or None, and what is wrong with it."""

    stamp: tuple[int, ...]
    skill: Skill | None
    notes: tuple[str, ...]


class FileReader:
    def __init__(self) -> None:
        self._known: dict[str, FileReading] = {}

    def read(self, file: str, understand: Callable[[bytes], tuple[Skill, tuple[str, ...]]]) -> FileReading:
        """What a file says. `understand` raises ValueError with why it says nothing."""
        try:
            info = os.stat(file)
        except OSError as error:
            return FileReading((), None, (error.strerror or "it cannot be read",))
        stamp = (info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino)
        known = self._known.get(file)
        if known is None or known.stamp != stamp:
            known = _read(file, stamp, understand)
            if len(self._known) > _MOST_KNOWN:
                self._known.clear()
            if settled(info):
                self._known[file] = known
        return known


def text_of(skill: Skill) -> str | None:
    """The text of a skill's file, None where it is no longer what it was."""
    data = read_markdown(skill.file, FILE_LIMIT)
    if data is None or sha256(data).hexdigest() != skill.sha256:
        return None
    return data.decode("utf-8", "replace")


def trusted_rows(trust: TrustStore, problems: list[str]) -> Mapping[str, Trusted]:
    """What the person trusts, nothing where that cannot be read: `problems` then says why."""
    try:
        return trust.all()
    except ConfigError as error:
        problems.append(str(error))
        return {}


def bounded(problems: list[str]) -> tuple[str, ...]:
    """The lines, safe to show, and how many more there are."""
    lines = [told_line(line) for line in problems[:_MOST_PROBLEMS]]
    return (
        (*lines, f"{len(problems) - _MOST_PROBLEMS} more are left out") if problems[_MOST_PROBLEMS:] else tuple(lines)
    )


def _read(
    file: str, stamp: tuple[int, ...], understand: Callable[[bytes], tuple[Skill, tuple[str, ...]]]
) -> FileReading:
    data = read_markdown(file, FILE_LIMIT)
    try:
        if data is None:
            raise ValueError(f"it must be a regular file of at most {FILE_LIMIT:,} bytes")
        return FileReading(stamp, *understand(data))
    except ValueError as error:
        return FileReading(stamp, None, (str(error),))
