"""How a session begins: new, resumed or forked, with its provider, its pinned head and nothing left open; and what the
model is told beside the conversation that may change under it.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

from msgspec import Struct, structs

from codewhale.agent.activation import HeadChoice, ServedTools, chosen_profile, head_tools
from codewhale.agent.childtask import fold
from codewhale.agent.context_window import Compactor, ContextWindow, context_view, next_request
from codewhale.agent.effort import facts_at, wakes
from codewhale.agent.model_call import price_known, session_budget, unknown_price
from codewhale.agent.turn import Turn
from codewhale.catalog.lifecycle import DEFAULT_PROFILE
from codewhale.catalog.registry import Catalog
from codewhale.lib.clock import Clock
from codewhale.lib.text import one_line
from codewhale.models.dialects.base import Dialect, Provider
from codewhale.permissions.folders import folder_to_add, stands
from codewhale.process.artifacts import ArtifactStore
from codewhale.process.command import home_inside
from codewhale.protocol.errors import ConfigError, SessionError
from codewhale.protocol.events import (
    LOG_VERSION,
    ContextAppended,
    EffortChanged,
    Event,
    FolderRemoved,
    HeaderPinned,
    JobStarted,
    ModelChanged,
    PrefixInvalidated,
    Rewound,
    SessionOpened,
    SessionResumed,
    TextForgotten,
)
from codewhale.protocol.memory import LayerRow
from codewhale.protocol.messages import Image
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.ops import OpenSession
from codewhale.protocol.tools import ToolSpec
from codewhale.protocol.views import ContextView
from codewhale.session.footprint import Footprint
from codewhale.session.forgetting import forget, holder
from codewhale.session.lanes import Lanes
from codewhale.session.lists import Lists
from codewhale.session.log import SessionLog
from codewhale.session.prefixcache import Heads
from codewhale.session.projection import Projection, header_sha256, pinned_dialect
from codewhale.session.prompt import (
    RULES,
    Instruction,
    instruction_text,
    load_instructions,
    mode_text,
    notes_version,
    skills_text,
    system_text,
    with_notes,
)
from codewhale.session.redaction import Redactor
from codewhale.session.session import LOST, Folds, Session
from codewhale.session.standing import of_conversation, standing
from codewhale.session.state import SessionState
from codewhale.session.store import SessionStore
from codewhale.session.window import ContextSettings

STALE_SHOWN = 8

FOLDER_GONE = "The added folder {} has been replaced since it was added, so it was removed. /add-dir adds it again."
FREE = "A scripted provider without prices costs nothing, so the cost limit is never reached."
HOME_OPEN = (
    "The workspace is or holds the home folder ({}): programs use many files in it automatically, and your "
    "private files are there. Each change of such a file asks first; opening the folder of one project is safer."
)


class Stores(Struct, frozen=True):
    """What is kept of sessions: their logs, their outputs, their checklists and plans."""

    sessions: SessionStore
    artifacts: ArtifactStore
    lists: Lists


class ProviderSource(Protocol):
    """The configured providers."""

    def build(self, name: str, model: str) -> Provider:
        """The provider of a name, for a model. Raises ConfigError."""


class HeadTexts(Protocol):
    """What a head and messages say of a workspace."""

    def root(self, workspace: str) -> str | None: ...
    def skills(self, workspace: str) -> str: ...
    def law(self, workspace: str) -> str:
        """What its constitution tells the model; "" for nothing."""

    def rules(self, workspace: str) -> str:
        """The rules that always apply there; "" where there is none."""

    def sources(self, workspace: str) -> str:
        """What is attached to be read there; "" for nothing."""

    def codemap(self, workspace: str) -> str:
        """The map of its code; "" where there is none."""

    def notes(self, workspace: str) -> str:
        """The person's own facts; "" where there is none."""

    def cleared(self, workspace: str) -> dict[str, str]:
        """The texts of facts that were cleared of late, and when."""

    def facts(self, workspace: str) -> str:
        """What a message is told of the moment."""

    def layers(self, workspace: str, session: str) -> Sequence[LayerRow]:
        """What each layer of memory holds."""

    def unverified(self, session: Session) -> list[dict[str, str]] | None:
        """The clauses that want something which has not succeeded since the last change; None where none does."""


