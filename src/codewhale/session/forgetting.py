"""Texts that the person has cleared from memory: what later requests say in their place."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec

from codewhale.protocol.events import Event, TextForgotten, UnknownEvent
from codewhale.protocol.marks import inert
from codewhale.session.records import event_decoder

REMOVED = "[removed from memory by the user]"
_SHORTEST = 12  # characters; shorter ones are removed where they stand as an item of a list alone
_PIECE = 1 << 18  # characters of an output that are looked at in one go
_AROUND = 4  # more than what must stand around a short one
_NESTING = 4  # arguments are JSON in JSON, and a result may quote them


def forget(events: Iterable[Event]) -> Iterator[Event]:
    """The events as if what is forgotten later had never been said; one that holds nothing of it is the same object.
    What is said after that stands: a fact may have been restored."""
    every = list(events)
    gone = Counter(text for one in every if isinstance(one, TextForgotten) for text in one.texts)
    pattern = _pattern(gone)
    for event in every:
        if isinstance(event, TextForgotten):
            gone -= Counter(event.texts)
            pattern = _pattern(gone)
        if pattern is None or isinstance(event, UnknownEvent | TextForgotten):
            yield event
            continue
        encoded = msgspec.json.encode(event).decode()
        clean = pattern.sub(REMOVED, encoded)
        yield event if clean == encoded else event_decoder().decode(clean)


def holder(texts: Iterable[str]) -> Callable[[str], bool]:
    """What tells whether one of these texts stands in another, which may be JSON."""
    pattern = _pattern(texts)
    return lambda text: pattern is not None and pattern.search(text) is not None


def held_in(texts: Iterable[str]) -> Callable[[Callable[[int], str]], bool]:
    """What tells whether one of these texts stands in what a `read` gives, at most so many characters at a time."""
    ways = _ways(texts)
    pattern, seam = _compiled(ways), max(map(len, ways), default=0) + _AROUND

    def held(read: Callable[[int], str]) -> bool:
        rest = ""
        while pattern is not None and (more := read(_PIECE)):
            piece = rest + more
            if pattern.search(piece) is not None:
                return True
            rest = piece[-seam:]
        return False

    return held


def _pattern(texts: Iterable[str]) -> re.Pattern[str] | None:
    return _compiled(_ways(texts))


def _compiled(ways: Iterable[str]) -> re.Pattern[str] | None:
    every = sorted(ways, key=len, reverse=True)
    return re.compile("|".join(every)) if every else None


def _ways(texts: Iterable[str]) -> Iterable[str]:
    """Patterns of the forms in which texts may be written, each at least as long as what it matches."""
    import json  # which no start needs

    ways = dict[str, None]()
    for text in texts:
        written = {text.strip(), inert(text.strip())} - {""}
        for _ in range(_NESTING):
            for value in map(re.escape, written):
                ways[rf"(?<=- ){value}(?=[\\\"\n]| \()" if len(text) < _SHORTEST else value] = None
            written = {json.dumps(value, ensure_ascii=ascii)[1:-1] for value in written for ascii in (True, False)}
    return ways.keys()
