"""What a session's log adds up to: an incremental fold whose result equals a fold from scratch.

Holds what the engine needs to go on; message bytes live in the projection.
"""

from collections.abc import Callable, Container, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.protocol.attempts import AttemptRecord
from codewhale.protocol.events import (
    ONE_SHOT,
    AttemptRecorded,
    CallFinished,
    CallStarted,
    ChildClosed,
    ChildOpened,
    ChildReleased,
    Compacted,
    CompactionUndone,
    ContextAppended,
    EffortChanged,
    Event,
    FileChanged,
    FolderAdded,
    FolderRemoved,
    HeaderPinned,
    JobEnded,
    JobStarted,
    ListChanged,
    MessageAdded,
    ModeChanged,
    ModelChanged,
    QueueKept,
    RequestSent,
    Rewound,
    SessionOpened,
    SessionResumed,
    ShellRan,
    SkillActivated,
    SkillReleased,
    SourceRead,
    TextForgotten,
    TitleSet,
    ToolActivated,
    TurnFinished,
    TurnStarted,
    UsageReported,
    ValueKept,
)
from codewhale.protocol.handles import VarHandle
from codewhale.protocol.marks import SERVED
from codewhale.protocol.messages import ToolCall
from codewhale.protocol.modes import Mode
from codewhale.protocol.scopes import Scope
from codewhale.protocol.stream import Usage
from codewhale.protocol.tools import Origin, ToolSpec
from codewhale.session.forgetting import holder
from codewhale.session.work import WorkState

STALE_MOST = 128
COMMANDS_KEPT = 16
MOST_ATTEMPTS = 200
REPORTED = "reported_children"  # in the metadata of a result that holds what these came to
_TRUSTED = (Origin.WORKSPACE, Origin.HARNESS, Origin.PERSON)


def kept_output(metadata: Mapping[str, object]) -> str | None:
    """The sha256 under which all that a call gave is kept: what its program printed before what was shown of it."""
    for key in ("log_artifact_sha256", "artifact_sha256"):
        if isinstance(sha := metadata.get(key), str):
            return sha
    return None


def tool_name(wire: Mapping[str, object]) -> str:
    """The name of a tool as any dialect writes it."""
    function = wire.get("function", wire)
    return str(function.get("name", "")) if isinstance(function, Mapping) else ""


def _array(header: HeaderPinned) -> list[dict[str, Any]]:
    return msgspec.json.decode(header.tools_json or "[]", type=list[dict[str, Any]])


class KnownTool(Struct, frozen=True):
    """A deferred tool the session knows: its bytes in the array, at which finished call it was last of use, and its row
    as it was shown."""

    bytes: int
    used: int
    spec: ToolSpec | None = None


def stands_for(kind: str, active: Container[str]) -> bool:
    """Whether a context update is said again in a compaction: of skills, that of one that is active."""
    family, _, name = kind.partition(":")
    return name in active if family == "skill" else kind != "offered_skills"


class ChildState(Struct):
    """A child of the session: its task, how that ended (None: it has not, as far as this log knows), and whether the
    conversation holds what it came to."""

    opened: ChildOpened
    ended: ChildClosed | None = None
    reported: bool = False


class _Told(Struct):
    """What the model had been told, and had made of it, when a turn began."""

    updates: dict[str, str]
    commands: list[ShellRan]
    standing: list[int]
    lists: dict[str, tuple[dict[str, Any], ...]]
    activated: dict[str, KnownTool]
    header: HeaderPinned | None
    skills: dict[str, SkillActivated]


