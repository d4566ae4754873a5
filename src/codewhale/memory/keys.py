"""What a fact is about and what it says of it, so that two which contradict each other are known. A claim is made only
where the wording is plain: of two facts that differ, most can both be true."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from codewhale.memory.model import Fact
from codewhale.memory.words import everyday, words

_MOST_TOPIC, _MOST_VALUE, _MOST_WORDS = 5, 4, 9
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
    r"\b(?:switch\w*|mov\w+|migrat\w+|chang\w+|went|upgrad\w+)\b(?P<what>.*?)\bfrom (?P<old>.+?) to (?P<new>.+)$"
    r"|\breplac\w+ (?P<old2>.+?) (?:with|by) (?P<new2>.+)$",
    re.I,
)
_CHOSEN = re.compile(
    r"^(?P<before>.*?)\b(?:use|uses|using|prefer|prefers|choose|go with|stick (?:to|with)) (?P<value>.+)$", re.I
)
_WITH = re.compile(
    r"\b(?:with|via|using|through|in|on|by|to|into|against) (?P<value>[\w.-]+(?: (?:actions|ci|pipelines))?)", re.I
)
_INSTEAD = re.compile(r"\b(?:instead of|rather than|and not|not|over)\s+(?P<old>[\w.-]+)", re.I)
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
    return fact.key or next((claim.key for claim in claims(fact) if not claim.key.startswith("do ")), "")


def contradicts(one: Fact, other: Fact) -> bool:
    """Whether two facts cannot both hold."""
    said = dict(claims(other))
    return any(claim.key in said and _differ(claim.value, said[claim.key]) for claim in claims(one))


def newer(one: Fact, other: Fact) -> Fact:
    """The one that holds where two contradict each other: a workspace's own before one for everything, then the later
    by date, where both have one, then by place in the file."""
    if one.scope != other.scope:
        return one if one.scope == "workspace" else other
    dates = (one.created[:16], other.created[:16])
    if all(dates) and dates[0] != dates[1]:
        return one if dates[0] > dates[1] else other
    return one if one.line > other.line else other


def superseded(facts: Iterable[Fact]) -> dict[str, str]:
    """For each fact that a newer one contradicts, the id of the newest that does."""
    by_key = defaultdict[str, list[tuple[Fact, str]]](list)
    for fact in facts:
        for claim in claims(fact):
            by_key[claim.key].append((fact, claim.value))
    result = dict[str, str]()
    for rows in by_key.values():
        latest, value = rows[0]
        for fact, other in rows[1:]:
            if newer(latest, fact) is fact:
                latest, value = fact, other
        result.update((fact.id, latest.id) for fact, other in rows if _differ(value, other) and fact.id != latest.id)
    return result


def _differ(one: str, other: str) -> bool:
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
        old, new = switched["old"] or switched["old2"], switched["new"] or switched["new2"]
        topic = (switched["what"] or "") + " " + given + " " + _rest(new)
        made = [*_choice(topic, new), *_refused(old, _rest(new))]
    elif _NOT.search(clause) and not _INSTEAD.search(clause):
        made = [Claim(_deed(_NOT.sub(" ", clause)), "no")]
    else:
        left = _INSTEAD.search(clause)
        plain = _INSTEAD.sub(" ", clause)
        made = [*_stated(plain, given), Claim(_deed(plain), "yes"), *(_refused(left["old"], "") if left else ())]
    if given and not any(claim.key != "" and not claim.key.startswith("do ") for claim in made):
        made.insert(0, Claim(" ".join(sorted(_topic(given))), " ".join(sorted({*_stems(text)} - _topic(given)))))
    return tuple(dict.fromkeys(claim for claim in made if claim.key not in ("", "do ") and claim.value))


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
    about, kind = _topic(f"{topic} {rest}"), _kind(said)
    if kind:
        topics = everyday().topics[kind]
        about, stems = about - topics, {stem for stem in _stems(said) if stem not in topics or _kind(stem)}
        text = " ".join(sorted(stems))
        return [Claim(" ".join((f"{kind}:", *sorted(about))), text), *([] if about else [Claim(f"do {text}", "yes")])]
    stems = {*_stems(said)}
    single = {everyday().stem(word) for word in _SINGLE.split()}
    one = bool(about & single) or (plain and not _plural(topic) and len(about) <= 2 and len(stems) <= 2)
    if (
        not about
        or not stems
        or len(about) > _MOST_TOPIC
        or len(stems) > _MOST_VALUE
        or not one
        or _IDENTIFIED.search(topic)
    ):
        return []
    return [Claim(" ".join(sorted(about)), " ".join(sorted(stems)))]


def _rest(value: str) -> str:
    rest = _REST.search(value)
    return rest[0] if rest else ""


def _refused(old: str, rest: str) -> list[Claim]:
    return [Claim(_deed(f"{_REST.sub('', old)} {rest}"), "no")]


def _deed(clause: str) -> str:
    """A key for doing what a clause says: done or not."""
    stems = sorted(_topic(clause))
    return f"do {' '.join(stems)}" if len(stems) <= _MOST_WORDS else ""


def _kind(value: str) -> str:
    """Which kind of things a value names one of."""
    named = words(value)
    kinds = everyday().kinds(named) if len(named) <= _MOST_VALUE else set()
    return kinds.pop() if len(kinds) == 1 else ""


def _topic(text: str) -> set[str]:
    fillers = {everyday().stem(word) for word in _FILLERS.split()}
    return {stem for stem in _stems(text) if stem not in fillers and stem not in _MEASURES}


def _stems(text: str) -> Sequence[str]:
    plain = (str(_NUMBERS.get(word, word)) for word in words(text) if word not in everyday().idle)
    return [_UNITS.get(word, everyday().stem(word)) for word in plain]


def _plural(topic: str) -> bool:
    last = next((word for word in reversed(words(_REST.sub("", topic))) if word not in everyday().idle), "")
    return last.endswith("s") and not last.endswith(("ss", "us", "is"))
