"""Which provider and model a session uses, and how a provider is built from its table and its key."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.app.keys import MISSING, Key, Keys, plain_name
from codewhale.config import Config
from codewhale.config.layers import DEFAULT
from codewhale.config.values import closest
from codewhale.models.build import build_dialect
from codewhale.models.dialects.base import Provider, ProviderSettings
from codewhale.models.endpoint import in_place
from codewhale.models.keys import KeyStore
from codewhale.models.known_models import DEFAULT_PROVIDER, default_model, load_known, resolve_model
from codewhale.models.loopback import plain_url
from codewhale.protocol.errors import ConfigError


class KeyState(Struct, frozen=True):
    """Where a key comes from, "missing" or "not needed" without one, and which were found and may not be sent, each a
    sentence."""

    source: str
    refused: tuple[str, ...] = ()


class ProviderChoice(Struct, frozen=True):
    """A provider as `codewhale provider list` tells of it. `origin` is the highest layer that says something of its
    base URL or dialect; `problem` is why it cannot be used as it stands, "" when it can."""

    name: str
    default: bool
    dialect: str
    base_url: str
    origin: str
    key: KeyState
    problem: str


class Routes:
    """The providers there are. `ready` are ready-made ones, used before any table of their name."""

    def __init__(self, config: Config, environ: Mapping[str, str], keys: Keys, ready: Mapping[str, Provider]) -> None:
        self._environ = environ
        self._keys = keys
        self._ready = dict(ready)
        self._tell: Callable[[dict[str, str]], None] = lambda secrets: None
        self.renew(config)

    def renew(self, config: Config) -> None:
        """The configuration stands otherwise from now on; what was built stays as it is."""
        self.tables = config.section("providers", dict[str, ProviderSettings])
        self._config = config
        self._provider, self._model = _chosen(config)
        self._file = config.path
        self._keys.renew(config)

    def default(self, provider: str = "", config: Config | None = None) -> tuple[str, str]:
        """A provider ("" is the configured one) and what it is asked for when nobody names a model: the configured
        model where it is the configured provider, else its own. `config` is that of another workspace."""
        wanted, model = (self._provider, self._model) if config is None else _chosen(config)
        name = provider or wanted
        own = model if name == wanted else ""
        return name, own or default_model(name, self.tables.get(name, ProviderSettings()))

    def default_model(self, name: str) -> str:
        self.settings(name)
        return self.default(name)[1]

    def settings(self, name: str) -> ProviderSettings:
        settings = self.tables.get(name)
        if settings is None:
            near = closest(name, self.tables)
            hint = f"; did you mean {near}?" if near else ""
            known = ", ".join(sorted({*self._own(), *self._ready}))
            raise ConfigError(
                f"there is no provider {name!r}{hint}; configured: {known} (codewhale provider list shows all). "
                f"Add a table [providers.{name}] to {self._file}"
            )
        return settings

    def key(self, name: str) -> Key:
        """The key that a provider is asked with. Raises ConfigError for an unknown provider."""
        return self._keys.find(name, self.settings(name))

    def build(self, name: str, model: str) -> Provider:
        """The provider of a configured name, for a model. Raises ConfigError naming the known ones."""
        if name in self._ready:
            return self._ready[name]
        if name == "demo" and name not in self.tables:
            from codewhale.models.demo import demo_provider

            return demo_provider()
        settings = self.settings(name)
        key = self._keys.find(name, settings)
        self._keys.check_headers(name, settings)
        self._tell({f"key of {plain_name(name)}": key.value})
        # A refused key is told to have been read from there; the key itself goes into headers and nowhere else.
        place = (key.variable or key.source) if key.value else settings.api_key_env
        bare = msgspec.structs.replace(settings, api_key="", api_key_env=place)
        return build_provider(name, bare, key.value, model=model, environ=self._environ)

    def may_ask(self, name: str) -> None:
        """Raises ConfigError naming what is missing when a provider needs a key and has none, before anything is
        dialled; an endpoint on this machine may do without, and so may whatever asks no model."""
        settings = self.tables.get(name)
        if name in self._ready or settings is None:
            return
        key = self._keys.find(name, settings)
        if key.source != MISSING:
            return
        elsewhere = f"choose another provider (--provider NAME, or provider in {self._file})"
        if key.refused:
            raise ConfigError(f"{'; '.join(key.refused)}; or {elsewhere}")
        variable = settings.api_key_env
        raise ConfigError(
            f"{variable} is not set, and provider {name} at {plain_url(settings.base_url)} needs a key: "
            f"codewhale login {name} (in a session: /login {name}), or export {variable}=..., or {elsewhere}"
        )

    def on_key(self, listener: Callable[[dict[str, str]], None]) -> None:
        """Call `listener({name: key})` with each key that only shows when a provider is built."""
        self._tell = listener

    def secrets(self) -> dict[str, str]:
        """Every key there is to be found, by a name that may be shown in its place."""
        return self._keys.known(self.tables)

    def rows(self) -> list[ProviderChoice]:
        return [self._row(name, settings) for name, settings in sorted(self.tables.items())]

    def _own(self) -> set[str]:
        """The default provider and those that a person wrote of; all others are built in."""
        sources = {name: self._config.sources(("providers", name)) for name in self.tables}
        return {DEFAULT_PROVIDER, *(name for name, found in sources.items() if any(o != DEFAULT for o, _ in found))}

    def _row(self, name: str, settings: ProviderSettings) -> ProviderChoice:
        problem = ""
        found = self._keys.find(name, settings)
        if found.source == MISSING:
            problem = "; ".join(found.refused) or f"{settings.api_key_env} is not set"
        try:
            self.build(name, self._model)
        except ConfigError as error:
            problem = str(error)
        origin = self._config.sources(("providers", name, "base_url"))
        origin = origin or self._config.sources(("providers", name, "dialect"))
        place, url = origin[-1][0] if origin else "default", plain_url(settings.base_url)
        key = KeyState(found.source, found.refused)
        return ProviderChoice(name, name == self._provider, settings.dialect, url, place, key, problem)


def _chosen(config: Config) -> tuple[str, str]:
    return str(config.get("provider") or ""), str(config.get("model") or "")


def open_routes(
    home: str,
    config: Config,
    environ: Mapping[str, str],
    api_key: str = "",
    ready: Mapping[str, Provider] | None = None,
) -> Routes:
    """The routes of a configuration; `api_key` is for its default provider."""
    keys = Keys(config, KeyStore(home), environ, (config.get("provider") or "", api_key.strip()))
    return Routes(config, environ, keys, ready or {})


def build_provider(
    name: str, settings: ProviderSettings, api_key: str, *, model: str = "", environ: Mapping[str, str] = os.environ
) -> Provider:
    """The provider `name` for one model, ready for requests; nothing is dialled yet. `environ` may set stream limits.
    Raises ConfigError, naming the key at fault, for settings that cannot be used."""
    settings, facts = resolve_model(name, settings, model)
    dialect = build_dialect(name, settings)
    as_written = load_known().provider(name, settings).base_url == settings.base_url.rstrip("/")
    settings = in_place(settings, getattr(dialect, "path", ""), as_written)
    provider = _carrier(settings.dialect)(name, settings, api_key, dialect, environ)
    provider.model = facts
    return provider


def _carrier(dialect: str) -> Callable[[str, ProviderSettings, str, Any, Mapping[str, str]], Provider]:
    match dialect:
        case "scripted":
            from codewhale.models.scripted import ScriptedProvider

            return ScriptedProvider.build
        case _:
            from codewhale.models.http import HttpProvider

            return HttpProvider.build
