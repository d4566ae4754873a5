"""Words of a model that promise a deed and hold none. Form and moment decide, in any language: what a text holds, what
was asked, and what was done before it."""

import re
from collections.abc import Callable

from msgspec import Struct

from codewhale.protocol.modes import Mode


class Moment(Struct, frozen=True):
    """Where in a turn an answer stands: what the person asked, whether calls were made and one of them has acted
    (more than read), how the words began that came with calls before, and whether the model was just told that it
    wrote a call: words without one then say that it was only shown."""

    asked: str
    mode: Mode
    called: bool = False
    acted: bool = False
    openings: frozenset[str] = frozenset()
    denies: bool = False


_DONE = re.compile(r"\W{0,10}done\W{0,10}", re.I)


def says_done(text: str) -> bool:
    """Whether an answer says that the one before it stands."""
    return bool(_DONE.fullmatch(text.strip()))


_ASKS = "?？؟՞\u037e"
_GOES_ON = re.compile(r"(?:[:：…]|\.\.\.)[*_]{0,3}\Z")
# What an answer has that tells something: a figure, a quotation, code, a path. A promise may name what it is about.
_FACT = re.compile(r"[\d`<{\[/\"«“「=|_]|\w\.\w")
_THING = re.compile(r"`[^`\n]+`|\w/\w|\w\.[a-z]{1,5}\b|[a-z]_[a-z]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_WORD = re.compile(r"[A-Za-z]\w*_\w+")
_SHORT, _LEAST = 240, 12


def promises(text: str, moment: Moment, is_tool: Callable[[str], bool]) -> bool:
    """Whether a text is words of what comes next and no deed. One that ends as if more came is; before anything has
    acted also one that ends with the name of a tool, and a short one that answers an order with no fact: a report
    says what was found or done, a question asks. Where nothing was called at all, naming the thing is no fact."""
    if text.endswith(("```", "~~~")) or text[-1] in _ASKS:
        return False
    if _GOES_ON.search(text[-40:]):
        return True
    if moment.acted or moment.denies:
        return False
    if any(is_tool(word) for word in _WORD.findall(_last_sentence(text))):
        return True
    short = _LEAST < weight(text) <= _SHORT and text.count("\n") < 3
    if not short or not _orders(moment.asked) or (moment.called and moment.mode is Mode.PLAN):
        return False
    named = not moment.called and "<" not in text and bool(_THING.search(text))
    return named or not _FACT.search(text)


def _orders(asked: str) -> bool:
    """Whether what was asked is of some length and no question."""
    asked = asked.strip()
    return weight(asked) >= _LEAST and asked[-1] not in _ASKS


def begins_like(text: str, openings: frozenset[str]) -> bool:
    """Whether a short text that asks nothing begins its last sentence like words that came with calls."""
    return len(text) <= _SHORT and text[-1] not in _ASKS and opening(text) in openings


def weight(text: str) -> int:
    """The length of a text in letters; a character that is a word counts as three."""
    return len(text) + 2 * sum(char >= "\u2e80" for char in text[:1_000])


def opening(text: str) -> str:
    """How the last sentence of a text begins: its first two words, or characters where there are no blanks."""
    last = _last_sentence(text).lower().lstrip(" *_#->")
    words = last.split()
    return " ".join(words[:2]) if len(words) > 2 else last[:3] if last and last[0] >= "\u2e80" else ""


def _last_sentence(text: str) -> str:
    said = [part for part in _SENTENCE.split(text[-1_000:].strip()) if part and part.strip()]
    return said[-1] if said else ""
