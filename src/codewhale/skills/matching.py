"""Which skills a message is about, by its words alone: BM25 over their names and descriptions, and a bar that words
which stand in any message about code do not take."""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from functools import lru_cache

from msgspec import Struct

from codewhale.skills.model import Activation, Skill

STOP_WORDS = frozenset(
    "a about above across after again all already also although always am an and another any anything are around as "
    "at back be because been before being below between both but by can can't cannot could did do does doesn't "
    "doing don't done down during each either else etc even ever every few first for from get gets getting go goes "
    "going got had has have having he help her here him his how however i i'd i'll i'm i've if in instead into is "
    "isn't it it's its just keep kind least less let let's like likely lot made make makes making many may maybe me "
    "might more most much must my need needed needs never new no none nor not nothing now of off often on once one "
    "only onto or other our out over own per please put rather really same see several shall she should show since "
    "so some something sometimes soon still such take tell than thank thanks that that's the their them then there "
    "these they thing things this those through to together too toward try two under until up upon us use used user "
    "users uses using very via want wanted wants was way we well went were what what's when whenever where whether "
    "which while who whole whose why will with within without won't work working works would yes yet you your".split()
)
# Words of most messages and most skills: one of them says little of what a message is about.
_COMMON = (
    "ability add agent allow app application apply ask assist automate automatic available bad base best better "
    "break bug build button cache call case cause change check class clean clear click code come command common "
    "compare complete complex config configure connect contain content context control convert copy correct count "
    "create current custom data date day default define delete describe detail develop developer different "
    "directory document easy edit effective efficient empty enable end ensure entry error example exist expect "
    "explain extract fail fast feature field file find fix folder follow form format full function general generate "
    "give good guide handle high hour idea implement import improve include info input inside install instruction "
    "issue item job key language large last learn left line list load local log long look main manage mean message "
    "method minute missing mode module month move multiple name next number object old open option order output "
    "package page part pass path perform place plan point practice prepare print problem process produce program "
    "project properly provide question quick read reason refactor remove rename replace request result return "
    "review right rule run safe save say script search second section select send separate server service set "
    "setting setup short side simple single size skill slow small software source specific split standard start "
    "state step stop structure stuff style suggest support sure system task team test text think time title tool "
    "top turn type understand update value variable version view week whatever word workflow write wrong year"
).split()
_WORDS = re.compile(r"[^\W_]+(?:'[a-z]{1,2}\b)?")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_CAMEL_NAME = re.compile(r"\b[A-Za-z]*[a-z][A-Z][A-Za-z]*")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SUFFIXES = (
    "ization", "ational", "fulness", "ations", "ation", "ments", "ment", "ities", "ingly", "ness", "ings", "edly",
    "ing", "ies", "ity", "ion", "ions", "ers", "ors", "est", "ive", "able", "ed", "er", "or", "es", "ly",
    "al", "s", "e", "y",
)  # fmt: skip
_K1, _B = 1.2, 0.6
_NAME_TIMES = 3  # how often a word of the name counts
_OFFERED, _CLOSE = 2, 0.6  # the second one has to come this close to the first
_TEXT_LIMIT, _TERMS_LIMIT = 4_000, 200
_LITTLE, _PAIR = 0.3, 0.5  # what a common word counts for, and two characters that may be a part of a word alone
_WHOLE_NAME = 0.6  # what it adds that a message has all words of a name
_BAR, _BAR_GROWS, _BAR_AT_MOST = 0.9, 0.03, 1.7  # words meet those of some skill by chance, in a long message rather


class _Index(Struct, frozen=True):
    """The terms of each skill: how often, how many there are in all, and which stand in its name; `scarce` is how much
    a term tells, `slips` leads from a term with a letter left out to those it may have been."""

    counts: tuple[Counter[str], ...]
    average: float
    names: tuple[frozenset[str], ...]
    postings: dict[str, tuple[int, ...]]
    slips: dict[str, tuple[str, ...]]


