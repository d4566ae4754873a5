"""codebase_search: code found by what it does. The index, its ranking and its freshness are codesearch."""

import asyncio
from typing import Annotated, Literal

from codewhale.codesearch.render import BadFilter, filter_of, render_json
from codewhale.codesearch.search import CodeSearch
from codewhale.codesearch.store import IndexDamagedError
from codewhale.protocol.blocks import TableBlock
from codewhale.protocol.errors import CodeWhaleError, Look, NextCall, ToolError
from codewhale.protocol.tools import CallContext, Effect, ToolResult
from codewhale.tools.base import Args, Doc, tool

MOST_RESULTS = 50
Definition = Literal[
    "fn", "class", "struct", "enum", "trait", "interface", "impl", "const", "type", "module", "macro"
]  # fmt: skip


class CodebaseSearch(Args, frozen=True):
    """What to look for, and where."""

    query: Annotated[
        str, Doc("What the code does or is, in words or names: where is a provider's key resolved.", min_length=1,
                 max_length=2000, pattern=r"\w")
    ]  # fmt: skip
    max_results: Annotated[int, Doc("Most files to return.", ge=1, le=MOST_RESULTS)] = 10
    path_glob: Annotated[str, Doc("Only paths that match, such as src/** or *.py.", min_length=1)] | None = None
    lang: Annotated[str, Doc("Only this language, such as python or rust.", min_length=1)] | None = None
    kind: Annotated[Definition, Doc("Only files that define one.")] | None = None


class CodeSearchTools:
    """The tool that searches the code index."""

    def __init__(self, search: CodeSearch) -> None:
        self._search = search

    @tool("codebase_search", effects={Effect.READS}, parallel=True)
    async def codebase_search(self, args: CodebaseSearch, call: CallContext) -> ToolResult:
        """Find code by what it does, also without knowing its words: the best files with line, snippet, score and the
        reasons for it. Text that you know exactly is found as well; for every place it stands use grep_files, for
        file names file_search. Ask again with other words before you read many files.
        """
        try:
            only = filter_of(args.path_glob or "", args.lang or "", args.kind or "")
            found = await self._search.search(call.workspace, args.query, args.max_results, only=only)
        except BadFilter as bad:
            raise _wrong(args, bad) from None
        except (OSError, CodeWhaleError, IndexDamagedError) as error:
            raise _unavailable(args, str(error)) from None
        content, shown = await asyncio.to_thread(render_json, call.workspace, args.query, found)
        rows = tuple((f"{hit.path}:{hit.line}", f"{hit.score:.2f}") for hit in found.hits[:shown])
        metadata = {"results": shown, "backend": found.backend, "complete": not found.notes}
        return ToolResult(content, display=(TableBlock(("place", "score"), rows),), metadata=metadata)


def _wrong(args: CodebaseSearch, bad: BadFilter) -> ToolError:
    received = str(getattr(args, bad.field))[:80]
    return ToolError(
        "invalid_input",
        f"{bad.field} {received!r} is not {bad.expected}.",
        field=bad.field,
        expected=bad.expected,
        received=received,
        fix=NextCall("codebase_search", {"query": args.query}),
    )


def _unavailable(args: CodebaseSearch, why: str) -> ToolError:
    return ToolError(
        "not_available",
        f"The code index cannot be used: {why}. Search by text instead.",
        field="query",
        expected="an index",
        received=why[:120],
        fix=Look("grep_files", {"pattern": args.query.split()[0][:80], "case_insensitive": True}),
    )
