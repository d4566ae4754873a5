"""What a person may choose from: providers and models with what they lack, model servers on this machine, settings; and
choosing: a provider that is connected, a value that is set."""

import asyncio
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal

import msgspec

from codewhale.app.keys import MISSING, is_local
from codewhale.app.routes import Routes, open_routes
from codewhale.app.settings import Place, Settings
from codewhale.config import Entry
from codewhale.config.edit import kind_at, parse_key, set_value, set_values
from codewhale.config.values import bare, variable
from codewhale.lib.text import one_line
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.keys import KeyStore
from codewhale.models.known_models import load_known, resolve_model
from codewhale.models.listings import Listings
from codewhale.models.loopback import host_of, plain_url
from codewhale.protocol.errors import CodeWhaleError, ConfigError
from codewhale.protocol.ops import ConnectProvider
from codewhale.protocol.views import ModelRow, ProviderRow, SettingRow
from codewhale.session.redaction import Redactors

LOCAL_SECONDS = 1.5
MOST_SERVED = 200
# Model servers by the names they are known by, each asked at its usual port.
LOCAL = ("ollama", "lm-studio", "llama-cpp", "vllm", "sglang")
_HIDDEN = ("scripted",)


class ProviderQueries:
    """The choices of one process. Keys that are kept are hidden by `redactors` from then on."""

    def __init__(self, place: Place, routes: Routes, redactors: Redactors) -> None:
        self._place = place
        self._routes = routes
        self._redactors = redactors

    async def providers(self, current: str) -> tuple[ProviderRow, ...]:
        """Every provider, usable ones first, `current` before all others. Those on this machine are asked whether they
        are there, nobody else is."""
        return await asyncio.to_thread(self._providers, current, await self._answering())

    def _providers(self, current: str, served: Mapping[str, ProviderRow]) -> tuple[ProviderRow, ...]:
        rows = [self._provider(name, current) for name in self._routes.tables if name not in _HIDDEN]
        rows = [served.get(row.name, row) if not row.current else row for row in rows]
        rows = [_absent(row) if row.name in LOCAL and row.local and row.name not in served else row for row in rows]
        return tuple(sorted(rows, key=lambda row: (not row.current, not row.ready, row.local, row.name)))

    async def _answering(self) -> dict[str, ProviderRow]:
        return {row.name: row for row in await self.local()}

    def _provider(self, name: str, current: str) -> ProviderRow:
        settings = self._routes.tables[name]
        why, url = self._lacks(name), plain_url(settings.base_url)
        row = ProviderRow(name, settings.dialect, url, not why, why, _local(settings), settings.api_key_env)
        return msgspec.structs.replace(row, current=name == current)

    def _lacks(self, name: str) -> str:
        try:
            self._routes.build(name, "")
        except CodeWhaleError as error:
            return str(error)
        key = self._routes.key(name)
        if key.source != MISSING:
            return ""
        return "; ".join(key.refused) or f"{self._routes.settings(name).api_key_env} is not set"

    async def models(self, current: tuple[str, str]) -> tuple[ModelRow, ...]:
        """The models that are known by name at providers that can be asked, and what a server on this machine says that
        it serves; then, of providers that lack something, what they are asked for by default."""
        return await asyncio.to_thread(self._models, current, await self._answering())

    def _models(self, current: tuple[str, str], served: Mapping[str, ProviderRow]) -> tuple[ModelRow, ...]:
        rows = []
        for provider in self._providers(current[0], served):
            if provider.local and not provider.ready:
                continue  # nothing answers there
            names = served[provider.name].models if provider.name in served else ()
            for model in self._names(provider, current, names):
                rows.append(self._model(provider, model, current))
        return tuple(sorted(rows, key=lambda row: (not row.current, not row.ready, row.provider)))

    def _names(self, provider: ProviderRow, current: tuple[str, str], served: tuple[str, ...]) -> list[str]:
        name = provider.name
        names = [current[1]] if name == current[0] else []
        if not served:
            names.append(self._routes.default_model(name))
        if provider.ready and not served:
            row = load_known().provider(name, self._routes.settings(name))
            patterns = (pattern for known in row.models for pattern in known.match.split())
            names += [pattern for pattern in patterns if not set(pattern) & set("*?[")]
        return [model for model in dict.fromkeys((*names, *served[:MOST_SERVED])) if model]

    def _model(self, provider: ProviderRow, model: str, current: tuple[str, str]) -> ModelRow:
        settings, facts = resolve_model(provider.name, self._routes.settings(provider.name), model)
        price = None if facts.price is None else msgspec.to_builtins(facts.price)
        own, images = (provider.name, model) == current, bool(settings.facts.get("images", True))
        return ModelRow(provider.name, model, facts.window, price, provider.ready, provider.why, own, images)

    async def local(self) -> tuple[ProviderRow, ...]:
        """The model servers on this machine that answer, with the models they serve. Each is asked at its port for a
        moment, all at the same time."""
        found = await asyncio.gather(*(self._served(name) for name in LOCAL if name in self._routes.tables))
        return tuple(row for row in found if row is not None)

    async def _served(self, name: str) -> ProviderRow | None:
        settings = self._routes.tables[name]
        if not _local(settings):
            return None
        try:
            async with asyncio.timeout(LOCAL_SECONDS):
                models = await Listings(name, settings, {}).ids()
        except (TimeoutError, CodeWhaleError, OSError):
            return None
        if not models:
            return None
        row = self._provider(name, "")
        return msgspec.structs.replace(row, models=tuple(one_line(model) for model in models[:MOST_SERVED]))

    # ------------------------------------------------------------------ choosing

    def connect(self, op: ConnectProvider) -> tuple[str, str]:
        """Keep a provider's key and address and make it the one that is asked; (provider, model) to ask from now on.
        Raises ConfigError, and then nothing has changed."""
        key = _checked_key(op.key)
        over: dict[str, Any] = {"provider": op.name, "model": op.model}
        changes: dict[tuple[str, ...], Any] = {("provider",): op.name, ("model",): op.model}
        if op.base_url:
            table = {"base_url": op.base_url.strip().rstrip("/")}
            over["providers"] = {op.name: table}
            changes[("providers", op.name, "base_url")] = table["base_url"]
        trial = open_routes(self._place.home, self._place.config(over), self._place.environ, key)
        settings = trial.settings(op.name)
        trial.may_ask(op.name)
        trial.build(op.name, op.model)
        if key and not host_of(settings.base_url):
            raise ConfigError(f"provider {op.name} has no base_url that a key could be sent to")
        if key:
            self._redactors.learn({f"key of {op.name}": key})
            KeyStore(self._place.home).put(op.name, key, host_of(settings.base_url))
        set_values(self._place.home, changes, Settings)
        self._routes.renew(self._place.config())
        return op.name, op.model or trial.default(op.name)[1]

    def settings(self, workspace: str) -> tuple[SettingRow, ...]:
        config = self._place.config(workspace=workspace)
        entries = config.entries(Settings)
        touched = {_table(entry.key) for entry in entries if entry.origin != "default"}
        touched |= {"", f"providers.{config.get('provider')}"}
        return tuple(_setting(entry) for entry in entries if _table(entry.key) in touched)

    def change(self, key: str, value: str) -> str:
        """Write a value into config.toml; what to know of it, "" for nothing. Raises ConfigError, and then nothing has
        changed."""
        path, _ = set_value(self._place.home, key, value, Settings)
        if self._place.environ.get(variable(path)):
            return f"{variable(path)} is set in the environment and wins over config.toml."
        if (now := self._place.config().origin(key)) == "command line":
            return f"The {now} overrides config.toml."
        return ""


def _absent(row: ProviderRow) -> ProviderRow:
    return row if row.current else msgspec.structs.replace(row, ready=False, why="nothing responds there now")


def _local(settings: ProviderSettings) -> bool:
    return bool(settings.base_url) and is_local(host_of(settings.base_url))


def _table(key: str) -> str:
    return ".".join(key.split(".")[:2]) if key.startswith("providers.") else ""


def _setting(entry: Entry) -> SettingRow:
    kind = bare(kind_at(Settings, parse_key(entry.key)))
    choices: tuple[str, ...] = ()
    if kind is bool:
        choices = ("true", "false")
    elif typing.get_origin(kind) is Literal:
        choices = tuple(str(one) for one in typing.get_args(kind))
    elif isinstance(kind, type) and issubclass(kind, Enum):
        choices = tuple(str(one.value) for one in kind)
    fixed = entry.secret or isinstance(entry.value, dict | list | tuple)
    return SettingRow(entry.key, entry.shown, entry.origin, choices, fixed)


def _checked_key(text: str) -> str:
    key = text.strip()
    if key and (not key.isascii() or not key.isprintable() or " " in key):
        raise ConfigError("this is not a key: a key is one line of ASCII characters without spaces; nothing was stored")
    return key
