"""Indentation that is off by the same amount everywhere, and new lines put right by it."""

from collections.abc import Iterable, Sequence


def indent_of(text: str) -> str:
    """The blanks a line begins with."""
    return text[: len(text) - len(text.lstrip(" \t"))]


def mapping(given: Sequence[str], actual: Sequence[str]) -> dict[str, str] | None:
    """How each indentation of `given` reads in `actual`, lines paired in order; None when one indentation
    would have to become two."""
    found: dict[str, str] = {}
    for text, real in zip(given, actual, strict=True):
        if text.strip() and found.setdefault(indent_of(text), indent_of(real)) != indent_of(real):
            return None
    return found


def apply(found: dict[str, str], texts: Iterable[str]) -> list[str] | None:
    """Lines moved by a mapping. An indentation that the mapping lacks takes its nearest known prefix, or the
    amount by which all known ones moved; None when neither says anything."""
    out = []
    for text in texts:
        if not text.strip():
            out.append(text)
            continue
        blanks = indent_of(text)
        moved = _moved(found, blanks)
        if moved is None:
            return None
        out.append(moved + text[len(blanks) :])
    return out


def _moved(found: dict[str, str], blanks: str) -> str | None:
    if blanks in found:
        return found[blanks]
    prefixes = [known for known in found if blanks.startswith(known)]
    if prefixes:
        best = max(prefixes, key=len)
        return found[best] + blanks[len(best) :]
    for known, real in found.items():
        if known.startswith(blanks) and real.endswith(known[len(blanks) :]):
            return real[: len(real) - len(known) + len(blanks)]
    return None
