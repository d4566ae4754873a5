"""Finding a tool by what it is needed for: BM25 over weighted fields with word stems and kindred words, or a regular
expression over the same text."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from codewhale.protocol.tools import ToolSpec

KINDRED_FILE = Path(__file__).with_name("kindred.json")
# BM25's usual constants (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009), and what a word
# counts in each field: the field-weighted term frequency of BM25F.
_K1, _B = 1.2, 0.6
_WEIGHTS = {"name": 3.0, "description": 1.6, "argument": 1.0, "note": 0.5}
_KINDRED = 0.45
_STOP = frozenset(
    """a an and are as at be but by can could do does for from get had has have how i if in into is it its let like
    me my need not of on or our please should so some that the their them then there these they this those to
    tool use using want was we what when where which who will with would you your""".split()
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_REGEX_SECONDS = 0.05


class ToolIndex:
    """An index over tools. Building it takes a few milliseconds for a thousand tools."""

    def __init__(self, rows: Iterable[ToolSpec]) -> None:
        self._rows = {row.name: row for row in rows}
        self._counts = {name: _weighted(row) for name, row in self._rows.items()}
        self._lengths = {name: sum(counts.values()) for name, counts in self._counts.items()}
        self._mean = sum(self._lengths.values()) / max(1, len(self._lengths)) or 1.0
        holders = Counter(term for counts in self._counts.values() for term in counts)
        total = len(self._counts)
        self._idf = {term: math.log(1 + (total - n + 0.5) / (n + 0.5)) for term, n in holders.items()}
        self._postings: dict[str, list[str]] = {}
        for name, counts in self._counts.items():
            for term in counts:
                self._postings.setdefault(term, []).append(name)

    def words(self, query: str, count: int) -> list[tuple[str, float]]:
        """The tools most like a description of what is needed, best first, with their scores."""
        scores: dict[str, float] = {}
        for term, weight in _asked(query).items():
            idf = self._idf.get(term)
            if idf is None:
                continue
            for name in self._postings[term]:
                frequency = self._counts[name][term]
                length = 1 - _B + _B * self._lengths[name] / self._mean
                gain = weight * idf * frequency * (_K1 + 1) / (frequency + _K1 * length)
                scores[name] = scores.get(name, 0.0) + gain
        ranked = sorted(scores.items(), key=lambda row: (-row[1], row[0]))
        return [(name, round(score, 3)) for name, score in ranked[:count]]

    def pattern(self, expression: str, count: int) -> list[str]:
        """The tools whose name, description or arguments match a regular expression, case ignored, those that match
        in their name first. Raises ValueError, in words, for one that is wrong or takes too long."""
        import regex  # type: ignore[import-untyped]

        try:
            compiled = regex.compile(expression, regex.IGNORECASE)
            named, other = [], []
            for name, row in self._rows.items():
                if compiled.search(name, timeout=_REGEX_SECONDS):
                    named.append(name)
                elif compiled.search(_text(row), timeout=_REGEX_SECONDS):
                    other.append(name)
                if len(named) >= count:
                    break
        except regex.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        except TimeoutError:
            raise ValueError("the expression takes too long to match; use a simpler one") from None
        return (named + other)[:count]


def _text(row: ToolSpec) -> str:
    return "\n".join((row.description, *(f"{name} {note}" for name, note in _arguments(row.parameters))))


def _arguments(schema: dict[str, Any], depth: int = 0) -> Iterable[tuple[str, str]]:
    """Each argument's name and note, those of nested objects too."""
    for name, wanted in schema.get("properties", {}).items():
        if isinstance(wanted, dict):
            yield name, " ".join((str(wanted.get("description", "")), *map(str, wanted.get("enum", ()))))
            inner = wanted.get("items", wanted)
            if depth < 3 and isinstance(inner, dict):
                yield from _arguments(inner, depth + 1)


def _weighted(row: ToolSpec) -> dict[str, float]:
    """How much each stem counts for a tool."""
    found: dict[str, float] = {}
    arguments = list(_arguments(row.parameters))
    fields: Sequence[tuple[str, str]] = (
        ("name", row.name),
        ("description", row.description),
        *(("argument", name) for name, _ in arguments),
        *(("note", note) for _, note in arguments),
    )
    for field, text in fields:
        for word in stems(text):
            found[word] = found.get(word, 0.0) + _WEIGHTS[field]
    return found


def _asked(query: str) -> dict[str, float]:
    """The stems of a query with their weights: its own words whole, kindred ones less."""
    own = stems(query[:2000])
    weights: dict[str, float] = {}
    for word in own:
        weights[word] = weights.get(word, 0.0) + 1.0
    for word in own:
        for kin in kindred().get(word, ()):
            weights[kin] = max(weights.get(kin, 0.0), _KINDRED)
    return weights


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
def kindred() -> dict[str, tuple[str, ...]]:
    """Stem to the stems of words that are used in its place, from groups kept as data."""
    found: dict[str, set[str]] = {}
    for group in msgspec.json.decode(KINDRED_FILE.read_bytes(), type=list[str]):
        members = {stem(word) for word in group.split()}
        for member in members:
            found.setdefault(member, set()).update(members - {member})
    return {word: tuple(sorted(kin)) for word, kin in found.items()}
