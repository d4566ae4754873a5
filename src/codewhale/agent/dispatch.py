"""One call from its gate to its one result. The stages before (resolve, repair, validate) are in `prepare`;
here come guard, hooks, decide, run, cut and record. Nothing raises out of here but a cancellation."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Struct

from codewhale.agent.activation import activation, is_outdated, is_unseen, shown_first, with_schema
from codewhale.agent.clock import Clock
from codewhale.agent.guard import BLOCK_AT, NOTE_AT, LoopGuard, alike, note
from codewhale.agent.passage import Denied, Passage, Planned
from codewhale.agent.prepare import Prepared, read_on
from codewhale.agent.refusals import completed, denied, repeated, unless_gone
from codewhale.catalog.lifecycle import ALIASES, GATES
from codewhale.lib.text import one_line
from codewhale.permissions.audit import AuditLog
from codewhale.protocol.errors import Look, ToolError
from codewhale.protocol.events import CallFinished, Event, FileChanged, ListChanged
from codewhale.protocol.tools import BoundCall, Effect, ToolResult, ToolSpec
from codewhale.session.outputs import FETCH_LIMIT, Outputs, error_metadata, inline_limit, render_error
from codewhale.session.session import STOPPED, Session
from codewhale.session.state import kept_output

if TYPE_CHECKING:
    from codewhale.repair.repairer import CallRepairer

_LISTS = ("checklist", "plan")
_RENAMED = frozenset(alias.canonical for alias in ALIASES.values() if alias.state == "deprecated")


class Toolbox(Protocol):
    """Where running tools come from: the family is imported and built at its first call."""

    def bind(self, spec: ToolSpec, arguments: dict[str, Any]) -> BoundCall:
        """The call of a catalog row's tool with these arguments. Raises ToolError when they do not fit."""
        ...

    def repairer(self) -> "CallRepairer":
        """What makes out damaged calls, built when the first is met."""
        ...

    def spec(self, name: str) -> ToolSpec | None:
        """The catalog row of a canonical name, or None."""
        ...

    def changed_files(self, session: str, call_id: str) -> bool:
        """Whether a call of a program that has ended was seen to change files of the workspace."""
        ...


class Outcome(Struct, frozen=True):
    """What came of a call: the events that record it, and what the turn must know."""

    events: tuple[Event, ...]
    name: str
    call_id: str
    ok: bool
    ms: int
    denied: bool = False
    end_turn: bool = False
    repeats: int = 0


class Dispatcher:
    """Runs prepared calls."""

    def __init__(self, toolbox: Toolbox, passage: Passage, outputs: Outputs, audit: AuditLog | None = None) -> None:
        self._toolbox = toolbox
        self._passage = passage
        self._outputs = outputs
        self._audit = audit

    def repairer(self) -> "CallRepairer":
        """What makes out damaged calls."""
        return self._toolbox.repairer()

    async def run(self, session: Session, prepared: Prepared, guard: LoopGuard) -> Outcome:
        """The outcome of one call; its events are not yet emitted, but its start is."""
        clock = Clock()
        prepared = read_on(prepared, session.state.workspace)
        tool, said = prepared.name, _canonical(prepared)
        if prepared.alias:
            self._note_alias(session, prepared)
        guarded = prepared.spec is None or not prepared.spec.polls
        count = guard.before(tool, said) if guarded else 0
        if count >= BLOCK_AT:
            count = guard.blocked(tool, said)
            return self._record(session, prepared, repeated(tool, count), clock, repeats=count)
        refused = False
        try:
            result = await self._result(session, prepared, clock)
        except Denied as refusal:
            error = denied(refusal.error, prepared, partial(self._passage.reads_may, session))
            refused, result = True, _failure(tool, error)
        except asyncio.CancelledError as stopped:
            return self._record(session, prepared, _so_far(stopped), clock)
        except ToolError as error:
            result = _failure(tool, completed(unless_gone(error, session.state.workspace), prepared))
            spec = prepared.spec if error is prepared.error else None
            if spec is not None and (is_unseen(session.state, prepared) or is_outdated(session.state, spec)):
                result = with_schema(result, prepared)
        if self._changed(session, prepared, result):
            guard.changed(tool, said)
        if guarded:
            count = guard.after(tool, said, result.content)
            if count >= NOTE_AT:
                result = msgspec.structs.replace(result, content=f"{result.content}\n\n{note(tool, count)}")
        return self._record(session, prepared, result, clock, denied=refused, repeats=count)

    def _changed(self, session: Session, prepared: Prepared, result: ToolResult) -> bool:
        """Whether a call changed files."""
        runs = prepared.spec is not None and Effect.EXECUTES in prepared.spec.effects
        written = any(change.before != change.after for change in result.changes)
        return written or (runs and self._toolbox.changed_files(session.id, prepared.call.id))

    def _note_alias(self, session: Session, prepared: Prepared) -> None:
        """One line for people: a name that is on its way out was used."""
        alias = ALIASES.get(prepared.alias)
        if self._audit is not None and alias is not None:
            self._audit.add(
                "alias_used",
                session=session.id,
                call=prepared.call.id,
                alias=prepared.alias,
                canonical=alias.canonical,
                state=alias.state,
            )

    async def _result(self, session: Session, prepared: Prepared, clock: Clock) -> ToolResult:
        if prepared.error is not None or prepared.spec is None:
            raise prepared.error or ToolError("not_available", "There is no such tool.")
        spec = prepared.spec
        if spec.gate:
            _check_gate(session, spec, prepared.arguments)
        bound = self._toolbox.bind(spec, prepared.arguments)
        if is_unseen(session.state, prepared):
            verdict = self._passage.verdict(session, spec, bound.subjects)
            if verdict != "allow" or spec.touches:
                return shown_first(prepared)
        plan = Planned(prepared.call.id, spec, prepared.arguments, self._toolbox.bind, clock)
        return await self._passage.result(session, plan, bound)

    def _record(
        self,
        session: Session,
        prepared: Prepared,
        result: ToolResult,
        clock: Clock,
        *,
        denied: bool = False,
        repeats: int = 0,
    ) -> Outcome:
        window = session.provider.model.window if session.provider is not None else 0
        # What a model fetches back on purpose, within that tool's own cap, is not cut and kept once more.
        limit = FETCH_LIMIT if prepared.spec is not None and prepared.spec.family == "results" else inline_limit(window)
        kept = kept_output(result.metadata)
        content, cut = self._outputs.fit(session.id, prepared.call.id, _announced(prepared, result), limit, kept)
        metadata = {**result.metadata, **cut, **_named(prepared), **_mended(prepared)}
        ms = clock.ms
        finished = CallFinished(
            call_id=prepared.call.id,
            name=prepared.name,
            ok=result.ok,
            content=content,
            ms=ms,
            error=_code(metadata),
            origin=result.origin,
            display=result.display,
            metadata=metadata,
            images=result.images,
        )
        follow: list[Event] = [FileChanged(prepared.call.id, change) for change in result.changes]
        lists = {kind: update for kind, update in metadata.get("task_updates", {}).items() if kind in _LISTS}
        for kind, update in lists.items():
            items = update.get("items", update.get("plan", ()))
            follow.append(ListChanged(kind, tuple(items), update.get("explanation") or ""))
        follow += activation(session, self._shown(prepared, metadata))
        name, call_id = prepared.name, prepared.call.id
        done = result.ok and metadata.get("executed", True) is not False
        return Outcome((finished, *follow), name, call_id, done, ms, denied, result.end_turn, repeats)

    def _shown(self, prepared: Prepared, metadata: dict[str, Any]) -> list[ToolSpec]:
        """The tools whose schemas a result holds: what was searched for, or what was called unseen."""
        if prepared.spec is None:
            return []
        if metadata.get("deferred_tool_loaded"):
            return [prepared.spec]
        names = metadata.get("tool_references", ()) if prepared.spec.family == "toolsearch" else ()
        return [spec for name in names if (spec := self._toolbox.spec(name)) is not None]


