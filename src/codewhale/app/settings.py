"""The top level of config.toml: the one place that knows every section, and what holds when nothing is set."""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from codewhale.config import Config, load
from codewhale.context.window import ContextSettings
from codewhale.dialects.base import ProviderSettings
from codewhale.providers.models import DEFAULT_PROVIDER, built_in

Effort = Literal["", "off", "low", "medium", "high", "max", "auto"]


class ToolSettings(Struct, frozen=True):
    """The `[tools]` table. `disabled` tools stay in the array and are refused when called, in every mode. `profile` is
    the set of tools that every session begins with ("" leaves it to the provider's fact `tool_profile`), `always_load`
    names tools that join it. `repair` is how far a call that is not right as it came is made out."""

    disabled: tuple[str, ...] = ()
    profile: Literal["", "default", "arcee", "compact", "intent"] = ""
    always_load: tuple[str, ...] = ()
    repair: Literal["full", "names", "off"] = "full"


class Settings(Struct, frozen=True):
    """Every top-level key. `provider` names a `[providers.<name>]` table, `model` what to ask it for ("" is what that
    provider is asked for by default), `reasoning_effort` how hard to think ("" is the model's own measure)."""

    provider: str = ""
    model: str = ""
    reasoning_effort: Effort = ""
    providers: dict[str, ProviderSettings] = {}
    tools: ToolSettings = ToolSettings()
    context: ContextSettings = ContextSettings()


def defaults() -> dict[str, Any]:
    """The lowest layer: what the providers room knows without being told."""
    return {"provider": DEFAULT_PROVIDER, "model": "", "reasoning_effort": "", "providers": built_in()}


def open_config(home: str, workspace: str, environ: Mapping[str, str], overrides: Mapping[str, Any]) -> Config:
    """Read and check all configuration. No project file is trusted. Raises ConfigError."""
    config = load(home, workspace, environ, overrides, _trust_nothing, defaults())
    config.check(Settings)
    return config


def _trust_nothing(path: str, sha256: str) -> bool:
    return False
