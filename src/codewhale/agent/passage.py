"""One call's way to its tool: watched, decided, shown and asked about, begun, and run under what was decided. What may
not run is a Denied; nothing else but a ToolError and a cancellation raises out of here."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from codewhale.agent.asking import Asking
from codewhale.agent.clock import Clock
from codewhale.agent.observers import Observers, Watch
from codewhale.protocol.blocks import Block
from codewhale.protocol.decisions import CallView, Decision, DecisionRequest, Opinion
from codewhale.protocol.errors import ConfigError, ToolError
from codewhale.protocol.events import ApprovalAsked, CallProgress, CallStarted, Event, ProgressShown
from codewhale.protocol.modes import Approval, Authority
from codewhale.protocol.tools import BoundCall, CallContext, Effect, Subject, ToolResult, ToolSpec
from codewhale.session.session import Session

CALL_SECONDS = 3600.0
READ_SECONDS = 600.0  # of what only reads and waits for nobody
ELEVATION = "sandbox.elevation"
_COUNT = re.compile(r"(\d{1,6}) of (\d{1,6}) (gates\b.*)", re.DOTALL)
_T = TypeVar("_T")

Outline = Callable[[], tuple[Block, ...]]


class Gate(Protocol):
    """Decides about calls, and keeps what was answered."""

    def decide(self, request: DecisionRequest) -> Decision:
        """Allow, ask where somebody is there to be asked, or deny."""
        ...

    def digest(self, request: DecisionRequest, arguments: Mapping[str, Any]) -> str:
        """What would run, as a hash."""
        ...

    def answered(self, request: DecisionRequest, decision: Decision, by: str, remember: str = "") -> None:
        """Note an answer, and remember the rule that was offered. Raises ConfigError when that cannot be kept."""
        ...


class Denied(Exception):
    """A call that policy, an observer or the person refused."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.error = ToolError("permission_denied", text)


class Planned(Struct, frozen=True):
    """A call with its tool: `bind` makes the call of arguments or raises ToolError; `clock` stops while a person is
    asked."""

    call_id: str
    spec: ToolSpec
    arguments: dict[str, Any]
    bind: Callable[[ToolSpec, dict[str, Any]], BoundCall]
    clock: Clock


class Passage:
    """The way of every call of an application."""

    def __init__(self, gate: Gate, asking: Asking, observers: Observers, seconds: float = CALL_SECONDS) -> None:
        """`seconds` bounds every call."""
        self._gate = gate
        self._seconds = seconds
        self._asking = asking
        self._observers = observers

    async def result(self, session: Session, plan: Planned, bound: BoundCall) -> ToolResult:
        """What the tool gives. Raises Denied and ToolError."""
        view = _view(session, plan, bound.subjects)
        watch = Watch(self._observers(view), view, lambda arguments: plan.bind(plan.spec, arguments).subjects)
        opinions = await watch.judge()
        if watch.call.arguments is not plan.arguments:
            plan = replace(plan, arguments=watch.call.arguments)
            bound = plan.bind(plan.spec, plan.arguments)
        request = _request(session, plan.spec, bound.subjects, plan.call_id, opinions)
        decision = self._decided(request)
        context = _context(session, plan.call_id, decision)
        limit = self._limit(plan.spec)
        shown = await _bounded(bound.run(context), limit) if plan.spec.previews else None
        if isinstance(shown, ToolResult):
            return shown
        outline: Outline = partial(bound.outline, session.state.workspace)
        if shown is not None:
            outline = partial(tuple, shown.display)
        if decision.verdict == "ask":
            await self._asked(session, plan, request, decision, outline)
        refusal = await watch.before()
        if refusal:
            raise Denied(refusal)

        async def work() -> ToolResult:
            await _begin(session, plan, decision)
            if shown is not None:
                return await _bounded(shown.run(), limit)
            done = await _ran(bound, context, limit)
            wider = _wider(done, decision)
            if wider is None:
                return done
            display = await _told(outline)
            if not await self._allowed(session, plan, request, wider, display=display):
                return done
            return await _ran(bound, _context(session, plan.call_id, wider), limit)

        return await watch.around(work())

    def verdict(self, session: Session, spec: ToolSpec, subjects: tuple[Subject, ...]) -> str:
        """Allow or ask, of a call that is not to run yet. Raises Denied."""
        return self._decided(_request(session, spec, subjects)).verdict

    def _limit(self, spec: ToolSpec) -> float:
        reads = spec.effects == (Effect.READS,) and not spec.polls
        return min(self._seconds, READ_SECONDS) if reads else self._seconds

    def reads_may(self, session: Session, tool: str) -> bool:
        """Whether a tool that only reads may be called."""
        rights = session.rights
        asked = DecisionRequest(tool, (Effect.READS,), (), rights.mode, rights.authority, session.id)
        return self._gate.decide(asked).verdict == "allow"

    def _decided(self, request: DecisionRequest) -> Decision:
        try:
            decision = self._gate.decide(request)
        except Exception as error:
            # What cannot be judged does not run, and the turn goes on.
            text = f"It could not be decided whether this may run ({type(error).__name__}: {error})"
            raise Denied(f"{text}, so it does not. The person should report this.") from error
        if decision.verdict == "deny":
            raise Denied(f"{decision.reason} (rule {decision.rule})")
        return decision

    async def _asked(
        self, session: Session, plan: Planned, request: DecisionRequest, decision: Decision, outline: Outline
    ) -> None:
        """Return once the person has allowed the call. What runs then is what was allowed: the same bytes, the same
        outline, and nothing that has been forbidden since. Raises Denied, and ToolError where there is no outline."""
        display = await _told(outline)
        digest = self._gate.digest(request, plan.arguments)
        if not await self._allowed(session, plan, request, decision, sha256=digest, display=display):
            raise Denied(f"The person did not allow this call ({decision.rule}).")
        if self._gate.digest(request, plan.arguments) != digest or await _told(outline) != display:
            raise Denied("A file that this command names has changed since the person was shown it. Call it again.")
        self._decided(request)

    async def _allowed(
        self,
        session: Session,
        plan: Planned,
        request: DecisionRequest,
        decision: Decision,
        *,
        sha256: str = "",
        display: tuple[Block, ...] = (),
    ) -> bool:
        """Whether the person who is there allows it."""
        if request.authority is not Authority.PERSON or request.approval is Approval.NEVER:
            return False
        asked = ApprovalAsked(
            request_id="",
            call_id=request.call,
            tool=request.tool,
            subjects=request.subjects,
            reason=decision.reason,
            display=display,
            rule=decision.rule,
            kind="elevation" if decision.rule == ELEVATION else "policy",
            sandbox=decision.sandbox,
            offer=decision.offer,
            sha256=sha256,
            allowances=decision.allowances,
        )
        with plan.clock.waiting():
            answer = await self._asking.approval(session, asked)
        try:
            remember = answer.remember if answer is not None else ""
            self._gate.answered(request, decision, "denied" if answer is None else "allowed", remember)
        except ConfigError as error:
            session.notice("warning", f"Allowed this once, but it could not be remembered: {error}", "permissions")
        return answer is not None


