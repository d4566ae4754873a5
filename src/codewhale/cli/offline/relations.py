"""Names and commits of a folder for a person or a script, from its code index."""

import os
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from codewhale.app.settings import open_config, search_settings
from codewhale.cli.offline.index import made
from codewhale.codesearch.build import Progress
from codewhale.codesearch.history import CommitHits, find_commits
from codewhale.codesearch.intelligence import Intelligence, NoSuchFile, RelatedCode
from codewhale.codesearch.reader import IndexReader
from codewhale.codesearch.search import CodeSearch
from codewhale.protocol.errors import CodeWhaleError

T = TypeVar("T")
Answer = tuple[T, tuple[str, ...]]


async def symbols_of(home: str, root: str, name: str, relation: str, progress: Progress | None) -> Answer[RelatedCode]:
    """What stands in a relation to a name in the folder `root`, and what must be known of its index, which is made
    true first. Raises CodeWhaleError, also where there is no such file."""

    def work(reader: IndexReader) -> RelatedCode:
        return Intelligence(reader, root).related(name, relation)

    try:
        return await _answer(home, root, work, progress)
    except NoSuchFile as missing:
        near = f"; did you mean {', '.join(missing.near)}?" if missing.near else ""
        raise CodeWhaleError(f"{missing}{near}") from None


async def commits_of(home: str, root: str, query: str, most: int, progress: Progress | None) -> Answer[CommitHits]:
    """The best commits for a query, at most `most`. Raises CodeWhaleError."""
    return await _answer(home, root, partial(find_commits, text=query, most=most), progress)


async def _answer(home: str, root: str, work: Callable[[IndexReader], T], progress: Progress | None) -> Answer[T]:
    search = CodeSearch(home, settings=search_settings(open_config(home, root, os.environ, {})))
    try:
        with made(home, root):
            found, notes = await search.read(root, work, patience=None, progress=progress)
    finally:
        await search.aclose()
    if found is None:
        raise CodeWhaleError(f"the code index of {root} cannot be read: {' '.join(notes)}")
    return found, notes
