"""A query as ranking reads it: its words and terms, the names in it, and whether it looks like a symbol, a question
or a request for a change. The text goes nowhere else: no query language sees it."""

import re
from itertools import pairwise

from msgspec import Struct

from codewhale.codesearch.terms import Terms

SYMBOL, QUESTION, CHANGE = "symbol", "question", "change"
SHAPES = (SYMBOL, QUESTION, CHANGE)

_MOST_CHARACTERS = 2_000
_MOST_WORDS = 48
_EMPTY_WORDS = frozenset(
    "a an and are as at be by can could do does for from get has have how i if in into is it its make my need of on "
    "or our should so some than that the their them then there these they this those to use used uses using via was "
    "we were what when where which while who why will with without would you your".split()
)
_SYMBOL = re.compile(r"[A-Za-z_$][\w$]*(?:(?:::|\\|->|\.|#|/)[A-Za-z_$][\w$]*)*[!?]?(?:\(\))?")
_NAME = re.compile(r"[a-z][A-Z]|_|^[A-Z][a-z]+[A-Z]|[A-Za-z]\d")
# A name with an underscore or a hump, a call, a path, an operator, a quotation.
_CODE = re.compile(r"\w_\w|[a-z][A-Z]|\w\(|\w/\w|::|->|=>|==|!=|[{};=<>\[\]$]|^[\"'`].*[\"'`]$|\w\.\w")
_TESTS = re.compile(
    r"\b(?:unit|integration|regression|e2e) tests?\b|\btests? (?:for|of|that)\b|"
    r"\b(?:which|where|what)\b.{0,12}\btests?\b",
    re.IGNORECASE,
)
_ASKS = re.compile(r"(?:how|what|where|which|why|when|who|does|do|is|are|can)\b", re.IGNORECASE)
# "scope: ...", "fix(scope): ...", or a verb that commit subjects begin with.
_ORDERS = re.compile(
    r"\[?[\w./ -]{1,30}\]?(?:\([^)]*\))?!?:\s|"
    r"(?:fix|add|remove|update|use|make|improve|support|allow|change|refactor|avoid|bump|drop|move|rename|handle|"
    r"prevent|ensure|implement|introduce|don'?t|do not|disable|enable|replace|revert|correct|simplify|clean|deprecate|"
    r"convert|return|reduce|optimi[sz]e|expose|merge|set|check|switch|extract|add(?:ed|s|ing)|fix(?:e[ds]|ing)|"
    r"remov(?:ed|es|ing)|updat(?:ed|es|ing)|mov(?:ed|es|ing)|chang(?:ed|es|ing)|improv(?:ed|es|ing)|only|also|more|"
    r"minor|feat|chore|perf|build|ci|lint|typo|restore|propagate|document|mark|skip|ignore|include|clarify|tweak|"
    r"adjust|apply|migrate|rework|resolve|validate|pass|provide|no|delete|create|cleanup|speed|workaround|suppress|"
    r"stop|address|unify|initial|better)\b",
    re.IGNORECASE,
)


class SearchQuery(Struct, frozen=True):
    """What is looked for. `words` are as written, without those that say nothing; `terms` how often each of their
    terms occurs; `parts` the terms but for whole compound names; `pairs` what neighbouring words would be as one
    name ("rate limit": "ratelimit"); `names` the words that are names of code; `literal` that it looks like code;
    `tests` that tests are asked for."""

    text: str
    shape: str
    words: tuple[str, ...]
    terms: dict[str, int]
    parts: frozenset[str]
    pairs: tuple[str, ...]
    names: tuple[str, ...]
    literal: bool
    tests: bool


def read_query(text: str, terms: Terms) -> SearchQuery:
    """Take a query apart. At most 2,000 characters and 48 words of it are looked at."""
    text = text.strip()[:_MOST_CHARACTERS]
    spoken = terms.words(text)[:_MOST_WORDS]
    words = [word for word in spoken if word.lower() not in _EMPTY_WORDS] or spoken
    shape = _shape_of(text)
    counts, parts = dict[str, int](), set[str]()
    for word in words:
        expanded = terms.expand(word)
        whole = len(expanded) > 1 and word.isascii()
        parts.update(expanded[:-1] if whole else expanded)
        for term in expanded:
            counts[term] = counts.get(term, 0) + 1
    return SearchQuery(
        text=text,
        shape=shape,
        words=tuple(words),
        terms=counts,
        parts=frozenset(parts),
        pairs=tuple(dict.fromkeys(pair for pair in _pairs(words) if pair not in counts)),
        names=_names(words, shape),
        literal=shape == SYMBOL or bool(_CODE.search(text)),
        tests=shape == QUESTION and bool(_TESTS.search(text)),
    )


def _shape_of(text: str) -> str:
    if _SYMBOL.fullmatch(text):
        return SYMBOL
    if _ASKS.match(text) or not _ORDERS.match(text):
        return QUESTION
    return CHANGE


def _pairs(words: list[str]) -> list[str]:
    flat = [word.lower().replace("_", "") for word in words]
    pairs = [one + two for one, two in pairwise(flat) if len(one + two) > 4]
    pairs += [pair[:-1] for pair in pairs if pair.endswith("s") and len(pair) > 5]
    return pairs + [one + two + three for one, two, three in zip(flat, flat[1:], flat[2:], strict=False)]


def _names(words: list[str], shape: str) -> tuple[str, ...]:
    names = [word for word in words if _NAME.search(word) or word[0].isupper()]
    return tuple(dict.fromkeys(names + (words[-1:] if shape == SYMBOL else [])))
