"""Putting a file in the place of one that others save."""

from pathlib import Path

import pytest

from codewhale.memory.saving import put


def test_a_file_is_put_where_nothing_was_expected_only_if_nothing_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert put(str(path), b"one", None) and path.read_bytes() == b"one"
    assert not put(str(path), b"two", None) and path.read_bytes() == b"one"
    assert put(str(path), b"two", b"one") and path.read_bytes() == b"two"
    assert [one.name for one in tmp_path.iterdir()] == ["a"] and path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("there", [b"one more", b"on", b"two", None])
def test_what_somebody_saved_stands(tmp_path: Path, there: bytes | None) -> None:
    path = tmp_path / "a"
    if there is not None:
        path.write_bytes(there)
    assert not put(str(path), b"new", b"one")
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [there] * (there is not None)


def test_a_file_that_somebody_writes_into_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    with path.open("ab"):
        assert not put(str(path), b"new", b"one")
    assert put(str(path), b"new", b"one")