def _wider(done: ToolResult, decision: Decision) -> Decision | None:
    """The decision with which a call that the sandbox refused something could do it; None where it refused nothing."""
    denial = done.metadata.get("sandbox_denial")
    if not isinstance(denial, dict) or decision.sandbox == "none":
        return None
    if denial.get("allowance") == "network" and "offline" in decision.allowances:
        return None
    said = f"The sandbox refused it: {denial.get('evidence', '')}. {denial.get('said', '')}".rstrip()
    if denial.get("allowance") == "network" and "network" not in decision.allowances:
        reason = f"{said} Run it again with the network?"
        return Decision("ask", ELEVATION, reason, decision.sandbox, (*decision.allowances, "network"))
    return Decision("ask", ELEVATION, f"{said} Run it again without the sandbox?")


def _request(
    session: Session,
    spec: ToolSpec,
    subjects: tuple[Subject, ...],
    call_id: str = "",
    opinions: tuple[Opinion, ...] = (),
) -> DecisionRequest:
    state, rights = session.state, session.rights
    return DecisionRequest(
        tool=spec.name,
        effects=spec.effects,
        subjects=subjects,
        mode=rights.mode,
        authority=rights.authority,
        session=session.id,
        tainted=state.tainted,
        unseen=spec.previews,
        approval=rights.approval,
        workspace=state.workspace,
        origins=state.origins,
        opinions=opinions,
        call=call_id,
    )


def _view(session: Session, plan: Planned, subjects: tuple[Subject, ...]) -> CallView:
    state, spec, mode = session.state, plan.spec, session.rights.mode
    return CallView(session.id, plan.call_id, spec.name, plan.arguments, spec.effects, subjects, state.workspace, mode)


def _context(session: Session, call_id: str, decision: Decision) -> CallContext:
    return CallContext(
        call_id=call_id,
        session=session.id,
        workspace=session.state.workspace,
        mode=session.rights.mode,
        progress=lambda text: session.emit(*progress(call_id, text)),
        cancelled=lambda: bool(session.stop_reason),
        profile=decision.sandbox,
        allowances=decision.allowances,
    )


async def _begin(session: Session, plan: Planned, decision: Decision) -> None:
    """The call's start is told, and on disk before anything with an effect runs."""
    arguments = msgspec.json.encode(plan.arguments).decode()
    session.emit(CallStarted(plan.call_id, plan.spec.name, arguments, plan.spec.effects, decision.rule))
    if plan.spec.touches:
        await session.barrier()


async def _ran(bound: BoundCall, context: CallContext, limit: float) -> ToolResult:
    done = await _bounded(bound.run(context), limit)
    assert isinstance(done, ToolResult)
    return done


async def _told(outline: Outline) -> tuple[Block, ...]:
    """What an outline tells; it reads files."""
    return await _bounded(asyncio.to_thread(outline), READ_SECONDS)


async def _bounded(work: Awaitable[_T], limit: float) -> _T:
    """What a tool gives, in the time it may take; every fault of it as a ToolError."""
    try:
        async with asyncio.timeout(limit):
            return await work
    except TimeoutError:
        raise ToolError("timeout", f"It did not end within {limit:g} seconds.") from None
    except (ToolError, asyncio.CancelledError):
        raise
    except Exception as error:
        # A fault of ours must not end the turn: the model is told, the person can report it.
        text = f"The tool itself failed ({type(error).__name__}: {error}). Try another tool."
        raise ToolError("execution_failed", text) from error


def progress(call_id: str, text: str) -> tuple[Event, ...]:
    """A line of a running call; one such as "3 of 7 gates" also tells how far the call has come."""
    count = _COUNT.match(text)
    told = CallProgress(call_id, text)
    if count is None or not 0 < int(count[2]) >= int(count[1]):
        return (told,)
    return told, ProgressShown(call_id, int(count[1]), int(count[2]), count[3])
