"""One call from its gate to its one result: prepared, authorized, executed, finalized. Nothing raises out of here but a
cancellation. What was meant by a call is found out in `pending_call`."""

import asyncio
from collections.abc import Awaitable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from codewhale.agent.activation import activation, is_outdated, is_unseen, schema_first, with_schema
from codewhale.agent.authorize import ELEVATION, Authorizer, CallRefused, decision_request
from codewhale.agent.call_hooks import CallHooks, HooksOf
from codewhale.agent.guard import BLOCK_AT, NOTE_AT, LoopGuard, alike, note
from codewhale.agent.pending_call import CallTimer, PendingCall, read_on
from codewhale.agent.refusals import completed, denied, repeated, unless_gone
from codewhale.agent.turn import Turn
from codewhale.catalog.lifecycle import ALIASES, GATES
from codewhale.lib.text import one_line
from codewhale.permissions.audit import AuditLog
from codewhale.protocol.blocks import Block
from codewhale.protocol.decisions import CallView, Decision
from codewhale.protocol.errors import Look, NextCall, ToolError
from codewhale.protocol.events import (
    AttemptRecorded,
    CallFinished,
    CallProgress,
    CallStarted,
    Event,
    FactProposed,
    FileChanged,
    GateRecorded,
    ListChanged,
    ProgressShown,
)
from codewhale.protocol.files import FileChange
from codewhale.protocol.marks import inert
from codewhale.protocol.tools import (
    AttemptKept,
    BoundCall,
    CallContext,
    Effect,
    FactWaits,
    GateRun,
    ListUpdate,
    NotRun,
    Origin,
    OutputKept,
    SandboxRefusal,
    SkillLoaded,
    StepProgress,
    ToolResult,
    ToolSpec,
    ToolsShown,
    Update,
)
from codewhale.session.outputs import FETCH_LIMIT, Outputs, error_metadata, inline_limit, render_error
from codewhale.session.session import STOPPED, Session

if TYPE_CHECKING:
    from codewhale.repair.repairer import CallRepairer

CALL_SECONDS = 3600.0
READ_SECONDS = 600.0  # of what only reads and waits for nobody
_RENAMED = frozenset(alias.canonical for alias in ALIASES.values() if alias.state == "deprecated")
_T = TypeVar("_T")
_U = TypeVar("_U", bound=Update)


class ToolBinder(Protocol):
    """Where running tools come from: the family is imported and built at its first call."""

    def bind(self, spec: ToolSpec, arguments: dict[str, object]) -> BoundCall:
        """The call of a catalog row's tool with these arguments. Raises ToolError when they do not fit."""

    def repairer(self) -> "CallRepairer":
        """What makes out damaged calls, built when the first is met."""

    def spec(self, name: str) -> ToolSpec | None: ...
    def changed_files(self, session: str, call_id: str) -> tuple[FileChange, ...]:
        """The files of the workspace that a call of a program, which has ended, was seen to change."""


