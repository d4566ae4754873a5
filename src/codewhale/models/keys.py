"""Keys that a person stored with `codewhale login`: one file that only they can read, each key with the host it
belongs to. A key kept in the system's keyring has a row here too, without the key."""

import contextlib
import importlib
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from codewhale.process.rowfile import RowFile, is_own
from codewhale.protocol.errors import ConfigError

KEYRING_SERVICE = "codewhale"


class StoredKey(Struct, frozen=True, omit_defaults=True):
    """A key and the host it may be sent to ("api.example.com", with a port where it is not the scheme's own)."""

    host: str
    key: str = ""
    keyring: bool = False

    def __repr__(self) -> str:
        """Without the key."""
        return f"StoredKey(host={self.host!r}, keyring={self.keyring})"


class KeyStore:
    """`secrets/keys.json` below a state directory; `path` is where it stands. Nothing is read before it is asked."""

    def __init__(self, home: str, keyring: Callable[[], Any] | None = None) -> None:
        """`keyring()` gives the keyring module; it is imported only for keys that are kept there."""
        self.path = os.path.join(home, "secrets", "keys.json")
        self._home = home
        self._keyring = keyring or _import_keyring
        self._rows = RowFile(self.path, "keys", StoredKey, self._refuse_shared, again="log in again")

    def all(self) -> dict[str, StoredKey]:
        """Every row by provider name. Raises ConfigError for a file that others can read or that is damaged."""
        return self._rows.read()

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

    def _changing(self) -> contextlib.AbstractContextManager[dict[str, StoredKey]]:
        return self._rows.changing(self._home, os.path.dirname(self.path))

    def _refuse_shared(self, found: os.stat_result) -> None:
        if not is_own(found):
            raise ConfigError(f"{self.path}: does not belong to you and is not used; remove it and log in again")
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise ConfigError(
                f"{self.path}: can be read by other users and is not used; run: chmod 600 {self.path}, "
                "and replace the keys in it if others may have read them"
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
