"""Why a file ranks where it does, in words: each signal's share of the score, and what in the index it comes from."""

from collections.abc import Callable, Iterable

from msgspec import Struct

from codewhale.codesearch.evidence import Evidence
from codewhale.codesearch.model import BODY
from codewhale.codesearch.path_kinds import KINDS

EXACT, SESSION = "exact", "session"

_MOST_NAMED = 8
_SUBJECT = 72


class Reason(Struct, frozen=True):
    """A signal, what it adds to the score, and what it saw."""

    signal: str
    value: float
    detail: str

    def line(self) -> str:
        """As it is shown: `lexical +4.213: matched [provider, key]`."""
        return f"{self.signal} {self.value:+.3f}: {self.detail}"


class RequestSignals(Struct, frozen=True):
    """What is known of files besides the index, by their numbers: lines that hold the query as it is; and touches by
    sessions, as (how much they count, how many, seconds since the last)."""

    lines: dict[int, tuple[int, ...]]
    touches: dict[int, tuple[float, int, float]]


def detail(signal: str, evidence: Evidence, file: int, seen: RequestSignals) -> str:
    """What a signal saw in a file, at most some 200 characters."""
    if signal == EXACT:
        return f"contains the exact query, line {_listed(map(str, seen.lines[file]))}"
    if signal == SESSION:
        _, count, age = seen.touches[file]
        return f"touched {count} times, last {_ago(age)}" if count > 1 else f"touched once, {_ago(age)}"
    return _DETAILS[signal](evidence, file)


def _lexical(evidence: Evidence, file: int) -> str:
    words = _words_in(evidence, file, BODY)
    return f"matched tokens [{_listed(words)}], {len(words)} of {len(evidence.query.words)} words of the query"


def _symbol(evidence: Evidence, file: int) -> str:
    told = []
    if file in evidence.defined:
        _, name, line = evidence.defined[file]
        told.append(f"defines {name} in line {line}")
    if evidence.defines_word[file]:
        names = [word for word in evidence.query.words if file in evidence.containers.get(word, ())]
        told.append(f"defines a type named [{_listed(names)}]")
    if evidence.compound[file]:
        told.append(f"has the name [{_listed(evidence.joined.get(file, []))}]")
    return "; ".join(told)


def _path(evidence: Evidence, file: int) -> str:
    stem, folder, _ = evidence.corpus.names(file)
    words = [word for word in evidence.query.words if set(evidence.corpus.terms.expand(word)) & {*stem, *folder}]
    path = evidence.corpus.reader.paths[file]
    if words:
        return f"[{_listed(words)}] in {'/'.join(path.split('/')[-2:])}"
    return f"parts of {path[-120:]} resemble the query"


def _history(evidence: Evidence, file: int) -> str:
    commits = evidence.commits_of(file)
    best = evidence.corpus.reader.commit(commits[0])
    return f"changed by {best.sha[:9]} {best.subject[:_SUBJECT]!r}"


def _prior(evidence: Evidence, file: int) -> str:
    corpus = evidence.corpus
    kinds = [name for bit, name in enumerate(KINDS) if corpus.kinds[file] >> bit & 1]
    kinds += ["prose or data"] if corpus.prose[file] else []
    depth = int(corpus.depth[file])
    language = f"{corpus.language[file]:.0%} of the code is in its language"
    place = f"{depth} folder{'s' * (depth != 1)} deep" if depth else "at the top"
    return ", ".join([*kinds, language, f"{corpus.words[file]:,.0f} words", place])


_DETAILS: dict[str, Callable[[Evidence, int], str]] = {
    "lexical": _lexical,
    "symbol": _symbol,
    "path": _path,
    "history": _history,
    "prior": _prior,
}


def _words_in(evidence: Evidence, file: int, field: str) -> list[str]:
    """The words of the query of which any term is in a field of the file."""
    expand = evidence.corpus.terms.expand
    return [
        word
        for word in dict.fromkeys(evidence.query.words)
        if any(evidence.has_term(field, term, file) for term in expand(word))
    ]


def _listed(words: Iterable[str]) -> str:
    named = list(words)
    more = f", {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return ", ".join(named[:_MOST_NAMED]) + more


def _ago(seconds: float) -> str:
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= size:
            return f"{seconds / size:.0f} {name} ago"
    return f"{seconds:.0f} seconds ago"
