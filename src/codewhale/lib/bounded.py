"""Reading what an open descriptor leads to, without ever waiting on it or filling memory."""

import os
import stat


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
