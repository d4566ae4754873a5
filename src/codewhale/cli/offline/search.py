"""Code search for a person or a script: one question, or one a line, about a folder and its index."""

import os
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.app.settings import open_config, search_settings
from codewhale.cli.offline.index import made
from codewhale.codesearch.build import Progress
from codewhale.codesearch.rank import Filter
from codewhale.codesearch.render import BadFilter, filter_of, render_json, render_text
from codewhale.codesearch.search import PATIENCE, CodeSearch, SearchAnswer
from codewhale.protocol.errors import CodeWhaleError

MOST_RESULTS = 100


class Asked(Struct, frozen=True):
    """What is asked beside the query: how many results, a filter of three texts ("" is any), and whether to answer
    before the index is true of the folder."""

    most: int = 10
    path_glob: str = ""
    lang: str = ""
    kind: str = ""
    no_wait: bool = False


class _Line(Struct, frozen=True):
    query: str
    id: Any = None


class Searcher:
    """Questions about one folder, its index kept open between them."""

    def __init__(self, home: str, root: str, asked: Asked) -> None:
        """Raises CodeWhaleError for a filter that cannot be, and for a configuration that cannot."""
        try:
            self._only: Filter = filter_of(asked.path_glob, asked.lang, asked.kind)
        except BadFilter as bad:
            raise CodeWhaleError(str(bad)) from None
        self._search = CodeSearch(home, settings=search_settings(open_config(home, root, os.environ, {})))
        self._home, self._root = home, root
        self._asked = asked
        self._ready = False

    def is_built_elsewhere(self) -> bool:
        """Whether another process is building the index just now."""
        return self._search.is_built_elsewhere(self._root)

    async def ask(self, query: str, progress: Progress | None = None, *, alone: bool = False) -> SearchAnswer:
        """Answer one query. The index is made true once, before the first; for a question `alone` not where another
        process is at it: then what there is answers and says so. Raises CodeWhaleError."""
        patience = 0.0 if self._asked.no_wait or self._ready else None
        if alone and patience is None and self.is_built_elsewhere():
            patience = PATIENCE
        with made(self._home, self._root):
            answer = await self._search.search(
                self._root, query, self._asked.most, only=self._only, patience=patience, progress=progress
            )
        if patience is None and self._search.is_on and answer.notes and answer.age is None:
            raise CodeWhaleError(f"the code index of {self._root} could not be built: {answer.notes[0]}")
        self._ready = self._ready or patience is None
        return answer

    async def told(self, query: str, progress: Progress | None = None) -> str:
        """The answer as the tool gives it."""
        return render_json(self._root, query, await self.ask(query, progress, alone=True))[0]

    async def listed(self, query: str, progress: Progress | None = None) -> tuple[str, tuple[str, ...]]:
        """The answer as a person reads it, and what must be known of it."""
        answer = await self.ask(query, progress, alone=True)
        return render_text(self._root, query, answer), answer.notes

    async def line(self, data: bytes) -> dict[str, Any]:
        """The answer to one line of a batch. Raises ValueError, in words, for a line that holds no query."""
        try:
            line = msgspec.json.decode(data, type=_Line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ValueError(f"not a JSON object with id and query: {error}") from None
        answer = await self.ask(line.query)
        rows = [
            {"path": hit.path, "line": hit.line, "end_line": hit.end_line, "score": hit.score} for hit in answer.hits
        ]
        found: dict[str, Any] = {"id": line.id, "results": rows}
        if self._asked.no_wait and answer.notes:
            found |= {"partial": True, "coverage": round(answer.coverage, 3)}
        return found

    async def aclose(self) -> None:
        """Close the index."""
        await self._search.aclose()


def refused(number: int, error: Exception) -> dict[str, Any]:
    """What is answered to a line that cannot be."""
    return {"id": None, "line": number, "error": {"code": "bad_line", "message": str(error)}}