class SessionDefaults(Struct, frozen=True):
    """What is configured for the sessions of a workspace. `route(provider)` gives the provider and model that are
    asked where nothing else is chosen, of a named provider its model; `tools` is what is configured of the array,
    `served(yolo)` what joins it of servers."""

    redactor: Redactor
    route: Callable[[str], tuple[str, str]]
    effort: str = ""
    approval: Approval = Approval.SUGGEST
    context: ContextSettings = ContextSettings()
    tools: HeadChoice = HeadChoice()
    served: Callable[[bool], ServedTools] = lambda yolo: ServedTools()


class SessionDeps(Struct, frozen=True):
    """What sessions are opened from. `home` is CODEWHALE_HOME, `defaults(workspace)` what is configured there,
    `begin(session, told)` what one that works for no other should know before its first request."""

    home: str
    stores: Stores
    clock: Clock
    providers: ProviderSource
    texts: HeadTexts
    compactor: Callable[[Session, ContextSettings], Compactor]
    defaults: Callable[[str], SessionDefaults]
    begin: Callable[[Session, bool], Awaitable[Sequence[Event]]] | None = None


class _Reading(Struct):
    """A log and what it adds up to; the projection where the log says in which dialect."""

    log: SessionLog
    folds: Folds
    projection: Projection | None = None


