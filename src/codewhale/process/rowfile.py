"""Named rows in one JSON file that only its owner may change: read without following links, checked before it is
believed, written whole under a lock, one process at a time."""

import contextlib
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from codewhale.lib.files import atomic_write, private_dir
from codewhale.protocol.errors import ConfigError

T = TypeVar("T", bound=Struct)

MAX_BYTES = 1 << 20
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def is_own(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


class RowFile(Generic[T]):
    """The file at `path`: an object of `version` and, under `member`, rows of `kind` by name. `refuse(stat)` raises
    ConfigError for a file that may not be believed; `again` is what a person does once it was removed."""

    def __init__(
        self, path: str, member: str, kind: type[T], refuse: Callable[[os.stat_result], None], *, again: str
    ) -> None:
        self.path = path
        self._member = member
        self._kind = kind
        self._refuse = refuse
        self._again = again

    def read(self) -> dict[str, T]:
        """Every row by name, none where there is no file. Raises ConfigError for one that cannot be used."""
        try:
            handle = os.open(self.path, _OPEN)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be read: {error.strerror}") from None
        try:
            self._refuse(os.fstat(handle))
            with os.fdopen(handle, "rb", closefd=False) as file:
                data = file.read(MAX_BYTES + 1)
        finally:
            os.close(handle)
        try:
            whole = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
            return msgspec.json.decode(whole.get(self._member, b"{}"), type=dict[str, self._kind])  # type: ignore[name-defined]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # Not the decoder's own words: they may quote what stands in the file.
            raise ConfigError(f"{self.path}: is damaged; remove it and {self._again}") from None

    @contextlib.contextmanager
    def changing(self, *folders: str) -> Iterator[dict[str, T]]:
        """The rows, written back at the end where they differ. `folders`, outermost first, are made private; the last
        is the file's own. Raises ConfigError, and then nothing has changed."""
        try:
            for folder in folders:
                private_dir(folder)
            lock = os.open(folders[-1], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise ConfigError(
                f"{folders[-1]}: {self._member} cannot be stored there: {error.strerror or error}"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            rows = self.read()
            before = dict(rows)
            yield rows
            if rows != before:
                self._write(rows)
        finally:
            os.close(lock)

    def _write(self, rows: dict[str, T]) -> None:
        whole: dict[str, Any] = {"version": 1, self._member: dict(sorted(rows.items()))}
        try:
            atomic_write(self.path, msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n", 0o600)
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be written: {error.strerror or error}") from error
