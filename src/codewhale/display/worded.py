"""Tables of tools about durable work, in the words of the person: the cards that ask, and the lists that answer.

A tool writes its rows once, in English; what is ours in them has an entry under `cards`, what is the work's own stays.
"""

from collections.abc import Sequence

from codewhale.display.words import Words
from codewhale.protocol.blocks import TableBlock

CARDS = ("durable task", "automation", "github", "kept, not sent")  # of two columns: a name, and what it is
LISTS = ("task", "automation")  # of several, the second one a status
_OURS = frozenset({"mode", "runs unasked", "when its process dies", "status", "first runs", "next runs"})


def worded(block: TableBlock, words: Words) -> TableBlock:
    """The table as it is shown in a language."""
    kind, *others = block.header or ("",)
    if others == [""] and kind in CARDS:
        rows = [(_said(f"row {row[0]}", words, row[0]), *_values(row[0], row[1:], words)) for row in block.rows]
    elif len(others) > 1 and kind in LISTS:
        rows = [(*row[:1], _said(f"is {row[1]}", words, row[1]), *row[2:]) for row in block.rows]
    else:
        return block
    return TableBlock(tuple(_said(name, words, name) for name in block.header), tuple(rows))


def _values(name: str, values: Sequence[str], words: Words) -> list[str]:
    if name not in _OURS:
        return list(values)
    start = "is" if name in ("status", "mode") else "says"
    return [_listed(value, start, words) for value in values]


def _listed(value: str, start: str, words: Words) -> str:
    """A value in words, part by part where it has several; of a moment its day of the week."""
    if whole := _said(f"{start} {value}", words, ""):
        return whole
    for between in ("; ", ", "):
        if between in value:
            return between.join(_listed(part, start, words) for part in value.split(between))
    day, _, rest = value.partition(" ")
    named = _said(f"day {day}", words, "") if rest else ""
    return f"{named} {rest}" if named else value


def _said(key: str, words: Words, otherwise: str) -> str:
    """The entry of a text of ours, by its letters; `otherwise` where there is none."""
    name = "_".join("".join(char if char.isalnum() else " " for char in key).split()).lower()
    try:
        return words(f"cards.{name}")
    except KeyError:
        return otherwise