def offered(text: str, skills: tuple[Skill, ...]) -> tuple[Skill, ...]:
    """The skills that a message is about, best first, two at most; mostly none."""
    fitting = tuple(skill for skill in skills if skill.activation is Activation.MODEL)
    asked = dict.fromkeys(_terms(text[:_TEXT_LIMIT]))
    if not fitting or not asked:
        return ()
    index = _index(tuple((skill.name, skill.description) for skill in fitting))
    score, evidence = defaultdict[int, float](float), defaultdict[int, float](float)
    told, met = 0, set[str]()
    for term in list(asked)[:_TERMS_LIMIT]:
        told += term not in _common()
        for known, certain in _known(term, index):
            met.add(known)
            places = index.postings[known]
            scarce = math.log(1 + (len(fitting) - len(places) + 0.5) / (len(places) + 0.5))
            most = math.log(1 + (len(fitting) - 0.5) / 1.5)
            weight = certain * (_LITTLE if known in _common() else _PAIR if _CJK.match(known) else 1.0)
            for place in places:
                count, names = index.counts[place], index.names[place]
                length = count.total() / index.average
                score[place] += (
                    weight * scarce * count[known] * (_K1 + 1) / (count[known] + _K1 * (1 - _B + _B * length))
                )
                evidence[place] += weight * scarce / most * (1 + 1 / len(names) if known in names else 1.0)
    for place, names in enumerate(index.names):
        if names and names <= met:
            evidence[place] += _WHOLE_NAME
    bar = min(_BAR_AT_MOST, _BAR + _BAR_GROWS * max(0, told - 8))
    best = sorted((place for place in score if evidence[place] >= bar), key=lambda place: (-score[place], place))
    return tuple(fitting[place] for place in best[:_OFFERED] if score[place] >= _CLOSE * score[best[0]])


@lru_cache(maxsize=8)
def _index(rows: tuple[tuple[str, str], ...]) -> _Index:
    names = tuple(frozenset(_terms(name)) for name, _ in rows)
    counts = tuple(Counter([*_terms(name) * _NAME_TIMES, *_terms(says)]) for name, says in rows)
    postings, slips = defaultdict[str, list[int]](list), defaultdict[str, list[str]](list)
    for place, count in enumerate(counts):
        for term in count:
            postings[term].append(place)
    for term in postings:
        for slip in _slips(term):
            slips[slip].append(term)
    average = sum(count.total() for count in counts) / len(counts) or 1.0
    return _Index(
        counts,
        average,
        names,
        {term: tuple(places) for term, places in postings.items()},
        {slip: tuple(terms) for slip, terms in slips.items()},
    )


def _known(term: str, index: _Index) -> list[tuple[str, float]]:
    """The term, or where no skill has it those that are one slip of the fingers away; and how certain that is."""
    if term in index.postings:
        return [(term, 1.0)]
    if term in _common():
        return []
    near = dict.fromkeys(known for slip in _slips(term) for known in index.slips.get(slip, ()))
    return [(known, 0.8) for known in near if known[0] == term[0] and known not in _common()][:3]


def _slips(term: str) -> list[str]:
    """A term and what is left of it without one letter; short ones have no neighbours."""
    if len(term) < 5 or not term.isalpha():
        return []
    return [term, *(term[:at] + term[at + 1 :] for at in range(len(term)))]


@lru_cache(maxsize=1)
def _common() -> frozenset[str]:
    return frozenset(map(_stem, _COMMON))


def _terms(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).replace("’", "'")
    parts = " ".join(_CAMEL.sub(" ", name) for name in _CAMEL_NAME.findall(plain))
    plain = plain.lower()
    words = _WORDS.findall(_CJK.sub(" ", f"{plain} {parts.lower()}"))
    terms = [_stem(word) for word in words if word not in STOP_WORDS and len(word) > 1]
    for run in _CJK.findall(plain):
        terms += (run[at : at + 2] for at in range(max(1, len(run) - 1)))
    return [term for term in terms if not term.isdecimal()]


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    """What the forms of an English word have in common, about."""
    if word.isascii():
        for suffix in _SUFFIXES:
            if word.endswith(suffix) and len(word) - len(suffix) >= max(3, 5 - len(suffix)):
                word = word[: -len(suffix)]
                break
        if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
            word = word[:-1]
        return word.removesuffix("e") if len(word) > 3 else word
    return "".join(char for char in unicodedata.normalize("NFD", word) if not unicodedata.combining(char))
