"""What one file is to become when some of the changes in its history are taken back and the others stay.

The versions of a text are woven into one list of lines. Each line knows which hunk brought it and which one took it
away (the weave of SCCS: Rochkind, 1975), so that any choice of hunks gives a text."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from codewhale.workspace.undo.journal import FileState

LineRange = tuple[int, int, int, int]
_BASE = -1


class TextRevision(Struct, frozen=True):
    """One change of the text: the lines it left behind, and how they differ from those before as (old begin, old end,
    new begin, new end), ascending. `take_back` says that its hunks are to go."""

    lines: Sequence[bytes]
    hunks: Sequence[LineRange]
    take_back: bool


class WovenText(Struct, frozen=True):
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


def take_back(base: Sequence[bytes], steps: Sequence[TextRevision]) -> WovenText:
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

    def add(self, step: TextRevision) -> None:
        first = len(self._going)
        self._going += [step.take_back] * len(step.hunks)
        self._touched += [set() for _ in step.hunks]
        live = [place for place, line in enumerate(self._lines) if line.dead is None]
        # From the last hunk on, so that the places of those before stay as they are.
        for offset, hunk in reversed(list(enumerate(step.hunks))):
            self._apply(first + offset, hunk, live, step.lines)

    def _apply(self, number: int, hunk: LineRange, live: Sequence[int], lines: Sequence[bytes]) -> None:
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

    def without(self) -> WovenText:
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
        return WovenText(_joined(out), stays.count(False), tuple(refused))


def _joined(lines: Sequence[bytes]) -> bytes:
    """The lines as one text. One that ended its file without a newline gets one where others now follow it."""
    last = len(lines) - 1
    end = b"\r\n" if any(line.endswith(b"\r\n") for line in lines) else b"\n"
    return b"".join(
        line if index == last or line.endswith(b"\n") else line + end for index, line in enumerate(lines)
    )  # fmt: skip


TEXT_LIMIT = 4 << 20
MOST_LINES = 100_000


class Revision(Struct, frozen=True):
    """One change of a file: `mine` is one to be taken back. None stands for no file."""

    mine: bool
    before: FileState | None
    after: FileState | None


class UndoRefusal(Struct, frozen=True):
    """What was not undone: why, and the (first, last) lines of the file it stands in afterwards, None for the
    whole file."""

    path: str
    reason: str
    lines: tuple[int, int] | None = None


class ResolvedFile(Struct, frozen=True):
    """What a file is to become: nothing (`state` None), or a file whose bytes are `data`, or where that is None those
    of `state.blob`."""

    state: FileState | None
    data: bytes | None = None
    refused: tuple[UndoRefusal, ...] = ()


class BlobSource(Protocol):
    async def read(self, states: Mapping[str, int]) -> dict[str, bytes]: ...

    async def hunks(self, before: str, after: str) -> tuple[LineRange, ...] | None: ...


_Content = tuple[bool, FileState | None, FileState | None]
MADE_ANEW = "it was deleted by the agent, and created again since"
CREATED = "it was created by the agent, and changed since"
TOUCHED = "these lines were changed since"
WHOLE = "it was changed since, and it is not text that can be compared line by line"
NOT_KEPT = "its content was not saved: it is too large, or looks like a file of secrets"


async def resolve(path: str, moves: Sequence[Revision], contents: BlobSource) -> ResolvedFile:
    """What `path` is to become. `moves` are all its changes from the first one to be taken back on, in order; the last
    leads to what stands there now."""
    now, mode = moves[-1].after, _mode(moves)
    chain, refused = _cut(path, _folded(moves))
    if not any(mine for mine, _, _ in chain):
        return ResolvedFile(None if now is None else _with_mode(now, mode), None, tuple(refused))
    if len(chain) == 1:
        wanted = chain[0][1]
        if wanted is not None and not wanted.blob:
            return ResolvedFile(now, None, (*refused, UndoRefusal(path, NOT_KEPT)))
        return ResolvedFile(None if wanted is None else _with_mode(wanted, mode), None, tuple(refused))
    if chain[-1][2] is None:  # it was deleted last: it comes back first
        chain = chain[:-1]
    woven = await _woven(path, chain, contents)
    mine, before, after = chain[-1]
    kept = before if mine and woven is None else after
    assert kept is not None
    if woven is None:
        return ResolvedFile(_with_mode(kept, mode), None, (*refused, UndoRefusal(path, WHOLE)))
    data, more = woven
    return ResolvedFile(_with_mode(FileState(kept.mode, "", len(data)), mode), data, (*refused, *more))


def _same(one: FileState | None, other: FileState | None) -> bool:
    """Whether two states are alike in content: their bytes and whether they are a link."""
    if one is None or other is None:
        return one is other
    return (one.blob, one.size, one.is_link) == (other.blob, other.size, other.is_link)


def _folded(moves: Sequence[Revision]) -> list[_Content]:
    """The changes of content alone: neighbours of one kind as one, those that lead nowhere left out."""
    chain: list[_Content] = []
    for move in moves:
        step = (move.mine, move.before, move.after)
        if chain and chain[-1][0] == move.mine:
            step = (move.mine, chain.pop()[1], move.after)
        if not _same(step[1], step[2]):
            chain.append(step)
    while chain and not chain[0][0]:
        chain.pop(0)
    return chain


def _cut(path: str, chain: list[_Content]) -> tuple[list[_Content], list[UndoRefusal]]:
    """The chain from where its file began to be the one that stands there now. What was before somebody deleted it is
    gone anyway; what somebody made anew, or changed after it was created, is theirs."""
    refused: list[UndoRefusal] = []
    for index in reversed(range(len(chain))):
        mine, before, after = chain[index]
        if mine or (before is not None and after is not None):
            continue
        if before is None:
            refused.append(UndoRefusal(path, MADE_ANEW))
        chain = chain[index + 1 :]
        break
    if len(chain) > 1 and chain[0][1] is None:
        refused.append(UndoRefusal(path, CREATED))
        chain = chain[1:]
        while chain and not chain[0][0]:
            chain = chain[1:]
    return chain, refused


def _mode(moves: Sequence[Revision]) -> int | None:
    """The st_mode it would have without the changes to be taken back, None where nothing says so."""
    mode = None if moves[0].before is None else moves[0].before.mode
    for move in moves:
        if move.mine:
            continue
        if move.after is None:
            mode = None
        elif move.before is None or move.before.mode != move.after.mode:
            mode = move.after.mode
    return mode


def _with_mode(state: FileState, mode: int | None) -> FileState:
    link = FileState(mode or 0, "").is_link
    return state if mode is None or state.is_link or link else FileState(mode, state.blob, state.size)


async def _woven(
    path: str, chain: Sequence[_Content], contents: BlobSource
) -> tuple[bytes, tuple[UndoRefusal, ...]] | None:
    """The text without what is to be taken back, and which lines were refused; None for what is no text."""
    states = [chain[0][1], *(after for _, _, after in chain)]
    if any(state is None or state.is_link or not state.blob or state.size > TEXT_LIMIT for state in states):
        return None
    kept = await contents.read({state.blob: state.size for state in states if state is not None})
    texts = [kept.get(state.blob) for state in states if state is not None]
    if any(text is None or b"\0" in text or text.count(b"\n") > MOST_LINES for text in texts):
        return None
    steps = []
    for (mine, before, after), text in zip(chain, texts[1:], strict=True):
        assert before is not None and after is not None and text is not None
        hunks = await contents.hunks(before.blob, after.blob)
        if hunks is None:
            return None
        steps.append(TextRevision(lines_of(text), hunks, mine))
    woven = await asyncio.to_thread(take_back, lines_of(texts[0] or b""), steps)
    return woven.data, tuple(UndoRefusal(path, TOUCHED, lines) for lines in woven.refused)
