"""The one place where everything is built, in the order in which it is closed again."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from msgspec import Struct

from codewhale.app.client import Client
from codewhale.app.parts import Parts
from codewhale.app.settings import ToolSettings, open_config
from codewhale.app.table import COMMANDS
from codewhale.catalog.registry import Catalog
from codewhale.commands.base import CommandRegistry
from codewhale.config import Config
from codewhale.engine.asking import Asking
from codewhale.engine.dispatch import Dispatcher
from codewhale.engine.engine import Engine, workspace_facts
from codewhale.engine.opening import Opener, Surroundings
from codewhale.engine.outputs import Outputs
from codewhale.engine.redaction import Redactor
from codewhale.lib.clock import Clock, SystemClock
from codewhale.policy.decide import decide
from codewhale.protocol.errors import ConfigError, SessionError
from codewhale.protocol.events import Event, Notice
from codewhale.providers.base import Provider, ProviderSettings
from codewhale.providers.build import build_provider
from codewhale.providers.loopback import on_loopback
from codewhale.stores.artifacts import ArtifactStore
from codewhale.stores.lists import Lists
from codewhale.stores.sessions import SessionStore
from codewhale.system.repository import find_repository, find_root, read_head


class AppOptions(Struct, frozen=True, omit_defaults=True):
    """What an application is opened with. `home` is CODEWHALE_HOME; `overrides` are dotted configuration keys
    from the command line."""

    home: str
    workspace: str
    provider: str = ""
    model: str = ""
    overrides: dict[str, Any] = {}


class App:
    """An open application: its client for frontends, its configuration for notices."""

    def __init__(self, client: Client, config: Config, engine: Engine, parts: Parts) -> None:
        self.client = client
        self.config = config
        self.engine = engine
        self.parts = parts


class Routes:
    """Which provider and model a session uses, and how a provider is built from its table."""

    def __init__(self, config: Config, environ: Mapping[str, str], ready: Mapping[str, Provider]) -> None:
        self._tables = config.section("providers", dict[str, ProviderSettings])
        self._provider = config.get("provider") or ""
        self._model = config.get("model") or ""
        self._file = config.path
        self._environ = environ
        self._ready = ready

    def default(self) -> tuple[str, str]:
        """The configured provider and model."""
        return self._provider, self._model

    def build(self, name: str, model: str) -> Provider:
        """The provider of a configured name, for a model. Raises ConfigError naming the known ones."""
        if name in self._ready:
            return self._ready[name]
        settings = self._tables.get(name)
        if settings is None:
            known = ", ".join(sorted({*self._tables, *self._ready})) or "none"
            raise ConfigError(
                f"there is no provider {name!r}; configured are: {known}. "
                f"Add a table [providers.{name}] to {self._file}"
            )
        return build_provider(name, settings, self._key(settings), model=model, environ=self._environ)

    def may_ask(self, name: str) -> None:
        """Raises ConfigError naming the variable of a key that is not there, before anything is dialled; an endpoint
        on this machine may do without, and so may whatever asks no model."""
        settings = self._tables.get(name)
        if name in self._ready or settings is None or not settings.api_key_env or self._key(settings):
            return
        if settings.base_url and not on_loopback(settings.base_url):
            variable = settings.api_key_env
            raise ConfigError(
                f"{variable} is not set, and provider {name} at {settings.base_url} needs the key in it: "
                f"export {variable}=..., or choose another provider (--provider NAME, or provider in {self._file})"
            )

    def _key(self, settings: ProviderSettings) -> str:
        return self._environ.get(settings.api_key_env, "").strip()


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
    app = _build(options.home, config, environ, clock, providers or {})
    try:
        yield app
    finally:
        try:
            await app.engine.aclose()
        finally:
            await app.parts.aclose()


def _routes(options: AppOptions) -> dict[str, str]:
    return {"provider": options.provider, "model": options.model}


def _build(home: str, config: Config, environ: Mapping[str, str], clock: Clock, ready: Mapping[str, Provider]) -> App:
    redactor = Redactor(environ)
    sessions = SessionStore(home, clock)
    artifacts = ArtifactStore(os.path.join(home, "artifacts"))
    lists = Lists()
    routes = Routes(config, environ, ready)
    catalog = Catalog.load()
    around = Surroundings(
        home=home,
        sessions=sessions,
        artifacts=artifacts,
        lists=lists,
        clock=clock,
        redactor=redactor,
        build_provider=routes.build,
        default_route=routes.default,
        find_root=find_root,
    )
    asking = Asking(lambda session: engine.session(session))
    parts = Parts({"artifacts": artifacts, "lists": lists, "asker": asking, "sessions": sessions})
    disabled = _disabled(config, catalog)
    dispatcher = Dispatcher(parts, partial(decide, disabled=disabled), asking, Outputs(artifacts, redactor))
    engine = Engine(Opener(around, catalog), catalog, dispatcher, _facts, routes.may_ask)
    commands = CommandRegistry(COMMANDS, parts.commands)
    parts.give("listener", lambda session, event: _tell(engine, session, event))
    parts.give("control", engine)
    parts.give("command_specs", commands.specs)
    engine.on_close(lambda session: _end_jobs(engine, parts, session))
    return App(Client(engine, asking, commands, sessions), config, engine, parts)


def _disabled(config: Config, catalog: Catalog) -> frozenset[str]:
    names = config.section("tools", ToolSettings).disabled
    for name in names:
        if catalog.spec(name) is None:
            near = ", ".join(catalog.closest(name)) or "see `codewhale tools list`"
            raise ConfigError(f"{config.path}: tools.disabled: there is no tool {name!r}; did you mean {near}?")
    return frozenset(names)


def _facts(workspace: str) -> str:
    repository = find_repository(workspace)
    return workspace_facts(read_head(repository) if repository is not None else None)


def _tell(engine: Engine, session: str, event: Event) -> None:
    """An event of a job; one whose session is gone has nobody left to tell."""
    try:
        engine.session(session).emit(event)
    except SessionError:
        return


async def _end_jobs(engine: Engine, parts: Parts, session: str) -> None:
    jobs = parts.built("jobs")
    if jobs is not None:
        for job in await jobs.cancel_all(session):
            _tell(engine, session, Notice("info", f"Ended with the session: {job.id} ({job.command})", "job_ended"))