class SessionFactory:
    """Opens sessions."""

    def __init__(self, deps: SessionDeps, catalog: Catalog) -> None:
        self._deps = deps
        self._stores = deps.stores
        self._catalog = catalog
        self._heads: Heads = {}
        self._lanes = Lanes(deps.clock)
        self._sources = (
            instruction_source(self.instructions),
            skill_source(deps.texts.skills),
            rule_source(deps.texts.rules),
            law_source(deps.texts.law),
            notes_source(deps.texts.notes),
            attached_source(deps.texts.sources),
        )

    def open(self, op: OpenSession, owner: Session | None = None) -> Session:
        """A session ready for its next turn. Raises SessionError, SessionBusyError, ConfigError."""
        return self._opened(op, owner, self._read(op))

    async def open_aside(self, op: OpenSession, owner: Session) -> Session:
        """The same, with its log copied and read beside the event loop."""
        reading = asyncio.ensure_future(asyncio.to_thread(self._read, op, owner))
        try:
            return self._opened(op, owner, await asyncio.shield(reading))
        except asyncio.CancelledError:
            reading.add_done_callback(partial(self._leave, op))
            raise

    def _leave(self, op: OpenSession, reading: "asyncio.Future[_Reading]") -> None:
        if not reading.cancelled() and reading.exception() is None:
            self._drop(op, reading.result())

    def _opened(self, op: OpenSession, owner: Session | None, reading: "_Reading") -> Session:
        try:
            return self._settled(reading, op, owner)
        except BaseException:
            self._drop(op, reading)
            raise

    def _drop(self, op: OpenSession, reading: "_Reading") -> None:
        with contextlib.suppress(SessionError):  # what went wrong first is what is told
            reading.log.close()
            if not op.resume:
                self._stores.sessions.remove([reading.log.session])

    def _read(self, op: OpenSession, owner: Session | None = None) -> "_Reading":
        """A session's log, held, and what it adds up to. With an `owner` the log is read beside the event loop, and
        all that takes long of its next request is done here."""
        log, folds = self._log(op, owner), Folds()
        folds.prefix.heads = self._heads
        try:
            for envelope in log.read():
                folds.take(envelope)
            state = folds.state
            if not state.workspace:
                state.apply(self._beginning(state, op))
            if state.header is None:
                return _Reading(log, folds)
            events = of_conversation(log, state)
            if owner is not None and op.fork == owner.id:
                folds.prefix.inherit(owner.prefix)
            elif owner is not None and state.requests:
                folds.prefix.recall(log.read(), (state.provider, state.model), self._load_image)
            checked = None if owner is None else state.header
            return _Reading(log, folds, self._projection(events, pinned_dialect(state.header), checked))
        except BaseException:
            self._drop(op, _Reading(log, folds))
            raise

    def closed(self, session: Session) -> None:
        if session.state.turns == 0:
            with contextlib.suppress(SessionError):
                self._stores.sessions.remove([session.id])

    def _log(self, op: OpenSession, owner: Session | None) -> SessionLog:
        sessions = self._stores.sessions
        if not op.resume and not op.fork:
            provider, model = self._deps.defaults(op.workspace).route(op.provider)
            return sessions.create(_begun(op, provider, op.model or model))
        name = sessions.resolve(op.resume or op.fork, op.workspace)
        if not op.fork:
            return sessions.open(name)
        parent = fold(sessions.read(name))[0] if owner is None or owner.id != name else owner.state
        return sessions.fork(name, self._beginning(parent, op), op.until)

    def _beginning(self, state: SessionState, op: OpenSession) -> SessionOpened:
        """What stands in for a first record lost to damage: where the session is opened now, with the model that
        it was last sent to."""
        provider, model = self._deps.defaults(op.workspace).route("")
        if state.provider:
            provider, model = state.provider, state.model
        elif state.header is not None:
            provider, model = state.header.provider, state.header.model
        return _begun(op, provider, model)

    def _settled(self, reading: "_Reading", op: OpenSession, owner: Session | None) -> Session:
        deps, log, folds = self._deps, reading.log, reading.folds
        state = folds.state
        defaults = deps.defaults(state.workspace)
        if state.owner != op.owner and op.owner:
            raise SessionError(f"session {log.session} does not belong to {op.owner}; open it without an owner")
        last = (state.provider, state.model)
        own = state.route if owner is None else last
        route = (op.provider or own[0], op.model or own[1])
        if op.provider not in ("", own[0]) and not op.model:
            route = defaults.route(op.provider)
        provider = deps.providers.build(*route)
        if op.limits.cost is not None and not price_known(provider):
            raise ConfigError(unknown_price(*route))
        budget = session_budget(folds.accounts, provider.model.price, deps.clock, owner).slice(op.limits)
        projection = reading.projection or self._projection(of_conversation(log, state), provider.dialect)
        session = Session(log, folds, (provider, projection), budget, defaults.redactor, deps.clock)
        session.lane = self._lanes.of(provider)
        if owner is not None:
            session.belong(owner)
        session.allow(authority=op.authority, approval=op.approval or defaults.approval)
        if op.resume or op.fork:
            self._continue(session, op)
            if route != last or own != last:
                session.emit(ModelChanged(*route))
        effort = op.effort or ("" if op.resume or op.fork else defaults.effort)
        if effort and effort != state.effort:
            session.emit(EffortChanged(effort))
        self._folders(session, (*op.folders, *(owner.state.folders if owner is not None else ())))
        self._pin(session)
        if home_inside(state.workspace):
            session.notice("warning", HOME_OPEN.format(state.workspace), "workspace_home")
        if op.limits.cost is not None and provider.model.price is None:
            session.notice("info", FREE, "no_price")
        return session

    def _continue(self, session: Session, op: OpenSession) -> None:
        """Take up what an earlier process left. Raises SessionError where the workspace is gone and nobody is there."""
        state = session.state
        for call_id, sha in state.artifacts.items():
            self._stores.artifacts.remember(session.id, call_id, sha)
        self._stores.lists.restore(session.id, state.lists)
        gone = "" if os.path.isdir(state.workspace) else workspace_gone(state.workspace)
        if gone and op.authority is not Authority.PERSON:
            raise SessionError(gone)
        damage = session.log.damage
        running = list(state.jobs.values()) if op.resume else []
        session.emit(SessionResumed(op.mode, op.authority, damage.cut_bytes, damage.skipped_lines))
        self._tell_damage(session)
        if gone:
            session.notice("warning", gone, "workspace_gone")
        if running:
            session.notice("warning", stale_text(running), "jobs_stale")
        session.close_calls(LOST)

    def _folders(self, session: Session, named: Sequence[str]) -> None:
        """Drop added folders that are no longer those that were added, and add what is named. Raises ConfigError."""
        for folder in [one for one in session.state.folders.values() if not stands(one)]:
            session.emit(FolderRemoved(folder.path, "gone"))
            session.notice("warning", FOLDER_GONE.format(folder.path), "folder_gone")
        for path in named:
            self.add_folder(session, path)

    def add_folder(self, session: Session, path: str) -> str:
        """Add a folder beside the workspace; where it really is. Raises ConfigError."""
        folder = folder_to_add(path, session.state.workspace, self._deps.home)
        if session.state.folders.get(folder.path) != folder:
            session.emit(folder)
        return folder.path

    def provider(self, name: str, model: str) -> Provider:
        return self._deps.providers.build(name, model)

    def attach(self, session: Session, provider: Provider) -> None:
        """Ask another provider from now on; pin a head if the session has none for it."""
        session.use(provider)
        session.lane = self._lanes.of(provider)
        self._pin(session)

    def rewind(self, session: Session, event: Rewound) -> None:
        """Let the conversation stand as it did, for the model too, with the tools and lists of that time."""
        log, head = (envelope.event for envelope in session.log.read()), session.state.head_after(event)
        projection = self._projection(forget(standing((*log, event))), pinned_dialect(session.state.pinned))
        session.emit(PrefixInvalidated("rewind", 0 if head else projection.count + 1), event, *head)
        session.projection = projection
        self._stores.lists.restore(session.id, session.state.lists)

    def _projection(self, events: Iterable[Event], dialect: Dialect, checked: HeaderPinned | None = None) -> Projection:
        """What the events come to; `checked` for a head, a piece at a time: decoding keeps others from running."""
        projection = Projection(dialect, self._load_image)
        for number, event in enumerate(events):
            projection.apply(event)
            if checked is not None and number % 64 == 0:
                projection.fault(checked)
        return projection

    def _pin(self, session: Session) -> None:
        """Pin a head where the session has none for its model, and say the conversation by it."""
        state, provider = session.state, session.provider
        header = state.header
        fits = header is not None and _fits(header, state, provider)
        woken = header is not None and fits and wakes(state.effort, header.facts)
        if fits and not woken:
            return
        pinned = self._header(session)
        events = of_conversation(session.log, state)
        session.projection = self._projection(events, pinned_dialect(pinned))
        if session.projection.count:
            session.emit(PrefixInvalidated("effort" if woken else "model", 0))
        session.emit(pinned)

    def _header(self, session: Session) -> HeaderPinned:
        state, provider, texts = session.state, session.provider, self._deps.texts
        defaults = self._deps.defaults(state.workspace)
        choice, owned = defaults.tools, _inherited(session)
        facts = facts_at(state.effort, provider.settings.facts)
        if owned is not None and session.owner is not None and session.owner.state.workspace == state.workspace:
            return structs.replace(owned, facts=facts)
        chain, skills = self.instructions(state.workspace), texts.skills(state.workspace)
        profile = chosen_profile(choice, provider) if owned is None else owned.profile or DEFAULT_PROFILE
        served = self._served(session, profile) if owned is None else owned.served
        tools_json = (
            owned.tools_json if owned is not None else head_tools(self._catalog, choice, state, provider, served)
        )
        shown = {row.name for row in self._catalog.head_of(profile, choice.always)}
        codemap = texts.codemap(state.workspace)
        rules = "\n\n".join(filter(None, (texts.law(state.workspace), texts.rules(state.workspace))))
        system = system_text(shown, chain, skills, defaults.redactor.text(codemap), rules, texts.notes(state.workspace))
        return HeaderPinned(
            dialect=provider.dialect.name,
            provider=state.provider,
            model=state.model,
            system=system,
            tools_json=tools_json,
            sha256=header_sha256(system, tools_json),
            facts=facts,
            profile="" if profile == DEFAULT_PROFILE else profile,
            served=served,
        )

    def _served(self, session: Session, profile: str) -> tuple[ToolSpec, ...]:
        """The tools of servers that stand behind the head: those of the session's first head, else of its owner's."""
        state = session.state
        if state.served is not None:
            return state.served
        if session.owner is not None:
            return session.owner.state.served or ()
        if profile != DEFAULT_PROFILE:
            return ()
        served = self._deps.defaults(state.workspace).served(state.mode is Mode.YOLO).within(session.provider)
        if served.rows or served.left_out:
            session.notice("info", served_text(served), "mcp_served")
        return served.rows

    def instructions(self, workspace: str) -> tuple[Instruction, ...]:
        return load_instructions(workspace, self._deps.home, self._deps.texts.root(workspace))

    def beginning(self, session: Session, header: HeaderPinned | None = None) -> tuple[Event, ...]:
        """What the beginning of a turn adds behind its message, by this head or the one at hand."""
        state, mode = session.state, mode_text(session.rights.mode)
        pairs = (("mode", mode), ("facts", self._deps.texts.facts(state.workspace)))
        first, last = (
            [ContextAppended(kind, text)] if state.context_updates.get(kind) != text else [] for kind, text in pairs
        )
        return (*first, *self.updates(session, header), *last)

    def updates(self, session: Session, header: HeaderPinned | None = None) -> tuple[ContextAppended, ...]:
        """What to tell the model at the beginning of a turn: each source that stands otherwise than it was told."""
        return changes(self._sources, session, self._deps.defaults(session.state.workspace).redactor, header)

    def forget_cleared(self, session: Session) -> None:
        """Facts that were cleared since, by whomever, stand in no later request. A named edge where one does."""
        event, pinned = self._cleared(session)
        if event.texts:
            session.emit(PrefixInvalidated("memory cleared", 0), event, pinned)
            session.projection = self._without(None, session, pinned)

    def _cleared(self, session: Session) -> tuple[TextForgotten, HeaderPinned]:
        """The cleared facts that the next request would hold, and the head without them. Each clear counts once."""
        state, header = session.state, session.state.pinned
        cleared = self._deps.texts.cleared(state.workspace).items()
        new = {text: "" if state.turn_open else at for text, at in cleared if state.forgotten.get(text) != at}
        if not new or not (holder(new)(header.system) or session.projection.holds(new)):
            return TextForgotten(()), header
        system = with_notes(header.system, self._deps.texts.notes(state.workspace))
        pinned = structs.replace(header, system=system, sha256=header_sha256(system, header.tools_json))
        return TextForgotten(tuple(new), tuple(new.values())), pinned

    def _without(self, event: TextForgotten | None, session: Session, header: HeaderPinned) -> Projection:
        events = of_conversation(session.log, session.state)
        if event is not None:
            events = forget((*events, event))
        return self._projection((*events, header), pinned_dialect(header))

    async def begin(self, session: Session) -> None:
        """Tell a session that works for no other what it should know before its first request."""
        session.emit(*await self._first(session, True))

    async def _first(self, session: Session, told: bool) -> Sequence[Event]:
        if self._deps.begin is None or session.state.requests or session.state.owner or session.state.kind:
            return ()
        return await self._deps.begin(session, told)

    def unverified(self, session: Session) -> list[dict[str, str]] | None:
        return self._deps.texts.unverified(session)

    async def context(self, turn: Callable[[], Turn], brief: bool = False) -> ContextView:
        session = turn().session
        workspace = session.state.workspace
        settings = self._deps.defaults(workspace).context
        if brief:
            return context_view(session, settings)
        layers = await asyncio.to_thread(self._deps.texts.layers, workspace, session.id)
        first = await self._first(session, False)
        return context_view(session, settings, self._next_request(turn(), first), layers)

    def _next_request(self, turn: Turn, first: Sequence[Event]) -> Footprint:
        session = turn.session
        if not turn.idle:
            return next_request(turn, (), session.projection, session.state.pinned)
        event, header = self._cleared(session)
        projection = self._without(event, session, header) if event.texts else session.projection
        return next_request(turn, (*self.beginning(session, header), *first), projection, header)

    def window(self, session: Session) -> ContextWindow:
        return ContextWindow(session, self._deps.defaults(session.state.workspace).context, self._deps.compactor)

    def _tell_damage(self, session: Session) -> None:
        damage = session.log.damage
        if not damage.cut_bytes and not damage.skipped_lines:
            return
        text = (
            f"The session log was damaged: {damage.cut_bytes} bytes of an unfinished record went to log.jsonl.corrupt, "
            f"{damage.skipped_lines} unreadable records were skipped; everything else is intact."
        )
        if not isinstance(next(session.log.read()).event, SessionOpened):
            state = session.state
            text += f" Its start is lost; it continues in {state.workspace} with {state.provider} {state.model}."
        session.notice("warning", text, "log_damaged")

    def _load_image(self, image: Image) -> bytes:
        return self._stores.artifacts.get(image.artifact)


