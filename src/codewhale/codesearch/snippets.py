"""What of a file is shown with a hit: a few lines around its best place, bounded, those that say most first."""

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from codewhale.codesearch.rank import Hit
from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.bounded import read_regular
from codewhale.lib.text import sanitise

MOST_LINES, MOST_COLUMNS = 8, 160
GAP = "…"
_LARGEST = 4 << 20
_PASSAGE = 2_000  # characters
# Blank lines, notes to tools and lawyers, imports, and brackets that close them: what stands before a file's code.
_PREAMBLE = re.compile(
    r"\s*(?:$|import\b|from\s+\S+\s+import\b|#\s*(?:include|pragma|import)\b|using\s+[\w.:<>= ]+;|use\s+[\w:\\]+|"
    r"package\s+[\w.]+;?\s*$|require(?:_relative)?\b|[)}\]];?\s*$|\"\S+\"$|/\*+\s*$|\*+/\s*$|\*$|"
    r"#!|#\s*(?:frozen_string_literal:|-\*-|(?:en)?coding:|typed:)|"
    r"(?://|#|--|/?\*+!?|<!--)\s*(?i:@?licen[sc]ed?\b|copyright\b|spdx-|all rights reserved))"
)
_FLAGS = os.O_RDONLY | os.O_NONBLOCK


def snippets(root: str, hits: Sequence[Hit], words: Iterable[str]) -> list[str]:
    """A snippet for each hit, "" where the file cannot be read as text now."""
    beneath, wanted = Root(root), [word.lower() for word in words]
    return [_snippet(beneath, hit, wanted) for hit in hits]


def passages(root: str, hits: Sequence[Hit]) -> list[dict[str, Any]]:
    """Path, line and text (at most 2,000 characters from the best place on) of each hit, for a program to read."""
    beneath = Root(root)
    return [
        {
            "path": hit.path,
            "line": hit.line,
            "text": sanitise("\n".join(_lines(beneath, hit)[max(0, hit.line - 1) : hit.end_line])[:_PASSAGE]),
        }
        for hit in hits
    ]


def _lines(root: Root, hit: Hit) -> list[str]:
    """The lines of a hit's file, none where it cannot be read as text now."""
    try:
        data = read_regular(root.open(hit.path, _FLAGS, links=False), _LARGEST)
    except (OSError, PathRefused):
        data = None
    if not data or b"\0" in data[:8192]:
        return []
    return data.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")


def _snippet(root: Root, hit: Hit, words: Sequence[str]) -> str:
    lines = _lines(root, hit)
    if not lines:
        return ""
    span = _worth_showing(lines, hit.line - 1, min(max(hit.line, hit.end_line), len(lines)))
    return "\n".join(GAP if at is None else _cut(lines[at]) for at in _chosen(lines, span, words))


def _worth_showing(lines: Sequence[str], first: int, last: int) -> range:
    """The lines of a place without blank ones at its ends and without imports and such before its code."""
    span = range(max(0, first), last)
    while span and not lines[span[-1]].strip():
        span = span[:-1]
    begin = next((at for at in span if not _PREAMBLE.match(lines[at])), None)
    if begin is None:
        begin = next((at for at in span if lines[at].strip()), last)
    return range(begin, span.stop)


def _chosen(lines: Sequence[str], span: range, words: Sequence[str]) -> list[int | None]:
    """The numbers of the lines to show: the first, which most often names what the place is, and from there on the
    run that holds most of the words; None stands for lines left out between."""
    if len(span) <= MOST_LINES:
        return list(span)

    def worth(at: int) -> int:
        text = lines[at].lower()
        return sum(word in text for word in words)

    half = MOST_LINES // 2
    middle = span.start + half
    begin = max(range(middle, span.stop - half + 1), key=lambda at: sum(worth(near) for near in range(at, at + half)))
    run: list[int | None] = list(range(begin, begin + half))
    while run and not lines[run[0] or 0].strip():
        run = run[1:]
    return [*range(span.start, middle), *([None] if run and run[0] != middle else []), *run]


def _cut(line: str) -> str:
    line = sanitise(line.rstrip().expandtabs(4))
    return line if len(line) <= MOST_COLUMNS else line[: MOST_COLUMNS - 1] + "…"
