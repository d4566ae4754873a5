"""How often facts were used."""

from pathlib import Path

import pytest

from codewhale.memory.uses import Uses


def test_uses_are_counted_by_id(tmp_path: Path) -> None:
    uses = Uses(str(tmp_path))
    uses.add(["a", "b"])
    Uses(str(tmp_path)).add(["b"])
    assert uses.counts() == {"a": 1, "b": 2}
    assert uses.read()["b"].last.startswith("20")


@pytest.mark.parametrize("data", [b"{", b"\xff", b'{"a": 1}'])
def test_a_damaged_file_begins_anew(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "uses.json").write_bytes(data)
    uses = Uses(str(tmp_path))
    assert uses.counts() == {}
    uses.add(["a"])
    assert uses.counts() == {"a": 1}


def test_nothing_is_counted_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("no folder")
    Uses(str(tmp_path / "memory")).add(["a"])
    assert Uses(str(tmp_path / "memory")).counts() == {}
