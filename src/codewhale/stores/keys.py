"""Keys that a person stored with `codewhale login`: one file that only they can read, each key with the host it
belongs to. A key kept in the system's keyring has a row here too, without the key."""

import contextlib
import fcntl
import importlib
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.lib.files import atomic_write, private_dir
from codewhale.protocol.errors import ConfigError

KEYRING_SERVICE = "codewhale"
MAX_BYTES = 1 << 20


class StoredKey(Struct, frozen=True, omit_defaults=True):
    """A key and the host it may be sent to ("api.example.com", with a port where it is not the scheme's own)."""

    host: str
    key: str = ""
    keyring: bool = False

    def __repr__(self) -> str:
        """Without the key."""
        return f"StoredKey(host={self.host!r}, keyring={self.keyring})"


class _File(Struct, frozen=True):
    version: int = 1
    keys: dict[str, StoredKey] = {}


class KeyStore:
    """`secrets/keys.json` below a state directory; `path` is where it stands. Nothing is read before it is asked."""

    def __init__(self, home: str, keyring: Callable[[], Any] | None = None) -> None:
        """`keyring()` gives the keyring module; it is imported only for keys that are kept there."""
        self.path = os.path.join(home, "secrets", "keys.json")
        self._home = home
        self._keyring = keyring or _import_keyring

    def all(self) -> dict[str, StoredKey]:
        """Every row by provider name. Raises ConfigError for a file that others can read or that is damaged."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be read: {error.strerror}") from None
        try:
            self._refuse_shared(os.fstat(handle))
            with os.fdopen(handle, "rb", closefd=False) as file:
                data = file.read(MAX_BYTES + 1)
        finally:
            os.close(handle)
        try:
            return msgspec.json.decode(data, type=_File).keys
        except (msgspec.DecodeError, UnicodeDecodeError):
            # Not the decoder's own words: they may quote what stands in the file.
            raise ConfigError(f"{self.path}: is damaged; remove it and log in again") from None

    def value(self, name: str, row: StoredKey) -> str:
        """The key of a row. Raises ConfigError where the keyring does not give it."""
        if not row.keyring:
            return row.key
        with self._keyring_asked(name) as ring:
            found = ring.get_password(KEYRING_SERVICE, name)
        if not found:
            raise ConfigError(f"the keyring no longer holds the key of {name}; run: codewhale login {name}")
        return str(found)

    def put(self, name: str, key: str, host: str, keyring: bool = False) -> None:
        """Store the key of a provider in place of a former one. Raises ConfigError, and then nothing has changed."""
        with self._changing() as keys:
            if keyring:
                with self._keyring_asked(name) as ring:
                    ring.set_password(KEYRING_SERVICE, name, key)
            keys[name] = StoredKey(host, "" if keyring else key, keyring)

    def remove(self, name: str) -> bool:
        """Forget the key of a provider; whether there was one. Raises ConfigError."""
        with self._changing() as keys:
            row = keys.pop(name, None)
            if row is not None and row.keyring:
                with self._keyring_asked(name) as ring:
                    ring.delete_password(KEYRING_SERVICE, name)
            return row is not None

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, StoredKey]]:
        """The rows, written back at the end; one process at a time."""
        folder = os.path.dirname(self.path)
        try:
            private_dir(self._home)
            private_dir(folder)
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise ConfigError(f"{folder}: keys cannot be kept there: {error.strerror or error}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            keys = self.all()
            before = dict(keys)
            yield keys
            if keys != before:
                self._write(keys)
        finally:
            os.close(lock)

    def _write(self, keys: dict[str, StoredKey]) -> None:
        data = msgspec.json.format(msgspec.json.encode(_File(1, dict(sorted(keys.items())))), indent=1)
        try:
            atomic_write(self.path, data + b"\n", 0o600)
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be written: {error.strerror or error}") from error

    def _refuse_shared(self, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise ConfigError(f"{self.path}: is not a file of yours and is not used; remove it and log in again")
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise ConfigError(
                f"{self.path}: can be read by other users and is not used; run: chmod 600 {self.path}, "
                "and have the keys in it replaced if others may have read them"
            )

    @contextlib.contextmanager
    def _keyring_asked(self, name: str) -> Iterator[Any]:
        try:
            yield self._keyring()
        except ImportError as error:
            raise ConfigError("the keyring is not installed: pip install 'codewhale[keyring]'") from error
        except ConfigError:
            raise
        except Exception as error:  # A keyring's backends raise what they like.
            raise ConfigError(f"the keyring refused the key of {name} ({type(error).__name__})") from None


def _import_keyring() -> Any:
    return importlib.import_module("keyring")
