"""Answers as models, people and scripts get them: JSON with snippets and reasons, within a budget, or text."""

from collections.abc import Callable, Sequence
from typing import Any

from codewhale.codesearch.history import CommitHits
from codewhale.codesearch.intelligence import RelatedCode
from codewhale.codesearch.languages import Languages
from codewhale.codesearch.model import KINDS
from codewhale.codesearch.rank import Filter, Hit
from codewhale.codesearch.reasons import Reason
from codewhale.codesearch.search import SearchAnswer
from codewhale.codesearch.snippets import snippets
from codewhale.lib.globs import GlobError, Globs
from codewhale.lib.jsontext import pretty
from codewhale.lib.text import sanitise, told_line

# About two thousand tokens.
MOST_BYTES = 8_000
_REASONS = 5
_LINES_LISTED, _REASONS_LISTED = 3, 2


class BadFilter(Exception):
    """A filter that cannot be: `field` is path_glob, lang or kind, `expected` what it must be."""

    def __init__(self, field: str, received: str, expected: str) -> None:
        super().__init__(f"{field} {received[:80]!r} is invalid: it must be {expected}")
        self.field = field
        self.expected = expected


def filter_of(path_glob: str, lang: str, kind: str) -> Filter:
    """The filter that three texts name, each "" for any. Raises BadFilter."""
    try:
        globs = Globs([path_glob]) if path_glob else None
    except GlobError as error:
        raise BadFilter("path_glob", path_glob, f"a glob ({error})") from None
    lang, kind = lang.strip().lower(), kind.strip().lower()
    if lang and lang not in (known := Languages().known()):
        raise BadFilter("lang", lang, f"one of {', '.join(known)}")
    if kind and kind not in KINDS:
        raise BadFilter("kind", kind, f"one of {', '.join(KINDS)}")
    return Filter(globs.match if globs else None, lang, kind, path_glob)


def render_json(root: str, query: str, answer: SearchAnswer) -> tuple[str, int]:
    """The answer as JSON of at most 8,000 bytes (one result is always in it), and how many results are in it."""
    shown = snippets(root, answer.hits, query.split())
    rows = [_row(hit, snippet) for hit, snippet in zip(answer.hits, shown, strict=True)]

    def whole(kept: int) -> dict[str, Any]:
        answered: dict[str, Any] = {
            "results": rows[:kept],
            "backend": answer.backend,
            "fallback_grep_hits": answer.exact,
            "index_age_s": None if answer.age is None else round(answer.age, 1),
            "coverage": round(answer.coverage, 3),
        }
        if answer.hint:
            answered["hint"] = answer.hint
        if answer.notes:
            answered["notes"] = list(answer.notes)
        if kept < len(rows):
            answered["left_out"] = f"{len(rows) - kept} weaker results; narrow by path_glob, lang or kind"
        return answered

    return fit_rows(len(rows), whole)


def render_text(root: str, query: str, answer: SearchAnswer) -> str:
    """The answer as a person reads it: each place with its first lines and what weighed most, then what must be
    known of the answer."""
    lines = []
    for hit, snippet in zip(answer.hits, snippets(root, answer.hits, query.split()), strict=True):
        symbol = f"  {hit.symbol}" if hit.symbol else ""
        lines.append(told_line(f"{hit.score:6.2f}  {hit.path}:{hit.line}-{hit.end_line}{symbol}"))
        lines += [f"        | {line}" for line in _telling(snippet, query.lower().split())]
        lines += [told_line(f"        {reason.line()}") for reason in _weightiest(hit)[:_REASONS_LISTED]]
    return "\n".join(lines or [sanitise(f"no matches. {answer.hint}" if answer.hint else "no matches")])


def _telling(snippet: str, words: Sequence[str]) -> list[str]:
    """Three lines of a snippet: the first, and of the others those with most of the words."""
    said = [line for line in snippet.split("\n") if any(letter.isalnum() for letter in line)]
    others = sorted(range(1, len(said)), key=lambda at: -sum(word in said[at].lower() for word in words))
    return [said[at] for at in sorted([*range(min(1, len(said))), *others[: _LINES_LISTED - 1]])]


def _weightiest(hit: Hit) -> list[Reason]:
    """What a place scored, the greatest first; what kind of file it is in says least and comes last."""
    return sorted(hit.reasons, key=lambda reason: (reason.signal == "prior", -abs(reason.value)))


def _row(hit: Hit, snippet: str) -> dict[str, Any]:
    speaking = (reason for reason in hit.reasons if reason.signal != "prior" or reason.value < 0)
    reasons = sorted(speaking, key=lambda reason: -abs(reason.value))[:_REASONS]
    row: dict[str, Any] = {"path": hit.path, "line": hit.line, "end_line": hit.end_line}
    if hit.symbol:
        row["symbol"] = hit.symbol
    return {**row, "snippet": snippet, "score": hit.score, "reasons": [reason.line() for reason in reasons]}


def render_relations(related: RelatedCode | None, asked: tuple[str, str], notes: tuple[str, ...]) -> tuple[str, int]:
    """The answer to (name, relation) as JSON of at most 8,000 bytes, and how many places are in it; `related` is None
    where there is no index to answer from."""
    spots = related.spots if related is not None else ()

    def whole(kept: int) -> dict[str, Any]:
        answered: dict[str, Any] = {"name": asked[0], "relation": asked[1], "total": related.total if related else 0}
        answered["results"] = spots[:kept]
        if related is not None and related.alike:
            answered["did_you_mean"] = related.alike
        if related is not None and related.hint and not notes:  # of half an index it may not be true
            answered["hint"] = related.hint
        if kept < answered["total"]:
            answered["left_out"] = f"{answered['total'] - kept} more places"
        return {**answered, "notes": notes} if notes else answered

    return fit_rows(len(spots), whole)


def render_commits(query: str, hits: CommitHits | None, notes: tuple[str, ...]) -> tuple[str, int]:
    """The answer to a query as JSON of at most 8,000 bytes, and how many commits are in it; `hits` is None where
    there is no index to answer from."""
    commits, hint = (hits.best, hits.hint) if hits is not None else ([], "")

    def whole(kept: int) -> dict[str, Any]:
        answered: dict[str, Any] = {"query": query, "results": commits[:kept]}
        if kept < len(commits):
            answered["left_out"] = f"{len(commits) - kept} weaker commits"
        return answered | ({"notes": notes} if notes else {"hint": hint} if hint else {})

    return fit_rows(len(commits), whole)


def fit_rows(rows: int, whole: Callable[[int], dict[str, Any]]) -> tuple[str, int]:
    """What `whole` says of the first rows, as many of `rows` as fit (at least one), and how many those are."""
    low, high = min(1, rows), rows
    while low < high:
        middle = (low + high + 1) // 2
        if len(pretty(whole(middle)).encode()) <= MOST_BYTES:
            low = middle
        else:
            high = middle - 1
    return pretty(whole(low)), low