def _begun(op: OpenSession, provider: str, model: str) -> SessionOpened:
    owned = (op.owner, op.kind, op.name, op.scope)
    return SessionOpened(LOG_VERSION, op.workspace, op.mode, provider, model, "", 0, "", *owned)


def _inherited(session: Session) -> HeaderPinned | None:
    """The head of the session that owns this one, where both ask one model in one dialect: their tools are the same
    bytes, which its provider has in its cache."""
    header = None if session.owner is None else session.owner.state.header
    return header if header is not None and _fits(header, session.state, session.provider) else None


def workspace_gone(workspace: str) -> str:
    """What a person is told of a session whose folder is no more."""
    return (
        f"The workspace of this session, {one_line(workspace, 300)}, is gone: it was deleted or moved. Restore it, "
        "or start a new session where the code is now."
    )


def served_text(served: ServedTools) -> str:
    """What a person is told of the tools of servers in the array."""
    more = f"; {served.left_out} more are found by search" if served.left_out else ""
    return f"Tools of MCP servers in this session from its first request on: {len(served.rows)}{more}."


def stale_text(jobs: Sequence[JobStarted]) -> str:
    """What a person is told of jobs that ran when the process that looked after them was gone."""
    named = ", ".join(f"{job.job_id} ({one_line(job.command, 60)})" for job in jobs[:STALE_SHOWN])
    more = f" and {len(jobs) - STALE_SHOWN} more" if len(jobs) > STALE_SHOWN else ""
    return f"Background jobs left by an earlier run of CodeWhale: {named}{more}. /jobs lists them."


