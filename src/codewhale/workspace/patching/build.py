"""Placed hunks turned into a file's new bytes. Context keeps the file's own spelling, new lines take the file's
line ends, and a missing final newline stays missing unless the patch says otherwise."""

from collections.abc import Sequence

from msgspec import Struct

from codewhale.protocol.errors import ToolError
from codewhale.workspace.patching.content import Content
from codewhale.workspace.patching.model import Line
from codewhale.workspace.patching.place import EXACT, INDENTED, Finder, Placement
from codewhale.workspace.patching.refusal import overlapping


class Block(Struct, frozen=True):
    """Old lines `begin` to `end` (0-based, half-open) become `lines`; hunk `number` says so."""

    begin: int
    end: int
    lines: tuple[Line, ...]
    number: int
    exact: bool


def build(path: str, content: Content, finder: Finder, placed: Sequence[Placement]) -> bytes:
    """The file with every hunk in place. Raises ToolError where two hunks change the same line."""
    blocks: list[Block] = []
    for number, place in enumerate(placed, 1):
        blocks += _blocks(content, finder, place, number)
    blocks.sort(key=lambda block: (block.begin, block.end, block.number))
    lines: list[str] = []
    at, ended, previous = 0, True, 0
    for block in blocks:
        if block.begin < at:
            raise overlapping(path, f"hunk {previous}", f"hunk {block.number}", block.begin + 1)
        if block.begin > at:
            lines += content.lines[at : block.begin]
            ended = content.ended or block.begin < len(content.lines)
        lines += [line.text for line in block.lines]
        if block.lines:
            ended = block.lines[-1].ended if block.exact else content.ended
        at, previous = block.end, block.number
    if at < len(content.lines):
        lines += content.lines[at:]
        ended = content.ended
    elif not blocks or (not blocks[-1].lines and lines):
        ended = True
    return _encode(path, content, lines, ended)


def _blocks(content: Content, finder: Finder, place: Placement, number: int) -> list[Block]:
    """The runs of changed lines in one hunk."""
    hunk = place.hunk
    exact = hunk.strict and place.rung == EXACT and (bool(hunk.old) or not content.lines)
    added = iter(_added(content, finder, place, exact))
    blocks: list[Block] = []
    at = begin = place.at
    fresh: list[Line] = []
    for line in (*hunk.lines, Line(" ", "")):
        if line.tag == "+":
            fresh.append(next(added))
        elif line.tag == "-":
            at += 1
        else:
            if fresh or at > begin:
                blocks.append(Block(begin, at, tuple(fresh), number, exact))
            at, fresh = at + 1, []
            begin = at
    return blocks


def _added(content: Content, finder: Finder, place: Placement, exact: bool) -> list[Line]:
    """The new lines of a hunk as they are to be written."""
    hunk = place.hunk
    fresh = [line for line in hunk.lines if line.tag == "+"]
    if exact or not fresh:
        return fresh
    texts = [line.text.rstrip("\r") for line in fresh]
    if place.rung == INDENTED:
        texts = [text.rstrip("\r") for text in finder.indentation(hunk, place.at) or texts]
    there = content.lines[place.at : place.at + len(hunk.old)]
    crlf = sum(line.endswith("\r") for line in there) * 2 > len(there) if there else content.crlf
    if not content.lines:
        texts, crlf = [line.text for line in fresh], False
    return [Line("+", text + "\r" if crlf else text, line.ended) for text, line in zip(texts, fresh, strict=True)]


def _encode(path: str, content: Content, lines: list[str], ended: bool) -> bytes:
    try:
        return content.encode(lines, ended)
    except UnicodeEncodeError as error:
        char = error.object[error.start]
        raise ToolError(
            "invalid_input",
            f"{path} is {content.encoding}, which has no {char!r} (U+{ord(char):04X})",
            field="patch",
            expected=f"characters of {content.encoding}",
            received=repr(char),
        )
