"""Time as a thing that is handed in: wall clock for display, monotonic for waiting."""

import time
from functools import lru_cache
from typing import Protocol


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds that only grow."""


class SystemClock:
    """The machine's own time."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()


def rfc3339(seconds: float) -> str:
    """UTC with milliseconds: 2026-01-31T23:59:59.123Z."""
    whole = int(seconds)
    return f"{_to_the_second(whole)}.{int((seconds - whole) * 1000):03d}Z"


@lru_cache(maxsize=1)
def _to_the_second(whole: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))
