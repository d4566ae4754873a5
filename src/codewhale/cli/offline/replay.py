"""`codewhale sessions replay`: every call of a log made out again by what holds today, beside what came of it then.

Nothing is executed. Only on demand are the tools that do nothing but read run again, in a copy of the workspace.
"""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from codewhale.agent.collect import RawCall
from codewhale.agent.pending_call import ENDED, PendingCall, prepare
from codewhale.app.container import Container
from codewhale.app.families import tool_family
from codewhale.app.routes import open_routes
from codewhale.app.settings import Place, open_config
from codewhale.app.sourcing import placed
from codewhale.catalog.lifecycle import state_of
from codewhale.catalog.registry import Catalog
from codewhale.cli.offline.stored_sessions import envelopes
from codewhale.lib.clock import SystemClock
from codewhale.permissions.folders import outside
from codewhale.permissions.policy import decide
from codewhale.process.repository import find_root
from codewhale.process.sandbox.profiles import READ
from codewhale.protocol.decisions import DecisionRequest
from codewhale.protocol.errors import SessionError, ToolError
from codewhale.protocol.events import (
    CallFinished,
    CallStarted,
    Envelope,
    MessageAdded,
    RepairRecorded,
    SessionOpened,
    SourceRead,
)
from codewhale.protocol.messages import ToolCall
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.replays import Now, Replayed, Then
from codewhale.protocol.tools import CallContext, Effect, PathSubject
from codewhale.repair.repairer import CallRepairer
from codewhale.session.outputs import FETCH_LIMIT, Outputs, error_fields, inline_limit, render_error
from codewhale.session.state import kept_output
from codewhale.workspace.walk import WorkspaceTooLargeError, copy_workspace

READ_SECONDS = 60.0
# Families whose tools read the workspace alone; all others look at a session as it runs.
READING = frozenset(("files", "git", "data", "results", "diagnostics", "search"))


async def replay(home: str, session: str, environ: Mapping[str, str], run_reads: bool) -> AsyncIterator[Replayed]:
    """Every call of a session in order. Raises SessionError; with `run_reads` also when its workspace cannot be
    copied."""
    log = list(envelopes(home, session))
    catalog = Catalog.load()
    repairer = CallRepairer(catalog)
    record = _Record(log)
    if not run_reads:
        for seq, call, finish in _calls(log):
            yield _replayed(seq, call, record, _prepared(call, finish, record, catalog, repairer))
        return
    async with _reading(home, session, environ, log) as reads:
        for seq, call, finish in _calls(log):
            prepared = _prepared(call, finish, record, catalog, repairer)
            reads.remember(record.finished.get(call.id))
            told = _replayed(seq, call, record, prepared)
            now, why = await reads.run(prepared, record.finished.get(call.id))
            yield msgspec.structs.replace(told, now=now, not_run=why)


