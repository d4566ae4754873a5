"""How a session begins: new, resumed or forked, with its provider, its pinned head and nothing left open."""

import contextlib
import os
from collections.abc import Callable, Sequence

from msgspec import Struct

from codewhale.agent.activation import HeadChoice, chosen_profile, head_tools
from codewhale.agent.context import context_view
from codewhale.agent.effort import facts_at, wakes
from codewhale.agent.modelcall import price_known, session_budget, unknown_price
from codewhale.agent.room import Maker, Room
from codewhale.agent.sources import ContextSource, InstructionSource, SkillSource, changes
from codewhale.catalog.lifecycle import DEFAULT_PROFILE
from codewhale.catalog.registry import Catalog
from codewhale.lib.clock import Clock
from codewhale.lib.text import one_line
from codewhale.models.dialects.base import Provider
from codewhale.process.command import home_inside
from codewhale.protocol.errors import ConfigError, SessionError
from codewhale.protocol.events import (
    LOG_VERSION,
    ContextAppended,
    Edge,
    EffortChanged,
    HeaderPinned,
    JobStarted,
    ModelChanged,
    SessionOpened,
    SessionResumed,
)
from codewhale.protocol.messages import Image
from codewhale.protocol.modes import Approval, Authority
from codewhale.protocol.ops import OpenSession
from codewhale.protocol.views import ContextView
from codewhale.session.artifacts import ArtifactStore
from codewhale.session.lists import Lists
from codewhale.session.log import SessionLog
from codewhale.session.prefixcache import Heads
from codewhale.session.projection import Projection, header_sha256, pinned_dialect
from codewhale.session.prompt import Instruction, load_instructions, system_text
from codewhale.session.redaction import Redactor
from codewhale.session.session import LOST, Session
from codewhale.session.state import SessionState
from codewhale.session.store import SessionStore
from codewhale.session.window import ContextSettings

STALE_SHOWN = 8

FREE = "A scripted provider without prices costs nothing, so the bound on cost is never reached."
HOME_OPEN = (
    "The workspace is or holds the home folder ({}): programs act on many files in it by themselves, and everything "
    "private lies there. Each change of such a file is asked about; opening the folder of one project is safer."
)


class Surroundings(Struct, frozen=True):
    """What sessions are opened from: the stores, and how the machine and its configuration are asked. `effort` is what
    a new session begins with, `approval` what becomes of asks, `tools` what is configured of its array, `codemap` the
    map of a workspace as a head holds it."""

    home: str
    sessions: SessionStore
    artifacts: ArtifactStore
    lists: Lists
    clock: Clock
    redactor: Redactor
    compaction: Callable[[Session, ContextSettings], Maker]
    build_provider: Callable[[str, str], Provider]
    default_route: Callable[[str], tuple[str, str]]
    find_root: Callable[[str], str | None]
    effort: str = ""
    approval: Approval = Approval.SUGGEST
    context: ContextSettings = ContextSettings()
    skills: Callable[[str], str] = lambda workspace: ""
    tools: HeadChoice = HeadChoice()
    codemap: Callable[[str], str] = lambda workspace: ""


