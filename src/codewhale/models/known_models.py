"""What is known without being told: of providers, and of models at them. The data is `known.json`; this file reads it
and says what holds for one provider and one model. A model that nobody knows is never refused."""

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.lib.patterns import lazy
from codewhale.models.dialects.base import Fact, ModelFacts, ProviderSettings
from codewhale.models.loopback import host_of
from codewhale.models.prices import price_of

KNOWN_FILE = os.path.join(os.path.dirname(__file__), "known.json")
DEFAULT_PROVIDER = "deepseek"
FALLBACK_WINDOW = 128_000
# No request asks for a longer answer than this unless the configuration does.
LONGEST_ANSWER = 65_536
_HINT = lazy(r"(?<![0-9a-z.])(\d{1,4})k(?![0-9a-z])")


class KnownModel(Struct, frozen=True, forbid_unknown_fields=True):
    """A row: models whose id in lower case matches one of the patterns of `match` (shell style, separated by spaces).
    `window` and `max_output` are in tokens, 0 where the source does not say; `date` is when the source was read."""

    match: str
    window: int = 0
    max_output: int = 0
    facts: dict[str, Fact] = {}
    source: str = ""
    date: str = ""


class KnownProvider(Struct, frozen=True, forbid_unknown_fields=True):
    """A provider: where it is, which variables may hold its key, what it is asked for by default, its own `models`
    before those that hold everywhere. `window` is assumed of a model nobody knows, `max_output` bounds every answer;
    `own_host` says that its facts hold at its own host alone, whatever a table is called; `sets_window` that whoever
    runs it chooses the window, so that what is known of a model says nothing."""

    dialect: str = "openai-chat"
    base_url: str = ""
    path: str = ""
    key_envs: tuple[str, ...] = ()
    default_model: str = ""
    window: int = FALLBACK_WINDOW
    max_output: int = LONGEST_ANSWER
    own_host: bool = False
    sets_window: bool = False
    facts: dict[str, Fact] = {}
    models: tuple[KnownModel, ...] = ()
    source: str = ""
    date: str = ""


class Known(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole table; `models` hold at every provider."""

    providers: dict[str, KnownProvider]
    models: tuple[KnownModel, ...]

    def provider(self, name: str, settings: ProviderSettings) -> KnownProvider:
        """The row of a configured provider: the one of its name, else one whose host it asks in the same dialect; an
        empty row where there is neither. A table that bears a known name but another host is taken at its name unless
        the row says otherwise."""
        host, named = host_of(settings.base_url), self.providers.get(name)
        if named is not None and settings.base_url in ("", named.base_url):
            return named
        for row in self.providers.values():
            if host and (host_of(row.base_url), row.dialect) == (host, settings.dialect):
                return row
        return named if named is not None and not named.own_host else KnownProvider()

    def rows(self, row: KnownProvider, model: str) -> Iterator[KnownModel]:
        """The rows that a model id matches, the closest first."""
        wanted = model.lower()
        for known in (*row.models, *self.models):
            if any(_matches(wanted, pattern) for pattern in known.match.split()):
                yield known


def _matches(model: str, pattern: str) -> bool:
    # fnmatch compiles each pattern; most are ruled out by a piece between two stars that is not there.
    return all("[" in piece or piece in model for piece in pattern.split("*")) and fnmatchcase(model, pattern)


def load_known() -> Known:
    """The table, from the file beside this one."""
    with open(KNOWN_FILE, "rb") as file:
        return msgspec.json.decode(file.read(), type=Known)


def built_in() -> dict[str, dict[str, Any]]:
    """A configuration table for every known provider: the lowest layer of `[providers]`. What else is known of them is
    looked up when a model is resolved, so that what a person writes always stands above it."""
    tables = {}
    for name, row in load_known().providers.items():
        table = {"dialect": row.dialect, "base_url": row.base_url, "path": row.path}
        table["api_key_env"] = row.key_envs[0] if row.key_envs else ""
        tables[name] = {key: value for key, value in table.items() if value}
    return tables


def default_model(name: str, settings: ProviderSettings) -> str:
    """What a provider is asked for when nobody names a model."""
    known = load_known()
    named = settings.default_model or known.provider(name, settings).default_model
    return named or known.providers[DEFAULT_PROVIDER].default_model


def resolve_model(
    name: str, settings: ProviderSettings, model: str, known: Known | None = None
) -> tuple[ProviderSettings, ModelFacts]:
    """What is known of a model at a provider: the settings with their facts as they hold for it, and the rest. Facts of
    the configuration win over those of the model, and those over the provider's; the closest row wins among rows."""
    known = known or load_known()
    row = known.provider(name, settings)
    rows = list(known.rows(row, model))
    facts = dict(row.facts)
    for found in reversed(rows):
        facts |= found.facts
    window, source = _window(row, rows, settings, model)
    resolved = msgspec.structs.replace(settings, facts=facts | settings.facts)
    return resolved, ModelFacts(
        window, source, _max_output(row, rows, settings, window), price_of(name, settings, model)
    )


def _window(row: KnownProvider, rows: list[KnownModel], settings: ProviderSettings, model: str) -> tuple[int, str]:
    if settings.context_window:
        return settings.context_window, "configured"
    if settings.windows.get(model):
        return settings.windows[model], "reported"
    catalogued = next((found.window for found in rows if found.window), 0)
    if catalogued and not row.sets_window:
        return catalogued, "catalog"
    hint = _HINT().search(model.lower())
    return (int(hint[1]) * 1000, "name") if hint else (row.window, "fallback")


def _max_output(row: KnownProvider, rows: list[KnownModel], settings: ProviderSettings, window: int) -> int:
    if settings.max_output:
        return settings.max_output
    most = next((found.max_output for found in rows if found.max_output), 0)
    return min(most, row.max_output, max(window // 2, 1)) if most else 0
