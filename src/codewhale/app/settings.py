"""The top level of config.toml: the one place that knows every section, and what holds when nothing is set."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.config import Config, load
from codewhale.providers.base import ProviderSettings
from codewhale.providers.build import BUILT_IN


class ToolSettings(Struct, frozen=True):
    """The `[tools]` table. `disabled` tools stay in the array and are refused when called, in every mode."""

    disabled: tuple[str, ...] = ()


class Settings(Struct, frozen=True):
    """Every top-level key. `provider` names a `[providers.<name>]` table, `model` what to ask it for."""

    provider: str = ""
    model: str = ""
    providers: dict[str, ProviderSettings] = {}
    tools: ToolSettings = ToolSettings()


def defaults() -> dict[str, Any]:
    """The lowest layer: what the providers room knows without being told."""
    built_in = {name: msgspec.to_builtins(settings) for name, settings in BUILT_IN.items()}
    return {"provider": "deepseek", "model": "deepseek-v4-pro", "providers": built_in}


def open_config(home: str, workspace: str, environ: Mapping[str, str], overrides: Mapping[str, Any]) -> Config:
    """Read and check all configuration. No project file is trusted. Raises ConfigError."""
    config = load(home, workspace, environ, overrides, _trust_nothing, defaults())
    config.check(Settings)
    return config


def _trust_nothing(path: str, sha256: str) -> bool:
    return False