class SessionState:
    """The running sum of a session's events. `apply` is the only way it changes."""

    def __init__(self) -> None:
        self.workspace = ""
        self.mode = Mode.AGENT
        self.provider = ""
        self.model = ""
        self.lent_for: tuple[str, str] | None = None  # the provider and model that a turn's own stand in for
        self.header: HeaderPinned | None = None
        self._shown: frozenset[str] | None = None
        self.served: tuple[ToolSpec, ...] | None = None  # tools of servers in the array; None before it is pinned
        self.turns = 0
        self.turn_open = False
        self.messages = 0
        self.requests = 0
        self.last_call = 0
        self.call_ids: set[str] = set()
        self.usage = Usage()
        self.tokens_per_byte = 0.3
        self.request_bytes = 0
        self.said_by = 0  # the last request of the conversation itself
        self.title = ""
        self.measured = (0, 0)  # bytes and tokens of the last request that its provider counted
        self.last_usage = Usage()
        self.effort = ""
        self.compactions = 0
        self.standing: list[int] = []  # the compactions that were not undone
        self.auto_compact_off = False  # the last compaction was undone: none happens by itself
        self.overflow = 0  # what was too much for the model, in tokens; 0 when nothing was
        self.open_calls: dict[str, ToolCall] = {}
        self.started_calls: set[str] = set()
        self.context_updates: dict[str, str] = {}  # "": what was told holds no more
        self.lists: dict[str, tuple[dict[str, Any], ...]] = {}
        self.activated: dict[str, KnownTool] = {}  # in the order of activation
        self.skills: dict[str, SkillActivated] = {}  # that are active
        self.released: set[str] = set()  # skills that the person switched off for the session
        self.finished_calls = 0
        self.artifacts: dict[str, str] = {}
        self.waiting: dict[str, QueueKept] = {}  # messages of the person that no turn has taken
        self.forgotten: dict[str, str] = {}  # texts that no request holds as they were said, by when they were cleared
        self.rewound = False  # a rewind stands somewhere in the log
        self.rewinds: list[tuple[Rewound, _Told, dict[int, _Told]]] = []  # those that can still be undone
        self._begun: dict[int, _Told] = {}  # by turn that stands
        self.tainted = False
        self.origins: tuple[Origin, ...] = ()
        self.owner = self.kind = self.name = ""
        self.scope: Scope | None = None
        self.children: dict[str, ChildState] = {}  # that are not released, in the order of their opening
        self.last_end: TurnFinished | None = None
        self.changed_files = 0
        self.work = WorkState()
        self.folders: dict[str, FolderAdded] = {}  # beside the workspace
        self.values: dict[str, VarHandle] = {}  # by their written form, in the order in which they were kept
        self.attempts: dict[str, AttemptRecord] = {}  # by id, the last ones
        self.sources: dict[str, SourceRead] = {}  # by path: the versions of attached sources that were read last
        self.jobs: dict[str, JobStarted] = {}  # that run
        self.person_commands: list[ShellRan] = []  # the person's own commands since their last message
        self.stale_jobs: dict[str, JobStarted] = {}  # that ran when their process was gone

    @property
    def pinned(self) -> HeaderPinned:
        """The head of the session's requests. Raises RuntimeError before one is pinned."""
        if self.header is None:
            raise RuntimeError("the session has no head yet")
        return self.header

    def apply(self, event: Event) -> None:
        """Add one event."""
        self.work.apply(event)
        step = _STEPS.get(type(event))
        if step is not None:
            step(self, event)

    def _opened(self, event: SessionOpened) -> None:
        self.workspace, self.mode = event.workspace, event.mode
        self.owner, self.kind, self.name = event.owner, event.kind, event.name
        self.scope = event.scope
        self.provider, self.model = event.provider, event.model

    def _resumed(self, event: SessionResumed) -> None:
        self.mode = event.mode
        self.turn_open, self.last_end = False, None
        self.skills = self._lasting()  # an approval ends with the process that heard it
        self.stale_jobs |= self.jobs
        self.jobs = {}
        for job in list(self.stale_jobs)[:-STALE_MOST]:
            del self.stale_jobs[job]

    def _lasting(self) -> dict[str, SkillActivated]:
        lasting = (one for one in self.skills.values() if one.lasts == "session")
        return {one.name: msgspec.structs.replace(one, approved=()) for one in lasting}

    def _mode(self, event: ModeChanged) -> None:
        self.mode = event.mode

    @property
    def route(self) -> tuple[str, str]:
        """The session's own provider and model, whatever one turn has in their place."""
        return self.lent_for or (self.provider, self.model)

    def _model(self, event: ModelChanged) -> None:
        self.lent_for = self.route if event.lent else None
        self.provider, self.model = event.provider, event.model
        self.header, self._shown = None, None
        self.measured, self.overflow = (0, 0), 0

    def _effort(self, event: EffortChanged) -> None:
        self.effort = event.effort

    def _compacted(self, event: Compacted) -> None:
        self.compactions = event.number
        self.standing.append(event.number)
        self.auto_compact_off = False
        updates = self.context_updates.items()
        self.context_updates = {kind: text for kind, text in updates if stands_for(kind, self.skills)}
        if event.reason == "overflow":
            self.overflow = min(self.overflow or event.tokens_before, event.tokens_before)

    def _undone(self, event: CompactionUndone) -> None:
        if event.number in self.standing:
            self.standing.remove(event.number)
            self.auto_compact_off = True

    def _header(self, event: HeaderPinned) -> None:
        self.header, self._shown, self.served = event, None, event.served

    @property
    def shown(self) -> frozenset[str]:
        """The tools of the array as it is sent."""
        if self._shown is None:
            self._shown = frozenset() if self.header is None else frozenset(map(tool_name, _array(self.header)))
        return self._shown

    def _context(self, event: ContextAppended) -> None:
        self.context_updates[event.kind] = event.text

    def _turn_started(self, event: TurnStarted) -> None:
        self.turns, self.turn_open = event.turn, True
        self.rewinds = []
        self._begun[event.turn] = self._told()

    def _told(self) -> _Told:
        known = (dict(self.lists), dict(self.activated), self.header, self._lasting())
        return _Told(dict(self.context_updates), list(self.person_commands), list(self.standing), *known)

    def head_after(self, event: Rewound) -> tuple[HeaderPinned, ...]:
        """The head that a rewind goes back to, with the tools that were known then; none where today's stays."""
        told = self.rewinds[-1][1] if event.back and self.rewinds else self._begun.get(event.turn)
        then, now = told.header if told else None, self.header
        if then is None or now is None or then.sha256 == now.sha256:
            return ()
        same = msgspec.structs.replace(then, tools_json=now.tools_json, sha256=now.sha256) == now
        return (then,) if same else ()

    def _rewind(self, event: Rewound) -> None:
        told = self._begun.get(event.turn)
        if event.back:
            if not self.rewinds:
                return
            _, told, self._begun = self.rewinds.pop()
        elif told is not None:
            self.rewound = True
            self.rewinds.append((event, self._told(), self._begun))
            self._begun = {turn: begun for turn, begun in self._begun.items() if turn < event.turn}
        if told is not None:
            self.context_updates, self.person_commands = dict(told.updates), list(told.commands)
            self.standing = list(told.standing)
            self.lists, self.activated, self.skills = dict(told.lists), dict(told.activated), dict(told.skills)
            self.measured, self.overflow = (0, 0), 0

    def _turn_finished(self, event: TurnFinished) -> None:
        self.turn_open = False
        self.last_end = event
        self.skills = {name: one for name, one in self.skills.items() if one.lasts == "session"}

    def _skill(self, event: SkillActivated) -> None:
        self.skills[event.name] = event
        self.released.discard(event.name)

    def _no_skill(self, event: SkillReleased) -> None:
        self.skills.pop(event.name, None)
        self.released.add(event.name)

    def _titled(self, event: TitleSet) -> None:
        self.title = event.title

    def _queue(self, event: QueueKept) -> None:
        if event.text or event.images:
            self.waiting[event.key] = event
        else:
            self.waiting.pop(event.key, None)

    def _message(self, event: MessageAdded) -> None:
        self.messages += 1
        self.waiting.pop(event.queued, None)
        self._reported(event.child)
        if event.message.role == "user":
            self.person_commands = []
            if SERVED in event.message.text and Origin.MCP not in self.origins:
                self.tainted, self.origins = True, (*self.origins, Origin.MCP)
        for call in event.message.calls:
            self.open_calls[call.id] = call
            self.call_ids.add(call.id)
            self.last_call += 1

    def _request(self, event: RequestSent) -> None:
        self.requests = event.request
        if event.purpose not in ONE_SHOT:
            self.said_by, self.request_bytes = event.request, event.bytes

    def _usage(self, event: UsageReported) -> None:
        new, old = event.usage, self.usage
        own = event.request == self.said_by
        counted = new.input and not event.estimated and own
        if counted and self.request_bytes > 1000:
            self.tokens_per_byte = new.input / self.request_bytes
        if counted:
            self.measured = (self.request_bytes, new.input)
        self.last_usage = new if own else self.last_usage
        cost = None if new.cost is None else (old.cost or 0.0) + new.cost
        self.usage = Usage(
            input=old.input + new.input,
            output=old.output + new.output,
            cache_hit=old.cache_hit + new.cache_hit,
            cache_miss=old.cache_miss + new.cache_miss,
            reasoning=old.reasoning + new.reasoning,
            cost=cost,
            currency=new.currency,
        )

    def _call_started(self, event: CallStarted) -> None:
        self.started_calls.add(event.call_id)

    def _call_finished(self, event: CallFinished) -> None:
        self.open_calls.pop(event.call_id, None)
        self.call_ids.add(event.call_id)  # the message that made the call may be lost to damage
        self.started_calls.discard(event.call_id)
        self.finished_calls += 1
        for name in (event.name, *event.metadata.get("tool_references", ())):
            if name in self.activated:
                self.activated[name] = msgspec.structs.replace(self.activated[name], used=self.finished_calls)
        if event.origin not in _TRUSTED and event.origin not in self.origins:
            self.tainted, self.origins = True, (*self.origins, event.origin)
        for child in event.metadata.get(REPORTED, ()):
            self._reported(child)
        artifact = kept_output(event.metadata)
        if artifact:
            self.artifacts[event.call_id] = artifact

    def _file_changed(self, event: FileChanged) -> None:
        self.changed_files += 1

    def _folder(self, event: FolderAdded) -> None:
        self.folders[event.path] = event

    def _no_folder(self, event: FolderRemoved) -> None:
        self.folders.pop(event.path, None)

    def _value(self, event: ValueKept) -> None:
        self.values[f"{event.handle.session_id}/{event.handle.name}"] = event.handle

    def _attempt(self, event: AttemptRecorded) -> None:
        self.attempts[event.attempt.id] = event.attempt
        if len(self.attempts) > MOST_ATTEMPTS:
            del self.attempts[next(iter(self.attempts))]

    def _source(self, event: SourceRead) -> None:
        self.sources[event.path] = event

    def _activated(self, event: ToolActivated) -> None:
        for name in event.dropped:
            self.activated.pop(name, None)
        self.activated[event.name] = KnownTool(event.bytes, self.finished_calls, event.spec)

    def _child_opened(self, event: ChildOpened) -> None:
        if event.kind != "review":  # which is waited for: the conversation is not told of it as of a child
            self.children[event.child] = ChildState(event)

    def _child_closed(self, event: ChildClosed) -> None:
        if (child := self.children.get(event.child)) is not None:
            child.ended = event

    def _child_released(self, event: ChildReleased) -> None:
        self.children.pop(event.child, None)

    def _reported(self, child: str) -> None:
        if child in self.children:
            self.children[child].reported = True

    def _list(self, event: ListChanged) -> None:
        self.lists[event.kind] = event.items

    def _job_started(self, event: JobStarted) -> None:
        self.jobs[event.job_id] = event

    def _job_ended(self, event: JobEnded) -> None:
        self.jobs.pop(event.job_id, None)

    def _forgotten(self, event: TextForgotten) -> None:
        self.forgotten |= dict.fromkeys(event.texts, "") | dict(zip(event.texts, event.cleared, strict=False))
        holds, earlier = holder(event.texts), [*self._begun.values()]
        for _, told, begun in self.rewinds:
            earlier += [told, *begun.values()]
        for updates in (self.context_updates, *(told.updates for told in earlier)):
            updates.update((kind, "") for kind, text in list(updates.items()) if holds(text))

    def _shell_ran(self, event: ShellRan) -> None:
        self.person_commands = [*self.person_commands, event][-COMMANDS_KEPT:]


