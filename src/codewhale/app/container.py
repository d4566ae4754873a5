"""The parts of an application: each is imported and built when it is first asked for, and all are closed in reverse."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from codewhale.agent.activation import HeadChoice
from codewhale.agent.asking import Asking
from codewhale.agent.authorize import Authorizer
from codewhale.agent.call_hooks import CallHook
from codewhale.agent.control import SessionControls
from codewhale.agent.engine import Engine, workspace_facts
from codewhale.agent.guidance import SkillGuide
from codewhale.agent.session_factory import SessionDefaults, SessionDeps, SessionFactory, Stores
from codewhale.agent.tool_calls import ToolCallRunner
from codewhale.app.choices import Choices
from codewhale.app.gateway import Gateway
from codewhale.app.guiding import WorkspaceSkills
from codewhale.app.hooking import Hooking
from codewhale.app.mcpparts import McpParts, McpPorts
from codewhale.app.memories import MemoryParts
from codewhale.app.recursion import RecursionParts
from codewhale.app.relays import RelayParts
from codewhale.app.routes import Routes
from codewhale.app.settings import (
    NetworkTable,
    Place,
    SandboxSettings,
    SecretSettings,
    SkillSettings,
    ToolSettings,
    WorkspaceSettings,
    search_settings,
)
from codewhale.app.tasking import Tasking
from codewhale.app.toolbox import Toolbox
from codewhale.app.webparts import WebParts
from codewhale.catalog.registry import Catalog
from codewhale.config import Config
from codewhale.config.layers import DEFAULT
from codewhale.lib.clock import Clock
from codewhale.models.loopback import is_near
from codewhale.permissions.audit import AuditLog
from codewhale.process.artifacts import ArtifactStore
from codewhale.process.repository import find_repository, find_root, read_head
from codewhale.protocol.decisions import CallView
from codewhale.protocol.errors import ConfigError, SessionError
from codewhale.protocol.events import Event, JobStarted, Notice, ProgressShown
from codewhale.protocol.files import FileChange
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.tools import Effect
from codewhale.session.lists import Lists
from codewhale.session.outputs import Outputs
from codewhale.session.plans import SessionPlans
from codewhale.session.prompt import contained
from codewhale.session.redaction import Redactor, Redactors
from codewhale.session.session import Session
from codewhale.session.store import SessionStore
from codewhale.session.window import ContextSettings
from codewhale.skills.places import SkillPlaces
from codewhale.skills.rule_folders import any_rules
from codewhale.tasks.model import TaskSettings

if TYPE_CHECKING:
    from codewhale.agent.children import Children
    from codewhale.agent.compaction import ConversationCompactor
    from codewhale.agent.completer import Completions
    from codewhale.agent.discovery import Discovery
    from codewhale.agent.roles import ChildRole
    from codewhale.agent.titles import Titles
    from codewhale.app.layers import LayerSources
    from codewhale.codesearch.codemap import CodeMaps
    from codewhale.codesearch.search import CodeSearch
    from codewhale.commands.plan import PlanCommand
    from codewhale.permissions.constitution import Constitution
    from codewhale.permissions.service import PermissionService
    from codewhale.permissions.trust import TrustStore
    from codewhale.protocol.decisions import Clause
    from codewhale.repair.repairer import CallRepairer
    from codewhale.services.attachments import AttachmentReader
    from codewhale.services.hooks import Hooks
    from codewhale.services.jobs import ShellJobs
    from codewhale.services.jobs.artifacts import LogArchive
    from codewhale.services.jobs.user_commands import UserCommands
    from codewhale.skills.library import SkillLibrary
    from codewhale.skills.rules import RuleStore
    from codewhale.skills.store import SkillStore
    from codewhale.workspace.file_search import FileFinder
    from codewhale.workspace.files import Workspaces
    from codewhale.workspace.undo import Undo

LEFTOVERS_MOST = 20
INDEX_SHOWN = 50
INDEX_BUILDING = "The code index of this repository is being built in the background."


T = TypeVar("T", "CodeSearch", "Hooks", "FileFinder", "UserCommands", "ShellJobs", "Undo")


class Container:
    """The parts of one application, each built once. `tool_family(container, key)` builds the tools of a family."""

    def __init__(
        self,
        place: Place,
        config: Config,
        clock: Clock,
        routes: Routes,
        tool_family: "Callable[[Container, str], object]",
    ) -> None:
        self.place = place
        self.config = config
        self.clock = clock
        self.routes = routes
        self.closers = AsyncExitStack()
        self.redactors = Redactors({**place.environ, **routes.secrets()})
        routes.on_key(self.redactors.learn)
        self._opened: set[str] = set()
        self._roots: dict[str, str] = {}  # where a workspace really is, as of when a session was last opened there
        self._unread = {os.path.realpath(place.workspace): config}
        self._settings: dict[str, WorkspaceSettings] = {}
        self.lists = Lists()
        self.plans = SessionPlans(self.lists)
        self.catalog = Catalog.load()
        self.sessions = SessionStore(place.home, clock)
        self.artifacts = ArtifactStore(os.path.join(place.home, "artifacts"))
        self.asking = Asking(lambda session: self.engine.turn(session))
        self.services = Services(self)
        hidden = self.redactors.of(True, ()).text
        self.memory = MemoryParts(place.home, clock, hidden, self._layer_sources)
        self.relays = RelayParts(place.home, clock, lambda: (self.engine, self.session_factory), self.redact)
        self.recursion = RecursionParts(
            place.home,
            config,
            self.artifacts,
            lambda: (self.engine, self.services.completer),
            self.closers,
            self.sessions,
        )
        self.tasking = Tasking(place.home, self.sessions, lambda: self.engine, config.section("tasks", TaskSettings))
        self.closers.callback(self.tasking.close)
        self.web = WebParts(config, place.environ, self.closers)
        self.mcp = McpParts(place, os.path.expanduser(config.section("mcp_config_path", str)), self._mcp_ports())
        self.memory.serves = self.mcp.serves
        self.hooking = Hooking(config.get("hooks"), lambda: self.services.hooks)
        self.toolbox = Toolbox(self.catalog, partial(tool_family, self), self.changed_files, lambda: self.repair)

    @cached_property
    def texts(self) -> "WorkspaceTexts":
        return WorkspaceTexts(self)

    def _mcp_ports(self) -> McpPorts:
        return McpPorts(
            self.clock,
            self.catalog,
            self.artifacts,
            self.asking,
            lambda: self.services.completer,
            lambda session: bool(self.engine.session(session).provider.settings.facts.get("images", True)),
            self.redact,
            self.closers,
        )

    def built(self, part: str) -> bool:
        return getattr(type(self), part).attrname in self.__dict__

    def settings(self, workspace: str) -> WorkspaceSettings:
        """What is configured for a workspace, as it was when a session was last opened there. Raises ConfigError."""
        root = self._roots.get(workspace) or self._roots.setdefault(workspace, os.path.realpath(workspace))
        if root not in self._settings:
            config = self._unread.pop(root, None) or self.place.config(workspace=root)
            hiding = config.section("secrets", SecretSettings)
            confining = config.section("sandbox", SandboxSettings)
            redactor = self.redactors.of(hiding.shapes, hiding.prefixes)
            self._settings[root] = WorkspaceSettings(
                config, self._tools(config), confining, config.section("network", NetworkTable), redactor
            )
        return self._settings[root]

    def read_settings(self, workspace: str) -> None:
        """A session is opened: what is configured there is read again."""
        root = self._roots[workspace] = os.path.realpath(workspace)
        if root in self._opened:
            self._settings.pop(root, None)
        self._opened.add(root)

    def redactor(self, session: str) -> Redactor:
        """What hides secrets from a session; for one that is closed, as at the start."""
        try:
            workspace = self.engine.session(session).state.workspace
        except SessionError:
            workspace = self.place.workspace
        return self.settings(workspace).redactor

    def redact(self, session: str) -> Callable[[str], str]:
        return self.redactor(session).text

    def _tools(self, config: Config) -> ToolSettings:
        settings = config.section("tools", ToolSettings)
        for key, names in (("always_load", settings.always_load), ("disabled", settings.disabled)):
            for name in names:
                if self.catalog.spec(name) is None:
                    near = ", ".join(self.catalog.closest(name)) or "see `codewhale tools list`"
                    raise ConfigError(f"{config.path}: tools.{key}: there is no tool {name!r}; did you mean {near}?")
        return settings

    @cached_property
    def engine(self) -> Engine:
        outputs = Outputs(self.artifacts, self.settings(self.place.workspace).redactor, self.redactor)
        authorizer = Authorizer(self.gateway, self.asking)
        runner = ToolCallRunner(self.toolbox, authorizer, self.observers, outputs, self.audit)
        engine = Engine(self.session_factory, self.catalog, runner, self.guide, self.routes.may_ask)
        engine.on_close(self._end_jobs)
        engine.on_close(self._forget)
        engine.after_turn(self._offer_plan)
        engine.after_turn(self._warm_index)
        engine.after_turn(self._make_title)
        return engine

    def _defaults(self, workspace: str) -> SessionDefaults:
        settings = self.settings(workspace)
        config, tools = settings.config, settings.tools
        return SessionDefaults(
            settings.redactor,
            lambda provider: self.routes.default(provider, config),
            effort=config.get("reasoning_effort") or "",
            approval=Approval(config.get("approval") or "suggest"),
            context=config.section("context", ContextSettings),
            tools=HeadChoice(tools.profile, tools.always_load),
            served=partial(self.mcp.served, workspace),
        )

    @cached_property
    def session_factory(self) -> SessionFactory:
        deps = SessionDeps(
            home=self.place.home,
            stores=Stores(self.sessions, self.artifacts, self.lists),
            clock=self.clock,
            providers=self.routes,
            texts=self.texts,
            compactor=self._compactor,
            defaults=self._defaults,
            begin=self.relays.begin,
        )
        return SessionFactory(deps, self.catalog)

    @cached_property
    def guide(self) -> SkillGuide:
        return SkillGuide(WorkspaceSkills(lambda: self.services.skills, self.may_guide))

    def may_guide(self, workspace: str) -> bool:
        """Whether there may be skills or rules for a workspace."""
        return self.skill_places.any_there(workspace) or any_rules(workspace, self.place.home)

    @cached_property
    def skill_places(self) -> SkillPlaces:
        configured = self.config.section("skills", SkillSettings).folder
        return SkillPlaces(self.place.home, self.place.person, configured)

    @cached_property
    def control(self) -> SessionControls:
        return SessionControls(self.engine, self.session_factory, self._remember)

    @cached_property
    def children(self) -> "Children":
        from codewhale.agent.child_settings import ChildSettings
        from codewhale.agent.children import Children
        from codewhale.agent.opening import OpeningChecks

        checks = OpeningChecks(
            self.catalog,
            lambda workspace: self.settings(workspace).config.section("subagents", ChildSettings),
            self._roles,
            self._checkout,
        )
        return Children(self.engine, self.sessions, checks)

    def _roles(self, workspace: str) -> "Mapping[str, ChildRole]":
        from codewhale.agent.roles import own_roles
        from codewhale.permissions.markdown_files import AGENT_FOLDER

        root = os.path.realpath(workspace)
        folders = ((os.path.join(root, AGENT_FOLDER), root), (os.path.join(self.place.home, "agents"), ""))
        return own_roles(folders, self.services.trust.holds)

    async def _checkout(self, owner: Session, name: str) -> str:
        """A folder of its own for a child; kept after its owner has closed where it holds changes."""
        from codewhale.app.checkouts import Worktrees, finish

        held = await Worktrees(self.place.home).open(owner.state.workspace)

        async def close(session: str) -> None:
            if session == owner.id:
                self.engine.off_close(close)
                if kept := await finish(held):
                    text = f"The checkout of the sub-agent {name} is kept: {held.tree.path} ({kept})"
                    owner.notice("info", text, "checkout_kept")

        self.engine.on_close(close)
        return held.tree.workspace

    @cached_property
    def gateway(self) -> Gateway:
        services = self.services
        return Gateway(
            self.settings,
            self.tell,
            lambda path, sha256: services.trust.holds(path, sha256),
            lambda: self.permissions,
            lambda: services.jobs if services.built("jobs") else None,
            self.memory.source_paths,
        )

    @cached_property
    def permissions(self) -> "PermissionService":
        from codewhale.permissions.service import PermissionService

        return PermissionService(self.place.home, self.gateway, self.audit)

    @cached_property
    def audit(self) -> AuditLog:
        audit = AuditLog(self.place.home, self.clock)
        self.closers.callback(audit.close)
        return audit

    @cached_property
    def repair(self) -> "CallRepairer":
        from codewhale.repair.repairer import CallRepairer

        return CallRepairer(self.catalog, self.settings(self.place.workspace).tools.repair)

    # ------------------------------------------------------------------ what the engine and the services are handed

    def observers(self, call: CallView) -> Sequence[CallHook]:
        """Who watches a call: hooks where there are any, what records the versions of sources that are read, and
        innermost what keeps the workspace's former state, where a call may change it."""
        hooks = self.hooking.at(call.workspace)
        changes = Effect.WRITES in call.effects or Effect.EXECUTES in call.effects
        kept: tuple[CallHook, ...] = (self.services.undo,) if changes and call.tool != "revert_turn" else ()
        if call.subjects and self.memory.any_sources():
            kept = (self.memory.source_reads(self.engine.session, self.closers), *kept)
        calls = self.mcp.at() if call.tool.startswith("mcp_") else None
        kept = kept if calls is None else (calls, *kept)
        if (task := self.tasking.watching(call)) is not None:
            kept = (*kept, task)
        return kept if hooks is None else (hooks, *kept)

    def changed_files(self, session: str, call_id: str) -> tuple[FileChange, ...]:
        return self.services.undo.changed_files(session, call_id) if self.services.built("undo") else ()

    def tell(self, session: str, event: Event) -> None:
        try:
            self.engine.session(session).emit(event)
        except SessionError:
            return

    def _layer_sources(self) -> "LayerSources":
        from codewhale.app.layers import LayerSources

        return LayerSources(
            self.place.home,
            self.texts,
            self.texts.clauses,
            lambda workspace: self.services.skills.of(workspace).skills if self.may_guide(workspace) else (),
            self.sessions.summaries,
        )

    def _remember(self, session: Session, chosen: Mapping[str, str]) -> None:
        """What a person chose holds for the next sessions; that it cannot be kept does not undo it."""
        workspace = session.state.workspace
        try:
            Choices(self.place.home, self.clock).keep(self.settings(workspace).config, workspace, **chosen)
        except ConfigError as error:
            session.notice("warning", f"The choice applies to this session only: {error}", "choice_not_kept")

    def _compactor(self, session: Session, settings: ContextSettings) -> "ConversationCompactor":
        from codewhale.agent.compaction import ConversationCompactor

        return ConversationCompactor(session, settings, self.artifacts)

    def _warm_index(self, session: Session) -> None:
        """Let the index be built behind the turns of a person, so that the first question finds it."""
        workspace = os.path.realpath(session.state.workspace)
        own = session.rights.authority is Authority.PERSON and not session.state.owner
        in_repository = own and find_repository(workspace) is not None
        if in_repository and self.services.code_search.warm(workspace):
            session.notice("info", INDEX_BUILDING, "index_building")

    def _offer_plan(self, session: Session) -> None:
        rights = session.rights
        if (rights.mode, rights.authority) == (Mode.PLAN, Authority.PERSON) and not session.state.owner:
            self.services.plans.offer(session.id, self.plans.presented(session))

    def _make_title(self, session: Session) -> None:
        config = self.settings(session.state.workspace).config
        wanted = config.section("titles", bool) and not session.state.owner
        if config.origin("titles") == DEFAULT:  # a server with one slot would forget the conversation for it
            wanted = wanted and not is_near(session.provider.settings.base_url)
        if wanted and session.rights.authority is Authority.PERSON:
            self.services.titles.after_turn(session)

    async def _forget(self, session: str) -> None:
        if self.services.built("titles"):
            await self.services.titles.forget(session)
        if self.built("permissions"):
            self.permissions.forget(session)
        self.plans.forget(session)
        if self.services.built("plans"):
            self.services.plans.forget(session)

    async def _end_jobs(self, session: str) -> None:
        if self.services.built("own_shell"):
            await self.services.own_shell.interrupt(session)
        if not self.services.built("jobs"):
            return
        ended = await self.services.jobs.cancel_all(session)
        for job in ended[:LEFTOVERS_MOST]:
            self.tell(session, Notice("info", f"Killed with the session: {job.id} ({job.command})", "job_ended"))
        if (more := len(ended) - LEFTOVERS_MOST) > 0:
            self.tell(session, Notice("info", f"Killed with the session: {more} more jobs", "job_ended"))


