"""Finding a tool by what it is needed for: BM25 over weighted fields with word stems and kindred words, or a regular
expression over the same text."""

import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import msgspec

from codewhale.catalog.shapes import shape_of
from codewhale.lib.patterns import compiles_fast
from codewhale.protocol.tools import ToolSpec

KINDRED_FILE = Path(__file__).with_name("kindred.json")
USES_FILE = Path(__file__).with_name("uses.json")
# BM25's constants (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009), and what a word counts in
# each field: the field-weighted term frequency of BM25F.
_K1, _B = 1.6, 0.3
_WEIGHTS = {"name": 3.0, "description": 1.6, "use": 1.6, "argument": 1.0, "note": 0.6}
# What a kindred word counts for, and a word of a tool that has answered another word of the need before.
_KINDRED, _AGAIN = 0.75, 0.2
# What the tools of a source count for that the need names: who says Slack means it.
_NAMED, _NAMED_MORE, _LEAST = 4.0, 2.0, 0.01
# The same for the words that half of a source's tools hold: who says mail means the tools for mail.
_TOPIC, _HALF = 2.0, 0.5
# A question is answered by what reads: what the tools of a source count for that change something.
_QUESTION, _CHANGES = (
    re.compile(r"\s*(?:wh(?:at|ich|ose?|en|y)|how|is|are|am|does|did|was|were)\b", re.IGNORECASE),
    0.65,
)
_READS = frozenset(
    """check count describe diff explain export fetch find get history info inspect list logs measure open query read
    search show status top tree view""".split()
)
# What a source is called for short, and how a spreadsheet's cells are written.
_SHORT = {
    "amazon": "aws", "cloudwatch": "aws", "ec2": "aws", "s3": "aws", "excel": "sheet", "gsheet": "sheet",
    "spreadsheet": "sheet", "gcal": "calendar", "gdrive": "drive", "k8s": "kubernetes", "kubectl": "kubernetes",
    "postgresql": "postgres", "psql": "postgres",
}  # fmt: skip
_CELLS = re.compile(r"\b[A-Z]{1,2}\d{1,4}\s*(?::|-|to|and|through)\s*[A-Z]{1,2}\d{1,4}\b")
# A phrase's particle may stand some words behind its verb ("shut the server down").
_PARTICLES, _APART = frozenset("up down off on out over back away in aside".split()), 5
_STOP = frozenset(
    """a about again all already am an and another any anything are as at be been but by can could did do does each else
    every for from get go got had has have here how i if in into is it its just let like may me might mine must my need
    no not nothing of on one only or our ours out own please put really shall she should so some something still such
    than that the their them then there these they thing things this those to too tool two up us use using very want was
    we were what when where which while who whom whose why will with would yet you your""".split()
)
_PLAIN = re.compile(r"[A-Za-z]+")
_WHOLE_WORD = re.compile(r"(?<![A-Za-z])[A-Za-z]{1,3}\d(?![A-Za-z0-9])|[A-Za-z0-9]{2,}")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
# All tools together are searched for no longer than this.
_REGEX_SECONDS = 0.5
_BLOCK = 64
# An expression that matches in a text alone matches in texts joined by line ends too: it looks at no end of the text
# and nowhere around itself, and gives back what it took.
_LOCAL = re.compile(r"(?:[^\\()*+?}]|\\[^AZGKzXRp]|\((?!\?)|\(\?:|\)|[*+?}](?!\+))*")