_STEPS: dict[type[Event], Callable[[SessionState, Any], None]] = {
    SessionOpened: SessionState._opened,
    SessionResumed: SessionState._resumed,
    ModeChanged: SessionState._mode,
    ModelChanged: SessionState._model,
    EffortChanged: SessionState._effort,
    Compacted: SessionState._compacted,
    CompactionUndone: SessionState._undone,
    HeaderPinned: SessionState._header,
    ContextAppended: SessionState._context,
    TurnStarted: SessionState._turn_started,
    TurnFinished: SessionState._turn_finished,
    MessageAdded: SessionState._message,
    RequestSent: SessionState._request,
    UsageReported: SessionState._usage,
    CallStarted: SessionState._call_started,
    CallFinished: SessionState._call_finished,
    FileChanged: SessionState._file_changed,
    FolderAdded: SessionState._folder,
    FolderRemoved: SessionState._no_folder,
    SourceRead: SessionState._source,
    ValueKept: SessionState._value,
    AttemptRecorded: SessionState._attempt,
    ListChanged: SessionState._list,
    JobStarted: SessionState._job_started,
    JobEnded: SessionState._job_ended,
    ToolActivated: SessionState._activated,
    SkillActivated: SessionState._skill,
    SkillReleased: SessionState._no_skill,
    ShellRan: SessionState._shell_ran,
    TextForgotten: SessionState._forgotten,
    Rewound: SessionState._rewind,
    QueueKept: SessionState._queue,
    TitleSet: SessionState._titled,
    ChildOpened: SessionState._child_opened,
    ChildClosed: SessionState._child_closed,
    ChildReleased: SessionState._child_released,
}
