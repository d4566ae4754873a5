"""What an editor writes back without knowing, and what a person means."""

import os
from pathlib import Path

import pytest

from codewhale.memory.recent import SECONDS, RecentChanges, load
from codewhale.memory.service import Memory
from support.patience import Moment

OWN = "# Mine\n\nSome words.\n\n- own\n"
NOW = 1_777_846_440.0


def memory(tmp_path: Path, text: str = OWN) -> tuple[Memory, Path]:
    file = tmp_path / "memory" / "workspace" / "w1" / "MEMORY.md"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return Memory(str(tmp_path), lambda workspace: "w1"), file


def texts(facts: Memory) -> list[str]:
    return [fact.text for fact in facts.facts("/w")]


@pytest.mark.parametrize("by_rename", [True, False])
def test_a_save_that_does_not_know_of_new_facts_loses_none(tmp_path: Path, by_rename: bool) -> None:
    facts, file = memory(tmp_path)
    facts.add("/w", "known", "workspace")
    edited = file.read_text().replace("Some words.", "Other words.") + "- typed\n"
    facts.add("/w", "one", "workspace")
    facts.add("/w", "two", "workspace")
    if by_rename:
        (draft := file.with_name("draft")).write_text(edited)
        draft.replace(file)
    else:
        file.write_text(edited)
    assert texts(facts) == ["own", "known", "typed", "one", "two"] and file.read_text().startswith(edited)
    file.write_text(edited)
    facts.add("/w", "three", "workspace")
    assert texts(facts) == ["own", "known", "typed", "one", "two", "three"]


def test_a_save_that_does_not_know_of_it_brings_no_old_text_back(tmp_path: Path) -> None:
    facts, file = memory(tmp_path)
    one, two = (facts.add("/w", text, "workspace") for text in ("port 5433", "tabs"))
    edited = file.read_text().replace("Some words.", "Other words.")
    facts.change("/w", one.id, "port 6000")
    facts.clear("/w", [two])
    file.write_text(edited)
    assert texts(facts) == ["own", "port 6000"] and "Other words." in file.read_text()


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("three", "", ["own", "one", "two"]),
        ("two", "", ["own", "one", "three"]),
        ("one two three", "", ["own"]),
        ("one two", "", ["own", "three"]),
        ("own one", "typed", ["two", "three", "typed"]),
    ],
)
def test_what_a_person_deletes_is_gone(tmp_path: Path, old: str, new: str, left: list[str]) -> None:
    facts, file = memory(tmp_path)
    for text in ("one", "two", "three"):
        facts.add("/w", text, "workspace")
    kept = [line for line in file.read_text().splitlines() if not any(f" {word}" in line for word in old.split())]
    file.write_text("\n".join([*kept, *([f"- {new}"] if new else [])]) + "\n")
    for _ in range(2):
        assert texts(facts) == left
    facts.add("/w", "four", "workspace")
    assert texts(facts) == [*left, "four"]


@pytest.mark.parametrize("text", ["- anew\n", "", "# Mine\n\n- anew\n"])
def test_a_file_that_is_written_anew_stands(tmp_path: Path, text: str) -> None:
    facts, file = memory(tmp_path)
    facts.add("/w", "one", "workspace")
    file.write_text(text)
    assert texts(facts) == (["anew"] if text else [])
    file.unlink()
    assert texts(facts) == []


def test_what_is_taken_back_later_was_seen(tmp_path: Path) -> None:
    new, edited = f"{OWN}- one <!-- id:a1 -->\n".encode(), OWN.replace("Some", "Other").encode()
    recent = RecentChanges().and_then(OWN.encode(), new, "workspace", NOW)
    put_back = edited + b"- one <!-- id:a1 -->\n"
    assert recent.put_back(edited, "workspace", NOW + SECONDS - 1, NOW + 1000)[0] == put_back
    assert recent.put_back(edited, "workspace", NOW + SECONDS + 1, NOW + 1000) == (edited, RecentChanges())
    assert recent.put_back(new, "workspace", NOW, NOW + 1) == (new, recent)
    assert recent.put_back(new, "workspace", NOW, NOW + SECONDS + 1) == (new, RecentChanges())


def test_the_record_is_private_and_gone_when_it_is_old(tmp_path: Path) -> None:
    facts, file = memory(tmp_path)
    fact = facts.add("/w", "one", "workspace")
    record = file.with_name(".MEMORY.md.recent")
    assert record.stat().st_mode & 0o777 == 0o600 and b"one" in record.read_bytes()
    facts.clear("/w", [fact])
    assert b"one" not in record.read_bytes() and load(str(record)).changes
    old = record.read_bytes().replace(b'"at":', b'"at":0.')
    record.write_bytes(old)
    assert texts(facts) == ["own"] and not record.exists()


@pytest.mark.parametrize("damage", [b"", b"[]", b"\xff", b"{" * 5000, b'{"changes":[{"id":1}]}'])
def test_a_damaged_record_is_none(tmp_path: Path, damage: bytes) -> None:
    facts, file = memory(tmp_path)
    facts.add("/w", "one", "workspace")
    file.with_name(".MEMORY.md.recent").write_bytes(damage)
    assert texts(facts) == ["own", "one"]


def test_reading_waits_for_nobody_for_long(tmp_path: Path) -> None:
    """Another process holds the lock, as a stopped one would."""
    import fcntl

    facts, file = memory(tmp_path)
    facts.add("/w", "one", "workspace")
    fd = os.open(file.parent, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        begun = Moment()
        assert texts(facts) == ["own", "one"] and not begun.hung
    finally:
        os.close(fd)
