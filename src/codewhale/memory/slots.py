"""The place of a sentence where one of two values can stand, and what a sentence says no longer holds."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_DIGITS = re.compile(r"(?:(?<=[\s(])|^)v?\d+(?:[.,:]\d+)*(?=[\s%)]|$)")
_NUMERALS = re.compile(r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve)\b", re.I)
_NAMED = re.compile(
    r"^(?:the |a |an )?[\w-]+ v?\d|#\d|\b(?:issue|bug|pr|ticket|commit|step|phase|sprint|level) \d|\bsupport", re.I
)
_EXTREME = re.compile(
    r"\b(?:old|new|late|low|high|great|small|large)(?:e?st)\b|\b(?:minimum|maximum|default|current)\b", re.I
)
_VALUE = r"(?P<value>(?!every\b|each\b|all\b|any\b)[\w./@#-]+(?: [\w./@:-]+){0,3})$"
_PLACED = re.compile(
    r"^(?P<topic>(?!(?:never|always|do|use|run|ask|keep|put|make)\b).+?\b"
    r"(?:(?:is|are|gets?) (?!written )(?:now )?\w+(?:ed|lt|pt|nt|wn|de)|(?:is|are)(?: now)?(?= in | at | on )|"
    r"lives?|stands?|goe?s?|comes?|points?|reports?|belongs?) "
    r"(?:to|in|at|on|with|by|through|from|via|under|into|against|as)|.+? (?:is|are) (?:called|named)) " + _VALUE,
    re.I,
)
_TOOL = re.compile(
    r"^(?P<topic>(?:we )?(?:format|lint|build|bundle|lock|compile|deploy|sign|manage|type-?check) .+? "
    r"(?:with|using|via)) (?P<value>[\w./@-]+(?: [\w./@-]+)?)$",
    re.I,
)
_OWNER = re.compile(
    r"^(?P<value>[A-Z]\w+(?: [A-Z]\w+)?) (?:now )?"
    r"(?:owns|maintains|leads|looks after|is responsible for|is in charge of|approves) (?P<topic>.+)$"
)
_BESIDE = re.compile(r"\b(?:also|too|as well|both|besides|another|additionally)\b", re.I)
_INSTEAD = re.compile(
    r"\b(?:instead of|rather than|no longer|never|not|over|dropped|don'?t|isn'?t|aren'?t)\s+"
    r"(?P<old>[^.;,!?]*(?:[.,]\w[^.;,!?]*)*)",
    re.I,
)
_RENEWS = re.compile(
    r"\b(?:now|nowadays|no longer|any ?more|instead|moved|switched|migrated|upgraded|downgraded|dropped|renamed|lifted|"
    r"replaced|(?:took|taken) over|these days|since (?:january|february|march|april|may|june|july|august|september|"
    r"october|november|december|\d)|went (?:up|down|from)|(?:is|are) gone|ha(?:s|ve) left)\b",
    re.I,
)


class Statement(NamedTuple):
    """A sentence without its value, and the value."""

    topic: str
    value: str


def slots(clause: str) -> Iterator[Statement]:
    """The places of a clause where another value would make it false."""
    if _BESIDE.search(clause):
        return
    numbers = [*_DIGITS.finditer(clause)] or [*_NUMERALS.finditer(clause)]
    if len(numbers) == 1 and (not _NAMED.search(clause) or _EXTREME.search(clause)):
        at = numbers[0]
        yield Statement(f"{clause[: at.start()]} {clause[at.end() :]}", at[0])
    for form in (_PLACED, _TOOL, _OWNER):
        if found := form.match(clause):
            yield Statement(found["topic"], found["value"])
            return


def taken_back(text: str) -> tuple[str, str, str] | None:
    """What a fact says besides, what it says that no longer holds, and the first word of that."""
    if not (found := _INSTEAD.search(text)) or not found["old"].strip():
        return None
    whole = found["old"].strip()
    return text[: found.start()] + text[found.end() :], whole, whole.split()[0]


def renews(text: str) -> bool:
    """Whether a fact says that it was another way before."""
    return bool(_RENEWS.search(text))
