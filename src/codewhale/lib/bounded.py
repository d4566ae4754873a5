"""Reading what an open descriptor leads to without ever waiting on it or filling memory, and refusing to parse what is
nested too deeply."""

import os
import re
import stat

_BRACKETS = re.compile(rb"[\[\]{}]")


def read_regular(fd: int, limit: int) -> bytes | None:
    """All of a regular file of at most `limit` bytes, else None (a folder, FIFO or device; too large; unreadable).
    Closes `fd` in every case."""
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_size > limit:
            return None
        chunks: list[bytes] = []
        left = limit + 1
        while left > 0 and (chunk := os.read(fd, min(left, info.st_size + 1 if not chunks else 1 << 16))):
            chunks.append(chunk)
            left -= len(chunk)
        return b"".join(chunks) if left > 0 else None
    except OSError:
        return None
    finally:
        os.close(fd)


def check_nesting(data: bytes, most: int = 64) -> None:
    """Raises ValueError for brackets and braces that open deeper than `most`, wherever they stand."""
    depth = 0
    for mark in _BRACKETS.finditer(data):
        depth += 1 if mark.group() in b"[{" else -1
        if depth > most:
            line = data.count(b"\n", 0, mark.start()) + 1
            raise ValueError(f"is nested too deeply: more than {most} brackets are open at line {line}")
        depth = max(depth, 0)
