"""Conversations for clients: one tool opens one, another goes on with it. Between its turns a conversation is closed:
nothing that a turn left running outlives it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import mcp_types as types
from msgspec.structs import replace

from codewhale.display.asks import Asks
from codewhale.display.client import Client
from codewhale.lib.text import one_line, scrub_surrogates
from codewhale.mcpserver.offer import MOST_PROMPT
from codewhale.mcpserver.toolcalls import failed
from codewhale.mcpserver.work import ClientWork
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.events import (
    ApprovalAsked,
    CallStarted,
    ChildClosed,
    ChildOpened,
    Envelope,
    QuestionAsked,
    RetryCountdown,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.modes import Authority
from codewhale.protocol.ops import (
    CloseSession,
    Interrupt,
    ListSessions,
    OpenSession,
    SendMessage,
    SessionStatus,
    SetMode,
)

KIND = "mcp"  # what a log says of a conversation that a client began
MOST_AT_ONCE = 4
MOST_ANSWER = 200_000
_INTERRUPT_SECONDS = 10.0
_CUT = "\n\n[The answer was cut here: it has {n:,} characters.]"


class ClientConversations:
    """The turns of conversations that are under way."""

    def __init__(self, client: Client, opening: OpenSession) -> None:
        """`opening` is what a conversation is opened with, but its authority."""
        self._client = client
        self._opening = opening
        self._running = 0
        self.asks = Asks()

    async def run(self, work: ClientWork, arguments: dict[str, Any], authority: Authority) -> types.CallToolResult:
        """One turn: of a new conversation, or with a session_id of that one. The answer, or an error in words."""
        prompt, known = arguments.get("prompt"), arguments.get("session_id", "")
        if not isinstance(prompt, str) or not prompt.strip() or len(prompt) > MOST_PROMPT:
            return failed(f"prompt must be a text of 1 to {MOST_PROMPT:,} characters")
        if self._running >= MOST_AT_ONCE:
            return failed(f"{MOST_AT_ONCE} conversations are under way here; wait until one of them has answered")
        self._running += 1
        try:
            opening = replace(self._opening, authority=authority)
            if "session_id" in arguments:
                opening = replace(opening, resume=await self._own(known), kind="")
            return await self._turn(work, opening, scrub_surrogates(prompt))
        except CodeWhaleError as error:
            return failed(str(error))
        finally:
            self._running -= 1

    async def _own(self, session: object) -> str:
        """The id where it is that of a conversation that a client began in this workspace."""
        rows = await self._client.query(ListSessions(self._opening.workspace))
        if not any(row.id == session and row.kind == KIND and not row.owner for row in rows):
            raise CodeWhaleError(f"no conversation {one_line(str(session), 80)!r} was begun here; start a new one")
        return str(session)

    async def _turn(self, work: ClientWork, opening: OpenSession, prompt: str) -> types.CallToolResult:
        session = await self._client.submit(opening)
        try:
            status = await self._client.query(SessionStatus(session))
            if status.mode is not opening.mode:
                await self._client.submit(SetMode(session, opening.mode))
            events = self._client.events(session, -1, durable=False)
            follower = asyncio.create_task(self._follow(work, events, status.turns + 1))
            try:
                await self._client.submit(SendMessage(session, prompt))
                return _answer(session, await asyncio.shield(follower))
            except asyncio.CancelledError:
                await self._client.submit(Interrupt(session))
                await asyncio.wait([follower], timeout=_INTERRUPT_SECONDS)
                raise
            finally:
                follower.cancel()
                await asyncio.gather(follower, return_exceptions=True)
        finally:
            with contextlib.suppress(CodeWhaleError):
                await asyncio.shield(asyncio.create_task(self._close(session)))

    async def _close(self, session: str) -> None:
        await self._client.submit(CloseSession(session))

    async def _follow(self, work: ClientWork, events: AsyncIterator[Envelope], turn: int) -> TurnFinished:
        began = False
        async for envelope in events:
            self.asks.take(envelope)
            match envelope.event:
                case TurnStarted(turn=number):
                    began = began or number >= turn
                case ApprovalAsked() | QuestionAsked():
                    work.ask(envelope)
                case CallStarted(name=name, arguments=written):
                    work.tell(f"{name} {written}")
                case ChildOpened(name=name, objective=objective):
                    work.tell(f"agent {name}: {objective}")
                case ChildClosed(name=name, status=status):
                    work.tell(f"agent {name}: {status}")
                case RetryCountdown(reason=reason, delay=delay):
                    work.tell(f"retry in {delay:.1f} s: {reason}")
                case TurnFinished() as finished if began:
                    return finished
        return TurnFinished(turn, "infra", "the session ended before the turn did")


def _answer(session: str, end: TurnFinished) -> types.CallToolResult:
    result = end.result or {}
    answer = str(result.get("answer") or "")
    if len(answer) > MOST_ANSWER:
        answer = answer[:MOST_ANSWER] + _CUT.format(n=len(answer))
    error = str(result.get("error") or end.reason or "")
    structured = {
        "session_id": session, "status": end.status, "answer": answer, "usage": result.get("usage") or {},
        **({"error": error} if error else {}),
    }  # fmt: skip
    said = "\n\n".join(filter(None, (answer, error)))
    content: list[types.ContentBlock] = [types.TextContent(text=f"{said}\n\nsession_id: {session}".lstrip())]
    return types.CallToolResult(content=content, structured_content=structured, is_error=end.status != "done")
