"""Which facts a query means: BM25 over its words, the words that are used for them, and those that differ by a slip."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from codewhale.memory.index import FactIndex
from codewhale.memory.model import Fact, FoundFact
from codewhale.memory.rivals import superseded
from codewhale.memory.sent import has_expired, valid
from codewhale.memory.words import everyday, slips, words

if TYPE_CHECKING:
    import sqlite3

_MOST_QUERY, _MOST_WORDS, _MOST_UNKNOWN, _MOST_RANKED, MOST_RESULTS = 2000, 24, 8, 200, 50
_KIN, _NEAR, _KIND, _OLD = 0.6, 0.7, 0.45, 0.5
_PRESENT = 0.2  # what a match counts beside one of the word itself; a superseded fact


def search(index: FactIndex, folders: Sequence[str], query: str, limit: int = 5) -> tuple[FoundFact, ...]:
    """At most `limit` facts, the likeliest first: a newer one before each that it supersedes, expired ones last."""
    terms = _terms(query[:_MOST_QUERY])
    if not terms or limit < 1:
        return ()
    with index.opened() as (database, facts):
        rows = {row[0]: row[1:] for row in database.execute("SELECT folder, first, last FROM files")}
        places = [(folder, *rows[folder]) for folder in folders if folder in rows]
        scores = _scores(database, terms, [(first, last) for _, first, last in places])
        every = {row: facts[folder][row - first] for folder, first, last in places for row in range(first, last + 1)}
        best = sorted(scores, key=lambda row: (has_expired(every[row]), -scores[row], row))[:_MOST_RANKED]
    return _ranked(every, {row: scores[row] for row in best})[: min(limit, MOST_RESULTS)]


def _terms(query: str) -> list[str]:
    every = list(dict.fromkeys(words(query)))
    return ([word for word in every if word not in everyday().idle] or every)[:_MOST_WORDS]


def _scores(
    database: "sqlite3.Connection", terms: Sequence[str], ranges: Sequence[tuple[int, int]]
) -> dict[int, float]:
    scores, unknown, joined = Counter[int](), 0, dict(pairwise(terms))
    for term in terms:
        gains = _gains(database, [term], ranges, 1.0)
        close = everyday().kin(term, joined.get(term, ""))
        if len(term) > 3:
            close.append(f"{term}*")
        known = _known(database, [term, term + joined.get(term, "")])
        if term not in known:
            unknown += 1
            near = _alike(database, term) if unknown <= _MOST_UNKNOWN else []
            _take_most(gains, _gains(database, near, ranges, _NEAR))
        _take_most(gains, _gains(database, [*close, *(known - {term})], ranges, _KIN))
        _take_most(gains, _gains(database, everyday().members(term), ranges, _KIND))
        scores.update(gains)
    return dict(scores)


def _take_most(gains: dict[int, float], others: Mapping[int, float]) -> None:
    for row, gain in others.items():
        gains[row] = max(gain, gains.get(row, 0.0))


def _gains(
    database: "sqlite3.Connection", terms: Iterable[str], ranges: Sequence[tuple[int, int]], share: float
) -> dict[int, float]:
    """What each row gains by the terms; one that ends with * is the beginning of a word."""
    quoted = [f'"{term.rstrip("*")}"{"*" * term.endswith("*")}' for term in terms]
    if not quoted:
        return {}
    query = "SELECT rowid, bm25(facts, 1.0, 0.6) FROM facts WHERE facts MATCH ? AND rowid BETWEEN ? AND ?"
    match = " OR ".join(quoted)
    return {
        row: (_PRESENT - rank) * share
        for low, high in ranges
        for row, rank in database.execute(query, (match, low, high))
    }


def _known(database: "sqlite3.Connection", terms: Sequence[str]) -> set[str]:
    marks = ", ".join("?" * len(terms))
    return {word for (word,) in database.execute(f"SELECT word FROM words WHERE word IN ({marks})", terms)}


def _alike(database: "sqlite3.Connection", term: str) -> list[str]:
    """The words of facts that an unknown one may be: by a slip, as a part of it, or as what it is short for."""
    near = database.execute(
        "SELECT word FROM words WHERE length(word) BETWEEN ? AND ? AND substr(word, 1, 1) = ?",
        (len(term) - 1, len(term) + 1, term[0]),
    )
    slip = [word for (word,) in near if slips(word, term)]
    cuts = [(term[:at], term[at:]) for at in range(3, len(term) - 2)]
    known = _known(database, [part for cut in cuts for part in cut]) if cuts else set()
    whole = [part for cut in cuts if known.issuperset(cut) for part in cut]
    return slip or whole or [part for part, _ in cuts if part in known and len(part) > 3]


def _ranked(facts: Mapping[int, Fact], scores: Mapping[int, float]) -> tuple[FoundFact, ...]:
    """The newest fact has the score of each that it supersedes, and these count for less."""
    newer, own = superseded(valid(facts.values())), {fact.id: scores.get(row, 0.0) for row, fact in facts.items()}
    most = dict(own)
    for old, new in newer.items():
        most[new] = max(most[new], own[old])
    result = [
        FoundFact(fact, own[fact.id] * _OLD if fact.id in newer else most[fact.id], newer.get(fact.id, ""))
        for fact in facts.values()
    ]
    return tuple(sorted((one for one in result if one.score > 0), key=lambda one: (has_expired(one.fact), -one.score)))
