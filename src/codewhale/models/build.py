"""From a configured name to a provider: the table of dialects and their carriers.

The one place that knows which class speaks a dialect; each is imported when it is first built.
"""

import importlib
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from codewhale.models.dialects.base import Dialect, Fact, Provider, ProviderSettings
from codewhale.models.endpoint import in_place
from codewhale.models.known_models import load_known, resolve_model
from codewhale.protocol.errors import ConfigError

# Dialect -> the class of its bytes.
DIALECTS: Mapping[str, str] = MappingProxyType(
    {
        "anthropic": "codewhale.models.dialects.anthropic:AnthropicMessages",
        "openai-chat": "codewhale.models.dialects.openai_chat:OpenAIChat",
        "openai-responses": "codewhale.models.dialects.openai_responses:OpenAIResponses",
        "scripted": "codewhale.models.scripted:ScriptedDialect",
    }
)
# Dialect -> the class that carries it.
CARRIERS: Mapping[str, str] = MappingProxyType(
    {
        "anthropic": "codewhale.models.http:HttpProvider",
        "openai-chat": "codewhale.models.http:HttpProvider",
        "openai-responses": "codewhale.models.http:HttpProvider",
        "scripted": "codewhale.models.scripted:ScriptedProvider",
    }
)


def build_dialect(name: str, settings: ProviderSettings) -> Dialect:
    """The dialect of provider `name`, without a provider. Raises ConfigError for one that is not known and for facts
    that would spoil its bodies."""
    row = DIALECTS.get(settings.dialect)
    if row is None:
        known = ", ".join(sorted(DIALECTS))
        raise ConfigError(f"providers.{name}.dialect = {settings.dialect!r} is not known; it is one of {known}")
    for fact, value in settings.facts.items():
        if (fact == "extra_body" or fact.startswith("effort_")) and not _members(value):
            example = '"reasoning_effort":"low"'
            raise ConfigError(f"providers.{name}.facts.{fact} = {value!r} is not JSON members such as {example!r}")
    dialect: Dialect = _load(row)(settings)
    return dialect


def build_provider(
    name: str, settings: ProviderSettings, api_key: str, *, model: str = "", environ: Mapping[str, str] = os.environ
) -> Provider:
    """The provider `name` for one model, ready for requests; nothing is dialled yet. `environ` may set stream limits.
    Raises ConfigError, naming the key at fault, for settings that cannot be used."""
    settings, facts = resolve_model(name, settings, model)
    dialect = build_dialect(name, settings)
    as_written = load_known().provider(name, settings).base_url == settings.base_url.rstrip("/")
    settings = in_place(settings, getattr(dialect, "path", ""), as_written)
    carrier = _load(CARRIERS[settings.dialect])
    provider: Provider = carrier.build(name, settings, api_key, dialect, environ)
    provider.model = facts
    return provider


def _members(value: Fact) -> bool:
    """Whether a fact is members of a JSON object, as they can be put into a body."""
    try:
        return isinstance(value, str) and isinstance(msgspec.json.decode(f"{{{value}}}"), dict)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False


def _load(row: str) -> Any:
    module, _, attribute = row.partition(":")
    return getattr(importlib.import_module(module), attribute)
