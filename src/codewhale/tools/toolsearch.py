"""Finding tools that are not in the array: by what is needed, or by a regular expression. What is found becomes known
to the session; the agent sees to that by the result's updates."""

import re
from typing import Annotated, Any

import msgspec

from codewhale.protocol.blocks import TableBlock
from codewhale.protocol.errors import NextCall, ToolError
from codewhale.protocol.ports import CatalogView, Findings
from codewhale.protocol.tools import CallContext, Effect, Origin, ToolResult, ToolsShown
from codewhale.tools.base import Args, Doc, tool

MOST = 8
# A result is shown whole: tools whose schemas would take it beyond this are left out.
_BYTES = 15_000
_QUERY = 1000

Most = Annotated[int, Doc("How many at most.", ge=1, le=MOST)]


class SearchByNeed(Args, frozen=True):
    """A need."""

    query: Annotated[str, Doc("What you need to do, in a few words.", min_length=1, max_length=_QUERY)]
    max_results: Most = MOST


class SearchByPattern(Args, frozen=True):
    """A pattern."""

    query: Annotated[str, Doc("The regular expression; case is ignored.", min_length=1, max_length=_QUERY)]
    max_results: Most = MOST


class ToolSearchTools:
    """The two ways to look for a tool."""

    def __init__(self, catalog: CatalogView) -> None:
        self._catalog = catalog

    @tool("tool_search_tool_bm25", effects={Effect.READS})
    async def by_need(self, args: SearchByNeed, call: CallContext) -> ToolResult:
        """Find more tools by what you need them for. Returns up to 8 with their schemas, best first; call them by
        name from then on. Also says why a tool cannot be used now.
        """
        await self._catalog.learn()
        return self._result(self._catalog.find(call.session, args.query, args.max_results, pattern=False), args.query)

    @tool("tool_search_tool_regex", effects={Effect.READS})
    async def by_pattern(self, args: SearchByPattern, call: CallContext) -> ToolResult:
        """Find more tools by a regular expression over their names, descriptions and arguments, such as ^git_.
        Returns what tool_search_tool_bm25 returns.
        """
        await self._catalog.learn()
        try:
            found = self._catalog.find(call.session, args.query, args.max_results, pattern=True)
        except ToolError as error:
            literal = re.escape(args.query)
            error.fix = NextCall("tool_search_tool_regex", {"query": literal}) if len(literal) <= _QUERY else None
            raise
        return self._result(found, args.query)

    def _result(self, found: Findings, query: str) -> ToolResult:
        references: list[dict[str, Any]] = []
        left_out = size = 0
        for hit in found.tools:
            reference = {
                "type": "tool_reference", "tool_name": hit.name, "description": hit.description, "schema": hit.schema,
            }  # fmt: skip
            size += len(msgspec.json.encode(reference))
            if references and size > _BYTES:
                left_out += 1
                continue
            reference |= {"note": hit.note} if hit.note else {}
            references.append({**reference, "known": True} if hit.known else reference)
        names = [str(reference["tool_name"]) for reference in references]
        closed = [{"tool_name": name, "reason": reason} for name, reason in found.unavailable]
        return ToolResult(
            _text(references, closed, _remark(names, left_out, query)),
            display=(TableBlock(("tool",), tuple((name,) for name in names)),),
            metadata={"tool_references": names, "unavailable_tool_references": closed},
            origin=Origin.HARNESS,
            updates=(ToolsShown(tuple(names)),),
        )


def _remark(names: list[str], left_out: int, query: str) -> str:
    if not names:
        return f"No tool fits {query[:80]!r}. Say it in other words, or use the tools you have."
    return f"{left_out} more are too long to show; ask for them by name." if left_out else ""


def _text(references: list[dict[str, Any]], closed: list[dict[str, str]], remark: str) -> str:
    """The answer as JSON, a tool a line."""
    lines = ",\n".join(msgspec.json.encode(reference).decode() for reference in references)
    rest: dict[str, Any] = {"unavailable_tool_references": closed} if closed else {}
    if remark:
        rest["message"] = remark
    more = "," + msgspec.json.encode(rest).decode()[1:-1] if rest else ""
    return f'{{"type":"tool_search_tool_search_result","tool_references":[\n{lines}\n]{more}}}'
