"""code_symbols and code_history: what the code index knows of names, files and commits. The answers are made in
codesearch/intelligence.py and history.py."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal, TypeVar

from codewhale.codesearch.history import CommitHits, find_commits
from codewhale.codesearch.intelligence import (
    OF_FILES,
    Intelligence,
    NoSuchFile,
    RelatedCode,
)
from codewhale.codesearch.reader import IndexReader
from codewhale.codesearch.render import render_commits, render_relations
from codewhale.codesearch.search import CodeSearch
from codewhale.codesearch.store import IndexDamagedError
from codewhale.protocol.blocks import TableBlock
from codewhale.protocol.errors import CodeWhaleError, Look, NextCall, ToolError
from codewhale.protocol.tools import CallContext, Effect, ToolResult
from codewhale.tools.base import Args, Doc, tool

T = TypeVar("T")


class CodeSymbols(Args, frozen=True):
    """Arguments of code_symbols."""

    symbol: Annotated[
        str, Doc("Its name, such as resolve_key or Store.open; for imports and importers the path of a file.",
                 min_length=1, max_length=500)
    ]  # fmt: skip
    relation: Annotated[
        Literal["definitions", "references", "callers", "callees", "imports", "importers"],
        Doc("What of it to find: callers call it, callees are called in it, importers import the file."),
    ] = "definitions"
    max_results: Annotated[int, Doc("Most places to return.", ge=1, le=200)] = 50


class CodeHistory(Args, frozen=True):
    """Arguments of code_history."""

    query: Annotated[str, Doc("What was changed, in words, names or paths.", min_length=1, max_length=2000)]
    max_results: Annotated[int, Doc("Most commits to return.", ge=1, le=100)] = 10


class CodeSymbolTools:
    """The tools that ask the code index for names and commits."""

    def __init__(self, search: CodeSearch) -> None:
        self._search = search

    @tool("code_symbols", effects={Effect.READS}, parallel=True)
    async def code_symbols(self, args: CodeSymbols, call: CallContext) -> ToolResult:
        """Find where a symbol is defined, referenced or called, what it calls, or what a file imports and who imports
        it: path, line and text of each place, whether it is certain or shares the name alone, and why.
        """

        def work(reader: IndexReader) -> RelatedCode:
            return Intelligence(reader, call.workspace).related(args.symbol, args.relation, args.max_results)

        try:
            found, notes = await self._answer(call.workspace, work, args.symbol)
        except NoSuchFile as missing:
            raise _no_file(args, missing) from None
        content, shown = render_relations(found, (args.symbol, args.relation), notes)
        spots = found.spots[:shown] if found is not None else ()
        rows = tuple((f"{spot.path}:{spot.line}", spot.name or spot.inside, spot.text) for spot in spots)
        metadata = {"results": shown, "total": found.total if found else 0, "complete": not notes}
        return ToolResult(content, display=(TableBlock(("place", "name", "text"), rows),), metadata=metadata)

    @tool("code_history", effects={Effect.READS}, parallel=True)
    async def code_history(self, args: CodeHistory, call: CallContext) -> ToolResult:
        """Find commits by what their subjects say and which paths they changed, best first, with the pull request
        that a subject names. For the log of one file use git_log, for a commit's diff git_show.
        """
        work: Callable[[IndexReader], CommitHits] = partial(find_commits, text=args.query, most=args.max_results)
        found, notes = await self._answer(call.workspace, work, args.query)
        content, shown = render_commits(args.query, found, notes)
        best = found.best[:shown] if found is not None else ()
        rows = tuple((commit.sha[:10], commit.at[:10], commit.subject) for commit in best)
        metadata = {"results": shown, "complete": not notes}
        return ToolResult(content, display=(TableBlock(("commit", "date", "subject"), rows),), metadata=metadata)

    async def _answer(
        self, root: str, work: Callable[[IndexReader], T], asked: str
    ) -> tuple[T | None, tuple[str, ...]]:
        try:
            return await self._search.read(root, work)
        except (OSError, CodeWhaleError, IndexDamagedError) as error:
            raise ToolError(
                "not_available",
                f"The code index cannot be used: {error}. Search by text instead.",
                field="index",
                expected="an index",
                received=str(error)[:120],
                fix=Look("grep_files", {"pattern": asked.strip()[:80] or ".", "case_insensitive": True}),
            ) from None


def _no_file(args: CodeSymbols, missing: NoSuchFile) -> ToolError:
    assert args.relation in OF_FILES
    again = {"symbol": missing.near[0], "relation": args.relation} if missing.near else None
    near = f"; there is {missing.near[0]!r}" if missing.near else ""
    return ToolError(
        "invalid_input",
        f"No file {args.symbol[:200]!r} is in the code index{near}.",
        field="symbol",
        expected="the path of a file, from the workspace",
        received=args.symbol[:120],
        fix=NextCall("code_symbols", again) if again else Look("file_search", {"query": args.symbol[:500]}),
    )
