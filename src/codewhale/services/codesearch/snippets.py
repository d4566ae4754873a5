"""What of a file is shown with a hit: a few lines around its best place, bounded, those that say most first."""

import os
from collections.abc import Iterable, Sequence

from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.bounded import read_regular
from codewhale.lib.text import sanitise
from codewhale.services.codesearch.rank import Hit

MOST_LINES, MOST_COLUMNS = 8, 160
_LARGEST = 4 << 20
_FLAGS = os.O_RDONLY | os.O_NONBLOCK


def snippets(root: str, hits: Sequence[Hit], words: Iterable[str]) -> list[str]:
    """A snippet for each hit, "" where the file cannot be read as text now."""
    beneath, wanted = Root(root), [word.lower() for word in words]
    return [_snippet(beneath, hit, wanted) for hit in hits]


def _snippet(root: Root, hit: Hit, words: Sequence[str]) -> str:
    try:
        data = read_regular(root.open(hit.path, _FLAGS, links=False), _LARGEST)
    except (OSError, PathRefused):
        data = None
    if not data or b"\0" in data[:8192]:
        return ""
    lines = data.decode("utf-8", "replace").split("\n")
    first, last = hit.line - 1, min(max(hit.line, hit.end_line), len(lines))
    while first < last and not lines[first].strip():
        first += 1
    return "\n".join(_cut(lines[at]) for at in _chosen(lines, first, last, words))


def _chosen(lines: Sequence[str], first: int, last: int, words: Sequence[str]) -> list[int]:
    """The numbers of the lines to show: the first, which most often names what the place is, and from there on the
    run that holds most of the words."""
    span = range(first, last)
    if len(span) <= MOST_LINES:
        return list(span)

    def worth(at: int) -> int:
        text = lines[at].lower()
        return sum(word in text for word in words)

    half = MOST_LINES // 2
    begin = max(range(first + half, last - half + 1), key=lambda at: sum(worth(near) for near in range(at, at + half)))
    return [*range(first, first + half), *range(begin, begin + half)]


def _cut(line: str) -> str:
    line = sanitise(line.rstrip().expandtabs(4))
    return line if len(line) <= MOST_COLUMNS else line[: MOST_COLUMNS - 1] + "…"
