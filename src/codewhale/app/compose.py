"""The one place where everything is built, in the order in which it is closed again."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from codewhale.agent.activation import HeadChoice
from codewhale.agent.asking import Asking
from codewhale.agent.dispatch import Dispatcher
from codewhale.agent.engine import Engine, workspace_facts
from codewhale.agent.opening import Opener, Surroundings
from codewhale.agent.outgoing import edit, queued
from codewhale.agent.passage import Passage
from codewhale.app.client import Client
from codewhale.app.faces import DEMO, FACES
from codewhale.app.gateway import Gateway
from codewhale.app.hooking import Hooking
from codewhale.app.parts import Parts
from codewhale.app.routes import Routes, open_routes
from codewhale.app.settings import Place, SandboxSettings, SecretSettings, ToolSettings, open_config, search_settings
from codewhale.app.table import COMMANDS, target
from codewhale.catalog.registry import Catalog
from codewhale.commands.base import CommandRegistry
from codewhale.config import Config
from codewhale.lib.clock import Clock, SystemClock
from codewhale.models.dialects.base import Provider
from codewhale.permissions.audit import AuditLog
from codewhale.permissions.skill_folders import any_there
from codewhale.process.repository import find_repository, find_root, read_head
from codewhale.protocol.errors import ConfigError, SessionError
from codewhale.protocol.events import Event, Notice, ProgressShown
from codewhale.protocol.modes import Approval, Authority
from codewhale.session.artifacts import ArtifactStore
from codewhale.session.lists import Lists
from codewhale.session.outputs import Outputs
from codewhale.session.redaction import Redactor
from codewhale.session.session import Session
from codewhale.session.store import SessionStore
from codewhale.session.window import ContextSettings

if TYPE_CHECKING:
    from codewhale.agent.compaction import Compactions
    from codewhale.codesearch.answering import CodeSearch
    from codewhale.codesearch.codemap import CodeMaps
    from codewhale.services.skills import Skills

LEFTOVERS_MOST = 20
DEEPEST = 16
INDEX_SHOWN = 50
INDEX_BUILDING = "The code index of this repository is being built in the background."


class AppOptions(Struct, frozen=True, omit_defaults=True):
    """What an application is opened with. `home` is CODEWHALE_HOME; `overrides` are dotted configuration keys
    from the command line; `api_key` is for the provider that is used at the start, and for no other."""

    home: str
    workspace: str
    provider: str = ""
    model: str = ""
    api_key: str = ""
    overrides: dict[str, Any] = {}


class App:
    """An open application: its client for frontends, its configuration for notices."""

    def __init__(self, client: Client, config: Config, engine: Engine, parts: Parts) -> None:
        self.client = client
        self.config = config
        self.engine = engine
        self.parts = parts


@asynccontextmanager
async def open_app(
    options: AppOptions,
    *,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    providers: Mapping[str, Provider] | None = None,
) -> AsyncIterator[App]:
    """Build everything, yield it, close it in reverse. `providers` are ready-made ones by name, used before any
    configured table. Raises ConfigError and SessionError."""
    environ = os.environ if environ is None else environ
    clock = clock or SystemClock()
    overrides = {**options.overrides}
    overrides.update({key: value for key, value in _routes(options).items() if value})
    config = open_config(options.home, options.workspace, environ, overrides)
    routes = open_routes(options.home, config, environ, options.api_key, providers or {})
    place = Place(options.home, options.workspace, environ, overrides)
    app = _build(place, config, clock, routes)
    try:
        yield app
    finally:
        try:
            await app.engine.aclose()
        finally:
            await app.parts.aclose()
            app.parts.built("audit").close()


def _routes(options: AppOptions) -> dict[str, str]:
    return {"provider": options.provider, "model": options.model}


def _build(place: Place, config: Config, clock: Clock, routes: Routes) -> App:
    home, environ = place.home, place.environ
    hiding = config.section("secrets", SecretSettings)
    redactor = Redactor({**environ, **routes.secrets()}, hiding.shapes, hiding.prefixes)
    routes.on_key(redactor.learn)
    sessions = SessionStore(home, clock)
    artifacts = ArtifactStore(os.path.join(home, "artifacts"))
    lists = Lists()
    catalog = Catalog.load()
    tools = config.section("tools", ToolSettings)
    person = environ.get("HOME") or home
    around = Surroundings(
        home=home,
        sessions=sessions,
        artifacts=artifacts,
        lists=lists,
        clock=clock,
        redactor=redactor,
        compaction=lambda session, settings: _compactions(parts).of(session, settings),
        build_provider=routes.build,
        default_route=routes.default,
        find_root=find_root,
        context=config.section("context", ContextSettings),
        effort=config.get("reasoning_effort") or "",
        skills=lambda workspace: _skills(parts, workspace, home, person),
        approval=Approval(config.get("approval") or "suggest"),
        codemap=lambda workspace: _pinned_map(parts, workspace, around.context.codemap_tokens),
        tools=HeadChoice(tools.profile, _known_tools(config, catalog, "always_load", tools.always_load)),
    )
    asking = Asking(lambda session: engine.session(session))
    given = {"artifacts": artifacts, "lists": lists, "asker": asking, "sessions": sessions, "catalog": catalog}
    parts = Parts({**given, "place": place, "routes": routes}, FACES)
    for key, thing in (("home", home), ("person", person), ("redactor", redactor), ("touched", parts.touched)):
        parts.give(key, thing)
    parts.give("search_settings", search_settings(config))
    parts.give("map_of", lambda root, depth: _map_of(parts, root, depth))
    hooking = Hooking(parts, config.get("hooks"), config.path)
    parts.give("hooking", hooking)
    parts.give("shell_env", hooking.shell_env)
    disabled = frozenset(_known_tools(config, catalog, "disabled", tools.disabled))
    gateway = Gateway(parts, redactor, disabled, config.section("sandbox", SandboxSettings))
    audit = AuditLog(home, clock)
    passage = Passage(gateway, asking, gateway.observers)
    dispatcher = Dispatcher(parts, passage, Outputs(artifacts, redactor), audit)
    parts.give("audit", audit)
    parts.give("lookups", gateway)
    parts.give("decide", gateway.decide)
    parts.give("repair_extent", tools.repair)
    engine = Engine(Opener(around, catalog), catalog, dispatcher, _facts, routes.may_ask)
    commands = CommandRegistry(COMMANDS, parts.commands)
    parts.give("listener", lambda session, event: _tell(engine, session, event))
    if os.path.exists(os.path.join(home, "permissions.toml")):
        gateway.permits().check()
    parts.give("clock", clock)
    parts.give("redact", redactor.text)
    engine.on_close(lambda session: _end_jobs(engine, parts, session))
    engine.on_close(gateway.forget)
    client = Client(engine, asking, commands, sessions, hooking, parts)
    _give_faces(parts, engine, commands, client)
    return App(client, config, engine, parts)


def _give_faces(parts: Parts, engine: Engine, commands: CommandRegistry, client: Client) -> None:
    """What tools and the person's faces need of the engine."""
    parts.give("past_jobs", lambda session: engine.session(session).state.stale_jobs.values())
    parts.give("turn_of", lambda session: _turn_of(engine, session))
    parts.give("control", engine)
    parts.give("find_session", engine.session)
    parts.give("command_specs", commands.specs)
    parts.give("index_told", lambda root, done, total: _tell_index(engine, root, done, total))
    engine.after_turn(lambda session: _warm_index(parts, session))
    parts.give("command_registry", commands)
    parts.give("part", parts.part)
    parts.give("start_demo", lambda open_session: target(DEMO)(open_session))
    parts.give("diff", lambda *where: parts.part("looking").diff(*where))  # type: ignore[attr-defined]
    parts.give("setting_rows", lambda: parts.part("choices").settings())  # type: ignore[attr-defined]
    parts.give("change_setting", lambda *what: parts.part("choices").change(*what))  # type: ignore[attr-defined]
    parts.give("queued", lambda session: queued(engine.session(session)))
    parts.give("edit_queue", lambda op: edit(engine.session(op.session), op))
    parts.give("open_session", client.submit)
    parts.give("ask", client.query)


