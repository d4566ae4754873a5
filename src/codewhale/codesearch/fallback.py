"""Answers while there is no index: files whose names hold words of the query, and those where plain text search finds
most of its words."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence

from codewhale.codesearch import plaintext, scan
from codewhale.codesearch.languages import Languages
from codewhale.codesearch.path_kinds import PathKinds
from codewhale.codesearch.query import read_query
from codewhale.codesearch.rank import Filter, Hit
from codewhale.codesearch.reasons import Reason
from codewhale.codesearch.terms import Terms
from codewhale.workspace.ignore import is_unread, unread_folders
from codewhale.workspace.walk import Walker

TEXT, PATH = "text", "path"
_SECONDS = 1.2
_MOST_WORDS = 8
_IN_NAME, _IN_FOLDER = 1.0, 0.4


async def fallback_hits(root: str, query: str, limit: int, only: Filter) -> list[Hit]:
    """The best files by the words in their paths and texts, those of tests and examples behind the others."""
    terms = Terms()
    words = [word.lower() for word in dict.fromkeys(read_query(query, terms).words)][:_MOST_WORDS]
    walker = Walker(root, limit=scan.MOST_FILES, seconds=_SECONDS)
    listing, lines = await asyncio.gather(walker.files(skip=unread_folders()), _lines(root, words))
    files = [path for path in listing.files if not is_unread(path)]
    return await asyncio.to_thread(_ranked, files, lines, words, limit, only)


def _ranked(
    files: Sequence[str], lines: dict[str, dict[str, int]], words: Sequence[str], limit: int, only: Filter
) -> list[Hit]:
    rows = []
    kinds, languages = PathKinds(), Languages()
    for path in files:
        if not only.fits(path, languages.of(path, b"") if only.lang else ""):
            continue
        found, (named, spoken) = lines.get(path, {}), _in_path(path, words)
        if not found and not named:
            continue
        reasons = []
        if found:
            value = len(found) / max(1, len(words))
            reasons.append(Reason(TEXT, round(value, 3), f"holds [{', '.join(sorted(found))}]"))
        if named:
            reasons.append(Reason(PATH, round(named, 3), f"[{', '.join(spoken)}] in {path[-120:]}"))
        score = round(sum(reason.value for reason in reasons), 3)
        rows.append((kinds.of(path) != 0, -score, path, reasons, min(found.values(), default=1)))
    rows.sort(key=lambda row: row[:3])
    return [
        Hit(path, line, line, "block", "", -score, tuple(reasons)) for _, score, path, reasons, line in rows[:limit]
    ]


def _in_path(path: str, words: Iterable[str]) -> tuple[float, list[str]]:
    """What the words in a path are worth, and which they are."""
    folder, _, name = path.lower().rpartition("/")
    worth = {word: _IN_NAME if word in name else _IN_FOLDER for word in words if word in name or word in folder}
    return sum(worth.values()), list(worth)


async def _lines(root: str, words: Sequence[str]) -> dict[str, dict[str, int]]:
    """Path -> word -> first line with it, as far as ripgrep comes in its time; nothing without ripgrep."""
    wanted = [word for word in words if word.isprintable()]
    found: dict[str, dict[str, int]] = defaultdict(dict)
    if wanted:
        for path, line, text in await plaintext.matches(root, wanted, _SECONDS, "--ignore-case") or ():
            found[path].setdefault(text.lower(), line)
    return found
