"""From a configured name to a provider: the table of dialects and what is known of providers without being told.

The one place that knows which class speaks a dialect; each is imported when it is first built.
"""

import importlib
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from codewhale.protocol.errors import ConfigError
from codewhale.providers.base import Dialect, ModelFacts, Provider, ProviderSettings

# Dialect -> the class of its bytes.
DIALECTS: Mapping[str, str] = MappingProxyType(
    {
        "openai-chat": "codewhale.providers.openai_chat:OpenAIChat",
        "scripted": "codewhale.providers.scripted:ScriptedDialect",
    }
)
# Dialect -> the class that carries it.
CARRIERS: Mapping[str, str] = MappingProxyType(
    {
        "openai-chat": "codewhale.providers.http:HttpProvider",
        "scripted": "codewhale.providers.scripted:ScriptedProvider",
    }
)
BUILT_IN: Mapping[str, ProviderSettings] = MappingProxyType(
    {
        "deepseek": ProviderSettings(
            base_url="https://api.deepseek.com",
            api_key_env="DEEPSEEK_API_KEY",
            context_window=1_000_000,
            max_output=65_536,
            facts={"replays_reasoning": True, "images": False},
        ),
        "scripted": ProviderSettings(dialect="scripted", context_window=1_000_000),
    }
)


def build_dialect(name: str, settings: ProviderSettings) -> Dialect:
    """The dialect of provider `name`, without a provider. Raises ConfigError for one that is not known."""
    row = DIALECTS.get(settings.dialect)
    if row is None:
        known = ", ".join(sorted(DIALECTS))
        raise ConfigError(f"providers.{name}.dialect = {settings.dialect!r} is not known; it is one of {known}")
    dialect: Dialect = _load(row)(settings)
    return dialect


def build_provider(
    name: str, settings: ProviderSettings, api_key: str, *, model: str = "", environ: Mapping[str, str] = os.environ
) -> Provider:
    """The provider `name` for one model, ready for requests; nothing is dialled yet. `environ` may set stream limits.
    Raises ConfigError, naming the key at fault, for settings that cannot be used."""
    settings, facts = resolve_model(name, settings, model)
    dialect = build_dialect(name, settings)
    carrier = _load(CARRIERS[settings.dialect])
    provider: Provider = carrier.build(name, settings, api_key, dialect, environ)
    provider.model = facts
    return provider


def resolve_model(name: str, settings: ProviderSettings, model: str) -> tuple[ProviderSettings, ModelFacts]:
    """What is known of a model at a provider: the settings with their facts as they hold for it, and the rest."""
    window, source = (settings.context_window, "configured") if settings.context_window else (128_000, "fallback")
    return settings, ModelFacts(window, source, settings.max_output, settings.prices.get(model))


def _load(row: str) -> Any:
    module, _, attribute = row.partition(":")
    return getattr(importlib.import_module(module), attribute)
