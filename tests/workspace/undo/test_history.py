"""A workspace's history: who changed what, within its bounds, over processes and crashes."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from codewhale.lib.clock import Clock
from codewhale.testing import FakeClock
from codewhale.workspace.undo.history import Bounds, FileHistory
from codewhale.workspace.undo.journal import JournalEntry, SnapshotError
from codewhale.workspace.undo.scan import TooMuchError

CALL = JournalEntry(0, 0.0, "call", "s", 1, "c", "tool")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def history(root: Path, bounds: Bounds | None = None, clock: Clock | None = None) -> FileHistory:
    return FileHistory(str(root), str(root.parent / "journal"), clock or FakeClock(), (), bounds or Bounds())


async def look(
    it: FileHistory, paths: list[str] | None = None, author: JournalEntry | None = None
) -> tuple[JournalEntry, ...]:
    async with it.held():
        return await it.look(paths, author)


async def test_what_was_there_is_found_and_every_change_has_its_author(root: Path) -> None:
    it = history(root)
    (root / "a").write_text("1\n")
    (found,) = await look(it)
    assert (found.kind, len(found.changes), it.entries[0].changes) == ("found", 1, ())
    (root / "a").write_text("2\n")
    (mine,) = await look(it, None, CALL)
    assert (mine.kind, mine.session, mine.number, mine.changes[0].path) == ("call", "s", 2, "a")
    (root / "a").write_text("3\n")
    (other,) = await look(it, ["a"])
    assert other.kind == "other" and await look(it) == ()


async def test_the_next_process_goes_on_whether_or_not_the_last_one_ended_well(root: Path) -> None:
    for saved in (True, False):
        it = history(root)
        (root / "a").write_text(f"{saved}\n")
        (root / "a").chmod(0o664)
        await look(it)
        if saved:
            await it.save()
    again = history(root)
    assert await look(again) == () and [entry.number for entry in again.entries] == [1, 2]
    (Path(it.journal.folder) / "picture").write_bytes(b"\xc1damaged")
    assert await look(history(root)) == ()


async def test_two_histories_of_one_workspace_see_what_the_other_wrote(root: Path) -> None:
    one, two = history(root), history(root)
    (root / "a").write_text("1\n")
    await look(one)
    (root / "a").write_text("2\n")
    await look(two, ["a"], CALL)
    assert await look(one) == () and [entry.kind for entry in one.entries] == ["found", "call"]


async def test_a_workspace_beyond_a_bound_is_refused_before_anything_is_kept(root: Path) -> None:
    for name in "abc":
        (root / name).write_bytes(b"x" * 1000)
    for bounds, said in ((Bounds(files=2), "more than 2 files"), (Bounds(bytes=2000), "more than 0")):
        it = history(root, bounds)
        with pytest.raises(TooMuchError, match=said):
            await look(it)
        assert it.entries == [] and not it.journal.head()


async def test_a_look_that_takes_too_long_keeps_what_it_saw(root: Path) -> None:
    (root / "a").write_text("1\n")
    with pytest.raises(TooMuchError, match="too long"):
        await look(history(root, Bounds(seconds=0.0)), ["a"])


async def test_a_file_that_comes_back_after_its_deletion_is_a_change(root: Path) -> None:
    it = history(root)
    (root / "a").write_text("1\n")
    await look(it)
    (root / "a").unlink()
    await look(it, None, CALL)
    (root / "a").write_text("2\n")
    (back,) = await look(it)
    assert back.kind == "other" and back.changes[0].before is None
    (root / "a").unlink()
    await look(it)
    again = history(root)
    (root / "a").write_text("3\n")
    (back,) = await look(again)
    assert back.kind == "other"


async def test_old_turns_are_forgotten_and_files_are_not(root: Path) -> None:
    clock = FakeClock()
    it = history(root, Bounds(turns=10), clock)
    for turn in range(1, 33):
        (root / "a").write_text(f"{turn}\n")
        await look(it, ["a"], JournalEntry(0, 0.0, "call", "s", turn, "c", "tool"))
    fewer = history(root, Bounds(turns=10), clock)
    async with fewer.held():
        assert [entry.turn for entry in fewer.entries] == list(range(23, 33))
    clock.advance(8 * 86_400)
    later = history(root, Bounds(turns=10), clock)
    assert await look(later, ["a"]) == ()
    (root / "a").write_text("new\n")
    (entry,) = await look(later, ["a"])
    assert entry.number == 33


async def test_a_cancelled_look_leaves_the_history_to_the_next(root: Path) -> None:
    it = history(root)
    for n in range(300):
        (root / f"f{n}").write_text(f"{n}\n")
    task = asyncio.ensure_future(look(it))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (found,) = await look(it)
    assert len(found.changes) == 300


async def test_a_damaged_journal_is_set_aside_and_a_new_one_is_begun(root: Path) -> None:
    (root / "a").write_text("1\n")
    await look(history(root))
    folder = root.parent / "journal"
    for file in folder.joinpath("objects").rglob("*"):
        if file.is_file():
            file.chmod(0o600)
            file.write_bytes(b"garbage")
    it = history(root)
    with pytest.raises(SnapshotError, match="history is moved to"):
        await look(it)
    assert (root.parent / "journal.damaged").is_dir()
    (found,) = await look(it)
    assert found.kind == "found" and found.number == 1


async def test_a_workspace_beyond_a_bound_is_left_alone_for_a_day(root: Path) -> None:
    it = history(root)
    await look(it)
    assert it.refusal() == ""
    it.refuse("too large")
    assert history(root).refusal() == "too large"
    mark = root.parent / "journal" / "refused"
    os.utime(mark, (time.time() - 90_000, time.time() - 90_000))
    assert it.refusal() == ""
