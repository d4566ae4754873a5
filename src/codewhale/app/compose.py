"""Where an application is opened and closed."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Struct

from codewhale.agent.engine import Engine
from codewhale.app.client import EngineClient
from codewhale.app.container import Container
from codewhale.app.families import COMMANDS, command_families, tool_family
from codewhale.app.routes import open_routes
from codewhale.app.settings import Place, open_config
from codewhale.config import Config
from codewhale.lib.clock import Clock, SystemClock
from codewhale.models.dialects.base import Provider


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

    def __init__(self, client: EngineClient) -> None:
        self.client = client
        self.parts = client.parts

    @property
    def config(self) -> Config:
        return self.parts.config

    @property
    def engine(self) -> Engine:
        return self.parts.engine


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
    route = {"provider": options.provider, "model": options.model}
    overrides = {**options.overrides, **{key: value for key, value in route.items() if value}}
    config = open_config(options.home, options.workspace, environ, overrides)
    routes = open_routes(options.home, config, environ, options.api_key, providers or {})
    place = Place(options.home, options.workspace, environ, overrides)
    parts = Container(place, config, clock or SystemClock(), routes, tool_family)
    async with parts.closers:
        app = App(EngineClient(parts, COMMANDS, command_families))
        if os.path.exists(os.path.join(options.home, "permissions.toml")):
            parts.permissions.check()
        try:
            yield app
        finally:
            await parts.engine.aclose()
