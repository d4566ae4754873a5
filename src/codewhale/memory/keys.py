"""What a fact is about and what it says of it, so that two which contradict each other are known. A claim is made only
where the wording is plain: of two facts that differ, most can both be true."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from codewhale.memory.model import Fact
from codewhale.memory.slots import Statement, slots
from codewhale.memory.words import everyday, words

_MOST_TOPIC, _MOST_VALUE = 5, 4
# Things of which there is one of each name.
_SINGLE = """port version timeout limit length width size count number retry coverage budget interval ttl threshold
    replica worker name url host hostname address branch manager database owner maintainer timezone zone language locale
    currency formatter linter runner framework editor shell deadline day date hour region bucket channel prefix suffix
    license encoding convention style indentation indent level email format endpoint domain path folder directory
    location schedule provider registry engine orm broker theme os quote default percentage password user"""
_FILLERS = """run listen bind set default max maximum most keep require allow exceed wide currently project repo
    everything everywhere code must least ship go work live stick standard choose pick prefer preferred team switch"""
_NOTES = "note remember todo tip warning fyi important nb hint example info caution attention reminder rule"
_UNITS = {"s": "second", "sec": "second", "ms": "millisecond", "min": "minut", "m": "minut", "h": "hour", "d": "day",
          "kb": "kilobyt", "mb": "megabyt", "gb": "gigabyt", "k": "kilobyt", "g": "gigabyt"}  # fmt: skip
_MEASURES = {*_UNITS.values(), "week", "month", "year"}
_NUMBERS = dict(
    zip("one two three four five six seven eight nine ten twelve".split(), [*range(1, 11), 12], strict=True)
)
_CLAUSE = re.compile(
    r"[.;!?](?=\s|$)|\s[-–—]\s|[()]|,(?=\s)|\b(?:because|so that|since|although|unless)\b|[。;,!?()]", re.I
)
_SEPARATED = re.compile(
    r"^(?P<topic>[^:=]+?)\s*(?P<by>:=?|=|→|->|\b(?:is now|is always|is set to|are set to|should be|must be|has to be|"
    r"was changed to|is|are)\b)\s*(?P<value>.+)$",
    re.I,
)
_SWITCHED = re.compile(
    r"\b(?:switch\w*|mov\w+|migrat\w+|chang\w+|went|upgrad\w+)\b(?P<what>.*?)\bfrom .+? to (?P<new>.+)$"
    r"|\breplac\w+ .+? (?:with|by) (?P<new2>.+)$",
    re.I,
)
_CHOSEN = re.compile(
    r"^(?P<before>.*?)\b(?:use|uses|using|prefer|prefers|choose|go with|stick (?:to|with)) (?P<value>.+)$", re.I
)
_WITH = re.compile(
    r"\b(?:with|via|using|through|in|on|by|to|into|against) (?P<value>[\w.-]+(?: (?:actions|ci|pipelines))?)", re.I
)
_INSTEAD = re.compile(r"\b(?:instead of|rather than|and not|not|over)\s+[\w.-]+", re.I)
_REST = re.compile(r"\b(?:for|in|on|when|as|at|with|inside|during|to|by|from|until|if|under|within|via|of)\b.*$", re.I)
_NOT = re.compile(
    r"\b(?:never|don'?t|do(?:es)? not|doesn'?t|avoid|no longer|not|stop|without|isn'?t|aren'?t|cannot|can'?t)\b", re.I
)
_IDENTIFIED = re.compile(
    r"#\d|\b(?:issue|bug|pr|ticket|commit|incident|release|chapter|step|phase|sprint|python|node|java) \d", re.I
)
_NUMBER = re.compile(r"(?<![\w.])v?\d+(?:[.,]\d+)*")


class Claim(NamedTuple):
    """What is said of what; `value` is words that are apart by blanks, in their order in the alphabet."""

    key: str
    value: str


def claims(fact: Fact) -> tuple[Claim, ...]:
    """What a fact claims, the plainest first; none where its wording does not tell."""
    return _claims(fact.text, fact.key)


def key(fact: Fact) -> str:
    """What a fact is about, as it was given or as its text says; "" where that is not clear."""
    return fact.key or next((claim.key for claim in claims(fact) if not claim.key.startswith("in: ")), "")


def differ(one: str, other: str) -> bool:
    """Whether two values of one claim cannot both be true; one that says less can."""
    left, right = {*one.split()}, {*other.split()}
    numbers = [{word for word in side if word[0].isdigit()} for side in (left, right)]
    if all(numbers):
        units = [side & _MEASURES for side in (left, right)]
        return numbers[0] != numbers[1] or (all(units) and units[0] != units[1])
    return not (left <= right or right <= left)


@lru_cache(maxsize=20_000)
def _claims(text: str, given: str) -> tuple[Claim, ...]:
    clause = next((part for part in _CLAUSE.split(text.replace("`", "").replace("**", "")) if part.strip()), "").strip()
    made = list[Claim]()
    if switched := _SWITCHED.search(clause):
        new = switched["new"] or switched["new2"]
        made = _choice(f"{switched['what'] or ''} {given} {_rest(new)}", new)
    elif not _NOT.search(clause) or _INSTEAD.search(clause):
        plain = _INSTEAD.sub(" ", clause)
        made = [*_stated(plain, given), *(_filled(one) for one in slots(plain))]
    if given and not any(claim.key and not claim.key.startswith("in: ") for claim in made):
        made.insert(0, Claim(" ".join(sorted(subject(given))), " ".join(sorted({*stems(text)} - subject(given)))))
    return tuple(dict.fromkeys(claim for claim in made if claim.key and claim.value))


def _stated(clause: str, given: str) -> list[Claim]:
    """What a clause without a negation says."""
    if separated := _SEPARATED.match(clause):
        topic, value = separated["topic"], separated["value"]
        if {*words(topic)} <= {*_NOTES.split()}:
            return _stated(value, given)
        if inner := _CHOSEN.match(value):
            return _choice(f"{topic} {inner['before']} {given}", inner["value"])
        return _choice(f"{topic} {given}", value, plain=separated["by"] in (":", ":=", "=", "→", "->"))
    if chosen := _CHOSEN.match(clause):
        return _choice(f"{chosen['before']} {given}", chosen["value"], plain=True)
    numbers = _NUMBER.findall(clause)
    if len(numbers) == 1:
        at = clause.index(numbers[0])
        return _choice(
            re.sub(r"\blisten\w*", "port", clause[:at] + clause[at + len(numbers[0]) :]) + " " + given, numbers[0]
        )
    for by in _WITH.finditer(clause):
        if _kind(by["value"]):
            return _choice(f"{clause[: by.start()]} {clause[by.end() :]} {given}", by["value"])
    return _choice(given, clause) if given else []


def _choice(topic: str, value: str, *, plain: bool = False) -> list[Claim]:
    """The claim that of a topic it is this value, where a topic has one; `plain` where the wording says that it has."""
    said, rest = _REST.sub("", value), _rest(value)
    about, kind = subject(f"{topic} {rest}"), _kind(said)
    if kind:
        topics = everyday().topics[kind]
        about, said_of = about - topics, {stem for stem in stems(said) if stem not in topics or _kind(stem)}
        return [Claim(" ".join((f"{kind}:", *sorted(about))), " ".join(sorted(said_of)))]
    values = {*stems(said)}
    single = {everyday().stem(word) for word in _SINGLE.split()}
    one = bool(about & single) or (plain and not _plural(topic) and len(about) <= 2 and len(values) <= 2)
    if (
        not about
        or not values
        or len(about) > _MOST_TOPIC
        or len(values) > _MOST_VALUE
        or not one
        or _IDENTIFIED.search(topic)
    ):
        return []
    return [Claim(" ".join(sorted(about)), " ".join(sorted(values)))]


def _rest(value: str) -> str:
    rest = _REST.search(value)
    return rest[0] if rest else ""


def _filled(said: Statement) -> Claim:
    """What a sentence says of the rest of it; the unit of a number is part of the value."""
    number = _NUMBERS.get(said.value.lower()) or (said.value if _NUMBER.match(said.value) else "")
    topic = stems(said.topic)
    units = {stem for stem in topic if stem in _MEASURES} if number else {*stems(said.value)}
    about = [stem for stem in topic if not number or stem not in _MEASURES]
    return Claim(f"in: {' '.join(about)}" if about else "", " ".join([str(number), *sorted(units)]).strip())


def _kind(value: str) -> str:
    """Which kind of things a value names one of."""
    named = words(value)
    kinds = everyday().kinds(named) if len(named) <= _MOST_VALUE else set()
    return kinds.pop() if len(kinds) == 1 else ""


def subject(text: str) -> set[str]:
    """The words of a text that tell what it is about."""
    fillers = {everyday().stem(word) for word in _FILLERS.split()}
    return {stem for stem in stems(text) if stem not in fillers and stem not in _MEASURES}


def stems(text: str) -> Sequence[str]:
    """The words of a text that tell something, as the keys of claims have them."""
    plain = (str(_NUMBERS.get(word, word)) for word in words(text) if word not in everyday().idle)
    return [_UNITS.get(word, everyday().stem(word)) for word in plain]


def _plural(topic: str) -> bool:
    last = next((word for word in reversed(words(_REST.sub("", topic))) if word not in everyday().idle), "")
    return last.endswith("s") and not last.endswith(("ss", "us", "is"))
