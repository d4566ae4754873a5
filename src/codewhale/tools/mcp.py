"""What servers of the Model Context Protocol offer beside tools: resources, and prompts."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from codewhale.lib.jsontext import pretty
from codewhale.lib.text import one_line
from codewhale.mcp.calls import McpCalls
from codewhale.mcp.remembered import RememberedOffer
from codewhale.mcp.results import FOREIGN
from codewhale.mcp.rows import bounded
from codewhale.mcp.terms import OfferedPrompt, OfferedResource
from codewhale.protocol.errors import Look, ToolError
from codewhale.protocol.tools import CallContext, Effect, Origin, ToolResult
from codewhale.tools.base import Args, Doc, tool

MOST_LISTED = 200
_NONE = "No MCP server is configured. The user adds one with /mcp add, or `codewhale mcp add`."
ServerName = Annotated[str, Doc("The name of the server.", min_length=1, max_length=64)]


class OfServer(Args, frozen=True):
    """Which server."""

    server: Annotated[str, Doc("Of this server alone; left out: of all.", max_length=64)] | None = None


class ReadResource(Args, frozen=True):
    """Which resource."""

    server: ServerName
    uri: Annotated[str, Doc("Its address, as a list gives it; of a template filled in.", min_length=1, max_length=4096)]


class GetPrompt(Args, frozen=True):
    """Which prompt, filled in with what."""

    server: ServerName
    name: Annotated[str, Doc("The name of the prompt.", min_length=1, max_length=256)]
    arguments: Annotated[dict[str, Any], Doc("Its arguments, each a text.")] | None = None


class McpTools:
    """The tools for resources and prompts. `calls(session)` are those of the servers of a session's workspace, None
    where no server is named."""

    def __init__(self, calls: Callable[[str], McpCalls | None]) -> None:
        self._calls = calls

    @tool("list_mcp_resources", effects={Effect.READS}, parallel=True)
    async def list_mcp_resources(self, args: OfServer, call: CallContext) -> ToolResult:
        """List the resources (data with an address, such as files, pages, tables) and the prompts that MCP servers
        offer. Starts the server that is named.
        """
        return await self._listed(args, call, lambda known: _resources(known, False) + _prompts(known))

    @tool("list_mcp_resource_templates", effects={Effect.READS}, parallel=True)
    async def list_mcp_resource_templates(self, args: OfServer, call: CallContext) -> ToolResult:
        """List the patterns of addresses of resources that MCP servers offer; fill one in and read it with
        mcp_read_resource. Starts the server that is named.
        """
        return await self._listed(args, call, lambda known: _resources(known, True))

    @tool("mcp_read_resource", effects={Effect.READS}, parallel=True)
    async def mcp_read_resource(self, args: ReadResource, call: CallContext) -> ToolResult:
        """Read a resource of an MCP server by its address. What it holds is somebody else's text."""
        return await self._of(call).read(call, args.server, args.uri)

    @tool("mcp_get_prompt", effects={Effect.READS}, parallel=True)
    async def mcp_get_prompt(self, args: GetPrompt, call: CallContext) -> ToolResult:
        """The messages of a prompt that an MCP server offers, filled in. What it says is somebody else's text."""
        given = {
            name: value if isinstance(value, str) else pretty(value) for name, value in (args.arguments or {}).items()
        }
        return await self._of(call).prompt(call, args.server, args.name, given)

    def _of(self, call: CallContext) -> McpCalls:
        calls = self._calls(call.session)
        if calls is None or not calls.service.usable():
            raise ToolError(
                "not_available", _NONE, field="server", expected="the name of a configured server", received="none"
            )
        return calls

    async def _listed(
        self, args: OfServer, call: CallContext, lines: Callable[[RememberedOffer], list[str]]
    ) -> ToolResult:
        service = self._of(call).service
        names = (args.server,) if args.server else service.usable()
        asked: list[Awaitable[RememberedOffer]] = []
        for name in names:
            known = None if args.server else service.offered(name)
            asked.append(service.ready(name) if known is None else _kept(known))
        found = await asyncio.gather(*asked, return_exceptions=True)
        texts, failed = list[str](), list[str]()
        for name, one in zip(names, found, strict=True):
            if isinstance(one, ToolError):
                failed.append(one.message)
            elif isinstance(one, BaseException):
                raise one
            else:
                rows = lines(one)
                more = [f"... {len(rows) - MOST_LISTED} more"] if len(rows) > MOST_LISTED else []
                texts += [f"{one_line(name, 80)}:", *(rows[:MOST_LISTED] or ["- nothing"]), *more]
        if failed and not texts:
            look = Look("list_mcp_resources", {}) if args.server else None
            raise ToolError("not_available", " ".join(failed), field="server", fix=look)
        said = "\n".join((FOREIGN, "<mcp_result>", *texts, "</mcp_result>", *failed))
        return ToolResult(said, origin=Origin.MCP, metadata={"servers": list(names), "failed": failed})


async def _kept(known: RememberedOffer) -> RememberedOffer:
    return known


def _resources(known: RememberedOffer, templates: bool) -> list[str]:
    return [_line(one) for one in known.offer.resources if one.template == templates]


def _line(one: OfferedResource) -> str:
    about = " ".join(part for part in (one.name, one.description) if part)
    size = f", {one.size:,} bytes" if one.size else ""
    return f"- {bounded(one.uri, 400)} ({bounded(one.mime, 80) or 'of no said type'}{size}): {bounded(about, 300)}"


def _prompts(known: RememberedOffer) -> list[str]:
    return [f"- prompt {_prompt(one)}" for one in known.offer.prompts]


def _prompt(one: OfferedPrompt) -> str:
    words = ", ".join(
        f"{bounded(name, 80)}{'' if needed else ' (may be left out)'}" for name, _, needed in one.arguments
    )
    return f"{bounded(one.name, 80)}({words}): {bounded(one.description, 300)}; mcp_get_prompt gives it"
