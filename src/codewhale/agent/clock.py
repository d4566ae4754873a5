"""The time that one call takes."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Clock:
    """Runs from its making on, and stands still while a person is waited for. `now` gives seconds that only grow."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began = now()
        self._waited = 0.0

    @property
    def ms(self) -> int:
        """Milliseconds that it ran."""
        return int((self._now() - self._began - self._waited) * 1000)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A person is waited for meanwhile."""
        begun = self._now()
        try:
            yield
        finally:
            self._waited += self._now() - begun
