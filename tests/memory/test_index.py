"""The index beside the files of facts."""

import multiprocessing
import os
import sqlite3
from pathlib import Path

import pytest

from codewhale.memory.service import Memory
from support.patience import HANG

SECRET = "zanzibar"


def memory(home: Path) -> Memory:
    return Memory(str(home), lambda workspace: workspace)


def write(home: Path, *lines: str, folder: str = "workspace/w1") -> Path:
    file = home / "memory" / folder / "MEMORY.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"- {line}\n" for line in lines))
    return file


def texts(home: Path, query: str) -> list[str]:
    return [one.fact.text for one in memory(home).search("w1", query)]


def every_byte(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_it_equals_one_made_anew_after_any_edit(tmp_path: Path) -> None:
    one = memory(tmp_path)
    for lines in (["a port", "b branch"], ["b branch"], ["b branch", "c staging port 5433"], []):
        write(tmp_path, *lines)
        write(tmp_path, *lines[:1], folder="global")
        rows = one.index.dump()
        os.unlink(one.index.path)
        assert memory(tmp_path).index.dump() == rows == one.index.dump()
        assert len([row for row in rows if row[0] == "facts"]) == len(lines) + len(lines[:1])


def test_a_file_that_was_edited_by_hand_is_found_by_its_new_text(tmp_path: Path) -> None:
    one = memory(tmp_path)
    file = write(tmp_path, "the queue is kafka")
    assert one.search("w1", "kafka")
    file.write_text("- the queue is rabbitmq\n")
    assert not one.search("w1", "kafka") and one.search("w1", "rabbitmq")


@pytest.mark.parametrize("at", [0, 20, 100, 4096, 9000, -1, -40])
def test_damage_in_any_byte_is_repaired(tmp_path: Path, at: int) -> None:
    write(tmp_path, *(f"fact {number} about {SECRET}" for number in range(50)))
    before = texts(tmp_path, SECRET)
    path = tmp_path / "memory" / "index.sqlite3"
    sound = path.read_bytes()
    data = bytearray(sound)
    data[at] ^= 0xFF
    path.write_bytes(data)
    assert texts(tmp_path, SECRET) == before
    assert path.read_bytes() == sound


@pytest.mark.parametrize("data", [b"", b"no database", b"\0" * 5000])
def test_what_is_no_database_is_thrown_away(tmp_path: Path, data: bytes) -> None:
    write(tmp_path, f"the island is {SECRET}")
    (tmp_path / "memory" / "index.sqlite3").write_bytes(data)
    assert texts(tmp_path, SECRET)
    connection = sqlite3.connect(tmp_path / "memory" / "index.sqlite3")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_no_byte_of_a_removed_fact_stays(tmp_path: Path) -> None:
    one = memory(tmp_path)
    file = write(tmp_path, *(f"fact {number}" for number in range(300)), f"the island is {SECRET}")
    write(tmp_path, f"another {SECRET} elsewhere", folder="workspace/w2")
    assert one.search("w1", SECRET)
    left = tmp_path / "memory" / ".index.sqlite3.0123456789abcdef.tmp"
    left.write_text(SECRET)  # of a process that was killed
    (tmp_path / "memory" / "index.sqlite3-journal").write_text(SECRET)
    write(tmp_path, "nothing", folder="workspace/w2")
    file.write_text("- nothing\n")
    assert not one.search("w1", SECRET)
    assert SECRET.encode() not in every_byte(tmp_path)


@pytest.mark.parametrize("by", ["clear", "change"])
def test_no_byte_of_a_cleared_or_changed_fact_stays(tmp_path: Path, by: str) -> None:
    one = memory(tmp_path)
    fact = one.add("w1", f"the island is {SECRET}", "workspace")
    assert one.search("w1", SECRET)
    if by == "clear":
        one.clear("w1", [fact])
        one._trash.remove(fact.id)  # where it stands on purpose
    else:
        one.change("w1", fact.id, "the island is Madagascar")
    assert SECRET.encode() not in every_byte(tmp_path)
    assert SECRET not in one.text("w1")
    assert one.search("w1", SECRET) == ()


def test_search_works_where_nothing_can_be_stored(tmp_path: Path) -> None:
    write(tmp_path, f"the island is {SECRET}")
    (tmp_path / "memory" / "index.sqlite3").mkdir()
    assert texts(tmp_path, SECRET)


def _use(home: str, number: int) -> None:
    one, file = memory(Path(home)), Path(home) / "memory" / "workspace" / f"p{number}" / "MEMORY.md"
    file.parent.mkdir(parents=True)
    for turn in range(25):
        file.write_text(f"- island {SECRET}{number}x{turn}\n")
        assert [each.fact.text for each in one.search(f"p{number}", f"{SECRET}{number}x{turn}")][:1]


def test_processes_use_it_at_once(tmp_path: Path) -> None:
    write(tmp_path, "fact", folder="global")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_use, args=(str(tmp_path), number)) for number in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(HANG)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    rows = memory(tmp_path).index.dump()
    (tmp_path / "memory" / "index.sqlite3").unlink()
    assert memory(tmp_path).index.dump() == rows


def test_an_index_of_other_files_is_not_believed(tmp_path: Path) -> None:
    write(tmp_path, "the port is 80")
    assert texts(tmp_path, "port")
    old = (tmp_path / "memory" / "index.sqlite3").read_bytes()
    write(tmp_path, "nothing", "the branch is trunk")
    (tmp_path / "memory" / "index.sqlite3").write_bytes(old)
    assert texts(tmp_path, "branch") == ["the branch is trunk"]