def _known_tools(config: Config, catalog: Catalog, key: str, names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if catalog.spec(name) is None:
            near = ", ".join(catalog.closest(name)) or "see `codewhale tools list`"
            raise ConfigError(f"{config.path}: tools.{key}: there is no tool {name!r}; did you mean {near}?")
    return names


def _facts(workspace: str) -> str:
    repository = find_repository(workspace)
    return workspace_facts(read_head(repository) if repository is not None else None)


async def _map_of(parts: Parts, root: str, depth: int) -> tuple[str, tuple[str, ...]] | None:
    """The map of a workspace's code index, if there is one to be read."""
    maps: CodeMaps = parts.part("code_maps")  # type: ignore[assignment]
    return await maps.show(root, depth=depth)


def _turn_of(engine: Engine, session: str) -> tuple[str, int]:
    """Whose turn a session works in: that of the session which it works for, if there is one."""
    found = engine.session(session)
    for _ in range(DEEPEST):
        if not found.owner:
            break
        try:
            found = engine.session(found.owner)
        except SessionError:
            break  # it is closed; what is done now is the child's own
    return found.turn


def _pinned_map(parts: Parts, workspace: str, tokens: int) -> str:
    """The map that a head holds; what draws it is loaded where it is wanted."""
    if not tokens:
        return ""
    maps: CodeMaps = parts.part("code_maps")  # type: ignore[assignment]
    return maps.pinned(workspace, tokens)


def _tell(engine: Engine, session: str, event: Event) -> None:
    """An event of a job; one whose session is gone has nobody left to tell."""
    try:
        engine.session(session).emit(event)
    except SessionError:
        return


def _tell_index(engine: Engine, root: str, done: int, total: int) -> None:
    """How far the index of a workspace has come, to every session there; one that is nearly current is not told of."""
    if total >= INDEX_SHOWN:
        for session in engine.at(root):
            session.emit(ProgressShown("index", done, total))


def _warm_index(parts: Parts, session: Session) -> None:
    """Let the index of a repository be built behind the turns of a person who works in it, so that the first question
    finds it."""
    workspace = os.path.realpath(session.state.workspace)
    if session.authority is Authority.PERSON and find_repository(workspace) is not None:
        search: CodeSearch = parts.part("code_search")  # type: ignore[assignment]
        if search.warm(workspace):
            session.notice("info", INDEX_BUILDING, "index_building")


async def _end_jobs(engine: Engine, parts: Parts, session: str) -> None:
    if (own := parts.built("own_shell")) is not None:
        await own.interrupt(session)
    jobs = parts.built("jobs")
    if jobs is not None:
        ended = await jobs.cancel_all(session)
        for job in ended[:LEFTOVERS_MOST]:
            _tell(engine, session, Notice("info", f"Ended with the session: {job.id} ({job.command})", "job_ended"))
        if (more := len(ended) - LEFTOVERS_MOST) > 0:
            _tell(engine, session, Notice("info", f"Ended with the session: {more} more jobs", "job_ended"))


def _skills(parts: Parts, workspace: str, home: str, person: str) -> str:
    """The listed skills; what reads them is loaded where there is a folder for them."""
    if not any_there(workspace, home, person):
        return ""
    skills: Skills = parts.part("skills")  # type: ignore[assignment]
    return skills.listing(workspace)


def _compactions(parts: Parts) -> "Compactions":
    found: Compactions = parts.part("compaction")  # type: ignore[assignment]
    return found