class WorkspaceTexts:
    def __init__(self, app: Container) -> None:
        self._app = app
        self.layers = app.memory.rows

    def facts(self, workspace: str) -> str:
        repository = find_repository(workspace)
        return workspace_facts(read_head(repository) if repository is not None else None)

    def root(self, workspace: str) -> str | None:
        return find_root(workspace)

    def skills(self, workspace: str) -> str:
        if not self._app.may_guide(workspace):
            return ""
        return self._app.services.skills.listing(workspace)

    def rules(self, workspace: str) -> str:
        return self._app.services.skills.always(workspace, contained) if self._app.may_guide(workspace) else ""

    def notes(self, workspace: str) -> str:
        return self._app.memory.notes(workspace)

    def cleared(self, workspace: str) -> dict[str, str]:
        return self._app.memory.cleared(workspace)

    def sources(self, workspace: str) -> str:
        return self._app.memory.attached(workspace)

    def codemap(self, workspace: str) -> str:
        tokens = self._app.settings(workspace).config.section("context", ContextSettings).codemap_tokens
        return self._app.services.code_maps.pinned(workspace, tokens) if tokens else ""

    def unverified(self, session: Session) -> list[dict[str, str]] | None:
        law = self._law(session.state.workspace, session.id)
        if law is None:
            return None
        from codewhale.agent.verification import unverified

        return unverified(law.clauses, session.state.work, law.folder)

    def law(self, workspace: str) -> str:
        law = self._law(workspace)
        if law is None:
            return ""
        from codewhale.agent.verification import law_text

        return law_text(law.clauses)

    def clauses(self, workspace: str) -> "tuple[Clause, ...]":
        law = self._law(workspace)
        return () if law is None else law.clauses

    def _law(self, workspace: str, session: str = "") -> "Constitution | None":
        """None where there is none."""
        from codewhale.permissions.constitution_files import constitution_files

        if not (self._app.built("permissions") or constitution_files(workspace)):
            return None
        try:
            return self._app.permissions.law(session, workspace)
        except ConfigError:  # which each call is told of, and refused for
            return None


