"""What is kept of a fault of the program: where it happened and in what, never what anybody wrote."""

import contextlib
import os
import platform
import sys
import traceback

from codewhale import __version__
from codewhale.lib.clock import rfc3339
from codewhale.lib.files import atomic_write, private_dir

FILE = "crash.txt"
_MOST_FRAMES = 60
_MOST_CAUSES = 8


def crash_text(error: BaseException, at: float) -> str:
    """The kinds of an error and of what caused it, with their places in the code. No message and no value stands in
    it: those may hold what was written or read. `at` is in seconds since the epoch."""
    import textual

    lines = [
        f"codewhale {__version__}, textual {textual.__version__}, python {platform.python_version()}, {sys.platform}",
        rfc3339(at),
    ]
    seen: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if seen is None:
            break
        lines.append(f"{type(seen).__module__}.{type(seen).__qualname__}")
        frames = list(traceback.walk_tb(seen.__traceback__))[-_MOST_FRAMES:]
        lines.extend(f"  {_place(frame.f_code.co_filename)}:{line} {frame.f_code.co_name}" for frame, line in frames)
        seen = seen.__cause__ or seen.__context__
    return "\n".join(lines) + "\n"


def write_crash(home: str, error: BaseException, at: float) -> str:
    """Keep it as the one crash file of `home`; the path, or "" where it cannot be written."""
    path = os.path.join(home, FILE)
    with contextlib.suppress(OSError):
        private_dir(home)
        atomic_write(path, crash_text(error, at).encode())
        return path
    return ""


def _place(file: str) -> str:
    """A source file from its package on, without the folders of this machine."""
    parts = file.replace(os.sep, "/").split("/")
    for mark in ("site-packages", "src", f"python{sys.version_info.major}.{sys.version_info.minor}"):
        if mark in parts:
            return "/".join(parts[len(parts) - parts[::-1].index(mark) :])
    return "/".join(parts[-2:])