class ToolCallRunner:
    """Runs the calls of an application."""

    def __init__(
        self,
        toolbox: ToolBinder,
        authorizer: Authorizer,
        hooks: HooksOf,
        outputs: Outputs,
        audit: AuditLog | None = None,
        seconds: float = CALL_SECONDS,
    ) -> None:
        """`seconds` bounds every call."""
        self._toolbox = toolbox
        self._authorizer = authorizer
        self._hooks = hooks
        self._outputs = outputs
        self._audit = audit
        self._seconds = seconds

    def repairer(self) -> "CallRepairer":
        return self._toolbox.repairer()

    async def run(self, turn: Turn, call: PendingCall, guard: LoopGuard) -> PendingCall:
        """The call with its outcome; its events are not yet emitted, but its start is."""
        session = turn.session
        call.clock = CallTimer()
        read_on(call, session.state.workspace)
        tool, arguments = call.name, _compared(call)
        self._note_alias(session, call)
        guarded = call.spec is None or not call.spec.polls
        count = guard.before(tool, arguments) if guarded else 0
        if count >= BLOCK_AT:
            call.repeats = guard.blocked(tool, arguments)
            return self._finalize(session, call, repeated(tool, call.repeats))
        try:
            result = await self._result(turn, call)
        except asyncio.CancelledError as stopped:
            self._note_changes(session, call)
            return self._finalize(session, call, _so_far(stopped))
        except ToolError as error:
            result = self._failed(session, call, error)
        if call.rewritten:
            result = replace(result, content=f"{call.rewritten}\n\n{result.content}")
        if self._changed(session, call, result):
            guard.changed(tool, arguments)
        if guarded:
            call.repeats = guard.after(tool, arguments, result.content)
            if call.repeats >= NOTE_AT:
                result = replace(result, content=f"{result.content}\n\n{note(tool, call.repeats)}")
        return self._finalize(session, call, result)

    def _failed(self, session: Session, call: PendingCall, error: ToolError) -> ToolResult:
        if isinstance(error, CallRefused):
            call.denied = error.message
            scoped = session.state.workspace if error.rule.startswith(("scope.", "skill.")) else ""
            return _failure(
                call.name, denied(error, call, partial(self._authorizer.reads_may, session), scoped, error.rule)
            )
        result = _failure(call.name, completed(unless_gone(error, session.state.workspace), call))
        spec = call.spec if error is call.error else None
        if spec is not None and (is_unseen(session.state, call) or is_outdated(session.state, spec)):
            return with_schema(result, call, spec)
        return result

    def _changed(self, session: Session, call: PendingCall, result: ToolResult) -> bool:
        self._note_changes(session, call)
        return bool(call.changed) or any(change.before != change.after for change in result.changes)

    def _note_changes(self, session: Session, call: PendingCall) -> None:
        if call.spec is not None and Effect.EXECUTES in call.spec.effects:
            call.changed = self._toolbox.changed_files(session.id, call.id)

    def _note_alias(self, session: Session, call: PendingCall) -> None:
        """One line for people: a name that is on its way out was used."""
        alias = ALIASES.get(call.alias)
        if self._audit is not None and alias is not None:
            self._audit.add(
                "alias_used",
                session=session.id,
                call=call.id,
                alias=call.alias,
                canonical=alias.canonical,
                state=alias.state,
            )

    # ------------------------------------------------------------------ authorize

    async def _result(self, turn: Turn, call: PendingCall) -> ToolResult:
        """What the tool gives. Raises ToolError; CallRefused where the call may not run."""
        session, spec = turn.session, call.spec
        if call.error is not None or spec is None:
            raise call.error or ToolError("not_available", "There is no such tool.")
        if spec.gate:
            _check_gate(session, spec, call)
        bound = self._toolbox.bind(spec, call.arguments)
        if is_unseen(session.state, call):
            verdict = self._authorizer.decide(decision_request(session, spec, bound.subjects)).verdict
            if verdict != "allow" or spec.touches:
                return schema_first(call, spec)
        return await self._authorized(turn, call, spec, bound)

    async def _authorized(self, turn: Turn, call: PendingCall, spec: ToolSpec, bound: BoundCall) -> ToolResult:
        session, authorizer = turn.session, self._authorizer
        hooks = CallHooks(self._hooks, _view(session, call, spec, bound), lambda given: self._toolbox.bind(spec, given))
        opinions = await hooks.judge()
        if hooks.call.arguments is not call.arguments:
            call.arguments = hooks.call.arguments
            bound = self._toolbox.bind(spec, call.arguments)
        request = decision_request(session, spec, bound.subjects, call.id, opinions)
        decision = authorizer.decide(request)
        context = _context(turn, call.id, decision)
        limit = self._limit(spec)
        preview = await _bounded(bound.run(context), limit) if spec.previews else None
        if isinstance(preview, ToolResult):
            return preview

        async def outline() -> tuple[Block, ...]:
            if preview is not None:
                return tuple(preview.display)
            return await _bounded(asyncio.to_thread(bound.outline, session.state.workspace), READ_SECONDS)

        if decision.verdict == "ask" and not call.written(decision):
            answer = await authorizer.ask(turn, call, request, decision, outline)
            if isinstance(answer, str):
                call.rewrite(answer, decision)
                return await self._authorized(turn, call, spec, self._toolbox.bind(spec, call.arguments))
            decision, context = answer, _context(turn, call.id, answer)
        refusal = await hooks.before()
        if refusal:
            raise CallRefused(refusal)

        async def work() -> ToolResult:
            authorizer.begin(session, request, decision)
            await _begin(session, call, spec, decision)
            if preview is not None:
                return await _bounded(preview.run(), limit)
            result = _foreign(await _ran(bound, context, limit), decision)
            wider = _wider(result, decision)
            if wider is None or await authorizer.allows(turn, call, request, wider, display=await outline()) is None:
                return result
            return _foreign(await _ran(bound, _context(turn, call.id, wider), limit), wider)

        return await hooks.around(work())

    def _limit(self, spec: ToolSpec) -> float:
        reads = spec.effects == (Effect.READS,) and not spec.polls
        return min(self._seconds, READ_SECONDS) if reads else self._seconds

    # ------------------------------------------------------------------ finalize

    def _finalize(self, session: Session, call: PendingCall, result: ToolResult) -> PendingCall:
        """Cut what the model reads to what it may take, and say what follows from the result."""
        # What a model fetches back on purpose, within that tool's own cap, is not cut and kept once more.
        fetches = call.spec is not None and call.spec.fetches
        window = session.provider.model.window
        limit = FETCH_LIMIT if fetches else inline_limit(window)
        kept = next(iter(_updates(result, OutputKept)), None)
        content, cut = self._outputs.fit(session.id, call.id, _announced(call, result), limit, kept, window)
        programs = {"changed_files": len(call.changed)} if call.changed else {}
        metadata = {**result.metadata, **programs, **cut, **_named(call), **_repaired(call)}
        call.ms = call.clock.ms
        finished = CallFinished(
            call_id=call.id,
            name=call.name,
            ok=result.ok,
            content=content,
            ms=call.ms,
            error=result.error,
            origin=result.origin,
            display=result.display,
            metadata=metadata,
            images=result.images,
        )
        follow: list[Event] = [FileChanged(call.id, change) for change in result.changes]
        follow += [ListChanged(one.kind, one.items, one.explanation) for one in _updates(result, ListUpdate)]
        follow += [FactProposed(one.id, one.text, one.scope, one.origin) for one in _updates(result, FactWaits)]
        follow += [GateRecorded(one.gate, call.id) for one in _updates(result, GateRun)]
        follow += [AttemptRecorded(one.attempt, call.id) for one in _updates(result, AttemptKept)]
        names = [name for update in _updates(result, ToolsShown) for name in update.names]
        shown = [spec for name in names if (spec := self._toolbox.spec(name)) is not None]
        follow += activation(session, shown)
        call.events = (finished, *follow)
        call.loaded = tuple(one.name for one in _updates(result, SkillLoaded))
        call.ok = result.ok and not any(_updates(result, NotRun))
        call.end_turn = result.end_turn
        return call