class Services:  # what tools, commands and interfaces work with
    def __init__(self, app: Container) -> None:
        self._app = app

    def built(self, part: str) -> bool:
        return getattr(type(self), part).attrname in self.__dict__

    @cached_property
    def trust(self) -> "TrustStore":
        from codewhale.permissions.trust import TrustStore

        return TrustStore(self._app.place.home)

    @cached_property
    def hooks(self) -> "Hooks":
        from codewhale.services.hooks import Hooks
        from codewhale.services.hooks.service import HookConfig

        app = self._app
        written = HookConfig(app.config.get("hooks") or {}, app.config.path)
        return self._closing(Hooks(written, self.trust, app.redact, app.control, app.tell, app.audit))

    @cached_property
    def workspaces(self) -> "Workspaces":
        from codewhale.workspace.files import Workspaces

        return Workspaces(self._app.artifacts, lambda root: self._app.settings(root).redactor.text)

    @cached_property
    def undo(self) -> "Undo":
        from codewhale.workspace.undo import Undo

        app = self._app
        return self._closing(Undo(app.place.home, app.clock, self._turn_of, app.tell))

    @cached_property
    def jobs(self) -> "ShellJobs":
        from codewhale.services.jobs import ShellJobs

        app = self._app
        return self._closing(ShellJobs(app.tell, app.clock, app.place.home, self._past_jobs, app.tasking.task_of))

    @cached_property
    def job_logs(self) -> "LogArchive":
        from codewhale.services.jobs.artifacts import LogArchive

        return LogArchive(self.jobs, self._app.artifacts, self._app.redact)

    @cached_property
    def own_shell(self) -> "UserCommands":
        from codewhale.services.jobs.user_commands import UserCommands

        app = self._app
        return self._closing(UserCommands(app.tell, app.hooking.shell_env, app.redact, app.artifacts.put))

    @cached_property
    def skills(self) -> "SkillLibrary":
        from codewhale.skills.library import SkillLibrary

        return SkillLibrary((self.skill_files, self.rules), self._canonical)

    @cached_property
    def skill_files(self) -> "SkillStore":
        from codewhale.skills.store import SkillStore

        return SkillStore(self._app.skill_places, self.trust)

    @cached_property
    def rules(self) -> "RuleStore":
        from codewhale.skills.rules import RuleStore

        return RuleStore(self._app.place.home, self.trust)

    def _canonical(self, name: str) -> str:
        meant = self._app.catalog.resolve(name)
        return "" if meant is None else meant.spec.name

    @cached_property
    def code_search(self) -> "CodeSearch":
        from codewhale.codesearch.search import CodeSearch

        app = self._app
        settings = search_settings(app.config)
        return self._closing(CodeSearch(app.place.home, app.toolbox.touched, settings, self._index_progress))

    @cached_property
    def code_maps(self) -> "CodeMaps":
        from codewhale.codesearch.codemap import CodeMaps

        return CodeMaps(self.code_search)

    @cached_property
    def mentions(self) -> "FileFinder":
        from codewhale.workspace.file_search import FileFinder, FrecencyStore

        return self._closing(FileFinder(FrecencyStore(self._app.place.home, self._app.clock)))

    @cached_property
    def attaching(self) -> "AttachmentReader":
        from codewhale.services.attachments import AttachmentReader

        return AttachmentReader(self._app.artifacts)

    @cached_property
    def plans(self) -> "PlanCommand":
        from codewhale.commands.plan import PlanCommand

        return PlanCommand(self._app.control, self._app.plans, self._app.tell, self._app.engine.send)

    @cached_property
    def completer(self) -> "Completions":
        from codewhale.agent.completer import Completions

        return Completions(self._app.engine.turn, self._app.redactor)

    @cached_property
    def titles(self) -> "Titles":
        from codewhale.agent.titles import Titles

        return Titles(self.completer.title)

    @cached_property
    def discovery(self) -> "Discovery":
        from codewhale.agent.discovery import Discovery

        return Discovery(self._app.catalog, self._app.engine.session, self._app.gateway.decide, self._app.mcp)

    async def map_of(self, root: str, depth: int) -> tuple[str, tuple[str, ...]] | None:
        return await self.code_maps.show(root, depth=depth)

    def _closing(self, part: T) -> T:
        self._app.closers.push_async_callback(part.aclose)
        return part

    def _past_jobs(self, session: str) -> Iterable[JobStarted]:
        return self._app.engine.session(session).state.stale_jobs.values()

    def _turn_of(self, session_id: str) -> tuple[str, int]:
        session = self._app.engine.root(session_id)
        return session.id, session.state.turns

    def _index_progress(self, root: str, done: int, total: int) -> None:
        if total >= INDEX_SHOWN:
            for session in self._app.engine.at(root):
                session.emit(ProgressShown("index", done, total))