def _fits(header: HeaderPinned, state: SessionState, provider: Provider) -> bool:
    """Whether a pinned head still belongs to the route in use."""
    return (header.provider, header.model, header.dialect) == (state.provider, state.model, provider.dialect.name)


# ---------------------------------------------------------------------- what is told beside the conversation


class ContextSource(Struct, frozen=True):
    """One thing that is kept up to date. `kind` names it in the log, `title` is how it is spoken of; `text` of a
    workspace is how it stands now ("" for none), `in_head` tells whether a head's system text says this already."""

    kind: str
    title: str
    text: Callable[[str], str]
    in_head: Callable[[str, str], bool]
    version: Callable[[str], str] = str  # texts of one version say the same


def instruction_source(load: Callable[[str], Iterable[Instruction]]) -> ContextSource:
    """The instruction chain of a workspace: the end of the system text."""
    return ContextSource(
        "instructions",
        "The project's instruction files",
        lambda workspace: instruction_text(load(workspace)),
        lambda system, text: system.endswith(text) if text else "<instructions" not in system,
    )


def skill_source(listing: Callable[[str], str]) -> ContextSource:
    """The skills that a model can read."""
    return ContextSource(
        "skills",
        "The skills",
        lambda workspace: skills_text(listing(workspace)),
        lambda system, text: text in system if text else "<skills>" not in system,
    )


