"""Calls of tools for clients: each is made in a session that holds no conversation, one for those who can ask a person
and one for those who cannot, and is decided there as anywhere."""

import asyncio
import base64
import contextlib
import secrets
from collections.abc import AsyncIterator
from typing import Any

import mcp_types as types
from msgspec import Struct, json

from codewhale.display.client import Client
from codewhale.mcpserver.work import ClientWork
from codewhale.protocol.directcalls import DirectOutcome, RunCall
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.events import ApprovalAsked, CallProgress, Envelope
from codewhale.protocol.modes import Authority
from codewhale.protocol.ops import CloseSession, OpenSession


class _Under(Struct):
    """A call under way, with how it was written."""

    work: ClientWork
    written: str


class ToolCalls:
    """The sessions that calls are made in, opened when the first one is, and the calls under way."""

    def __init__(self, client: Client, opening: OpenSession) -> None:
        """`opening` is what a session is opened with, but its authority."""
        self._client = client
        self._opening = opening
        self._opened: dict[Authority, asyncio.Task[str]] = {}
        self._listeners: list[asyncio.Task[None]] = []
        self._under: dict[str, _Under] = {}

    def written(self, call_id: str) -> str:
        """How a call under way was written; "" for another."""
        under = self._under.get(call_id)
        return under.written if under is not None else ""

    async def run(
        self, work: ClientWork, name: str, arguments: dict[str, Any], authority: Authority
    ) -> types.CallToolResult:
        """The result of a call, an error of ours as one of the tool."""
        call_id = f"mcp_{secrets.token_hex(8)}"
        self._under[call_id] = _Under(work, json.encode(arguments).decode())
        try:
            session = await self.session(authority)
            return _result(await self._client.submit(RunCall(session, call_id, name, arguments)))
        except CodeWhaleError as error:
            return failed(str(error))
        finally:
            del self._under[call_id]

    async def session(self, authority: Authority) -> str:
        """The session of all calls with that authority."""
        opening = self._opened.get(authority)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            opening = self._opened[authority] = asyncio.create_task(self._open(authority))
        return await asyncio.shield(opening)

    async def aclose(self) -> None:
        """Close the sessions; calls under way end with them."""
        for opening in self._opened.values():
            with contextlib.suppress(CodeWhaleError):
                await self._client.submit(CloseSession(await opening))
        for listener in self._listeners:
            listener.cancel()
        await asyncio.gather(*self._listeners, return_exceptions=True)

    async def _open(self, authority: Authority) -> str:
        from msgspec.structs import replace

        session = await self._client.submit(replace(self._opening, authority=authority))
        events = self._client.events(session, -1, durable=False)
        self._listeners.append(asyncio.create_task(self._listen(events)))
        return session

    async def _listen(self, events: AsyncIterator[Envelope]) -> None:
        async for envelope in events:
            match envelope.event:
                case ApprovalAsked(call_id=call) if call in self._under:
                    self._under[call].work.ask(envelope)
                case CallProgress(call_id=call, text=text) if call in self._under:
                    self._under[call].work.tell(text)


def _result(outcome: DirectOutcome) -> types.CallToolResult:
    images = [
        types.ImageContent(data=base64.b64encode(data).decode(), mime_type=media) for media, data in outcome.images
    ]
    content: list[types.ContentBlock] = [types.TextContent(text=outcome.content), *images]
    return types.CallToolResult(content=content, is_error=not outcome.ok)


def failed(text: str) -> types.CallToolResult:
    """An error that a model of the client reads and can act on."""
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)
