"""The file of stored keys: who may read it, what it holds, two who write at once, and the keyring beside it."""

import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from codewhale.models.keys import KeyStore, StoredKey
from codewhale.protocol.errors import ConfigError


class Ring:
    """A keyring that holds what it is given."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, name: str) -> str | None:
        return self.held.get((service, name))

    def set_password(self, service: str, name: str, key: str) -> None:
        self.held[service, name] = key

    def delete_password(self, service: str, name: str) -> None:
        del self.held[service, name]


def test_a_key_is_kept_with_its_host_and_for_its_owner_alone(tmp_path: Path) -> None:
    store = KeyStore(str(tmp_path / "home"))
    assert store.all() == {}
    assert not (tmp_path / "home").exists()
    store.put("deepseek", "sk-one", "api.deepseek.com")
    store.put("other", "sk-two", "other.example:8443")
    assert store.all()["deepseek"] == StoredKey("api.deepseek.com", "sk-one")
    path = tmp_path / "home" / "secrets" / "keys.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["keys.json"]
    assert store.remove("deepseek") and not store.remove("deepseek")
    assert list(store.all()) == ["other"]


def test_a_file_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    store = KeyStore(str(tmp_path))
    store.put("p", "sk-secret-key", "h")
    path = Path(store.path)
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600") as caught:
        store.all()
    assert "sk-secret-key" not in str(caught.value)
    path.chmod(0o600)
    assert store.all()["p"].key == "sk-secret-key"


def test_a_link_or_a_folder_in_its_place_is_not_followed(tmp_path: Path) -> None:
    store = KeyStore(str(tmp_path))
    store.put("p", "sk", "h")
    path = Path(store.path)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=r"keys\.json: cannot be read"):
        store.all()
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigError, match=r"keys\.json"):
        store.all()


@pytest.mark.parametrize(
    "text", [b"", b"{", b'{"version":1,"keys":{"p":{"key":"sk-secret"}}}', b'{"keys":"sk-secret"}', b"\xff"]
)
def test_a_damaged_file_is_said_so_without_its_content(tmp_path: Path, text: bytes) -> None:
    store = KeyStore(str(tmp_path))
    store.put("p", "sk", "h")
    Path(store.path).write_bytes(text)
    with pytest.raises(ConfigError, match="is damaged") as caught:
        store.all()
    assert "sk-secret" not in str(caught.value) and caught.value.__cause__ is None


def test_two_who_write_at_once_lose_nothing(tmp_path: Path) -> None:
    def add(start: int) -> None:
        for number in range(start, start + 10):
            KeyStore(str(tmp_path)).put(f"p{number}", "sk", "h")

    threads = [threading.Thread(target=add, args=(start,)) for start in (0, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(KeyStore(str(tmp_path)).all()) == 20


def test_a_key_in_the_keyring_leaves_only_its_host_in_the_file(tmp_path: Path) -> None:
    ring = Ring()
    store = KeyStore(str(tmp_path), lambda: ring)
    store.put("p", "sk-in-ring", "h", keyring=True)
    assert b"sk-in-ring" not in Path(store.path).read_bytes()
    row = store.all()["p"]
    assert (row.host, row.key, row.keyring) == ("h", "", True)
    assert store.value("p", row) == "sk-in-ring"
    ring.held.clear()
    with pytest.raises(ConfigError, match="codewhale login p"):
        store.value("p", row)
    ring.held["codewhale", "p"] = "again"
    assert store.remove("p") and not ring.held and store.all() == {}


def test_a_keyring_that_is_not_there_or_fails_changes_nothing(tmp_path: Path) -> None:
    class Broken(Ring):
        def set_password(self, service: str, name: str, key: str) -> None:
            raise RuntimeError(f"cannot store {key}")

    def missing() -> Any:
        raise ImportError("keyring")

    with pytest.raises(ConfigError, match=r"codewhale\[keyring\]"):
        KeyStore(str(tmp_path), missing).put("p", "sk-secret", "h", keyring=True)
    with pytest.raises(ConfigError, match="RuntimeError") as caught:
        KeyStore(str(tmp_path), Broken).put("p", "sk-secret", "h", keyring=True)
    assert "sk-secret" not in str(caught.value)
    assert KeyStore(str(tmp_path)).all() == {}


def test_no_key_is_in_a_row_as_it_is_printed() -> None:
    assert "sk-secret" not in repr(StoredKey("h", "sk-secret"))


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="keys cannot be stored there"):
        KeyStore(str(tmp_path / "file")).put("p", "sk", "h")