def rule_source(text: Callable[[str], str]) -> ContextSource:
    """The rules that always apply."""
    return ContextSource(
        "rules",
        "The rules that always apply",
        text,
        lambda system, text: text in system if text else RULES not in system,
    )


def law_source(text: Callable[[str], str]) -> ContextSource:
    """The project's constitution, as far as it is told."""
    return ContextSource(
        "constitution",
        "The clauses of the project's constitution",
        text,
        lambda system, text: text in system if text else "<constitution>" not in system,
    )


def notes_source(text: Callable[[str], str]) -> ContextSource:
    """The person's own facts: which of many are sent may change with their use, and is no news."""
    return ContextSource(
        "memory",
        "The user's notes",
        text,
        lambda system, text: notes_version(system) == notes_version(text),
        notes_version,
    )


def attached_source(text: Callable[[str], str]) -> ContextSource:
    """The attached sources, by name and place: no head holds them."""
    return ContextSource("sources", "The attached sources", text, lambda system, text: not text)


def changes(
    sources: Iterable[ContextSource], session: Session, redactor: Redactor, header: HeaderPinned | None = None
) -> tuple[ContextAppended, ...]:
    """One update for each source that stands otherwise than the model was last told, by this head or the one at
    hand."""
    state, updates = session.state, list[ContextAppended]()
    header = header or state.header
    for source in sources:
        text = redactor.text(source.text(state.workspace))
        update, last = _update(source, text), state.context_updates.get(source.kind)
        known = bool(last) and source.version(last or "") == source.version(update)
        if last is None and header is not None:
            known = source.in_head(header.system, text)
        if not known:
            updates.append(ContextAppended(source.kind, update))
    return tuple(updates)


def _update(source: ContextSource, text: str) -> str:
    news = f"{source.title} changed and now read in full:\n{text}"
    if not text:
        news = f"{source.title} were removed; they no longer apply."
    return f"<context_update>\n{news}\n</context_update>"
