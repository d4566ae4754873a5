"""Which keys do what, in one line: the keys as the person has set them."""

from collections.abc import Iterable, Mapping

from codewhale.frontends.tui.keys import ACTIONS, keys_of
from codewhale.frontends.tui.screens.tones import Line, Span, columns

_SHOWN = {
    "slash": "/",
    "escape": "esc",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "plus": "+",
    "minus": "-",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "question_mark": "?",
}
GAP: Span = ("  ", "muted")


def key_shown(key: str) -> str:
    """A key as people write it."""
    *held, last = key.split("+") if key != "+" else ["plus"]
    return "+".join([*held, _SHOWN.get(last, last)])


def first_key(action: str, changed: Mapping[str, str]) -> str:
    """The first key of a row, as it is shown."""
    row = next(row for row in ACTIONS if row.id == action)
    return key_shown(keys_of(row, changed)[0])


def hint(action: str, said: str, changed: Mapping[str, str]) -> Line:
    """One key and what it does."""
    return ((first_key(action, changed), "bold accent"), (f" {said}", "muted"))


def in_rows(hints: Iterable[Line], width: int) -> list[Line]:
    """Hints side by side, on as many lines as they take; none is cut in two."""
    rows: list[Line] = []
    row: Line = ()
    for one in hints:
        if row and columns(row) + len(GAP[0]) + columns(one) > width:
            rows.append(row)
            row = ()
        row = (*row, GAP, *one) if row else one
    return [*rows, row] if row else rows