class ToolIndex:
    """An index over tools. Building it takes a few milliseconds for a thousand tools."""

    def __init__(self, rows: Iterable[ToolSpec]) -> None:
        self._rows = {row.name: row for row in rows}
        self._counts = {name: _weighted(row) for name, row in self._rows.items()}
        self._lengths = {name: sum(counts.values()) for name, counts in self._counts.items()}
        self._mean = sum(self._lengths.values()) / max(1, len(self._lengths)) or 1.0
        holders = Counter(term for counts in self._counts.values() for term in counts)
        self._idf = {term: self._rarity(count) for term, count in holders.items()}
        self._sources = {name: frozenset(_source_words(row)) for name, row in self._rows.items() if row.source}
        self._topics = self._spread()
        self._known: dict[str, dict[str, dict[str, float]]] = {}
        self._reads = {name for name in self._sources if not _READS.isdisjoint(_WORD.findall(name.lower()))}
        self._postings: dict[str, list[str]] = {}
        for name, counts in self._counts.items():
            for term in counts:
                self._postings.setdefault(term, []).append(name)

    def words(self, query: str, count: int) -> list[tuple[str, float]]:
        """The tools most like a description of what is needed, best first, with their scores."""
        asked = query[:2000]
        # A source's name is no word of what is needed: it says whose tools are meant, however it is written (GitHub).
        spoken = {stem(word.lower()) for word in _WHOLE_WORD.findall(asked)}
        spoken |= {_SHORT[word] for word in spoken & _SHORT.keys()}
        named = {word for words in self._sources.values() if words <= spoken for word in words}
        rest = _WHOLE_WORD.sub(lambda word: "" if stem(word[0].lower()) in named else word[0], asked)
        phrases, rest = _phrased(_CELLS.sub(" cell range ", rest))
        terms = dict.fromkeys([*stems(rest), *phrases])
        whole = (stem(word.lower()) for word in _WHOLE_WORD.findall(rest))
        terms |= dict.fromkeys(word for word in whole if word in kindred())
        scores = self._matched(terms)
        question = _QUESTION.match(query)
        meant = spoken | {kin for word in terms for group in kindred().get(word, ()) for kin in group}
        for name, words in self._sources.items():
            if words <= spoken:
                scores[name] = (scores.get(name, _LEAST) + _NAMED_MORE) * _NAMED
            elif name in scores and self._topics[self._rows[name].source] & meant:
                scores[name] *= _TOPIC
            if question and name in scores and name not in self._reads:
                scores[name] *= _CHANGES
        ranked = sorted(scores.items(), key=lambda row: (-row[1], row[0]))
        return [(name, round(score, 3)) for name, score in ranked[:count]]

    def _matched(self, terms: Iterable[str]) -> dict[str, float]:
        """What the words of a need count for each tool: one word of a tool answers one word of a need, the rarest
        first; what another has answered counts less."""
        scores: dict[str, float] = {}
        used: dict[str, set[str]] = {}
        for known in sorted(map(self._answers, terms), key=len):
            for name, gains in known.items():
                taken = used.setdefault(name, set())
                best, answer = max((gain * (_AGAIN if word in taken else 1), word) for word, gain in gains.items())
                taken.add(answer)
                scores[name] = scores.get(name, 0.0) + best
        return scores

    def _answers(self, term: str) -> dict[str, dict[str, float]]:
        """For each tool the words of it that answer a word of a need, with what each counts."""
        known = self._known.get(term)
        if known is None:
            known = {}
            for word in stems(term) if "_" in term else (term,):
                for name, gain in self._gains(word).items():
                    known.setdefault(name, {})[word] = gain
            for group in kindred().get(term, ()):
                idf = _KINDRED * self._rarity(len(set().union(*(self._postings.get(kin, ()) for kin in group))))
                for kin in group:
                    for name, gain in self._gains(kin, idf).items():
                        gains = known.setdefault(name, {})
                        gains[kin] = max(gain, gains.get(kin, 0.0))
            if known:
                self._known[term] = known
        return known

    def _spread(self) -> dict[str, frozenset[str]]:
        """The words that at least half of the tools of a source hold, and few of the other sources'."""
        tools: dict[str, list[str]] = {}
        for name in self._sources:
            tools.setdefault(self._rows[name].source, []).append(name)
        found = {}
        for source, names in tools.items():
            counts = Counter(term for name in names for term in self._counts[name])
            found[source] = {term for term, count in counts.items() if count >= _HALF * len(names) and len(names) > 2}
        common = Counter(term for terms in found.values() for term in terms)
        return {source: frozenset(term for term in terms if common[term] <= 2) for source, terms in found.items()}

    def _gains(self, term: str, idf: float | None = None) -> dict[str, float]:
        """What a term counts for each tool that holds it, as rare as it is or as `idf` says."""
        rarity = self._idf.get(term, 0.0) if idf is None else idf
        found = {}
        for name in self._postings.get(term, ()):
            frequency = self._counts[name][term]
            length = 1 - _B + _B * self._lengths[name] / self._mean
            found[name] = rarity * frequency * (_K1 + 1) / (frequency + _K1 * length)
        return found

    def _rarity(self, holders: int) -> float:
        return math.log(1 + (len(self._rows) - holders + 0.5) / (holders + 0.5))

    def pattern(self, expression: str, count: int) -> list[str]:
        """The tools whose name, description or arguments match a regular expression, case ignored, those whose first
        match begins in their name first. Raises ValueError, in words, for one that is wrong or takes too long."""
        import regex  # type: ignore[import-untyped]

        if not compiles_fast(expression, ignore_case=True):
            raise ValueError("the expression may take too long; use a simpler one, without counted groups")
        until = time.monotonic() + _REGEX_SECONDS
        named: list[str] = []
        others: list[str] = []
        try:
            search = regex.compile(expression, regex.IGNORECASE | regex.MULTILINE).search
            for texts in self._blocks:
                if _LOCAL.fullmatch(expression) and not search("\n".join(texts.values()), timeout=_left(until)):
                    continue
                for name, text in texts.items():
                    if match := search(text, timeout=_left(until)):
                        (named if match.start() < len(name) else others).append(name)
                if len(named) >= count:
                    break
        except regex.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        except TimeoutError:
            raise ValueError("the expression takes too long to match; use a simpler one") from None
        return [*named, *others][:count]

    @cached_property
    def _blocks(self) -> list[dict[str, str]]:
        """Name to searched text, in blocks: one search tells of most that nothing in them matches."""
        texts = [(name, f"{name}\n{_text(row)}") for name, row in self._rows.items()]
        return [dict(texts[at : at + _BLOCK]) for at in range(0, len(texts), _BLOCK)]


