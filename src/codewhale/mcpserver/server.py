"""The server: what it lists, and from a call that a client makes to its result."""

import asyncio
from functools import partial
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Struct
from msgspec.structs import replace

from codewhale.display.client import Client
from codewhale.display.words import Words
from codewhale.mcpserver.conversations import KIND, ClientConversations
from codewhale.mcpserver.forms import answer_of, form_of
from codewhale.mcpserver.offer import CONTINUE, START, OfferedTools, listed
from codewhale.mcpserver.toolcalls import ToolCalls, failed
from codewhale.mcpserver.work import ClientWork, ParkedWork
from codewhale.protocol.events import ApprovalAsked, Envelope
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import OpenSession

MOST_WORK = 32
_ANSWER = "answer"
_INSTRUCTIONS = (
    "Tools over one workspace of code: reading, listing, searching, its git history. codebase_search finds code by "
    "what it does. Paths are relative to the workspace. Whether a call may run is decided here."
)
_NO_ONE = types.ElicitResult(action="cancel")

Context = ServerRequestContext[Any, Any]
Request = tuple[str, dict[str, Any]]


class Serving(Struct, frozen=True):
    """What is served: the workspace and rights that sessions are opened with, what is offered, in which language a
    person is asked, under which version."""

    opening: OpenSession
    offer: OfferedTools
    words: Words
    version: str


class CodeWhaleServer:
    """Serves one workspace to any number of clients."""

    def __init__(self, client: Client, serving: Serving) -> None:
        opening = serving.opening
        self._client = client
        self._serving = serving
        self._calls = ToolCalls(client, opening)
        self._conversations = ClientConversations(client, replace(opening, kind=KIND))
        self._parked = ParkedWork()
        self._work: set[ClientWork] = set()

    def protocol(self) -> Server[Any]:
        """The server as the library runs it."""
        return Server(
            "codewhale",
            version=self._serving.version,
            title="CodeWhale",
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def aclose(self) -> None:
        """End what is under way and close what is open."""
        await self._parked.end()
        for work in list(self._work):
            await work.cancel()
        await self._calls.aclose()

    async def _list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed(self._serving.offer, self._serving.opening.mode.value))

    async def _call(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        request = (params.name, params.arguments or {})
        if params.request_state is None:
            return await self._attend(ctx, self._begin(ctx, request), request)
        parked = self._parked.fetch(params.request_state, request)
        if parked is None:
            raise MCPError(types.INVALID_PARAMS, "no call waits under this request state; make the call again")
        result = (params.input_responses or {}).get(_ANSWER)
        if not isinstance(result, types.ElicitResult):
            return self._required(parked.work, parked.asked, request)
        await self._client.submit(answer_of(parked.asked, result))
        return await self._attend(ctx, parked.work, request)

    def _begin(self, ctx: Context, request: Request) -> ClientWork:
        if len(self._work) >= MOST_WORK:
            text = f"{MOST_WORK} calls are under way here; wait until one of them has ended and call again"
            return ClientWork(partial(_refused, text))
        name, arguments = request
        offer = self._serving.offer
        authority = self._authority(ctx)
        if offer.conversations and name in (START, CONTINUE):
            given: dict[str, Any] = {key: arguments[key] for key in ("prompt", "session_id") if key in arguments}
            if name == START:
                given.pop("session_id", None)
            else:
                given.setdefault("session_id", "")
            work = ClientWork(lambda work: self._conversations.run(work, given, authority))
        elif name in offer.rows:
            work = ClientWork(lambda work: self._calls.run(work, name, arguments, authority))
        else:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {name[:80]!r} here; see tools/list")
        self._work.add(work)
        work.task.add_done_callback(lambda task: self._work.discard(work))
        return work

    def _authority(self, ctx: Context) -> Authority:
        capabilities = ctx.session.client_capabilities
        forms = capabilities.elicitation if capabilities is not None else None
        if forms is not None and (forms.form is not None or forms.url is None):
            return Authority.PERSON
        return Authority.AUTO if self._serving.opening.mode is Mode.YOLO else Authority.HEADLESS

    async def _attend(
        self, ctx: Context, work: ClientWork, request: Request
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Wait for a piece of work, tell how far it is, and put what it asks to the client."""
        try:
            while True:
                count, line, asked = await work.next()
                if work.task.done():
                    return _ended(work.task)
                if line:
                    await ctx.session.report_progress(count, None, line)
                if asked is None:
                    continue
                if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                    return self._required(work, asked, request)
                await self._elicit(ctx, work, asked)
        except asyncio.CancelledError:
            await work.cancel()
            raise

    def _required(self, work: ClientWork, asked: Envelope, request: Request) -> types.InputRequiredResult:
        word = self._parked.park(work, asked, request)
        form = types.ElicitRequest(params=self._form(asked))
        return types.InputRequiredResult(input_requests={_ANSWER: form}, request_state=word)

    async def _elicit(self, ctx: Context, work: ClientWork, asked: Envelope) -> None:
        """Ask the client's person; what the client cannot answer is a no. The work may end meanwhile."""
        form = self._form(asked)
        asking = asyncio.create_task(ctx.session.elicit_form(form.message, form.requested_schema, ctx.request_id))
        try:
            await asyncio.wait([asking, work.task], return_when=asyncio.FIRST_COMPLETED)
            if work.task.done():
                return
            failure = asking.exception()
            result = _NO_ONE if failure is not None else asking.result()
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        await self._client.submit(answer_of(asked, result))

    def _form(self, asked: Envelope) -> types.ElicitRequestFormParams:
        event = asked.event
        call = event.call_id if isinstance(event, ApprovalAsked) else ""
        written = self._calls.written(call) or self._conversations.asks.arguments(asked.session, call)
        return form_of(asked, written, self._serving.words)


async def _refused(text: str, work: ClientWork) -> types.CallToolResult:
    return failed(text)


def _ended(task: "asyncio.Task[types.CallToolResult]") -> types.CallToolResult:
    if task.cancelled():
        return failed("This was stopped: the server is ending, or nobody answered in time. Part of it may be done.")
    return task.result()
