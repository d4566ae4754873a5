"""The end of the process, which nothing may hold up where it is the program's own."""

import os
import threading
from contextvars import ContextVar

# Whether the process runs the program and nothing else; one that calls it among other things is not ended.
IS_PROGRAM: ContextVar[bool] = ContextVar("IS_PROGRAM", default=False)


def exit_within(seconds: float, code: int) -> None:
    """End the program's process with `code` after that time, if it is still there: a thread that never ends does not
    keep it."""
    if IS_PROGRAM.get():
        timer = threading.Timer(seconds, os._exit, (code,))
        timer.daemon = True
        timer.start()