def _source_words(row: ToolSpec) -> list[str]:
    """The words of the name of what brought a tool."""
    return [stem(word.lower()) for word in _WHOLE_WORD.findall(row.source.rpartition(":")[2])]


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _phrased(text: str) -> tuple[list[str], str]:
    """The phrases of a text that stand for a word, and the text without them."""
    words = [(match.span(), stem(match[0].lower())) for match in _PLAIN.finditer(text)]
    found: list[str] = []
    gone: set[int] = set()
    for at, (_, word) in enumerate(words):
        for phrase, parts in _phrases().get(word, ()):
            places = _places(at, parts, [one for _, one in words])
            if len(places) == len(parts) and gone.isdisjoint(places):
                found.append(phrase)
                gone.update(places)
    for at in sorted(gone, reverse=True):
        begin, end = words[at][0]
        text = text[:begin] + text[end:]
    return found, text


def _places(at: int, parts: tuple[str, ...], words: list[str]) -> list[int]:
    """Where the parts of a phrase that begins at a word stand; fewer when one is missing."""
    places = [at]
    for part in parts[1:]:
        after = places[-1] + 1
        reach = _APART if part in _PARTICLES else 1
        places += [after + n for n, word in enumerate(words[after : after + reach]) if word == part][:1]
    return places


@cache
def _phrases() -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """The first word of each phrase among the kindred words to the phrases, with the stems of their words."""
    found: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for phrase in sorted((word for word in kindred() if "_" in word), key=len, reverse=True):
        parts = tuple(map(stem, phrase.split("_")))
        found.setdefault(parts[0], []).append((phrase, parts))
    return found


def _text(row: ToolSpec) -> str:
    return "\n".join((row.description, *(f"{name} {note}" for name, note in _arguments(shape_of(row)))))


def _arguments(schema: dict[str, Any], depth: int = 0) -> Iterable[tuple[str, str]]:
    """Each argument's name and note, those of nested objects too."""
    for name, wanted in schema.get("properties", {}).items():
        if isinstance(wanted, dict):
            yield name, " ".join((str(wanted.get("description", "")), *map(str, wanted.get("enum", ()))))
            for option in wanted.get("anyOf", (wanted,)) if depth < 3 else ():
                yield from _arguments(option.get("items", option), depth + 1)


def _weighted(row: ToolSpec) -> dict[str, float]:
    found: dict[str, float] = {}
    arguments = list(_arguments(shape_of(row)))
    fields: Sequence[tuple[str, str]] = (
        ("name", row.name),
        ("description", row.description),
        ("use", uses().get(row.name, "")),
        *(("argument", name) for name, _ in arguments),
        *(("note", note) for _, note in arguments),
    )
    for field, text in fields:
        for word in stems(text):
            found[word] = found.get(word, 0.0) + _WEIGHTS[field]
    return found


def stems(text: str) -> list[str]:
    """The words of a text without endings, words of no meaning left out; parts of identifiers are words."""
    words = (match.group().lower() for match in _WORD.finditer(text))
    return [stem(word) for word in words if word not in _STOP and (len(word) > 1 or not word.isascii())]


@cache
def stem(word: str) -> str:
    """A word without its commonest English endings (after Porter 1980, the steps that matter for short texts)."""
    if len(word) <= 3 or not word.isascii():
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: len(word) - len(ending)] + instead
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


_ENDINGS = (
    ("ations", "ate"), ("ation", "ate"), ("izing", "ize"), ("ized", "ize"), ("ssions", "ss"), ("ssion", "ss"),
    ("ories", "ory"), ("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"),
    ("ments", ""), ("ment", ""), ("ingly", ""), ("edly", ""), ("ings", ""), ("ing", ""), ("ied", "y"), ("ed", ""),
    ("ers", "er"), ("ly", ""), ("es", "e"), ("ss", "ss"), ("us", "us"), ("is", "is"), ("s", ""),
)  # fmt: skip


@cache
def uses() -> dict[str, str]:
    """What our own tools are needed for, in words that their descriptions, which every request carries, leave out."""
    return msgspec.json.decode(USES_FILE.read_bytes(), type=dict[str, str])


@cache
def kindred() -> dict[str, tuple[frozenset[str], ...]]:
    """Stem to the groups it stands in of words that are used in each other's place, from groups kept as data; a phrase
    is written as one word, with underscores."""
    found: dict[str, list[frozenset[str]]] = {}
    for group in msgspec.json.decode(KINDRED_FILE.read_bytes(), type=list[str]):
        members = frozenset(word if "_" in word else stem(word) for word in group.split())
        for member in members:
            found.setdefault(member, []).append(members)
    return {word: tuple(groups) for word, groups in found.items()}
