"""The top level of config.toml: the one place that knows every section, and what holds when nothing is set."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from codewhale.config import Config, load
from codewhale.providers.base import ProviderSettings


class Settings(Struct, frozen=True):
    """Every top-level key. `provider` names a `[providers.<name>]` table; an empty `model` is that
    provider's own choice."""

    provider: str = ""
    model: str = ""
    providers: dict[str, ProviderSettings] = {}


def defaults() -> dict[str, Any]:
    """The lowest layer."""
    return {
        "provider": "deepseek",
        "model": "deepseek-v4-pro",
        "providers": {
            "deepseek": {
                "base_url": "https://api.deepseek.com/v1",
                "api_key_env": "DEEPSEEK_API_KEY",
                "context_window": 1_000_000,
            },
        },
    }


def open_config(home: str, workspace: str, environ: Mapping[str, str], overrides: Mapping[str, Any]) -> Config:
    """Read and check all configuration. No project file is trusted. Raises ConfigError."""
    config = load(home, workspace, environ, overrides, _trust_nothing, defaults())
    config.check(Settings)
    return config


def _trust_nothing(path: str, sha256: str) -> bool:
    return False
