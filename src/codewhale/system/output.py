"""Keeping a bounded part of an unbounded stream: its head, its tail, and the count of what came between."""


class HeadTail:
    """Two thirds of `limit` bytes from the head, one third from the tail. Memory stays below twice the limit."""

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._tail_limit = limit // 3
        self._head_limit = limit - self._tail_limit
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail += data[-self._tail_limit :] if self._tail_limit else b""
        if len(self._tail) > 2 * self._tail_limit + 4096:
            del self._tail[: -self._tail_limit or None]

    def kept(self) -> tuple[bytes, int]:
        """(kept bytes, offset in them at which the middle was left out, -1 when nothing was)."""
        tail = bytes(self._tail[-self._tail_limit :]) if self._tail_limit else b""
        gap = len(self._head) if len(self._head) + len(tail) < self.total else -1
        return bytes(self._head) + tail, gap


def shown(kept: bytes, gap: int, total: int) -> str:
    """Kept bytes as text, with a line that says how much was left out where."""
    if gap < 0:
        return kept.decode("utf-8", "replace")
    head, tail = kept[:gap].decode("utf-8", "ignore"), kept[gap:].decode("utf-8", "ignore")
    return f"{head}\n[... {total - len(kept)} bytes left out ...]\n{tail}"