class _Record:
    """What the log says of each call."""

    def __init__(self, log: list[Envelope]) -> None:
        self.started: dict[str, CallStarted] = {}
        self.finished: dict[str, CallFinished] = {}
        self.formats: dict[str, str] = {}
        self.sources: dict[str, str] = {}
        for envelope in log:
            match envelope.event:
                case CallStarted() as started:
                    self.started[started.call_id] = started
                case CallFinished() as finished:
                    self.finished[finished.call_id] = finished
                case SourceRead() as read:
                    self.sources[read.name] = read.path
                case RepairRecorded() as repaired if repaired.codes and repaired.codes[0].startswith("T"):
                    self.formats[repaired.call_id] = repaired.codes[0]

    def placed(self, call_id: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments, with the path of an attached source that the call named where it ran with that."""
        path, started = arguments.get("path"), self.started.get(call_id)
        if started is None or not isinstance(path, str):
            return arguments
        meant = placed(arguments, path, self.sources)
        return meant if _decoded(started.arguments) == meant else arguments


def _calls(log: list[Envelope]) -> Iterator[tuple[int, ToolCall, str]]:
    """Each call with the seq of its message and how that ended."""
    for envelope in log:
        event = envelope.event
        if isinstance(event, MessageAdded):
            for call in event.message.calls:
                yield envelope.seq, call, event.finish


def _prepared(call: ToolCall, finish: str, record: _Record, catalog: Catalog, repairer: CallRepairer) -> PendingCall:
    raw = RawCall(call.id, call.name, call.arguments, record.formats.get(call.id, ""), finish in ENDED)
    prepared = prepare(raw, call.id, catalog, finish == "length", lambda: repairer)
    prepared.arguments = record.placed(call.id, prepared.arguments)
    return prepared


def _replayed(seq: int, call: ToolCall, record: _Record, prepared: PendingCall) -> Replayed:
    finished, started = record.finished.get(call.id), record.started.get(call.id)
    then = None
    if finished is not None:
        then = Then(finished.ok, finished.ms, finished.content, started is not None)
    error = prepared.error
    return Replayed(
        seq=seq,
        call_id=call.id,
        name=call.name,
        canonical=prepared.name,
        state=state_of(call.name),
        outcome="refuse" if error is not None else "run",
        arguments=prepared.arguments if error is None else None,
        repairs=prepared.repairs,
        lossy=prepared.lossy,
        error=None if error is None else {**error_fields(error), "message": error.message},
        then=then,
        drift=_drift(prepared, started, finished),
    )


def _drift(prepared: PendingCall, started: CallStarted | None, finished: CallFinished | None) -> str:
    """How today's reading of a call differs from what it did then. A tool of another program, which is not here, is no
    difference; neither is a call that was refused then and would run today."""
    if started is not None:
        if prepared.error is not None:
            return f"it ran as {started.name} and would be refused today"
        if started.name != prepared.name:
            return f"it ran as {started.name} and would run as {prepared.name} today"
        if _decoded(started.arguments) != prepared.arguments:
            return f"it ran with {started.arguments}"
    elif finished is not None and finished.ok and prepared.error is not None and prepared.spec is not None:
        return "it succeeded and would be refused today"
    return ""


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


# ---------------------------------------------------------------------- reading again


class _Nowhere:
    """A keeper that keeps nothing: whatever is cut is named all the same."""

    def put(self, data: bytes) -> str:
        """The sha256 of bytes that are let go."""
        return hashlib.sha256(data).hexdigest()

    def remember(self, session: str, call_id: str, sha: str) -> None:
        """Forget it."""


@asynccontextmanager
async def _reading(home: str, session: str, environ: Mapping[str, str], log: list[Envelope]) -> AsyncIterator["_Reads"]:
    """What runs reading tools again, in a copy that is gone afterwards."""
    opened = next((envelope.event for envelope in log if isinstance(envelope.event, SessionOpened)), None)
    workspace = os.path.realpath(opened.workspace) if opened is not None and opened.workspace else ""
    if not workspace or not os.path.isdir(workspace):
        raise SessionError(f"the workspace of session {session} ({workspace or 'not recorded'}) no longer exists")
    config = open_config(home, workspace, environ, {})
    place = Place(home, workspace, environ, {})
    parts = Container(place, config, SystemClock(), open_routes(home, config, environ), tool_family)
    root = find_root(workspace) or workspace
    with tempfile.TemporaryDirectory(prefix="codewhale-replay-") as folder:
        scratch = os.path.realpath(folder)
        try:
            await copy_workspace(root, scratch)
        except (WorkspaceTooLargeError, OSError) as error:
            raise SessionError(f"the workspace cannot be copied: {error}") from error
        copy = os.path.normpath(os.path.join(scratch, os.path.relpath(workspace, root)))
        async with parts.closers:
            yield _Reads(parts, session, (workspace, copy))


class _Reads:
    def __init__(self, parts: Container, session: str, places: tuple[str, str]) -> None:
        self._toolbox = parts.toolbox
        self._artifacts = parts.artifacts
        self._outputs = Outputs(_Nowhere(), parts.settings(parts.place.workspace).redactor)
        self._session = session
        self._there, self._here = places
        self._home, self._sources = parts.place.home, parts.memory.source_paths(self._there)

    def remember(self, finished: CallFinished | None) -> None:
        """Let a call's id stand for its kept output, as it did in the session."""
        if finished is not None and (sha := kept_output(finished.metadata)) is not None:
            self._artifacts.remember(self._session, finished.call_id, sha)

    async def run(self, prepared: PendingCall, finished: CallFinished | None) -> tuple[Now | None, str]:
        """What the call gives today, or why it was not run."""
        spec = prepared.spec
        if prepared.error is not None or spec is None:
            return None, "it would be refused"
        if spec.effects != (Effect.READS,) or spec.polls:
            return None, "it does more than read" if spec.effects and not spec.polls else "it is about the session"
        if spec.family not in READING:
            return None, "it needs a running session"
        try:
            bound = self._toolbox.bind(spec, self._moved(prepared.arguments))
            asked = DecisionRequest(
                spec.name, spec.effects, bound.subjects, Mode.PLAN, Authority.HEADLESS, self._session
            )
            decision = decide(asked)
            if decision.verdict != "allow":
                return None, decision.reason
            beside, refused = self._beside(asked)
            if refused:
                return None, refused
            async with asyncio.timeout(READ_SECONDS):
                result: Any = await bound.run(self._context(prepared.call.id, beside))
            ok, text = result.ok, result.content
        except ToolError as error:
            ok, text = False, render_error(spec.name, error)
        except TimeoutError:
            return None, f"it did not end within {READ_SECONDS:g} seconds"
        text = text.replace(self._here, self._there)
        limits = (FETCH_LIMIT,) if spec.fetches else (inline_limit(0), inline_limit(1 << 20))
        shown = [self._outputs.fit(self._session, prepared.call.id, text, limit)[0] for limit in limits]
        return Now(ok, finished is not None and finished.content in shown, shown[0]), ""

    def _moved(self, value: Any) -> Any:
        """Arguments with absolute paths into the workspace pointing into its copy."""
        if isinstance(value, dict):
            return {key: self._moved(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._moved(item) for item in value]
        inside = isinstance(value, str) and (value == self._there or value.startswith(self._there + "/"))
        return self._here + value[len(self._there) :] if inside else value

    def _beside(self, asked: DecisionRequest) -> tuple[tuple[str, ...], str]:
        """What a call may use of attached sources, and why it may not."""
        request = msgspec.structs.replace(asked, workspace=self._here, sources=self._sources)
        paths = [one for one in asked.subjects if isinstance(one, PathSubject)]
        places = [place for one in paths if (place := outside(one, request, self._home)) is not None and place.folder]
        refused = next((f"{place.path} {place.refused}" for place in places if place.refused), "")
        return tuple(f"{READ}{place.folder}" for place in places), refused

    def _context(self, call_id: str, beside: tuple[str, ...]) -> CallContext:
        quiet = (lambda text: None, lambda: False)
        return CallContext(call_id, self._session, self._here, Mode.PLAN, *quiet, allowances=beside)
