"""How long the suite waits. These bounds end a hang or an endless computation; no slow or busy machine meets them."""

import time

HANG = 120.0  # seconds until what is waited for is taken never to come
LABOUR = 60.0  # seconds of processor time; what a pattern or a loop that runs away takes is minutes, or no end


class Moment:
    """A moment, and whether what was done since then can be called unending. It says nothing of speed."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._worked = time.process_time()

    @property
    def hung(self) -> bool:
        """Whether more than `HANG` seconds have passed."""
        return time.monotonic() - self._began > HANG

    @property
    def laboured(self) -> bool:
        """Whether this process has computed for more than `LABOUR` seconds."""
        return time.process_time() - self._worked > LABOUR
