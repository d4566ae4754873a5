"""Large outputs and former file contents, kept once under the sha256 of their bytes."""

import contextlib
import hashlib
import os
from collections.abc import Iterable

from codewhale.lib.files import DISK, FULL, FileOps, atomic_write, private_dir, write_all
from codewhale.lib.patterns import lazy
from codewhale.protocol.errors import SessionError, StorageFullError

_SHA = lazy(r"[0-9a-f]{64}")
_PREFIX = lazy(r"[0-9a-f]{2,64}")


class ArtifactStore:
    """Files under `folder`, named by the sha256 of what they hold, in sub-directories of its first two digits.

    It also knows, for as long as the process lives, which call's output is which artifact.
    """

    def __init__(self, folder: str, *, ops: FileOps = DISK) -> None:
        self._folder = os.path.abspath(folder)
        self._ops = ops
        self._calls: dict[str, dict[str, str]] = {}

    def put(self, data: bytes) -> str:
        """Keep `data`; its sha256 in hex. On disk when this returns. Raises StorageFullError, SessionError."""
        sha = hashlib.sha256(data).hexdigest()
        path = self.path(sha)
        with contextlib.suppress(OSError):
            if os.path.getsize(path) == len(data):
                return sha
        try:
            if not os.path.isdir(os.path.dirname(path)):
                private_dir(self._folder)
                private_dir(os.path.dirname(path))
                self._ops.sync_dir(self._folder)
            atomic_write(path, data, ops=self._ops, point="artifact")
        except OSError as error:
            text = f"cannot store an output of {len(data)} bytes in {self._folder}: {error}"
            raise (StorageFullError if error.errno in FULL else SessionError)(text) from error
        return sha

    def put_blocks(self, blocks: Iterable[bytes]) -> tuple[str, int]:
        """Keep bytes that come one block after the other and need not fit into memory; (sha256 in hex, size). On disk
        when this returns. Raises StorageFullError, SessionError, and leaves nothing half made."""
        ops, digest, size = self._ops, hashlib.sha256(), 0
        folder = os.path.join(self._folder, os.urandom(1).hex())
        half = os.path.join(folder, f".blocks.{os.urandom(8).hex()}.tmp")
        try:
            private_dir(self._folder)
            private_dir(folder)
            fd = ops.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                for block in blocks:
                    digest.update(block)
                    size += len(block)
                    write_all(ops, fd, block)
                ops.fsync(fd)
            finally:
                ops.close(fd)
            path = self.path(digest.hexdigest())
            private_dir(os.path.dirname(path))
            ops.rename(half, path)
            ops.sync_dir(os.path.dirname(path))
        except BaseException as error:
            with contextlib.suppress(OSError):
                ops.unlink(half)
            if not isinstance(error, OSError):
                raise
            text = f"cannot store an output of {size} bytes in {self._folder}: {error}"
            raise (StorageFullError if error.errno in FULL else SessionError)(text) from error
        return digest.hexdigest(), size

    def get(self, sha: str) -> bytes:
        """The bytes. Raises KeyError when they are not there, or no longer what their name says."""
        try:
            with open(self.path(sha), "rb") as file:
                data = file.read()
        except OSError:
            raise KeyError(sha) from None
        if hashlib.sha256(data).hexdigest() != sha:
            raise KeyError(f"{sha} (damaged)")
        return data

    def has(self, sha: str) -> bool:
        """Whether it is there."""
        return _SHA().fullmatch(sha) is not None and os.path.isfile(self.path(sha))

    def size(self, sha: str) -> int:
        """Its size in bytes. Raises KeyError."""
        try:
            return os.path.getsize(self.path(sha))
        except OSError:
            raise KeyError(sha) from None

    def path(self, sha: str) -> str:
        """Where it is, or would be. Raises KeyError for what is no sha256 in hex."""
        if not _SHA().fullmatch(sha):
            raise KeyError(sha)
        return os.path.join(self._folder, sha[:2], sha)

    def find(self, prefix: str) -> list[str]:
        """The artifacts whose sha256 begins with `prefix` (two digits or more), sorted."""
        if not _PREFIX().fullmatch(prefix):
            return []
        with contextlib.suppress(OSError):
            names = os.listdir(os.path.join(self._folder, prefix[:2]))
            return sorted(name for name in names if name.startswith(prefix) and _SHA().fullmatch(name))
        return []

    def remember(self, session: str, call_id: str, sha: str) -> None:
        """Let the id of a call of the session stand for its output."""
        self._calls.setdefault(session, {})[call_id] = sha

    def recall(self, session: str, call_id: str) -> str | None:
        """What `remember` was told, or None."""
        return self._calls.get(session, {}).get(call_id)

    def remembered(self, session: str) -> tuple[tuple[str, str], ...]:
        """The session's (call id, sha256) pairs, oldest first."""
        return tuple(self._calls.get(session, {}).items())
