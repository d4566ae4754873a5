"""The private folder that a workspace's drafts, history and stash are kept in, shared by every process there."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from functools import cached_property

from codewhale.lib.bounded import read_regular
from codewhale.lib.files import FileOps, private_dir


class Unsynced(FileOps):
    """Files that survive the death of the process, not of the machine: what is written at every key must be quick."""

    def fsync(self, fd: int) -> None:
        """Leave it to the system when."""

    def sync_dir(self, path: str) -> None:
        """Leave it to the system when."""


QUICK = Unsynced()


class Folder:
    """`<home>/composer/<digest of the workspace's path>`, made at its first use."""

    def __init__(self, home: str, workspace: str) -> None:
        self._home = home
        self._workspace = os.path.realpath(workspace)

    @cached_property
    def root(self) -> str:
        """Its path; worked out at its first use, which comes behind the first frame."""
        import hashlib

        digest = hashlib.sha256(os.fsencode(self._workspace)).hexdigest()[:16]
        return os.path.join(self._home, "composer", digest)

    def make(self, *below: str) -> str:
        """The path of a folder below, which is there now and only its owner can enter. Raises OSError."""
        private_dir(os.path.dirname(self.root))
        path = private_dir(self.root)
        for name in below:
            path = private_dir(os.path.join(path, name))
        return path

    def path(self, *names: str) -> str:
        """A path below."""
        return os.path.join(self.root, *names)

    def read(self, limit: int, *names: str) -> bytes:
        """A file's bytes, b"" when there is none or it is larger than `limit` or no plain file."""
        try:
            fd = os.open(self.path(*names), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return b""
        return read_regular(fd, limit) or b""

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold off the other processes of this workspace: for reading, changing and writing back. Raises OSError."""
        self.make()
        fd = os.open(self.path("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)
