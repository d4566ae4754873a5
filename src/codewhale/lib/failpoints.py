"""Named points where a test may make the process die or the disk fail, set by one environment variable.

CODEWHALE_FAILPOINTS="log.append.mid=kill@3,log.sync.before=eio@1": the point, what happens, at which hit (from
1; "3+" is the third and every later one). Kinds: kill and short (SIGKILL to this process; a point in the middle
of a write has half the bytes out), enospc and eio (an OSError). Unset, a point costs one truth test.
"""

import errno
import itertools
import os
import signal
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

VARIABLE = "CODEWHALE_FAILPOINTS"
POINTS = (
    "disk.write",
    "log.append.before",
    "log.append.mid",
    "log.append.after",
    "log.sync.before",
    "log.sync.after",
    "log.repair.before",
    "log.repair.after",
    "session.created",
    "fork.before_rename",
    "fork.after_rename",
    "artifact.before_rename",
    "artifact.after_rename",
    "listing.before_rename",
    "listing.after_rename",
    "export.before_rename",
    "export.after_rename",
    "rewind.files_back",
    "child.end",
    "task.taken",
    "task.claimed",
    "task.opened",
    "task.intent",
    "task.result",
    "task.ended",
    "task.beat",
)
KINDS = ("kill", "short", "enospc", "eio")


class Armed(NamedTuple):
    """What a point does and at which hit; `hits` counts from 1."""

    kind: str
    at: int
    onward: bool
    hits: Iterator[int]


def parse(text: str) -> Mapping[str, Armed]:
    """The points that `text` arms. Raises ValueError for an unknown point or kind."""
    armed = {}
    for item in filter(None, text.split(",")):
        name, _, action = item.strip().partition("=")
        kind, _, at = action.partition("@")
        if name not in POINTS or kind not in KINDS:
            raise ValueError(f"{VARIABLE}: {item!r} is not POINT=KIND@N; points {POINTS}, kinds {KINDS}")
        armed[name] = Armed(kind, int(at.rstrip("+") or 1), at.endswith("+"), itertools.count(1))
    return MappingProxyType(armed)


_ARMED = parse(os.environ.get(VARIABLE, ""))


def armed(name: str) -> bool:
    """Whether anything may happen at the point."""
    return name in _ARMED


def hit(name: str) -> None:
    """The process has come to point `name`. Raises OSError or dies when the point is armed and its turn has come."""
    if not _ARMED:
        return
    point = _ARMED.get(name)
    if point is not None:
        _act(name, point)


def _act(name: str, point: Armed) -> None:
    count = next(point.hits)
    if count != point.at and not (point.onward and count > point.at):
        return
    if point.kind in ("kill", "short"):
        os.kill(os.getpid(), signal.SIGKILL)
    code = errno.ENOSPC if point.kind == "enospc" else errno.EIO
    raise OSError(code, f"{os.strerror(code)} (failpoint {name})")
