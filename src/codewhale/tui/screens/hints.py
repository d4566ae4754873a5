"""Which keys do what, in one line: the keys as the person has set them."""

from collections.abc import Iterable, Mapping

from codewhale.display.tones import Line, Span, columns
from codewhale.tui.keys import first_key

GAP: Span = ("  ", "muted")


def hint(action: str, said: str, changed: Mapping[str, str]) -> Line:
    """One key and what it does."""
    return ((first_key(action, changed), "bold accent"), (f" {said}", "muted"))


def moves(panel: str, said: str, changed: Mapping[str, str]) -> Line:
    """The keys that go up and down in a panel's rows."""
    both = "".join(first_key(f"{panel}.{name}", changed) for name in ("previous", "next"))
    return ((both, "bold accent"), (f" {said}", "muted"))


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
