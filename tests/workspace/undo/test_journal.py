"""The journal: what goes in comes out, in one step or not at all, and the project has no say in it."""

import asyncio
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from codewhale.workspace.undo.journal import (
    Change,
    FileState,
    Journal,
    JournalContent,
    JournalDamagedError,
    JournalEntry,
    SnapshotError,
    as_written,
    blob_id,
)
from support.repos import raw_git

FILE = stat.S_IFREG | 0o644


def kept(data: bytes, mode: int = FILE) -> FileState:
    return FileState(mode, blob_id(data), len(data))


async def put(journal: Journal, number: int, files: dict[str, bytes | None], kind: str = "call") -> JournalEntry:
    """One entry that sets files, or deletes them."""
    before = await journal.files()
    changes = [
        JournalContent(Change(path, before.get(path), None if data is None else kept(data)), data)
        for path, data in files.items()
    ]
    made: list[JournalEntry] = []

    async def settle(seen: list[Change]) -> Sequence[JournalEntry]:
        made.append(JournalEntry(number, 1000.0 + number, kind, "s", 1, "c", "tool", changes=tuple(seen)))  # type: ignore[arg-type]
        return made

    await journal.record(iter(changes), settle)
    return made[0]


@pytest.fixture
async def journal(tmp_path: Path) -> Journal:
    journal = Journal(str(tmp_path / "journal"))
    await journal.open()
    return journal


async def test_entries_files_and_bytes_come_back(journal: Journal) -> None:
    assert (journal.head(), await journal.entries(), await journal.files()) == ("", [], {})
    odd = {'a "b" \\ c': b"\x00\xff", "new\nline": b"", "ünï/ code": b"one\r\ntwo", "gone": b"x"}
    first = await put(journal, 1, dict(odd))
    second = await put(journal, 2, {"gone": None, "more": b"y" * 9_000_000})
    assert [entry for _, entry in await journal.entries()] == [first, second]
    files = await journal.files()
    assert files.keys() == (odd.keys() | {"more"}) - {"gone"} and files["more"].size == 9_000_000
    states = {state.blob: state.size for state in files.values()}
    there = (odd['a "b" \\ c'], b"", odd["ünï/ code"], b"y" * 9_000_000)
    assert await journal.read({**states, "0" * 40: 5}) == {blob_id(data): data for data in there}


async def test_links_and_execute_bits_are_told_apart(journal: Journal) -> None:
    states = {"link": kept(b"to", stat.S_IFLNK | 0o777), "tool": kept(b"#!", stat.S_IFREG | 0o755), "file": kept(b"f")}
    data = {"link": b"to", "tool": b"#!", "file": b"f"}
    entry = JournalEntry(1, 0.0, "call", changes=tuple(Change(path, None, state) for path, state in states.items()))

    async def settle(seen: list[Change]) -> Sequence[JournalEntry]:
        return [entry]

    await journal.record((JournalContent(one, data[one.path]) for one in entry.changes), settle)
    files = await journal.files()
    assert files["link"].is_link and files["tool"].mode & 0o100 and not files["file"].mode & 0o100
    assert files["tool"].is_coarse and not states["tool"].is_coarse and not files["link"].is_coarse


async def test_of_what_was_found_and_of_too_much_the_number_alone_is_listed(journal: Journal) -> None:
    many = tuple(Change(f"f{n}", None, FileState(FILE, "", n)) for n in range(20_001))
    for entry, count in (
        (JournalEntry(1, 0.0, "found", changes=many[:2]), 2),
        (JournalEntry(2, 0.0, "call", changes=many), 20_001),
    ):

        async def settle(seen: list[Change], entry: JournalEntry = entry) -> Sequence[JournalEntry]:
            return [entry]

        await journal.record(iter(()), settle)
        told = (await journal.entries())[-1][1]
        assert told == as_written(entry) and told.unlisted == count and not told.changes


async def test_hunks_are_those_of_the_lines(journal: Journal) -> None:
    one, two = b"1\n2\n3\n4\n5", b"0\n1\n2\nx\ny\n4\n"
    await put(journal, 1, {"a": one, "b": two, "c": b""})
    assert await journal.hunks(blob_id(one), blob_id(two)) == ((0, 0, 0, 1), (2, 3, 3, 5), (4, 5, 6, 6))
    assert await journal.hunks(blob_id(b""), blob_id(one)) == ((0, 0, 0, 5),)
    assert await journal.hunks(blob_id(one), blob_id(b"")) == ((0, 5, 0, 0),)


async def test_a_record_that_fails_or_is_cancelled_leaves_nothing(journal: Journal) -> None:
    await put(journal, 1, {"a": b"1"})
    head = journal.head()

    async def refuse(seen: list[Change]) -> Sequence[JournalEntry]:
        raise SnapshotError("no")

    async def wait(seen: list[Change]) -> Sequence[JournalEntry]:
        await asyncio.Event().wait()
        return []

    content = JournalContent(Change("a", kept(b"1"), kept(b"2")), b"2")
    with pytest.raises(SnapshotError):
        await journal.record(iter([content]), refuse)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await journal.record(iter([content]), wait)
    assert journal.head() == head and (await journal.files())["a"].blob == blob_id(b"1")
    Path(journal.folder, "fast_import_crash_1").write_text("what git writes when it is cut short")
    await journal.open()
    assert not [name for name in os.listdir(journal.folder) if name.startswith("fast_import")]


async def test_what_is_old_is_forgotten_and_the_rest_goes_on(journal: Journal) -> None:
    for number in range(1, 6):
        await put(journal, number, {"a": os.urandom(100_000)})
    entries = await journal.entries()
    size = journal.size()
    await journal.cut(entries[3][0])
    assert [entry.number for _, entry in await journal.entries()] == [4, 5]
    assert journal.size() < size / 2
    await put(journal, 6, {"b": b"1"})
    assert [entry.number for _, entry in await journal.entries()] == [4, 5, 6]
    assert (await journal.files()).keys() == {"a", "b"}


async def test_the_persons_and_the_projects_git_settings_have_no_say(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = '[core]\nhooksPath = {0}\nattributesFile = {0}/attributes\n[diff "x"]\ncommand = touch {0}/PWNED\n'
    (tmp_path / ".gitconfig").write_text(settings.format(tmp_path) + "textconv = touch PWNED\n")
    (tmp_path / "attributes").write_text("* diff=x\n")
    for hook in ("reference-transaction", "post-commit", "post-update"):
        (tmp_path / hook).write_text(f"#!/bin/sh\ntouch {tmp_path}/PWNED\n")
        (tmp_path / hook).chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    await put(journal, 1, {"a": b"1\n", "b": b"2\n"})
    assert await journal.hunks(blob_id(b"1\n"), blob_id(b"2\n")) == ((0, 1, 0, 1),)
    await journal.cut((await journal.entries())[0][0])
    assert not list(tmp_path.rglob("PWNED"))


async def test_the_journal_is_an_ordinary_repository_that_only_its_owner_can_enter(journal: Journal) -> None:
    await put(journal, 1, {"a": b"1\n"})
    folder = Path(journal.folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and not (folder / "hooks").exists()
    assert raw_git(folder, "show", "journal:a") == b"1\n"
    raw_git(folder, "fsck", "--strict")


async def test_a_damaged_journal_is_told(journal: Journal) -> None:
    await put(journal, 1, {"a": b"1\n"})
    ref = Path(journal.folder, "refs/heads/journal")
    ref.write_text("0" * 39 + "1\n")
    with pytest.raises(JournalDamagedError, match="git failed on the record"):
        await journal.entries()
