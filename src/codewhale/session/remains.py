"""What is left of a known value that was cut through: found at the place of the cut, in plain text and in JSON."""

import re
from collections.abc import Iterable, Mapping

SHORTEST = 8
# Where a cut leaves the beginning of a value, and where its end: at the end and at the start of a line or a string.
_AFTER_CUT = ("\n", "\r", "\\n", '"', '\\"', "'", "`", ".", "…", " …", "\\r")
_BEFORE_CUT = ("\n", "\\n", '"', "'", "`", "… ", "…")
# A shorter part is a word like any other unless it holds a digit.
_TELLING = 16


class Remains:
    """Replaces what a cut left of the values of a table (value: what is shown instead): a beginning where a line or a
    string ends, an end where one begins, of at least 8 characters."""

    def __init__(self, table: Mapping[str, str]) -> None:
        self._table = {value: shown for value, shown in table.items() if len(value) > SHORTEST}
        self._heads = _any(value[:SHORTEST] for value in self._table)
        self._tails = _any(value[-SHORTEST:] for value in self._table)

    def sub(self, text: str) -> str:
        """Text without them."""
        if self._heads is None or self._tails is None:
            return text
        heads = ((match.start(), 1) for match in self._heads.finditer(text))
        tails = ((match.end(), -1) for match in self._tails.finditer(text))
        out, done = [], 0
        for at, way in sorted((*heads, *tails)):
            length, shown = max((self._part(text, at, value, way), shown) for value, shown in self._table.items())
            start = at if way > 0 else at - length
            if length and start >= done:
                out += [text[done:start], shown]
                done = start + length
        return "".join((*out, text[done:])) if out else text

    @staticmethod
    def _part(text: str, at: int, value: str, way: int) -> int:
        """How long the part of `value` is that a cut left: its beginning from `at` on (way 1) or its end up to there
        (way -1); 0 for none."""
        there = text[at : at + len(value)] if way > 0 else text[max(0, at - len(value)) : at]
        pairs = enumerate(zip(there[::way], value[::way], strict=False))
        length = next((place for place, (one, other) in pairs if one != other), min(len(there), len(value)))
        if not _tells(value[:length] if way > 0 else value[len(value) - length :]):
            return 0
        if way > 0:
            rest = text[at + length : at + length + 2]
            return length if not rest or rest.startswith(_AFTER_CUT) else 0
        before = text[max(0, at - length - 2) : at - length]
        return length if not before or before.endswith(_BEFORE_CUT) else 0


def _tells(part: str) -> bool:
    """Whether a part of a secret tells something of it, and is not a mere word."""
    return len(part) >= _TELLING or (len(part) >= SHORTEST and any(char.isdigit() for char in part))


def _any(texts: Iterable[str]) -> re.Pattern[str] | None:
    alternatives = "|".join(re.escape(text) for text in dict.fromkeys(texts))
    return re.compile(alternatives) if alternatives else None
