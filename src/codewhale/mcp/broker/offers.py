"""What a server offers, page by page and cut to bounds; what was cut is said."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import mcp_types as types
import msgspec

from codewhale.mcp.terms import OfferedPrompt, OfferedResource, OfferedTool, ServerOffer
from mcp import Client

MOST_PAGES = 100
MOST_TOOLS, MOST_PROMPTS, MOST_RESOURCES = 1000, 500, 2000
MOST_DESCRIPTION, MOST_SCHEMA, MOST_WORDS = 8000, 64 << 10, 500
MOST_INSTRUCTIONS = 8000
MOST_BYTES = 6 << 20


class _Cut:
    """Cuts texts and schemas, counts bytes, and keeps what is to be said about it."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self._left = MOST_BYTES

    def text(self, text: str | None, most: int, of: str) -> str:
        plain = (text or "").encode("utf-8", "replace").decode()
        if len(plain) > most:
            self.said.append(f"{of}: {len(plain) - most:,} of {len(plain):,} characters")
            plain = plain[:most]
        return plain

    def schema(self, schema: dict[str, Any] | None, of: str) -> dict[str, Any] | None:
        """The schema; None where it is too large."""
        size = len(msgspec.json.encode(schema or {}))
        if size > MOST_SCHEMA:
            self.said.append(f"{of}: it has {size:,} bytes, {MOST_SCHEMA:,} at most")
            return None
        return schema or {}

    def fits(self, row: Any, of: str) -> bool:
        self._left -= len(msgspec.msgpack.encode(row))
        if self._left < 0:
            self.said.append(f"{of}, and what follows: the whole list has more than {MOST_BYTES:,} bytes")
        return self._left >= 0


async def offer_of(client: Client, server: str) -> ServerOffer:
    """All that a server offers now."""
    cut = _Cut()
    has = client.server_capabilities
    tools: list[OfferedTool] = []
    prompts: list[OfferedPrompt] = []
    resources: list[OfferedResource] = []
    if has.tools is not None:
        async for tool in _pages(client.list_tools, "tools", MOST_TOOLS, cut):
            row = _tool(tool, cut)
            if row is not None and cut.fits(row, f"the tool {row.name}"):
                tools.append(row)
    if has.prompts is not None:
        async for prompt in _pages(client.list_prompts, "prompts", MOST_PROMPTS, cut):
            offered = _prompt(prompt, cut)
            if cut.fits(offered, f"the prompt {offered.name}"):
                prompts.append(offered)
    if has.resources is not None:
        async for found in _pages(client.list_resources, "resources", MOST_RESOURCES, cut):
            resources.append(_resource(found, str(found.uri), cut))
        async for found in _pages(client.list_resource_templates, "resource_templates", MOST_RESOURCES, cut):
            resources.append(msgspec.structs.replace(_resource(found, found.uri_template, cut), template=True))
    resources = [row for row in resources if cut.fits(row, f"the resource {row.uri:.100}")]
    info = client.server_info
    return ServerOffer(
        server=server,
        version=cut.text(f"{info.name} {info.version}" if info is not None else "", MOST_WORDS, "the server's name"),
        protocol=client.protocol_version,
        instructions=cut.text(client.instructions, MOST_INSTRUCTIONS, "the instructions"),
        tools=tuple(tools),
        prompts=tuple(prompts),
        resources=tuple(resources),
        left_out=tuple(cut.said[:50]),
    )


async def _pages(list_page: Callable[..., Awaitable[Any]], kind: str, most: int, cut: _Cut) -> AsyncIterator[Any]:
    """Row after row of a list, `most` at most; a list that the server cannot give is empty, and that is said."""
    cursor: str | None = None
    count = 0
    for _ in range(MOST_PAGES):
        try:
            page = await list_page(cursor=cursor, cache_mode="bypass")
        except Exception as error:  # the rest of the server may work
            if type(error).__name__ != "MCPError" or getattr(error, "code", 0) == types.CONNECTION_CLOSED:
                raise
            if getattr(error, "code", 0) != types.METHOD_NOT_FOUND:
                cut.said.append(f"the list of {kind}: {error!s:.200}")
            return
        for row in getattr(page, kind):
            if count >= most:
                cut.said.append(f"{kind} after the first {most:,}")
                return
            count += 1
            yield row
        if not page.next_cursor or page.next_cursor == cursor:
            return
        cursor = page.next_cursor
    cut.said.append(f"{kind} after {MOST_PAGES} pages")


def _tool(tool: types.Tool, cut: _Cut) -> OfferedTool | None:
    name = tool.name
    schema = cut.schema(tool.input_schema, f"the tool {name:.100}, because of its schema")
    if schema is None:
        return None
    return OfferedTool(
        name=cut.text(name, MOST_WORDS, "the name of a tool"),
        description=cut.text(tool.description, MOST_DESCRIPTION, f"the description of the tool {name:.100}"),
        title=cut.text(tool.title, MOST_WORDS, f"the title of the tool {name:.100}"),
        input_schema=schema,
        output_schema=cut.schema(tool.output_schema, f"the output schema of the tool {name:.100}") or {},
        annotations=tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {},
    )


def _prompt(prompt: types.Prompt, cut: _Cut) -> OfferedPrompt:
    of = f"the prompt {prompt.name:.100}"
    arguments = [
        (
            cut.text(one.name, MOST_WORDS, f"an argument of {of}"),
            cut.text(one.description, MOST_WORDS, f"an argument of {of}"),
            bool(one.required),
        )
        for one in (prompt.arguments or [])[:MOST_PROMPTS]
    ]
    description = cut.text(prompt.description, MOST_DESCRIPTION, f"the description of {of}")
    return OfferedPrompt(cut.text(prompt.name, MOST_WORDS, of), description, tuple(arguments))


def _resource(found: types.Resource | types.ResourceTemplate, uri: str, cut: _Cut) -> OfferedResource:
    of = f"the resource {uri:.100}"
    size = getattr(found, "size", None)
    return OfferedResource(
        uri=cut.text(uri, MOST_DESCRIPTION, of),
        name=cut.text(found.title or found.name, MOST_WORDS, of),
        description=cut.text(found.description, MOST_DESCRIPTION, f"the description of {of}"),
        mime=cut.text(found.mime_type, MOST_WORDS, of),
        size=int(size) if size is not None else None,
    )
