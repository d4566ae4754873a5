"""What each session knows of each file."""

import threading
from collections import OrderedDict

MAX_SESSIONS, MAX_FILES = 64, 4096


class Ledger:
    """The hash of each file as each session last read or wrote it. Bounded: the longest unused goes first."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, OrderedDict[str, str]] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, session: str, path: str, sha256: str | None) -> None:
        """The session now knows this content; None forgets the file."""
        if not session:
            return
        with self._lock:
            files = self._seen.setdefault(session, OrderedDict())
            self._seen.move_to_end(session)
            files.pop(path, None)
            if sha256 is not None:
                files[path] = sha256
            for bounded, limit in ((files, MAX_FILES), (self._seen, MAX_SESSIONS)):
                while len(bounded) > limit:
                    bounded.popitem(last=False)

    def known(self, session: str, path: str) -> str | None:
        """The hash the session saw last, None when it never did."""
        with self._lock:
            files = self._seen.get(session)
            return None if files is None else files.get(path)
