"""The dialects: which class makes the bytes of each."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from codewhale.models.dialects.anthropic import AnthropicMessages
from codewhale.models.dialects.base import Dialect, Fact, ProviderSettings
from codewhale.models.dialects.openai_chat import OpenAIChat, ScriptedDialect
from codewhale.models.dialects.openai_responses import OpenAIResponses
from codewhale.protocol.errors import ConfigError

DIALECTS: Mapping[str, Callable[[ProviderSettings], Dialect]] = MappingProxyType(
    {
        "anthropic": AnthropicMessages,
        "openai-chat": OpenAIChat,
        "openai-responses": OpenAIResponses,
        "scripted": ScriptedDialect,
    }
)


def build_dialect(name: str, settings: ProviderSettings) -> Dialect:
    """The dialect of provider `name`, without a provider. Raises ConfigError for one that is not known and for facts
    that would spoil its bodies."""
    dialect = DIALECTS.get(settings.dialect)
    if dialect is None:
        known = ", ".join(sorted(DIALECTS))
        raise ConfigError(f"providers.{name}.dialect = {settings.dialect!r} is unknown; choose one of {known}")
    for fact, value in settings.facts.items():
        if (fact == "extra_body" or fact.startswith("effort_")) and not _members(value):
            example = '"reasoning_effort":"low"'
            raise ConfigError(f"providers.{name}.facts.{fact} = {value!r} is not JSON members such as {example!r}")
    return dialect(settings)


def _members(value: Fact) -> bool:
    """Whether a fact is members of a JSON object, as they can be put into a body."""
    try:
        return isinstance(value, str) and isinstance(msgspec.json.decode(f"{{{value}}}"), dict)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False
