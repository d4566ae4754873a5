"""What a file is to become, by the kinds of changes in its history. Whole histories of text: test_undo."""

import stat
from collections.abc import Mapping

from codewhale.workspace.undo.journal import FileState, blob_id
from codewhale.workspace.undo.resolve import (
    CREATED,
    MADE_ANEW,
    NOT_KEPT,
    WHOLE,
    LineRange,
    ResolvedFile,
    Revision,
    UndoRefusal,
    resolve,
)

FILE = stat.S_IFREG | 0o644


class Shelf:
    """Kept bytes in memory; any two differ as a whole."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def state(self, data: bytes, mode: int = FILE) -> FileState:
        self.kept[blob_id(data)] = data
        return FileState(mode, blob_id(data), len(data))

    async def read(self, states: Mapping[str, int]) -> dict[str, bytes]:
        return {blob: self.kept[blob] for blob in states}

    async def hunks(self, before: str, after: str) -> tuple[LineRange, ...] | None:
        return ((0, self.kept[before].count(b"\n"), 0, self.kept[after].count(b"\n")),)


async def wanted(shelf: Shelf, first: FileState | None, *steps: tuple[str, FileState | None]) -> ResolvedFile:
    """`steps` as (whose, state after); the agent's ("a") are taken back."""
    moves, before = [], first
    for who, after in steps:
        moves.append(Revision(who == "a", before, after))
        before = after
    return await resolve("f", moves, shelf)


async def test_what_nobody_else_changed_goes_back_to_what_it_was() -> None:
    shelf = Shelf()
    one, two, link = shelf.state(b"1\n"), shelf.state(b"2\n", FILE | 0o111), shelf.state(b"to", stat.S_IFLNK | 0o777)
    assert await wanted(shelf, one, ("a", two), ("a", link), ("a", None)) == ResolvedFile(one)
    assert await wanted(shelf, None, ("a", one), ("a", two)) == ResolvedFile(None)
    assert await wanted(shelf, link, ("a", one)) == ResolvedFile(link)


async def test_what_led_nowhere_is_no_change() -> None:
    shelf = Shelf()
    one, two, three = (shelf.state(data) for data in (b"1\n", b"2\n", b"3\n"))
    assert await wanted(shelf, one, ("a", two), ("p", three), ("p", two), ("a", three)) == ResolvedFile(one)
    assert await wanted(shelf, one, ("a", two), ("a", one), ("p", two)) == ResolvedFile(two)


async def test_deletions_and_new_beginnings_by_others_are_theirs() -> None:
    shelf = Shelf()
    one, two, three = (shelf.state(data) for data in (b"1\n", b"2\n", b"3\n"))
    assert await wanted(shelf, one, ("a", two), ("p", None)) == ResolvedFile(None)
    assert await wanted(shelf, one, ("a", two), ("p", None), ("a", three)) == ResolvedFile(None)
    assert await wanted(shelf, one, ("a", None), ("p", two)) == ResolvedFile(two, None, (UndoRefusal("f", MADE_ANEW),))
    assert await wanted(shelf, None, ("a", one), ("p", two)) == ResolvedFile(two, None, (UndoRefusal("f", CREATED),))
    assert await wanted(shelf, None, ("a", one), ("p", two), ("a", three)) == ResolvedFile(
        two, None, (UndoRefusal("f", CREATED),)
    )


async def test_what_is_no_text_goes_back_as_a_whole_or_stays() -> None:
    shelf = Shelf()
    one, two, three, four = (shelf.state(b"\0" + data) for data in (b"1", b"2", b"3", b"4"))
    assert await wanted(shelf, one, ("a", two), ("p", three)) == ResolvedFile(three, None, (UndoRefusal("f", WHOLE),))
    assert await wanted(shelf, one, ("a", two), ("p", three), ("a", four)) == ResolvedFile(
        three, None, (UndoRefusal("f", WHOLE),)
    )


async def test_what_was_not_kept_cannot_come_back() -> None:
    shelf = Shelf()
    large, small = FileState(FILE, "", 1 << 30), shelf.state(b"1\n")
    assert await wanted(shelf, large, ("a", small)) == ResolvedFile(small, None, (UndoRefusal("f", NOT_KEPT),))


async def test_the_mode_is_the_last_that_others_set() -> None:
    shelf = Shelf()
    plain, tool, private = (shelf.state(b"1\n", stat.S_IFREG | mode) for mode in (0o644, 0o755, 0o600))
    assert await wanted(shelf, plain, ("a", tool)) == ResolvedFile(plain)
    assert await wanted(shelf, plain, ("a", tool), ("p", private)) == ResolvedFile(private)
    assert await wanted(
        shelf, plain, ("a", shelf.state(b"2\n")), ("p", shelf.state(b"2\n", private.mode))
    ) == ResolvedFile(private)
