"""What one file is to become when some of the changes in its history are taken back and the others stay."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from codewhale.workspace.snapshots import FileState
from codewhale.workspace.undo.weave import Hunk, Step, lines_of, take_back

TEXT_LIMIT = 4 << 20
MOST_LINES = 100_000


class Move(Struct, frozen=True):
    """One change of a file: `mine` is one to be taken back. None stands for no file."""

    mine: bool
    before: FileState | None
    after: FileState | None


class Refusal(Struct, frozen=True):
    """What was not taken back: why, and the (first, last) lines of the file it stands in afterwards, None for the
    whole file."""

    path: str
    reason: str
    lines: tuple[int, int] | None = None


class Wanted(Struct, frozen=True):
    """What a file is to become: nothing (`state` None), or a file whose bytes are `data`, or where that is None those
    of `state.blob`."""

    state: FileState | None
    data: bytes | None = None
    refused: tuple[Refusal, ...] = ()


class Contents(Protocol):
    """Where kept bytes and their differences come from."""

    async def read(self, states: Mapping[str, int]) -> dict[str, bytes]:
        """The bytes by blob id, for ids with their sizes."""
        ...

    async def hunks(self, before: str, after: str) -> tuple[Hunk, ...] | None:
        """How two kept files differ by lines."""
        ...


_Content = tuple[bool, FileState | None, FileState | None]
MADE_ANEW = "it was deleted, and somebody made it anew since"
CREATED = "it was created, and somebody changed it since"
TOUCHED = "somebody changed these lines since"
WHOLE = "somebody changed it since, and it is no text whose lines could be told apart"
NOT_KEPT = "its content is not kept: it is too large, or looks like a file of secrets"


async def resolve(path: str, moves: Sequence[Move], contents: Contents) -> Wanted:
    """What `path` is to become. `moves` are all its changes from the first one to be taken back on, in order; the last
    leads to what stands there now."""
    now, mode = moves[-1].after, _mode(moves)
    chain, refused = _cut(path, _folded(moves))
    if not any(mine for mine, _, _ in chain):
        return Wanted(None if now is None else _with_mode(now, mode), None, tuple(refused))
    if len(chain) == 1:
        wanted = chain[0][1]
        if wanted is not None and not wanted.blob:
            return Wanted(now, None, (*refused, Refusal(path, NOT_KEPT)))
        return Wanted(None if wanted is None else _with_mode(wanted, mode), None, tuple(refused))
    if chain[-1][2] is None:  # it was deleted last: it comes back first
        chain = chain[:-1]
    woven = await _woven(path, chain, contents)
    mine, before, after = chain[-1]
    kept = before if mine and woven is None else after
    assert kept is not None
    if woven is None:
        return Wanted(_with_mode(kept, mode), None, (*refused, Refusal(path, WHOLE)))
    data, more = woven
    return Wanted(_with_mode(FileState(kept.mode, "", len(data)), mode), data, (*refused, *more))


def _same(one: FileState | None, other: FileState | None) -> bool:
    """Whether two states are alike in content: their bytes and whether they are a link."""
    if one is None or other is None:
        return one is other
    return (one.blob, one.size, one.is_link) == (other.blob, other.size, other.is_link)


def _folded(moves: Sequence[Move]) -> list[_Content]:
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


def _cut(path: str, chain: list[_Content]) -> tuple[list[_Content], list[Refusal]]:
    """The chain from where its file began to be the one that stands there now. What was before somebody deleted it is
    gone anyway; what somebody made anew, or changed after it was created, is theirs."""
    refused: list[Refusal] = []
    for index in reversed(range(len(chain))):
        mine, before, after = chain[index]
        if mine or (before is not None and after is not None):
            continue
        if before is None:
            refused.append(Refusal(path, MADE_ANEW))
        chain = chain[index + 1 :]
        break
    if len(chain) > 1 and chain[0][1] is None:
        refused.append(Refusal(path, CREATED))
        chain = chain[1:]
        while chain and not chain[0][0]:
            chain = chain[1:]
    return chain, refused


def _mode(moves: Sequence[Move]) -> int | None:
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


async def _woven(path: str, chain: Sequence[_Content], contents: Contents) -> tuple[bytes, tuple[Refusal, ...]] | None:
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
        steps.append(Step(lines_of(text), hunks, mine))
    woven = await asyncio.to_thread(take_back, lines_of(texts[0] or b""), steps)
    return woven.data, tuple(Refusal(path, TOUCHED, lines) for lines in woven.refused)
