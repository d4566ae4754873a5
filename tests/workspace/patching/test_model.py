"""A hunk's own arithmetic."""

from codewhale.workspace.patching.model import Hunk, PatchLine


def lines(text: str) -> tuple[PatchLine, ...]:
    return tuple(PatchLine(row[0], row[1:]) for row in text.split("|"))


def test_old_new_and_context() -> None:
    hunk = Hunk(lines(" a| b|-c|+C| d"), start=5)
    assert [line.text for line in hunk.old] == ["a", "b", "c", "d"]
    assert [line.text for line in hunk.new] == ["a", "b", "C", "d"]
    assert (hunk.leading, hunk.trailing) == (2, 1)


def test_cutting_context_moves_the_stated_line() -> None:
    hunk = Hunk(lines(" a| b|-c|+C| d"), start=5, at_end=True)
    cut = hunk.cut(2, 1)
    assert (cut.lines, cut.start, cut.at_end) == (lines("-c|+C"), 7, False)
    assert hunk.cut(1, 0).at_end and hunk.cut(0, 0) == hunk