def _updates(result: ToolResult, kind: type[_U]) -> Iterator[_U]:
    return (update for update in result.updates if isinstance(update, kind))


def _check_gate(session: Session, spec: ToolSpec, call: PendingCall) -> None:
    """Raises ToolError, before anything else is asked, for a tool that the session's provider cannot serve."""
    provider = session.provider
    if provider.settings.facts.get(spec.gate):
        return
    gate = GATES[spec.gate]
    seen = {key: value for key, value in call.arguments.items() if key == "path" and value}
    look = Look(gate.look, seen) if seen else None
    fix = NextCall(gate.instead, call.arguments) if gate.instead else look
    raise ToolError(
        "not_available",
        f"{spec.name} needs {gate.needs}, and provider {provider.name} is not known to have one for "
        f"{session.state.model}. {gate.advice}; or the user can choose another model (/model), or say that there is "
        f"one (providers.{provider.name}.facts.{spec.gate}).",
        fix=fix,
    )


def _wider(result: ToolResult, decision: Decision) -> Decision | None:
    """The decision with which a call that the sandbox refused something could do it; None where it refused nothing."""
    refusal = next(_updates(result, SandboxRefusal), None)
    if refusal is None or decision.sandbox == "none":
        return None
    if refusal.allowance == "network" and "offline" in decision.allowances:
        return None
    what = f"The sandbox refused it: {refusal.evidence}. {refusal.advice}".rstrip()
    if refusal.allowance == "home":
        rest = tuple(one for one in decision.allowances if one != "home:toolchains")
        return Decision("ask", ELEVATION, f"{what} Run it again with your whole home to read?", decision.sandbox, rest)
    if refusal.allowance == "network" and "network" not in decision.allowances:
        reason = f"{what} Run it again with the network?"
        wider = (*decision.allowances, "network")
        return Decision("ask", ELEVATION, reason, decision.sandbox, wider, fetches=decision.fetches)
    reason = f"{what} Run it again without the sandbox?"
    return Decision("ask", ELEVATION, reason, fetches=decision.fetches)


