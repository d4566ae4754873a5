"""A unified diff as lines: numbers, signs, the colours of its language, and what changed inside a line."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from codewhale.display.transcript.highlight import Highlighter, language_of
from codewhale.display.transcript.lines import Line, Span, ends, fit, flat, fold_hard

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_MOST_ROW = 2_000
_SIGNS = {"+": ("added", "on:added_background"), "-": ("removed", "on:removed_background")}


class Row(NamedTuple):
    """A line of a diff: `sign` is "+", "-", " ", "@" for what stands between hunks, "f" for a file. `changed` is the
    part of the text, from and to, that differs from its counterpart."""

    sign: str
    number: int
    text: str
    changed: tuple[int, int] = (0, 0)


def counts(diff: str) -> tuple[int, int]:
    """How many lines a diff adds and removes."""
    whole = "\n" + diff
    return whole.count("\n+") - whole.count("\n+++ "), whole.count("\n-") - whole.count("\n--- ")


def diff_rows(diff: str, most: int = 100_000) -> list[Row]:
    """The rows of a diff, at most `most` of them."""
    found: list[Row] = []
    for row in _rows(diff, most):
        found.append(row)
        if len(found) >= most:
            break
    return _paired(found)


def _rows(diff: str, most: int) -> Iterator[Row]:
    old = new = old_left = new_left = 0
    first = True
    for text in diff.split("\n", most * 2 + 50)[: most * 2 + 50]:
        hunk = _HUNK.match(text) if old_left <= 0 and new_left <= 0 else None
        if hunk is not None:
            old, new = int(hunk[1]), int(hunk[3])
            old_left, new_left = int(hunk[2] or 1), int(hunk[4] or 1)
            if not first or hunk[5]:
                yield Row("@", 0, hunk[5])
            first = False
        elif old_left > 0 or new_left > 0:
            sign, rest = text[:1] or " ", ends(text[1:], _MOST_ROW)
            if sign == "+":
                yield Row("+", new, rest)
                new, new_left = new + 1, new_left - 1
            elif sign == "-":
                yield Row("-", old, rest)
                old, old_left = old + 1, old_left - 1
            elif sign == " ":
                yield Row(" ", new, rest)
                old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1
        elif text.startswith("+++ ") and not text.startswith("+++ /dev/null"):
            first = True
            yield Row("f", 0, text[4:].removeprefix("b/").partition("\t")[0])


def _paired(rows: list[Row]) -> list[Row]:
    """Rows with what changed in each where as many lines come as go."""
    at = 0
    while at < len(rows):
        gone = at
        while gone < len(rows) and rows[gone].sign == "-":
            gone += 1
        come = gone
        while come < len(rows) and rows[come].sign == "+":
            come += 1
        if gone > at and come - gone == gone - at:
            for one, other in zip(range(at, gone), range(gone, come), strict=True):
                rows[one], rows[other] = _compared(rows[one], rows[other])
        at = max(come, at + 1)
    return rows


def _compared(one: Row, other: Row) -> tuple[Row, Row]:
    most = min(len(one.text), len(other.text))
    head = next((at for at in range(most) if one.text[at] != other.text[at]), most)
    tail = next((at for at in range(most - head) if one.text[-1 - at] != other.text[-1 - at]), most - head)
    if head + tail < most // 3:
        return one, other
    return (
        one._replace(changed=(head, len(one.text) - tail)),
        other._replace(changed=(head, len(other.text) - tail)),
    )


def diff_lines(rows: Sequence[Row], path: str, width: int, colours: Highlighter, named: bool = True) -> list[Line]:
    """Rows as lines of at most `width` cells. `path` tells the language; the names of files are left out where the one
    file is named already."""
    word = language_of(path)
    digits = len(str(max((row.number for row in rows), default=0)))
    lines: list[Line] = []
    for row in rows:
        if row.sign == "f":
            word = language_of(row.text)
            lines += [Line(((fit(flat(row.text), width), "accent bold"),))] if named else []
        elif row.sign == "@":
            lines.append(Line(((fit(f"{'⋯':>{digits}} {flat(row.text)}".rstrip(), width), "muted"),)))
        else:
            lines += _row(row, word, (width, digits), colours)
    return lines


def _row(row: Row, word: str, sizes: tuple[int, int], colours: Highlighter) -> list[Line]:
    width, digits = sizes
    mark, ground = _SIGNS.get(row.sign, ("muted", ""))
    before = ((f"{row.number:>{digits}} ", f"muted {ground}".strip()), (f"{row.sign} ", f"{mark} {ground}".strip()))
    text = flat(row.text)
    spans: Sequence[Span] = colours.single(text, word)
    if row.changed[1] > row.changed[0] and text == row.text:
        spans = _marked(spans, *row.changed)
    return fold_hard([(part, f"{style} {ground}".strip()) for part, style in spans], width, before, ground)


def _marked(spans: Sequence[Span], start: int, end: int) -> list[Span]:
    """Spans with the part from `start` to `end` set off."""
    found: list[Span] = []
    place = 0
    for text, style in spans:
        low, high = max(0, min(len(text), start - place)), max(0, min(len(text), end - place))
        pieces = ((text[:low], style), (text[low:high], f"{style} bold underline"), (text[high:], style))
        found += [piece for piece in pieces if piece[0]]
        place += len(text)
    return found
