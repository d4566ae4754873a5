"""What was cleared, for 30 days."""

import os
from pathlib import Path

import pytest

from codewhale.memory.model import Fact
from codewhale.memory.service import Memory
from codewhale.memory.trash import SECONDS, Trash


class Days:
    def __init__(self) -> None:
        self.now = 1_777_846_440.0

    def __call__(self) -> float:
        return self.now


def trash(tmp_path: Path, now: Days) -> Trash:
    return Trash(str(tmp_path / "memory"), now)


def names(tmp_path: Path) -> list[str]:
    return sorted(os.listdir(tmp_path / "memory" / "trash"))


def test_a_fact_stays_for_thirty_days(tmp_path: Path) -> None:
    now = Days()
    trash(tmp_path, now).put([Fact("a1", "one")], "global")
    now.now += SECONDS / 2
    trash(tmp_path, now).put([Fact("b2", "two")], "workspace/w1")
    assert [(one.fact.text, one.folder, one.cleared) for one in trash(tmp_path, now).entries()] == [
        ("one", "global", "2026-05-03T22:14:00.000Z"),
        ("two", "workspace/w1", "2026-05-18T22:14:00.000Z"),
    ]
    now.now += SECONDS / 2 + 1
    assert [one.fact.text for one in trash(tmp_path, now).entries()] == ["two"] and names(tmp_path) == ["b2.json"]


def test_it_is_private(tmp_path: Path) -> None:
    trash(tmp_path, Days()).put([Fact("a1", "one")], "global")
    folder = tmp_path / "memory" / "trash"
    assert [path.stat().st_mode & 0o777 for path in (folder, folder / "a1.json")] == [0o700, 0o600]


def test_facts_of_two_places_with_one_id_are_both_kept(tmp_path: Path) -> None:
    now = Days()
    for folder in ("global", "workspace/w1", "global"):
        now.now += 1
        trash(tmp_path, now).put([Fact("a1", f"of {folder}")], folder)
    assert names(tmp_path) == ["a1-2.json", "a1.json"]
    assert [(one.name, one.folder) for one in trash(tmp_path, now).entries()] == [
        ("a1-2", "workspace/w1"), ("a1", "global"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b"\xff", b"x" * 100_000, b'{"fact":{"id":"b","text":"t"},"folder":"../..","cleared":""}'],
)
def test_what_is_damaged_is_passed_over_until_it_is_old(tmp_path: Path, damage: bytes) -> None:
    now, bad = Days(), tmp_path / "memory" / "trash" / "b.json"
    trash(tmp_path, now).put([Fact("a1", "one")], "global")
    bad.write_bytes(damage)
    os.utime(bad, (now.now, now.now))
    assert [one.name for one in trash(tmp_path, now).entries()] == ["a1"] and bad.exists()
    now.now += SECONDS + 1
    assert trash(tmp_path, now).entries() == () and names(tmp_path) == []


def test_a_link_in_it_is_not_followed(tmp_path: Path) -> None:
    now, outside = Days(), tmp_path / "outside.json"
    trash(tmp_path, now).put([Fact("a1", "one")], "global")
    outside.write_bytes((tmp_path / "memory" / "trash" / "a1.json").read_bytes())
    (tmp_path / "memory" / "trash" / "c.json").symlink_to(outside)
    assert [one.name for one in trash(tmp_path, now).entries()] == ["a1"] and outside.exists()


def test_where_the_trash_cannot_be_written_nothing_is_cleared(tmp_path: Path) -> None:
    memory = Memory(str(tmp_path), lambda workspace: "w1")
    fact = memory.add("/w", "one", "workspace")
    (tmp_path / "memory" / "trash").write_text("in the way")
    with pytest.raises(Exception, match="Nothing was changed"):
        memory.clear("/w", [fact])
    assert memory.facts("/w") == (fact,)
