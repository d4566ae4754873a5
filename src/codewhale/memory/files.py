"""One MEMORY.md, which its person edits as well: read with a bound, and changed so that no edit and no fact is lost."""

import contextlib
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator

from codewhale.lib.files import private_dir
from codewhale.memory import recent as recently
from codewhale.memory.layers import MemoryRefused
from codewhale.memory.lines import FactPage, read_page
from codewhale.memory.model import FactList, FactScope
from codewhale.memory.saving import open_quiet, put

NAME = "MEMORY.md"
LIMIT = 1 << 20
_TRIES = 100
_LOCK_SECONDS = 30.0


class FactFile:
    """The file in `folder`, which is `global` or `workspace/ID` below the folder of memory, `root`."""

    def __init__(self, root: str, folder: str) -> None:
        self.scope: FactScope = "global" if folder == "global" else "workspace"
        self.name = folder
        self.folder = os.path.join(root, folder)
        self.path = os.path.join(self.folder, NAME)
        self._root = root
        self._recent = os.path.join(self.folder, f".{NAME}.recent")

    def read(self) -> FactList:
        """Its facts; what is wrong with it is said in `problems`, and what can be read is."""
        if os.path.exists(self._recent):
            with contextlib.suppress(MemoryRefused):
                self.edit(bytes, 0.5)
        try:
            data = self._data()
        except ValueError as error:
            return FactList(problems=(f"{self.path}: {error}",))
        except OSError as error:
            return FactList(problems=(f"{self.path}: cannot be read: {error.strerror or error}",))
        if data is None:
            return FactList()
        kept = data if len(data) <= LIMIT else data[: data.rfind(b"\n", 0, LIMIT) + 1]
        page = read_page(kept, self.scope)
        problems = [f"{self.path}: {problem}" for problem in page.problems]
        if kept is not data:
            problems.append(
                f"{self.path}: is larger than {LIMIT >> 20} MiB; only the first {len(page.lines):,} lines are read"
            )
        facts = tuple(item.fact for item in page.items)
        return FactList(facts, tuple(problems), hashlib.sha256(data).hexdigest())

    def page(self) -> FactPage:
        """Its lines, for who is about to change it. Raises MemoryRefused."""
        return read_page(self._for_change() or b"", self.scope)

    def edit(self, change: Callable[[bytes], bytes], seconds: float = _LOCK_SECONDS) -> None:
        """Give the file the bytes that `change` makes of those it has: again where somebody saves it meanwhile. On
        return they are on disk. Raises MemoryRefused, and then nothing was changed."""
        try:
            with locked(self._root, os.path.dirname(self.folder), self.folder, seconds=seconds):
                self._remove_drafts()
                self._edit(change)
        except OSError as error:
            raise MemoryRefused(
                f"Nothing was changed: {error.filename or self.path}: {error.strerror or error}."
            ) from None

    def _edit(self, change: Callable[[bytes], bytes]) -> None:
        for _ in range(_TRIES):
            held = self._for_change()
            now, recent = time.time(), recently.load(self._recent)
            old, recent = recent.put_back(held or b"", self.scope, self._saved(), now)
            new = _bounded(self.path, change(old))
            if new == (held or b"") or put(self.path, new, held):
                if new != old:
                    recent = recent.and_then(old, new, self.scope, now)
                recently.store(self._recent, recent)
                return
        raise MemoryRefused(f"Nothing was changed: {self.path} is being saved again and again. Try again later.")

    def _saved(self) -> float:
        """When the file was last put there or written to."""
        try:
            about = os.lstat(self.path)
        except OSError:
            return time.time()
        return max(about.st_mtime, about.st_ctime)

    def _for_change(self) -> bytes | None:
        try:
            data = self._data()
        except ValueError as error:
            raise MemoryRefused(f"Nothing was changed: {self.path} {error}.") from None
        except OSError as error:
            raise MemoryRefused(f"Nothing was changed: {self.path}: {error.strerror or error}.") from None
        return data if data is None else _bounded(self.path, data)

    def _data(self) -> bytes | None:
        """At most a byte more than is read; None where there is no file. Raises OSError, and ValueError for what is no
        file of this folder."""
        real = os.path.join(os.path.realpath(self._root), os.path.relpath(self.path, self._root))
        if os.path.realpath(self.path) != real:
            raise ValueError("is a link, or in a folder that is one; put the file itself there")
        try:
            return _all_of(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _remove_drafts(self) -> None:
        """Those that a killed process left."""
        for name in os.listdir(self.folder):
            if name.startswith(f".{NAME}.") and name.endswith(".tmp"):
                os.unlink(os.path.join(self.folder, name))


@contextlib.contextmanager
def locked(*folders: str, seconds: float = _LOCK_SECONDS) -> Iterator[None]:
    """Make the folders private, outermost first, and hold the last one alone. Raises OSError, MemoryRefused."""
    for folder in folders:
        private_dir(folder)
    fd, deadline = os.open(folders[-1], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), time.monotonic() + seconds
    try:
        while not _taken(fd):
            if time.monotonic() > deadline:
                raise MemoryRefused(f"Nothing was changed: another process is changing {folders[-1]}. Try again.")
            time.sleep(0.002)
        yield
    finally:
        os.close(fd)


def _taken(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _all_of(path: str) -> bytes:
    fd = open_quiet(path)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ValueError("is no regular file; remove it")
    with open(fd, "rb") as file:
        return file.read(LIMIT + 1)


def _bounded(path: str, data: bytes) -> bytes:
    if len(data) > LIMIT:
        raise MemoryRefused(f"Nothing was changed: {path} would be larger than {LIMIT >> 20} MiB. Clear facts first.")
    return data
