"""Rows in one private file: read only when it can be believed, written whole, one change at a time."""

import os
import threading
from pathlib import Path

import pytest
from msgspec import Struct

from codewhale.process.rowfile import RowFile, is_own
from codewhale.protocol.errors import ConfigError


class Row(Struct, frozen=True):
    """What the test keeps."""

    count: int


def refuse(found: os.stat_result) -> None:
    if not is_own(found) or found.st_mode & 0o022:
        raise ConfigError("not yours")


def rows(folder: Path) -> RowFile[Row]:
    return RowFile(str(folder / "rows.json"), "rows", Row, refuse, again="count again")


def test_no_file_has_no_rows_and_what_was_put_stands(tmp_path: Path) -> None:
    assert rows(tmp_path).read() == {}
    with rows(tmp_path).changing(str(tmp_path)) as found:
        found["b"], found["a"] = Row(2), Row(1)
    assert rows(tmp_path).read() == {"a": Row(1), "b": Row(2)}
    assert os.stat(tmp_path / "rows.json").st_mode & 0o777 == 0o600


def test_an_error_inside_a_change_changes_nothing(tmp_path: Path) -> None:
    with rows(tmp_path).changing(str(tmp_path)) as found:
        found["a"] = Row(1)
    before = (tmp_path / "rows.json").read_bytes()
    with pytest.raises(KeyError), rows(tmp_path).changing(str(tmp_path)) as found:
        found["a"] = Row(9)
        raise KeyError
    assert (tmp_path / "rows.json").read_bytes() == before


def test_changes_at_once_lose_none(tmp_path: Path) -> None:
    def add(number: int) -> None:
        with rows(tmp_path).changing(str(tmp_path)) as found:
            found[str(number)] = Row(number)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rows(tmp_path).read()) == 16


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"rows": []}', b'{"rows": {"a": {}}}', b"\xff", b" " * (2 << 20)])
def test_a_damaged_file_is_named_without_its_words(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "rows.json").write_bytes(data)
    (tmp_path / "rows.json").chmod(0o600)
    with pytest.raises(ConfigError, match="damaged; remove it and count again"):
        rows(tmp_path).read()


def test_links_foreign_modes_and_folders_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.symlink_to("/etc/hostname")
    with pytest.raises(ConfigError, match="cannot be read"):
        rows(tmp_path).read()
    path.unlink()
    path.write_bytes(b"{}")
    path.chmod(0o666)
    with pytest.raises(ConfigError, match="not yours"):
        rows(tmp_path).read()
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigError, match="not yours"):
        rows(tmp_path).read()
