"""Finding rows by a few letters: every word must occur, its letters in order; runs and beginnings of words count more.
Linear in the length of what is searched."""

from collections.abc import Iterable

from msgspec import Struct

MOST_LETTERS = 100
_SEARCHED = 400
_LETTER, _RUN, _BEGINNING, _WHOLE = 4, 8, 10, 30


class Found(Struct, frozen=True):
    """How well a text fits (higher is better), and where its letters stand."""

    score: int
    places: tuple[int, ...]


def find(sought: str, text: str, beside: str = "") -> Found | None:
    """Where the letters of all words of `sought` stand in the first 400 characters of `text`, whatever their case; a
    word may stand whole in what is said `beside` it instead. None where one does neither. An empty search fits
    everything with score 0."""
    low, other = _folded(text[:_SEARCHED]), _folded(beside[:_SEARCHED])
    score, places = 0, set[int]()
    for word in _folded(sought[:MOST_LETTERS]).split():
        spots = _spots(word, low)
        if not spots and word not in other:
            return None
        score += _score(spots, low) if spots else len(word)
        places.update(spots)
    return Found(score - len(low) // 20, tuple(sorted(places)))


def _folded(text: str) -> str:
    """Small letters, one for one."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def _spots(word: str, low: str) -> range | list[int]:
    """The best places of a word: together, at a beginning if it can be, else the shortest stretch that ends first."""
    together = _together(word, low)
    if together >= 0:
        return range(together, together + len(word))
    end = -1
    for letter in word:
        end = low.find(letter, end + 1)
        if end < 0:
            return []
    spots = []
    for letter in reversed(word):
        end = low.rfind(letter, 0, end + 1)
        spots.append(end)
        end -= 1
    return spots[::-1]


def _together(word: str, low: str) -> int:
    first = at = low.find(word)
    while at > 0:
        if _begins(at, low):
            return at
        at = low.find(word, at + 1)
    return first if at < 0 else at


def _begins(at: int, low: str) -> bool:
    return at == 0 or not low[at - 1].isalnum()


def _score(spots: Iterable[int], low: str) -> int:
    score, last = 0, -2
    for spot in spots:
        score += _LETTER + (_RUN if spot == last + 1 else 0) + (_BEGINNING if _begins(spot, low) else 0)
        last = spot
    whole = isinstance(spots, range) and _begins(spots.start, low)
    return score + (_WHOLE if whole else 0)
