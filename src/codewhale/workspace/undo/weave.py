"""Taking some changes of a text back and leaving the others: all its versions woven into one list of lines.

Each line knows which hunk brought it and which one took it away (the weave of SCCS: Rochkind, "The Source Code Control
System", 1975), so that any choice of hunks gives a text. Bytes in, bytes out; nothing else is looked at.
"""

from collections.abc import Sequence

from msgspec import Struct

Hunk = tuple[int, int, int, int]
_BASE = -1


class Step(Struct, frozen=True):
    """One change of the text: the lines it left behind, and how they differ from those before as (old begin, old end,
    new begin, new end), ascending. `take_back` says that its hunks are to go."""

    lines: Sequence[bytes]
    hunks: Sequence[Hunk]
    take_back: bool


class Woven(Struct, frozen=True):
    """The text without the hunks that could be taken back (`taken` of them). `refused` are those that a later change
    had touched: where each stands in the new text, as (first, last) line from 1; last is first - 1 for a place where
    lines were taken away."""

    data: bytes
    taken: int
    refused: tuple[tuple[int, int], ...]


class _Line:
    """A line of some version: hunk numbers of its coming and its going."""

    __slots__ = ("born", "dead", "text")

    def __init__(self, text: bytes, born: int) -> None:
        self.text = text
        self.born = born
        self.dead: int | None = None


def lines_of(data: bytes) -> list[bytes]:
    """The lines with their ends; only a newline ends one."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def take_back(base: Sequence[bytes], steps: Sequence[Step]) -> Woven:
    """The last version without the steps to be taken back, but for those of their hunks that a later hunk which
    stays has touched: one that took away a line of it, or put one between its lines or where it took lines away."""
    weave = _Weave(base)
    for step in steps:
        weave.add(step)
    return weave.without()


class _Weave:
    def __init__(self, base: Sequence[bytes]) -> None:
        self._lines = [_Line(text, _BASE) for text in base]
        self._going: list[bool] = []
        self._touched: list[set[int]] = []

    def add(self, step: Step) -> None:
        """The next version."""
        first = len(self._going)
        self._going += [step.take_back] * len(step.hunks)
        self._touched += [set() for _ in step.hunks]
        live = [place for place, line in enumerate(self._lines) if line.dead is None]
        # From the last hunk on, so that the places of those before stay as they are.
        for offset, hunk in reversed(list(enumerate(step.hunks))):
            self._apply(first + offset, hunk, live, step.lines)

    def _apply(self, number: int, hunk: Hunk, live: Sequence[int], lines: Sequence[bytes]) -> None:
        old, old_end, new, new_end = hunk
        if old < old_end:
            first, last = live[old], live[old_end - 1]
            for line in self._lines[first : last + 1]:
                self._touch(number, line.born)
                self._touch(number, line.dead)
            for place in live[old:old_end]:
                self._lines[place].dead = number
            at = last + 1
        else:
            left = live[old - 1] if old else -1
            right = live[old] if old < len(live) else len(self._lines)
            self._insert_between(number, left, right)
            at = left + 1
        self._lines[at:at] = [_Line(text, number) for text in lines[new:new_end]]

    def _insert_between(self, number: int, left: int, right: int) -> None:
        """Note what an insertion between two neighbours touches."""
        before = self._lines[left].born if left >= 0 else _BASE
        after = self._lines[right].born if right < len(self._lines) else _BASE
        if before == after:
            self._touch(number, before)
        for line in self._lines[left + 1 : right]:
            if line.dead != after:  # before what replaced the lines that are gone: its place is plain
                self._touch(number, line.dead)

    def _touch(self, by: int, hunk: int | None) -> None:
        if hunk is not None and hunk != _BASE:
            self._touched[hunk].add(by)

    def without(self) -> Woven:
        """What is left when all has gone that can go."""
        stays = [not going for going in self._going]
        for number in reversed(range(len(stays))):
            stays[number] |= any(stays[later] for later in self._touched[number] if later > number)
        out: list[bytes] = []
        spans: dict[int, tuple[int, int]] = {}
        for line in self._lines:
            if line.born != _BASE and not stays[line.born]:
                continue
            if line.dead is not None and stays[line.dead]:
                for hunk in (line.born, line.dead):
                    spans.setdefault(hunk, (len(out) + 1, len(out)))
                continue
            out.append(line.text)
            first, last = spans.get(line.born, (1, 0))
            spans[line.born] = (first if last >= first else len(out), len(out))
        refused = sorted({spans.get(n, (1, 0)) for n, going in enumerate(self._going) if going and stays[n]})
        return Woven(_joined(out), stays.count(False), tuple(refused))


def _joined(lines: Sequence[bytes]) -> bytes:
    """The lines as one text. One that ended its file without a newline gets one where others now follow it."""
    last = len(lines) - 1
    end = b"\r\n" if any(line.endswith(b"\r\n") for line in lines) else b"\n"
    return b"".join(
        line if index == last or line.endswith(b"\n") else line + end for index, line in enumerate(lines)
    )  # fmt: skip
