"""Calls of servers: what a person is shown before one runs, when they are asked whatever else holds, and what it
gives."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from codewhale.lib.jsontext import pretty
from codewhale.lib.text import fenced, one_line, sanitise
from codewhale.mcp.asking import CallAsker
from codewhale.mcp.entries import ConfiguredServer
from codewhale.mcp.results import ResultMaker
from codewhale.mcp.rows import said_of
from codewhale.mcp.service import McpService, Pending
from codewhale.mcp.terms import CallOutcome, OfferedTool, ServerCaller
from codewhale.protocol.blocks import Block, DiffBlock, MarkdownBlock
from codewhale.protocol.decisions import CallView, Opinion
from codewhale.protocol.errors import ConfigError, ToolError
from codewhale.protocol.modes import Mode
from codewhale.protocol.ports import Asker, Completer
from codewhale.protocol.tools import BoundCall, CallContext, ToolResult, ToolSpec

_MOST_JUDGED = 200
_DIFF_LINES = 400
Changed = tuple[OfferedTool, OfferedTool]


class McpCalls:
    """The calls of a workspace's servers. As a hook of calls it asks where a server, or what a tool says of itself, is
    not as it was approved."""

    def __init__(
        self, service: McpService, results: ResultMaker, asker: Asker, completer: Callable[[], Completer]
    ) -> None:
        self.service = service
        self._results = results
        self._asker = asker
        self._completer = completer
        self._judged: dict[tuple[str, str], tuple[str, Pending | None, Changed | None]] = {}

    # ------------------------------------------------------------------ tools

    def bind(self, spec: ToolSpec, arguments: dict[str, Any]) -> BoundCall:
        """The call of a tool."""

        async def run(call: CallContext) -> ToolResult:
            server, tool = self.service.table.tools.get(spec.name, ("", ""))
            if not server:
                raise ToolError("not_available", f"{spec.name} is not offered any more; look for another tool.")
            ask = lambda caller: self.service.call(spec.name, arguments, caller)  # noqa: E731
            return await self._shown(call, server, tool, ask)

        return BoundCall((), run, lambda workspace: self._outline(spec.name, arguments))

    async def read(self, call: CallContext, server: str, uri: str) -> ToolResult:
        """Read a resource. Raises ToolError."""
        return await self._shown(call, server, uri, lambda caller: self.service.read(server, uri, caller))

    async def prompt(self, call: CallContext, server: str, name: str, arguments: dict[str, str]) -> ToolResult:
        """The messages of a prompt. Raises ToolError."""
        return await self._shown(
            call, server, name, lambda caller: self.service.prompt(server, name, arguments, caller)
        )

    async def prompt_text(self, session: str, server: str, name: str, arguments: dict[str, str]) -> ToolResult:
        """The messages of a prompt that the person has asked for. Raises ToolError."""
        sampling = self.service.server(server).sampling
        caller = CallAsker(session, self._asker, self._completer, sampling, lambda step: None)
        outcome = await self.service.prompt(server, name, arguments, caller)
        return await asyncio.to_thread(self._results.result, outcome, session, server, name)

    async def _shown(
        self, call: CallContext, server: str, what: str, ask: Callable[[ServerCaller], Awaitable[CallOutcome]]
    ) -> ToolResult:
        sampling = self.service.server(server).sampling
        caller = CallAsker(call.session, self._asker, self._completer, sampling, call.progress)
        outcome = await ask(caller)
        return await asyncio.to_thread(self._results.result, outcome, call.session, server, what)

    # ------------------------------------------------------------------ what is asked

    async def judge(self, call: CallView) -> Opinion | None:
        """Ask where the person has not seen what would run."""
        found = self.service.tool(call.tool)
        if found is None:
            return None
        server, tool = found
        try:
            pending = await self._pending(server)
        except ToolError as error:
            return Opinion("deny", "mcp.server", error.message)
        changed = self.service.changed_tool(call.tool)
        self._judged = dict(list(self._judged.items())[-_MOST_JUDGED:])
        self._judged[call.session, call.call_id] = (server.name, pending, changed)
        if pending is not None:
            what = "has changed since it was approved" if pending.standing == "changed" else "has not been approved"
            return Opinion("ask", "mcp.server", f"The MCP server {server.name} {what}, and is started for this call.")
        if changed is not None:
            reason = f"What {one_line(tool.name, 80)} of the MCP server {server.name} says of itself has changed since."
            return Opinion("ask", "mcp.tool", reason)
        if tool.annotations.get("destructiveHint") is True and call.mode is not Mode.YOLO:
            reason = f"The MCP server {server.name} says that {one_line(tool.name, 80)} may destroy something."
            return Opinion("ask", "mcp.destructive", reason)
        return None

    async def _pending(self, server: ConfiguredServer) -> Pending | None:
        return None if self.service.runs(server) else await asyncio.to_thread(self.service.pending, server.name)

    async def before(self, call: CallView) -> str | None:
        """What was shown is approved now: it is kept."""
        name, pending, changed = self._judged.pop((call.session, call.call_id), ("", None, None))
        try:
            if pending is not None:
                await asyncio.to_thread(self.service.approve, name, pending.fingerprint)
            if changed is not None:
                self.service.approve_tool(call.tool)
        except (ToolError, ConfigError) as error:
            return str(error)
        return None

    async def after(self, call: CallView, result: ToolResult | None) -> str | None:
        return None

    def _outline(self, wire: str, arguments: dict[str, Any]) -> tuple[Block, ...]:
        """What a person is shown of a call. Reads files."""
        found = self.service.tool(wire)
        if found is None:
            return ()
        server, tool = found
        blocks: list[Block] = []
        pending = None if self.service.runs(server) else self.service.pending(server.name)
        if pending is not None:
            blocks.append(card_block(server.name, pending))
        changed = self.service.changed_tool(wire)
        if changed is not None:
            before, now = (said_of(one).splitlines() for one in changed)
            blocks.append(difference(f"{server.name}: {one_line(tool.name, 80)}", before, now))
        call = f"`{_plain(tool.name)}` of the MCP server `{_plain(server.name)}`:"
        return (*blocks, MarkdownBlock(f"{call}\n{fenced(sanitise(pretty(arguments)))}"))


def card_block(name: str, pending: Pending) -> Block:
    """The card of a server; of one that has changed, the difference."""
    if pending.before:
        return difference(f"{name}: MCP server", pending.before, pending.card)
    return MarkdownBlock(fenced("\n".join(pending.card)))


def difference(title: str, before: "list[str] | tuple[str, ...]", now: "list[str] | tuple[str, ...]") -> Block:
    """Two texts as their difference, the whole of both around it."""
    import difflib  # which no start needs

    lines = list(difflib.unified_diff(before, now, "approved", "now", n=_DIFF_LINES, lineterm=""))
    more = [f"... {len(lines) - _DIFF_LINES} more lines"] if len(lines) > _DIFF_LINES else []
    return DiffBlock(title, "\n".join((*lines[:_DIFF_LINES], *more)) + "\n")


def _plain(text: str) -> str:
    return one_line(text, 80).replace("`", "'")
