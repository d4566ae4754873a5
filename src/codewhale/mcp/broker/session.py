"""One server as the broker holds it: connected in a task of its own, used by many orders at once, and what it asks back
led to the order that it belongs to."""

import asyncio
import contextlib
import json
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import anyio
import mcp_types as types
from mcp.client import ClientRequestContext, IncomingMessage, Transport
from mcp.client._transport import TransportStreams
from pydantic import FileUrl

from codewhale import __version__
from codewhale.lib.text import one_line
from codewhale.mcp.broker.login import login_needed
from codewhale.mcp.broker.offers import offer_of
from codewhale.mcp.broker.pieces import ThinStream, of_call, of_prompt, of_resource
from codewhale.mcp.broker.programs import ProgramTransport
from codewhale.mcp.broker.web import LED, WebTransport
from codewhale.mcp.frames import AskAnswer, Changed, Gone, Log, Open, OrderProgress, Report, UseOrder
from codewhale.mcp.terms import CallOutcome, ServerFailed, ServerOffer
from mcp import Client, MCPError

MOST_TEXT = 10_000  # characters of what a server says in passing
END_SECONDS = 6.0
GONE_SECONDS = 3.0
_MODERN = "2026-07-28"
_ORDER: ContextVar[int] = ContextVar("order", default=0)
_UNCLEAR = "several calls are under way and the question names none of them; ask while one call runs alone"
_CHANGES = (
    types.ToolListChangedNotification, types.PromptListChangedNotification, types.ResourceListChangedNotification,
)  # fmt: skip


class Desk(Protocol):
    """The broker as a session sees it."""

    folder: str

    def post(self, report: Report) -> None: ...

    async def ask(self, order: int, server: str, what: str, data: dict[str, Any]) -> AskAnswer: ...


