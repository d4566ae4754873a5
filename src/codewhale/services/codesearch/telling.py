"""An answer as it is told to models, people and scripts alike: JSON with snippets and reasons, within a budget."""

from typing import Any

from codewhale.lib.globs import GlobError, Globs
from codewhale.lib.jsontext import pretty
from codewhale.services.codesearch.answering import Answer
from codewhale.services.codesearch.languages import Languages
from codewhale.services.codesearch.model import KINDS
from codewhale.services.codesearch.rank import Filter, Hit
from codewhale.services.codesearch.snippets import snippets

# About two thousand tokens.
MOST_BYTES = 8_000
_REASONS = 5


class BadFilter(Exception):
    """A filter that cannot be: `field` is path_glob, lang or kind, `expected` what it must be."""

    def __init__(self, field: str, expected: str) -> None:
        super().__init__(f"{field} must be {expected}")
        self.field = field
        self.expected = expected


def filter_of(path_glob: str, lang: str, kind: str) -> Filter:
    """The filter that three texts name, each "" for any. Raises BadFilter."""
    try:
        globs = Globs([path_glob]) if path_glob else None
    except GlobError as error:
        raise BadFilter("path_glob", f"a glob ({error})") from None
    lang, kind = lang.strip().lower(), kind.strip().lower()
    if lang and lang not in (known := Languages().known()):
        raise BadFilter("lang", f"one of {', '.join(known)}")
    if kind and kind not in KINDS:
        raise BadFilter("kind", f"one of {', '.join(KINDS)}")
    return Filter(globs.match if globs else None, lang, kind)


def told(root: str, query: str, answer: Answer) -> tuple[str, int]:
    """The answer as JSON of at most 8,000 bytes (one result is always told), and how many results are in it."""
    shown = snippets(root, answer.hits, query.split())
    rows = [_row(hit, snippet) for hit, snippet in zip(answer.hits, shown, strict=True)]
    kept = len(rows)
    while True:
        whole: dict[str, Any] = {
            "results": rows[:kept],
            "backend": answer.backend,
            "fallback_grep_hits": answer.exact,
            "index_age_s": None if answer.age is None else round(answer.age, 1),
            "coverage": round(answer.coverage, 3),
        }
        if answer.notes:
            whole["notes"] = list(answer.notes)
        if kept < len(rows):
            whole["left_out"] = f"{len(rows) - kept} weaker results; narrow by path_glob, lang or kind"
        text = pretty(whole)
        if len(text.encode()) <= MOST_BYTES or kept <= 1:
            return text, kept
        kept -= 1


def _row(hit: Hit, snippet: str) -> dict[str, Any]:
    reasons = sorted(hit.reasons, key=lambda reason: -abs(reason.value))[:_REASONS]
    row: dict[str, Any] = {"path": hit.path, "line": hit.line, "end_line": hit.end_line}
    if hit.symbol:
        row["symbol"] = hit.symbol
    return {**row, "snippet": snippet, "score": hit.score, "reasons": [reason.line() for reason in reasons]}
