"""`codewhale sessions import`: the session file of another program as a session of ours, its calls under the names and
in the form that later requests carry. Nothing is run."""

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from codewhale.agent.collect import RawCall
from codewhale.agent.pending_call import PendingCall, prepare
from codewhale.app.routes import Routes, open_routes
from codewhale.app.settings import open_config
from codewhale.catalog.registry import Catalog
from codewhale.lib.clock import SystemClock
from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import (
    LOG_VERSION,
    CallFinished,
    Event,
    MessageAdded,
    Notice,
    RepairRecorded,
    SessionOpened,
    TitleSet,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.messages import Image, Message, Part, Reasoning, Text, ToolCall
from codewhale.protocol.modes import Mode
from codewhale.protocol.replays import Imported
from codewhale.protocol.tools import Origin
from codewhale.repair.repairer import CallRepairer
from codewhale.session.foreign import Foreign, ForeignCall, ForeignMessage, Picture, Result, Thought, parse
from codewhale.session.outputs import Outputs, inline_limit
from codewhale.session.redaction import Redactor
from codewhale.session.store import SessionStore

MAX_BYTES = 256 << 20
NO_RESULT = "The imported session has no result for this call. Check its effects before repeating it."
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FROM_OUTSIDE = (("mcp_", Origin.MCP), ("github_", Origin.ISSUE), ("web", Origin.WEB), ("fetch_url", Origin.WEB))


async def import_session(path: str, home: str, workspace: str, environ: Mapping[str, str]) -> Imported:
    """Make a session of the file at `path`; it works in the folder that the file names where that exists, else in
    `workspace`. Raises SessionError, ConfigError; nothing is left behind then."""
    foreign = parse(_bytes(path))
    if not foreign.messages:
        raise SessionError(f"{path} contains no messages")
    config = open_config(home, workspace, environ, {})
    routes = open_routes(home, config, environ)
    redactor = Redactor({**environ, **routes.secrets()})
    artifacts = ArtifactStore(os.path.join(home, "artifacts"))
    sessions = SessionStore(home, SystemClock())
    folder = os.path.realpath(foreign.workspace) if os.path.isdir(foreign.workspace) else workspace
    log = sessions.create(SessionOpened(LOG_VERSION, folder, _mode(foreign.mode), *_route(foreign, routes)))
    try:
        story = _Story(log.session, foreign, artifacts, Outputs(artifacts, redactor))
        log.append([redactor.event(event) for event in story.events()])
        await log.barrier()
        log.close()
    except BaseException:
        with contextlib.suppress(SessionError):
            log.close()
            sessions.remove([log.session])
        raise
    return story.told()


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise SessionError(f"{path} is larger than {MAX_BYTES >> 20} MiB")
    return data


def _mode(name: str) -> Mode:
    return Mode(name.lower()) if name.lower() in [mode.value for mode in Mode] else Mode.AGENT


def _route(foreign: Foreign, routes: Routes) -> tuple[str, str]:
    """The file's own provider and model where that provider is configured, else what is used by default."""
    name, model = routes.default()
    named = foreign.provider.lower()
    if named and named in routes.tables:
        return named, foreign.model or routes.default_model(named)
    return name, foreign.model if foreign.model and name in foreign.model.lower() else model


class _Story:
    """A foreign session as events, in order."""

    def __init__(self, session: str, foreign: Foreign, artifacts: ArtifactStore, outputs: Outputs) -> None:
        self._session = session
        self._foreign = foreign
        self._artifacts = artifacts
        self._outputs = outputs
        self._catalog = Catalog.load()
        self._repairer = CallRepairer(self._catalog)
        self._ids: set[str] = set()
        self._calls: Counter[str] = Counter()
        self._turns = self._messages = 0
        self._left_out = foreign.left_out

    def told(self) -> Imported:
        """What became of it, once the events have been made."""
        unknown = {name: count for name, count in self._calls.items() if " -> " not in name and not self._known(name)}
        return Imported(
            session=self._session,
            messages=self._messages,
            calls=sum(self._calls.values()),
            renamed={name: count for name, count in self._calls.items() if " -> " in name},
            unknown=unknown,
            left_out=self._left_out,
        )

    def _known(self, name: str) -> bool:
        return self._catalog.spec(name) is not None

    def events(self) -> Iterator[Event]:
        """Everything after the opening."""
        which = f" {self._foreign.id}" if self._foreign.id else ""
        yield Notice("info", f"Imported from the session file of another program{which}; nothing was run.", "imported")
        if self._foreign.title:
            yield TitleSet(self._foreign.title)
        for said in self._foreign.messages:
            if said.role == "user":
                yield from self._user(said)
            elif said.role == "assistant":
                yield from self._assistant(said)
            else:
                self._left_out += 1
        if self._turns:
            yield TurnFinished(self._turns, "done", "imported")

    def _user(self, said: ForeignMessage) -> Iterator[Event]:
        parts = [part for piece in said.pieces if (part := self._part(piece, "person")) is not None]
        if parts:
            if self._turns:
                yield TurnFinished(self._turns, "done", "imported")
            self._turns += 1
            self._messages += 1
            yield TurnStarted(self._turns)
            yield MessageAdded(Message("user", tuple(parts)))

    def _assistant(self, said: ForeignMessage) -> Iterator[Event]:
        parts: list[Part] = []
        made: list[tuple[ForeignCall, PendingCall]] = []
        for piece in said.pieces:
            if isinstance(piece, ForeignCall):
                made.append((piece, self._prepared(piece)))
                parts.append(made[-1][1].call)
            elif (part := self._part(piece, "model")) is not None:
                parts.append(part)
        if parts:
            self._messages += 1
            yield MessageAdded(Message("assistant", tuple(parts)), "tool_calls" if made else "stop")
        for _, prepared in made:
            if prepared.repairs:
                call = prepared.call
                yield RepairRecorded(call.id, prepared.repairs, prepared.lossy, call.name, call.arguments)
        for sent, prepared in made:
            yield self._finished(prepared.call, prepared.name, sent.result)

    def _prepared(self, call: ForeignCall) -> PendingCall:
        call_id = call.id
        if not _ID.fullmatch(call_id) or call_id in self._ids:
            call_id = f"call_{len(self._ids) + 1}"
            while call_id in self._ids:
                call_id += "x"
        self._ids.add(call_id)
        raw = RawCall(call_id, call.name, call.arguments)
        prepared = prepare(raw, call_id, self._catalog, False, lambda: self._repairer)
        self._calls[call.name if prepared.name == call.name else f"{call.name} -> {prepared.name}"] += 1
        return prepared

    def _finished(self, call: ToolCall, name: str, result: Result | None) -> CallFinished:
        if result is None:
            return CallFinished(call.id, name, False, NO_RESULT, error="interrupted")
        content, cut = self._outputs.fit(self._session, call.id, result.content, inline_limit(0))
        origin = next((origin for start, origin in _FROM_OUTSIDE if call.name.startswith(start)), Origin.WORKSPACE)
        return CallFinished(call.id, name, result.ok, content, origin=origin, metadata={**cut, "imported": True})

    def _part(self, piece: object, source: str) -> Part | None:
        match piece:
            case str() if piece.strip():
                return Text(piece, source=source)
            case Thought(text=text):
                return Reasoning(text)
            case Picture(media_type=media_type, data=data):
                return Image(media_type, self._artifacts.put(data), len(data))
            case _:
                return None