class Opener:
    """Opens sessions."""

    def __init__(self, around: Surroundings, catalog: Catalog) -> None:
        self._around = around
        self._catalog = catalog
        self._heads: Heads = {}
        self._sources: tuple[ContextSource, ...] = (
            InstructionSource(self.instructions),
            SkillSource(around.skills),
        )

    def open(self, op: OpenSession) -> Session:
        """A session ready for its first or next turn. Raises SessionError, SessionBusyError, ConfigError."""
        if op.resume or op.fork:
            session = self._reopen(op)
        else:
            provider, model = self._around.default_route(op.provider)
            session = self._create(op, provider, op.model or model)
        try:
            self._settle(session, op)
        except BaseException:
            with contextlib.suppress(SessionError):  # what went wrong first is what is told
                session.log.close()
                if not op.resume:
                    self._around.sessions.remove([session.id])
            raise
        return session

    def closed(self, session: Session) -> None:
        """A session that closed without ever having had a turn leaves nothing behind."""
        if session.state.turns == 0 and session.fault is None:
            with contextlib.suppress(SessionError):
                self._around.sessions.remove([session.id])

    def _create(self, op: OpenSession, provider: str, model: str) -> Session:
        opened = SessionOpened(LOG_VERSION, op.workspace, op.mode, provider, model)
        return self._session(self._around.sessions.create(opened), op)

    def _reopen(self, op: OpenSession) -> Session:
        sessions = self._around.sessions
        found = sessions.resolve(op.resume or op.fork, op.workspace)
        if op.fork:
            parent = SessionState()
            for envelope in sessions.read(found):
                parent.apply(envelope.event)
            return self._session(sessions.fork(found, self._beginning(parent, op)), op)
        return self._session(sessions.open(found), op)

    def _session(self, log: SessionLog, op: OpenSession) -> Session:
        around = self._around
        session = Session(log.session, log, around.redactor, around.clock)
        session.prefix.heads = self._heads
        session.replay(envelope.event for envelope in log.read())
        if not session.state.workspace:
            session.state.apply(self._beginning(session.state, op))
        return session

    def _beginning(self, state: SessionState, op: OpenSession) -> SessionOpened:
        """What stands in for a first record lost to damage: where the session is opened now, with the model that
        it was last sent to."""
        provider, model = self._around.default_route("")
        if state.provider:
            provider, model = state.provider, state.model
        elif state.header is not None:
            provider, model = state.header.provider, state.header.model
        return SessionOpened(LOG_VERSION, op.workspace, op.mode, provider, model)

    def _settle(self, session: Session, op: OpenSession) -> None:
        state, around = session.state, self._around
        wanted = (op.provider or state.provider, op.model or state.model)
        if op.provider not in ("", state.provider) and not op.model:
            wanted = around.default_route(op.provider)
        provider = self.provider(*wanted)
        if op.limits.cost is not None and not price_known(provider):
            raise ConfigError(unknown_price(*wanted))
        session.authority = op.authority
        session.approval = op.approval or around.approval
        session.budget = session_budget(session.accounts, provider.model.price, around.clock).slice(op.limits)
        for call_id, sha in state.artifacts.items():
            around.artifacts.remember(session.id, call_id, sha)
        for kind, items in state.lists.items():
            around.lists.set(session.id, kind, items)
        if op.resume or op.fork:
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
            if wanted != (state.provider, state.model):
                session.emit(ModelChanged(*wanted))
        effort = op.effort or ("" if op.resume or op.fork else around.effort)
        if effort and effort != state.effort:
            session.emit(EffortChanged(effort))
        self.attach(session, provider)
        if home_inside(state.workspace):
            session.notice("warning", HOME_OPEN.format(state.workspace), "workspace_home")
        if op.limits.cost is not None and provider.model.price is None:
            session.notice("info", FREE, "no_price")

    def provider(self, name: str, model: str) -> Provider:
        """The provider of a configured name, for a model. Raises ConfigError."""
        return self._around.build_provider(name, model)

    def attach(self, session: Session, provider: Provider) -> None:
        """Give the session its provider and its projection; pin a head if it has none for this model. A former
        provider is closed with the session."""
        state = session.state
        session.provider = provider
        session.load_image = self._load_image
        session.providers.append(provider)
        header = state.header
        keep = header is not None and _fits(header, state, provider)
        woken = header is not None and keep and wakes(state.effort, header.facts)
        keep = keep and not woken
        pinned = header if header is not None and keep else self._header(session, provider)
        projection = Projection(pinned_dialect(pinned), self._load_image)
        for envelope in session.log.read():
            projection.apply(envelope.event)
        session.projection = projection
        if not keep:
            if projection.count:
                session.emit(Edge("effort" if woken else "model", 0))
            session.emit(pinned)

    def _header(self, session: Session, provider: Provider) -> HeaderPinned:
        state, choice, around = session.state, self._around.tools, self._around
        chain, skills = self.instructions(state.workspace), around.skills(state.workspace)
        tools_json = head_tools(self._catalog, choice, state, provider)
        profile = chosen_profile(choice, provider)
        shown = {row.name for row in self._catalog.head_of(profile, choice.always)}
        system = system_text(shown, chain, skills, around.redactor.text(around.codemap(state.workspace)))
        return HeaderPinned(
            dialect=provider.dialect.name,
            provider=state.provider,
            model=state.model,
            system=system,
            tools_json=tools_json,
            sha256=header_sha256(system, tools_json),
            facts=facts_at(state.effort, provider.settings.facts),
            profile="" if profile == DEFAULT_PROFILE else profile,
        )

    def instructions(self, workspace: str) -> tuple[Instruction, ...]:
        """The instruction chain as it stands on disk now."""
        return load_instructions(workspace, self._around.home, self._around.find_root(workspace))

    def updates(self, session: Session) -> tuple[ContextAppended, ...]:
        """What to tell the model at the beginning of a turn: each source that stands otherwise than it was told."""
        return changes(self._sources, session, self._around.redactor)

    def context(self, session: Session, brief: bool = False) -> ContextView:
        """How full a session's context is; a `brief` view has no layers."""
        return context_view(session, self._around.context, brief)

    def room(self, session: Session) -> Room:
        """What keeps a session within its model's window."""
        return Room(session, self._around.context, self._around.compaction)

    def _tell_damage(self, session: Session) -> None:
        damage = session.log.damage
        if not damage.cut_bytes and not damage.skipped_lines:
            return
        text = (
            f"The session log was damaged: {damage.cut_bytes} bytes of an unfinished record were set aside and "
            f"{damage.skipped_lines} unreadable records skipped; everything else is kept."
        )
        if not isinstance(next(session.log.read()).event, SessionOpened):
            state = session.state
            text += f" Its beginning is lost: it goes on in {state.workspace} with {state.provider} {state.model}."
        session.notice("warning", text, "log_damaged")

    def _load_image(self, image: Image) -> bytes:
        return self._around.artifacts.get(image.artifact)


def workspace_gone(workspace: str) -> str:
    """What a person is told of a session whose folder is no more."""
    return (
        f"The workspace of this session, {one_line(workspace, 300)}, is gone: it was deleted or moved. Bring it back, "
        "or begin a new session where the code is now."
    )


def stale_text(jobs: Sequence[JobStarted]) -> str:
    """What a person is told of jobs that ran when the process that looked after them was gone."""
    named = ", ".join(f"{job.job_id} ({one_line(job.command, 60)})" for job in jobs[:STALE_SHOWN])
    more = f" and {len(jobs) - STALE_SHOWN} more" if len(jobs) > STALE_SHOWN else ""
    return f"Background jobs that an earlier process of CodeWhale left behind: {named}{more}. /jobs tells of them."


def _fits(header: HeaderPinned, state: SessionState, provider: Provider) -> bool:
    """Whether a pinned head still belongs to the route in use."""
    return (header.provider, header.model, header.dialect) == (state.provider, state.model, provider.dialect.name)
