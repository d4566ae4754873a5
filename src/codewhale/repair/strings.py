"""What a damaged string literal says: its escapes undone, those that JSON does not know among them."""

import contextlib
import re
from collections.abc import Sequence

from msgspec import Struct

from codewhale.protocol.linebreaks import closed

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|.)?", re.S)
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_CONTROL = re.compile(r"[\x00-\x1f]")
# Apostrophes that are no quotes, and quotes that span lines.
_NO_QUOTE = re.compile(r"(?<=[A-Za-z]{2})'(?=(?:t|s|re|ve|ll|d|m)\b)|\"{3}|'{3}")
_MARKED = re.compile(r"([A-Za-z])?\\'(?=([a-z])?)")
_UNMARKED = re.compile(r"(?<!\\)'")


class Said(Struct, frozen=True):
    """A string's text, the codes of what was mended in it, whether a choice was made, whether none can be, and the
    number of escapes."""

    text: str
    repairs: tuple[str, ...] = ()
    lossy: bool = False
    torn: bool = False
    escapes: int = 0


def unescape(body: str, opening: str, pythonic: bool) -> Said:
    """What stands between two quotes. A backslash before what JSON knows no escape for is kept: it was not doubled.
    `pythonic` says that the text around it is Python's."""
    codes = ("P6",) if _CONTROL.search(body) else ()
    if "\\" not in body:
        return Said(body, codes)
    python = opening == "'" or pythonic
    found = list(_ESCAPE.finditer(body))
    bad = any(not _known(match.group(1) or "", opening, python) for match in found)
    said_so = [match.group(1) or "" for match in found]
    lossy = bad and any(one in ("n", "r", "t", "'") or one[:2] == "u{" for one in said_so) and not _breaks(body, found)
    pieces: list[str] = []
    at = 0
    for match in found:
        pieces += (body[at : match.start()], _meant(match.group(1) or "", python, bad))
        at = match.end()
    pieces.append(body[at:])
    said = "".join(pieces)
    with contextlib.suppress(UnicodeError):  # half of a character: the reader of the whole says so
        said = said.encode("utf-16", "surrogatepass").decode("utf-16")
    return Said(said, (*codes, "P9") if bad else codes, lossy, opening == "'" and _torn(body), len(found))


def _known(escape: str, opening: str, python: bool) -> bool:
    if escape in _ESCAPES or (escape[:1] == "u" and len(escape) == 5):
        return True
    return python and (escape in ("'", "a", "v", "0") or len(escape) > 1 or escape == opening)


def _meant(escape: str, python: bool, bad: bool) -> str:
    """What an escape stands for. Beside one that JSON does not know, the writer forgot to double backslashes: a
    backspace or a form feed was not meant either."""
    if escape in _ESCAPES and not (bad and escape in ("b", "f")):
        return _ESCAPES[escape]
    if escape[:2] == "u{":
        number = int(escape[2:-1], 16)
        return chr(number) if number <= 0x10FFFF else "\\" + escape
    if escape[:1] in ("u", "U", "x") and len(escape) > 1 and (escape[0] == "u" or python):
        number = int(escape[1:], 16)
        return chr(number) if number <= 0x10FFFF else "\\" + escape
    if escape == "'" or (python and escape in ("a", "v", "0")):
        return {"'": "'", "a": "\a", "v": "\v", "0": "\0"}[escape]
    return "\\" + escape


def _breaks(body: str, found: Sequence[re.Match[str]]) -> bool:
    """Whether each line feed, return and tab can only be one, though other backslashes were not doubled: the text is
    lines of code, its quotes are closed on each line, unknown escapes stand within them, breaks and tabs outside."""
    lines: list[list[str]] = [[]]
    at = 0
    for match in found:
        said = match.group(1) or ""
        lines[-1].append(_NO_QUOTE.sub("", body[at : match.start()]))
        at = match.end()
        if said == "n":
            lines.append([])
        elif said == "'" or (said == "t" and "".join(lines[-1]).strip()):
            return False
        elif said not in ("r", "t"):
            lines[-1].append({'"': '"', "\\": "\\"}.get(said, "\0"))
        elif said == "r" and body[at : at + 2] != "\\n":
            return False
    lines[-1].append(_NO_QUOTE.sub("", body[at:]))
    return all(closed("".join(pieces)) for pieces in lines) and "n" in {match.group(1) for match in found}


def _torn(body: str) -> bool:
    """Whether text in single quotes holds some with a backslash that may have been double ones: Python writes them so
    only beside a double one, and other hands put them within words."""
    marked = list(_MARKED.finditer(body))
    alone = _UNMARKED.search(body) is not None
    if not marked or ('"' in body and not alone):
        return False
    return alone or not all(match.group(1) and match.group(2) for match in marked)
