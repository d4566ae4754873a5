"""The state of an index as a person is told it."""

import fcntl
import os
from pathlib import Path

import pytest

from codewhale.cli.offline.index import index_build, index_status, warnings
from codewhale.protocol.errors import CodeWhaleError


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    for number in range(6):
        (folder / f"f{number}.py").write_text(f"def f{number}(): pass\n")
    (folder / "p.png").write_bytes(b"\x89PNG\0")
    (folder / "x.min.js").write_text("x")
    return folder


async def test_from_absent_to_ready_to_stale(tree: Path, tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    before = await index_status(home, str(tree))
    assert (before["state"], before["files"], before["built_at"]) == ("absent", 0, None) and not os.path.exists(home)
    told = await index_build(home, str(tree))
    assert (told["state"], told["files"], told["symbols"], told["coverage"]) == ("ready", 6, 6, 1.0)
    assert told["languages"] == {"python": 6} and told["skipped"] == {"binary": 1, "by name": 1}
    assert told["bytes"] > 0 and told["age_s"] < 60 and warnings(told) == []
    (tree / "f1.py").write_text("changed = 1\n")
    assert (await index_status(home, str(tree)))["state"] == "stale"
    assert (await index_build(home, str(tree)))["state"] == "ready"


async def test_a_damaged_index_says_so_and_is_made_anew(tree: Path, tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    told = await index_build(home, str(tree))
    Path(told["db"]).write_bytes(b"nothing like a database, though long enough " * 100)
    for ending in ("-wal", "-shm"):
        Path(told["db"] + ending).unlink(missing_ok=True)
    damaged = await index_status(home, str(tree))
    assert damaged["state"] == "damaged" and "damaged" in warnings(damaged)[0]
    assert (await index_build(home, str(tree)))["files"] == 6


async def test_a_nearly_empty_index_is_not_passed_over(tree: Path, tmp_path: Path) -> None:
    (tree / ".gitignore").write_text("*\n!x.py\n")
    (tree / "x.py").write_text("x = 1\n")
    for number in range(9):
        (tree / f"more{number}.py").write_text("x = 1\n")
    told = await index_build(str(tmp_path / "home"), str(tree))
    assert told["files"] == 1 and "ignore rule" in warnings(told)[0]


async def test_who_is_building_is_told(tree: Path, tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    told = await index_build(home, str(tree))
    fd = os.open(told["db"] + ".lock", os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    assert (await index_status(home, str(tree)))["state"] == "building"
    os.close(fd)


async def test_a_home_that_cannot_be_written_is_an_error(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((OSError, CodeWhaleError)):
        await index_build(str(tmp_path / "file" / "home"), str(tree))


async def test_rebuilding_begins_from_nothing(tree: Path, tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    await index_build(home, str(tree))
    seen: list[int] = []
    told = await index_build(home, str(tree), rebuild=True, progress=lambda done, total: seen.append(total))
    assert told["state"] == "ready" and max(seen) == 7