def _foreign(result: ToolResult, decision: Decision) -> ToolResult:
    """The result, as from elsewhere where a command may have brought it from the network: then it begins and ends
    nothing."""
    reached = "network" in decision.allowances or (decision.rule == ELEVATION and decision.sandbox == "none")
    foreign = decision.fetches and reached and result.origin is Origin.WORKSPACE
    return replace(result, content=inert(result.content), origin=Origin.WEB) if foreign else result


def _view(session: Session, call: PendingCall, spec: ToolSpec, bound: BoundCall) -> CallView:
    workspace, mode = session.state.workspace, session.rights.mode
    return CallView(session.id, call.id, spec.name, call.arguments, spec.effects, bound.subjects, workspace, mode)


def _context(turn: Turn, call_id: str, decision: Decision) -> CallContext:
    session = turn.session
    return CallContext(
        call_id=call_id,
        session=session.id,
        workspace=session.state.workspace,
        mode=session.rights.mode,
        progress=lambda step: session.emit(*_progress(call_id, step)),
        cancelled=lambda: bool(turn.stop_reason),
        profile=decision.sandbox,
        allowances=decision.allowances,
    )


def _progress(call_id: str, step: str | StepProgress) -> tuple[Event, ...]:
    text = step if isinstance(step, str) else f"{step.done} of {step.total} {step.label}"
    line = CallProgress(call_id, text)
    if isinstance(step, str) or not step.total:
        return (line,)
    return line, ProgressShown(call_id, step.done, step.total, step.label)


async def _begin(session: Session, call: PendingCall, spec: ToolSpec, decision: Decision) -> None:
    """The call's start is told, and on disk before anything with an effect runs."""
    arguments = msgspec.json.encode(call.arguments).decode()
    session.emit(CallStarted(call.id, spec.name, arguments, spec.effects, decision.rule))
    if spec.touches:
        await session.barrier()


async def _ran(bound: BoundCall, context: CallContext, limit: float) -> ToolResult:
    result = await _bounded(bound.run(context), limit)
    return result if isinstance(result, ToolResult) else await _bounded(result.run(), limit)


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


def _so_far(stopped: asyncio.CancelledError) -> ToolResult:
    """What a tool came to before it was cancelled, where it says so: that is recorded, and the turn ends all the same.
    Else the cancellation goes on."""
    for begun in stopped.args:
        if isinstance(begun, ToolResult):
            metadata = {**begun.metadata, "error": {"code": "interrupted"}}
            content = f"{STOPPED}\n\n{begun.content}"
            return replace(begun, ok=False, content=content, metadata=metadata, error="interrupted")
    raise stopped


def _failure(tool: str, error: ToolError) -> ToolResult:
    return ToolResult(render_error(tool, error), ok=False, metadata=error_metadata(error), error=error.kind)


def _compared(call: PendingCall) -> str:
    """What the loop guard compares of the arguments."""
    if call.error is not None or call.spec is None:
        return call.call.arguments
    return alike(call.arguments, Effect.EXECUTES in call.spec.effects)


def _named(call: PendingCall) -> dict[str, object]:
    if call.spec is None or call.name not in _RENAMED:
        return {}
    alias = ALIASES.get(call.alias)
    names: dict[str, object] = {"canonical_tool": call.name, "compat_alias": alias is not None}
    if alias is None:
        return names
    deprecation = {
        "this_tool": call.alias,
        "use_instead": alias.canonical,
        "first_deprecated": alias.since,
        "removed_in": alias.removal,
        "message": f"Tool '{call.alias}' is deprecated; use '{alias.canonical}' instead.",
    }
    return {**names, "_deprecation": deprecation}


def _repaired(call: PendingCall) -> dict[str, object]:
    return {"repairs": list(call.repairs), "repair_lossy": call.lossy} if call.repairs else {}


def _announced(call: PendingCall, result: ToolResult) -> str:
    if not call.lossy or call.error is not None:
        return result.content
    arguments = one_line(msgspec.json.encode(call.arguments).decode(), 300)
    return f"{result.content}\n\nThe call was read as {call.name} {arguments}."
