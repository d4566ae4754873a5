"""What a person may choose from: providers and models with what they lack, model servers on this machine, settings; and
setting a value."""

import asyncio
import typing
from collections.abc import Mapping, Set
from enum import Enum
from typing import Literal

import msgspec
from msgspec import Struct

from codewhale.app.connecting import model_rows, reach
from codewhale.app.keys import MISSING, is_local
from codewhale.app.routes import Routes
from codewhale.app.settings import Place, Settings
from codewhale.config import Entry
from codewhale.config.edit import kind_at, parse_key, set_value
from codewhale.config.values import bare, variable
from codewhale.lib.text import one_line
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.dialects.failures import ProviderFailure
from codewhale.models.known_models import load_known
from codewhale.models.listings import ListedModel, Listings
from codewhale.models.loopback import host_of, plain_url
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.views import ListModels, ModelRow, ProviderRow, SettingRow

LOCAL_SECONDS = 1.5
# Model servers by the names they are known by, each asked at its usual port.
LOCAL = ("ollama", "lm-studio", "llama-cpp", "vllm", "sglang")
_HIDDEN = ("scripted",)


class LocalServer(Struct, frozen=True):
    """A model server on this machine that answered, with what it lists."""

    name: str
    models: tuple[ListedModel, ...]


class ProviderQueries:
    """The choices of one process."""

    def __init__(self, place: Place, routes: Routes) -> None:
        self._place = place
        self._routes = routes
        self._lists: dict[tuple[str, str, str], tuple[ListedModel, ...]] = {}

    async def providers(self, current: str) -> tuple[ProviderRow, ...]:
        """Every provider, usable ones first, `current` before all others. Those on this machine are asked whether they
        are there, nobody else is."""
        return await asyncio.to_thread(self._providers, current, {row.name for row in await self.local()})

    def _providers(self, current: str, served: Set[str]) -> tuple[ProviderRow, ...]:
        rows = [self._provider(name, current) for name in self._routes.tables if name not in _HIDDEN]
        rows = [_absent(row) if row.name in LOCAL and row.local and row.name not in served else row for row in rows]
        return tuple(sorted(rows, key=lambda row: (not row.current, not row.ready, row.local, row.name)))

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

    async def models(self, current: tuple[str, str], query: ListModels) -> tuple[ModelRow, ...]:
        """The models that are known by name at providers that can be asked, and what servers on this machine say that
        they serve; with `dial` also what the current provider lists, or the one that is named. Then, of providers that
        lack something, what they are asked for by default."""
        served = {row.name: row.models for row in await self.local()}
        name, said = query.provider or current[0], ""
        if query.dial and name not in served and name in self._routes.tables and not self._lacks(name):
            served[name], said = await self._listed(name, query.fresh)
        return await asyncio.to_thread(self._models, current, served, said)

    async def _listed(self, name: str, fresh: bool) -> tuple[tuple[ListedModel, ...], str]:
        """What a provider lists, asked once for each address and key, and why it lists nothing."""
        place = (name, self._routes.settings(name).base_url, self._routes.key(name).value)
        if fresh or place not in self._lists:
            reached = await reach(self._routes, name, knocks=False)
            if reached.failure is not None:
                return (), reached.why(name)
            self._lists[place] = reached.models
        return self._lists[place], ""

    def _models(
        self, current: tuple[str, str], served: Mapping[str, tuple[ListedModel, ...]], said: str
    ) -> tuple[ModelRow, ...]:
        rows: list[ModelRow] = []
        for provider in self._providers(current[0], set(served)):
            if provider.local and not provider.ready:
                continue  # nothing answers there
            name = provider.name
            listed = {model.id: model for model in served.get(name, ())}
            models = [listed.get(model) or ListedModel(model) for model in self._names(provider, current, listed)]
            for row in model_rows(name, self._routes.settings(name), models):
                own = (name, row.model) == current
                note = said if own else provider.why
                rows.append(msgspec.structs.replace(row, ready=provider.ready, why=note, current=own))
        return tuple(sorted(rows, key=lambda row: (not row.current, not row.ready, row.provider)))

    def _names(self, provider: ProviderRow, current: tuple[str, str], listed: Mapping[str, ListedModel]) -> list[str]:
        name = provider.name
        names = [current[1]] if name == current[0] else []
        if not listed:
            names.append(self._routes.default_model(name))
        if provider.ready and not listed:
            row = load_known().provider(name, self._routes.settings(name))
            patterns = (pattern for known in row.models for pattern in known.match.split())
            names += [pattern for pattern in patterns if not set(pattern) & set("*?[")]
        return [model for model in dict.fromkeys((*names, *listed)) if model]

    async def local(self) -> tuple[LocalServer, ...]:
        """The model servers on this machine that answer, with what they list. Each is asked at its port for a moment,
        all at the same time."""
        names = [name for name, table in self._routes.tables.items() if _local(table) and name not in _HIDDEN]
        found = await asyncio.gather(*map(self._served, names))
        return tuple(row for row in found if row is not None)

    async def found(self) -> tuple[ProviderRow, ...]:
        """The same as rows for people."""
        return tuple(
            msgspec.structs.replace(self._provider(row.name, ""), models=tuple(one_line(one.id) for one in row.models))
            for row in await self.local()
        )

    async def _served(self, name: str) -> LocalServer | None:
        try:
            async with asyncio.timeout(LOCAL_SECONDS):
                models = await Listings(name, self._routes.tables[name], {}).models()
        except (TimeoutError, CodeWhaleError, ProviderFailure, OSError):
            return None
        return LocalServer(name, models) if models else None

    # ------------------------------------------------------------------ settings

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
    return row if row.current else msgspec.structs.replace(row, ready=False, why="nothing answers there now")


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