def _check_gate(session: Session, spec: ToolSpec, arguments: dict[str, Any]) -> None:
    """Raises ToolError, before anything else is asked, for a tool that the session's provider cannot serve."""
    provider = session.provider
    if provider is None or provider.settings.facts.get(spec.gate):
        return
    path = arguments.get("path")
    raise ToolError(
        "not_available",
        f"{spec.name} needs {GATES[spec.gate]}, and {session.state.model} at provider {provider.name} is not known to "
        "be one. Read the place and write the text yourself with edit_file; or the person can choose such a model "
        f"(/model), or say that this one is (providers.{provider.name}.facts.{spec.gate}).",
        fix=Look("read_file", {"path": path}) if isinstance(path, str) and path else None,
    )


def _so_far(stopped: asyncio.CancelledError) -> ToolResult:
    """What a tool came to before it was cancelled, where it says so: that is recorded, and the turn ends all the same.
    Else the cancellation goes on."""
    for said in stopped.args:
        if isinstance(said, ToolResult):
            metadata = {**said.metadata, "error": {"code": "interrupted"}}
            return msgspec.structs.replace(said, ok=False, content=f"{STOPPED}\n\n{said.content}", metadata=metadata)
    raise stopped


def _failure(tool: str, error: ToolError) -> ToolResult:
    return ToolResult(render_error(tool, error), ok=False, metadata=error_metadata(error))


def _code(metadata: dict[str, Any]) -> str:
    """The kind of error a call ended with; a tool may keep an `error` of its own there, of any form."""
    error = metadata.get("error")
    return str(error.get("code", "")) if isinstance(error, dict) else ""


def _canonical(prepared: Prepared) -> str:
    if prepared.error is not None or prepared.spec is None:
        return prepared.call.arguments
    return alike(prepared.arguments, Effect.EXECUTES in prepared.spec.effects)


def _named(prepared: Prepared) -> dict[str, Any]:
    """What programs are told of the name that a tool was called by, where another one is on its way out."""
    if prepared.spec is None or prepared.name not in _RENAMED:
        return {}
    alias = ALIASES.get(prepared.alias)
    names = {"canonical_tool": prepared.name, "compat_alias": alias is not None}
    if alias is None:
        return names
    message = f"Tool '{prepared.alias}' is deprecated; use '{alias.canonical}' instead."
    return {
        **names,
        "_deprecation": {
            "this_tool": prepared.alias,
            "use_instead": alias.canonical,
            "first_deprecated": alias.since,
            "removed_in": alias.removal,
            "message": message,
        },
    }


def _mended(prepared: Prepared) -> dict[str, Any]:
    return {"repairs": list(prepared.repairs), "repair_lossy": prepared.lossy} if prepared.repairs else {}


def _announced(prepared: Prepared, result: ToolResult) -> str:
    lines = [result.content]
    if prepared.lossy and prepared.error is None:
        said = one_line(msgspec.json.encode(prepared.arguments).decode(), 300)
        lines.append(f"The call was read as {prepared.name} {said}.")
    return "\n\n".join(lines)