class Thinned:
    """A transport whose messages have few parts."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def __aenter__(self) -> TransportStreams:
        read, write = await self._inner.__aenter__()
        return ThinStream(read), write

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


class ServerSession:
    """A server. `open` it once, `close` it."""

    def __init__(self, order: Open, desk: Desk) -> None:
        self.spec = spec = order.spec
        self._desk = desk
        self._client: Client | None = None
        self._program = ProgramTransport(spec) if spec.argv else None
        self._web = WebTransport(order, self._ask) if spec.url and not spec.argv else None
        self._scope = anyio.CancelScope()
        self._end = asyncio.Event()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._life: asyncio.Task[None] | None = None
        self._orders: list[int] = []

    @property
    def runs(self) -> bool:
        return self._client is not None

    async def open(self, order: int) -> ServerOffer:
        """Connect it, and list what it offers. Raises ServerFailed."""
        self._orders.append(order)
        try:
            self._life = asyncio.create_task(self._live())
            await asyncio.shield(self._opened)
            return await self.offer()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.close()
            raise
        finally:
            self._orders.remove(order)

    async def offer(self) -> ServerOffer:
        """What it offers now."""
        try:
            return await offer_of(self._live_client(), self.spec.name)
        except MCPError as error:
            raise self._failed(error, sent=False) from None

    async def use(self, order: UseOrder) -> CallOutcome:
        """Call, read or get."""
        client = self._live_client()
        _ORDER.set(order.order)
        self._orders.append(order.order)
        try:
            if order.what == "call":
                progress = partial(self._progress, order.order)
                called = await client.call_tool(order.item, order.arguments, progress_callback=progress)
                return of_call(called, self._desk.folder)
            if order.what == "read":
                return of_resource(await client.read_resource(order.item, cache_mode="bypass"), self._desk.folder)
            arguments = {name: str(value) for name, value in order.arguments.items()}
            return of_prompt(await client.get_prompt(order.item, arguments or None), self._desk.folder)
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED and self._life is not None:
                await asyncio.wait((self._life,), timeout=GONE_SECONDS)  # how it ended is said before
            raise self._failed(error, sent=True) from None
        finally:
            self._orders.remove(order.order)

    async def close(self) -> None:
        """End it, by force where it does not end by itself."""
        self._end.set()
        if self._life is None:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._life), END_SECONDS)
        self._scope.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._life

    async def _live(self) -> None:
        """Hold the connection from its beginning to its end."""
        failed: ServerFailed | None = None
        try:
            with self._scope:
                async with self._made() as client:
                    self._client = client
                    if not self._opened.done():
                        self._opened.set_result(None)
                    await self._until_end(client)
        except BaseException as error:
            failed = self._reason(error)
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self._client = None
            if failed is None:
                failed = ServerFailed("lost", f"The MCP server {self.spec.name} has ended.")
            if not self._opened.done():
                self._opened.set_exception(failed)
                self._opened.exception()
            elif not self._end.is_set():
                stderr = self._program.stderr if self._program is not None else ""
                self._desk.post(Gone(self.spec.name, str(failed), stderr))

    def _made(self) -> Client:
        transport = self._program or self._web
        if transport is None:
            raise ServerFailed("start", f"The MCP server {self.spec.name} has neither a program nor an address.")
        return Client(
            Thinned(transport),
            sampling_callback=self._sample if self.spec.sampling else None,
            list_roots_callback=self._roots,
            logging_callback=self._log,
            log_level="info",
            message_handler=self._heard,
            client_info=types.Implementation(name="codewhale", version=__version__),
            elicitation_callback=self._elicit,
            cache=None,
        )

    async def _until_end(self, client: Client) -> None:
        """Wait until it is to end, or has ended; meanwhile hear of changes."""
        waits = [asyncio.create_task(self._end.wait())]
        if self._program is not None:
            waits.append(asyncio.create_task(self._program.ended.wait()))
        listening = asyncio.create_task(self._listen(client))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*waits, listening):
                task.cancel()
            await asyncio.gather(*waits, listening, return_exceptions=True)

    async def _listen(self, client: Client) -> None:
        """In the newer revision changes come on a stream that is asked for."""
        has = client.server_capabilities
        tools = bool(has.tools and has.tools.list_changed)
        prompts = bool(has.prompts and has.prompts.list_changed)
        resources = bool(has.resources and has.resources.list_changed)
        if client.protocol_version < _MODERN or not (tools or prompts or resources):
            return
        async with client.listen(
            tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
        ) as changes:
            async for _ in changes:
                self._desk.post(Changed(self.spec.name))

    def _live_client(self) -> Client:
        if self._client is None:
            raise ServerFailed("lost", f"The MCP server {self.spec.name} has ended. Nothing was sent; try again.")
        return self._client

    def _reason(self, error: BaseException) -> ServerFailed:
        """Why it did not connect, or ended."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, ServerFailed):
            return error
        said = f"{error}" if isinstance(error, MCPError) else f"{type(error).__name__}: {error}"
        if self._web is not None and self._web.denied:
            return login_needed(self.spec.name)
        if self._web is not None and self._web.problem:
            said = self._web.problem
        tail = self._program.stderr.strip() if self._program is not None else ""
        printed = f" It printed: {tail[-500:]}" if tail else ""
        return ServerFailed("start", f"The MCP server {self.spec.name} failed: {one_line(said, 500)}.{printed}")

    def _failed(self, error: MCPError, *, sent: bool) -> ServerFailed:
        name = self.spec.name
        if self._web is not None and self._web.denied:
            return login_needed(name)
        if self._web is not None and error.code == types.INVALID_REQUEST and "Session terminated" in str(error):
            self._client = None  # the server no longer knows it, and has done nothing
            return ServerFailed(
                "lost", f"The MCP server {name} has forgotten this session. Nothing was done; try again."
            )
        if error.code == types.CONNECTION_CLOSED:
            what = "It may have been done: look before it is tried again." if sent else "Nothing was changed."
            return ServerFailed("lost", f"The MCP server {name} ended while it worked. {what}", sent=sent)
        if self._web is not None and self._web.problem.startswith(LED):
            return ServerFailed("refused", f"The MCP server {name} failed: {self._web.problem}.", sent=sent)
        return ServerFailed("refused", f"The MCP server {name} refused: {str(error)[:2000]}", sent=sent)

    def _order(self) -> int:
        """The order that something belongs to: its own, where the transport says it, or else the last that began."""
        own = _ORDER.get()
        return own if own in self._orders else (self._orders[-1] if self._orders else 0)

    def _asking(self) -> int | None:
        """The order that a question belongs to: its own, or the only one. None where several may have asked it, of
        which each is told."""
        own = _ORDER.get()
        if own in self._orders or len(self._orders) < 2:
            return self._order()
        for order in self._orders:
            self._desk.post(Log(order, self.spec.name, "warning", f"a question was refused: {_UNCLEAR}"))
        return None

    async def _ask(self, what: str, data: dict[str, Any]) -> AskAnswer:
        return await self._desk.ask(self._order(), self.spec.name, what, data)

    async def _progress(self, order: int, progress: float, total: float | None, message: str | None) -> None:
        self._desk.post(OrderProgress(order, self.spec.name, progress, total, (message or "")[:MOST_TEXT]))

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        text = params.data if isinstance(params.data, str) else json.dumps(params.data, ensure_ascii=False)
        self._desk.post(Log(self._order(), self.spec.name, str(params.level), text[:MOST_TEXT]))

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, _CHANGES) and self._opened.done():
            self._desk.post(Changed(self.spec.name))

    async def _roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult(
            roots=[
                types.Root(uri=FileUrl(Path(root).as_uri()), name=Path(root).name or None) for root in self.spec.roots
            ]
        )

    async def _elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        schema: dict[str, Any] = {}
        url = ""
        if isinstance(params, types.ElicitRequestURLParams):
            url = str(params.url)
        else:
            schema = _plain(params.requested_schema)
        if (order := self._asking()) is None:
            return types.ErrorData(code=types.INVALID_REQUEST, message=_UNCLEAR)
        data = {"message": params.message[:MOST_TEXT], "schema": schema, "url": url}
        answer = await self._desk.ask(order, self.spec.name, "elicit", data)
        action = answer.data.get("action")
        if answer.refused or action not in ("accept", "decline", "cancel"):
            return types.ElicitResult(action="cancel")
        if action != "accept" or url:
            return types.ElicitResult(action=action)
        return types.ElicitResult(action="accept", content={**_defaults(schema), **answer.data.get("content", {})})

    async def _sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        request = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        if (order := self._asking()) is None:
            return types.ErrorData(code=types.INVALID_REQUEST, message=_UNCLEAR)
        answer = await self._desk.ask(order, self.spec.name, "sample", request)
        if answer.refused:
            return types.ErrorData(code=-1, message=answer.refused)
        return types.CreateMessageResult.model_validate(answer.data)


def _plain(schema: Any) -> dict[str, Any]:
    found = schema if isinstance(schema, dict) else schema.model_dump(by_alias=True, exclude_none=True)
    return dict(found)


def _defaults(schema: dict[str, Any]) -> dict[str, Any]:
    """What a form says for fields that nobody filled in."""
    rows = schema.get("properties")
    fields = rows.items() if isinstance(rows, dict) else ()
    return {name: row["default"] for name, row in fields if isinstance(row, dict) and "default" in row}
