"""Which process is which: a mark that tells a live process from a later one with the same number."""

import contextlib
import os
import platform

from msgspec import Struct


class ProcessMark(Struct, frozen=True, omit_defaults=True):
    """A process as a file can name it. `start` is the kernel's start time, `boot` the boot it ran in, `space` the
    machine and pid namespace that `pid` counts in; "" where the system does not tell."""

    pid: int = 0
    start: str = ""
    boot: str = ""
    space: str = ""


def mark() -> ProcessMark:
    """The mark of this process."""
    pid = os.getpid()
    return ProcessMark(pid, start_time(pid), boot_id(), _space())


def alive(process: ProcessMark) -> bool | None:
    """Whether the marked process still runs; None when it counts in another machine or namespace."""
    if not process.pid:
        return False
    if process.space != _space():
        return None
    if process.boot != boot_id():
        return False
    return _exists(process.pid) and start_time(process.pid) == process.start and not _is_zombie(process.pid)


def start_time(pid: int) -> str:
    """The kernel's start time of a process in clock ticks since boot; "" when it is gone or cannot be told."""
    fields = _fields(pid)
    return fields[19].decode() if len(fields) > 19 else ""


def boot_id() -> str:
    """An identifier of this boot; "" where the system has none."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
    return ""


def _space() -> str:
    namespace = ""
    with contextlib.suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")
    return f"{platform.node()} {namespace}".strip()


def _is_zombie(pid: int) -> bool:
    """Whether it has ended and its parent has not collected it yet. A first thread that ended before the others looks
    the same."""
    with contextlib.suppress(OSError):
        return _fields(pid)[:1] in ([b"Z"], [b"X"]) and len(os.listdir(f"/proc/{pid}/task")) <= 1
    return True


def _fields(pid: int) -> list[bytes]:
    """What the kernel tells of a process behind its name, the state first; nothing when it is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()
    return []


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
