"""What is put to a person: approvals and questions, as events with an id; answers come back as operations."""

import asyncio
import os
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from codewhale.agent.turn import Turn
from codewhale.lib.ids import short_id
from codewhale.protocol.errors import SessionError, ToolError
from codewhale.protocol.events import ApprovalAnswered, ApprovalAsked, QuestionAnswered, QuestionAsked
from codewhale.protocol.modes import Authority
from codewhale.protocol.ops import Answer
from codewhale.session.session import Session

APPROVAL_SECONDS = 300.0


class Asking:
    """Asks the person behind a session. Implements the Asker port."""

    def __init__(self, find: Callable[[str], Turn]) -> None:
        self._find = find
        self._open: dict[tuple[str, str], asyncio.Future[Answer]] = {}
        self._blocked: dict[str, ApprovalAsked] = {}  # by clauses, and waiting for the word that lets it through

    async def approval(self, turn: Turn, ask: ApprovalAsked) -> Answer | None:
        """The person's answer where it allows the call; None for a no, and for no answer within 300 s. Each asking gets
        an id of its own: an answer counts for it alone, once, and only while it is open."""
        session = turn.session
        ask = replace(ask, request_id=f"ask_{os.urandom(16).hex()}", asker=_asker(session), seconds=APPROVAL_SECONDS)
        session.emit(ask)
        self._blocked |= {ask.request_id: ask} if ask.clauses else {}
        try:
            answer, by = await self._wait(turn, ask.request_id, APPROVAL_SECONDS, f"approval of {ask.tool}")
        except asyncio.CancelledError:
            session.emit(ApprovalAnswered(ask.request_id, False, "cancel"))
            raise
        finally:
            self._blocked.pop(ask.request_id, None)
        allowed = answer is not None and answer.allowed
        if answer is None or not allowed:
            session.emit(ApprovalAnswered(ask.request_id, False, by))
            return None
        offered = ask.held if answer.remember == "sandbox" else ask.offer is not None and not answer.command
        command = answer.command if ask.kind == "policy" else ""
        kept = replace(answer, remember=answer.remember if offered else "", command=command)
        lifted = tuple(clause.id for clause in ask.clauses)
        session.emit(ApprovalAnswered(ask.request_id, True, by, kept.remember, command, lifted))
        return kept

    def attended(self, session: str) -> bool:
        return self._find(session).session.rights.authority is Authority.PERSON

    async def question(
        self, session: str, questions: Sequence[dict[str, object]], seconds: float
    ) -> tuple[dict[str, object], ...]:
        """Answers in order. Raises ToolError not_available when nobody is there, timeout after `seconds`."""
        turn = self._find(session)
        if not self.attended(session):
            raise ToolError(
                "not_available",
                "There is no user to answer. Decide from the workspace, and state your assumption in the answer.",
            )
        request = short_id("ask")
        turn.session.emit(QuestionAsked(request, tuple(questions), _asker(turn.session)))
        try:
            answer, by = await self._wait(turn, request, seconds, "an answer to a question")
        except asyncio.CancelledError:
            turn.session.emit(QuestionAnswered(request, (), "cancel"))
            raise
        answers = answer.answers if answer is not None else ()
        turn.session.emit(QuestionAnswered(request, answers, by))
        if answer is None:
            raise ToolError(
                "timeout", f"No answer came within {seconds:g} seconds; continue with the safest assumption."
            )
        return answers

    def answer(self, session: Session, op: Answer) -> bool:
        """Hand an answer to whoever waits for it; False when nobody does any more. Raises SessionError for a yes to
        what clauses block that does not name them; it goes on waiting."""
        future = self._open.get((session.id, op.request_id))
        if future is None or future.done():
            return False
        blocked = self._blocked.get(op.request_id)
        if blocked is not None and op.allowed and not blocked.confirmed(op.confirm):
            raise SessionError(f"to let this through once, type {blocked.word}, the id of what blocks it")
        future.set_result(op)
        return True

    def waiting(self, session: str) -> list[str]:
        """The ids of what a session's person was asked and has not answered."""
        return [request for owner, request in self._open if owner == session]

    async def _wait(self, turn: Turn, request: str, seconds: float, what: str) -> tuple[Answer | None, str]:
        """The answer and who gave it: person, or timeout with None."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        key = (turn.session.id, request)
        self._open[key] = future
        before, turn.waiting_for = turn.waiting_for, what
        try:
            async with asyncio.timeout(seconds):
                return await future, "person"
        except TimeoutError:
            return None, "timeout"
        finally:
            turn.waiting_for = before
            self._open.pop(key, None)


def _asker(session: Session) -> str:
    """Who asks, where that is not the session that the person sees."""
    state = session.state
    kind = state.kind or "session" if state.scope is None else state.scope.role
    return " ".join(filter(None, (kind, state.name))) if state.owner else ""
