"""The top level of config.toml: the one place that knows every section, and what holds when nothing is set."""

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct

from codewhale.app.table import PARTS, target
from codewhale.config import Config, Project, load
from codewhale.config.tighten import Rules, chosen, joined, ladder
from codewhale.context.window import ContextSettings
from codewhale.dialects.base import ProviderSettings
from codewhale.protocol.screen import TuiSettings
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
    provider is asked for by default), `reasoning_effort` how hard to think ("" is the model's own measure), `approval`
    what becomes of calls that no rule decides: suggest asks the person, auto runs them, never refuses them, `hooks` the
    commands that run at moments of a session, `tui` how the terminal interface looks and is driven,
    `mcp_config_path` the file that names MCP servers."""

    provider: str = ""
    model: str = ""
    reasoning_effort: Effort = ""
    approval: Literal["suggest", "auto", "never"] = "suggest"
    providers: dict[str, ProviderSettings] = {}
    tools: ToolSettings = ToolSettings()
    context: ContextSettings = ContextSettings()
    hooks: dict[str, Any] = {}
    tui: TuiSettings = TuiSettings()
    mcp_config_path: str = ""


def defaults() -> dict[str, Any]:
    """The lowest layer: what the providers room knows without being told."""
    return {
        "provider": DEFAULT_PROVIDER,
        "model": "",
        "reasoning_effort": "",
        "approval": "suggest",
        "providers": built_in(),
    }


# All that a trusted project's file may say: nothing of where keys go, what may run or what is asked, but to forbid.
PROJECT_RULES: Rules = MappingProxyType(
    {
        "model": chosen,
        "reasoning_effort": chosen,
        "tools.disabled": joined,
        "approval": ladder("never", "suggest", "auto", default="suggest"),
    }
)


class Place(Struct, frozen=True):
    """Where the configuration of a process comes from: its state directory, workspace, environment and command line."""

    home: str
    workspace: str
    environ: Mapping[str, str]
    overrides: Mapping[str, Any]

    def config(self, over: Mapping[str, Any] | None = None) -> Config:
        """The configuration as it stands now, with more said at the command line. Raises ConfigError."""
        return open_config(self.home, self.workspace, self.environ, {**self.overrides, **(over or {})})


def open_config(home: str, workspace: str, environ: Mapping[str, str], overrides: Mapping[str, Any]) -> Config:
    """Read and check all configuration. A project's file counts where it was trusted as it is, and only as far as it
    makes things narrower. Raises ConfigError."""

    def trusted(path: str, sha256: str) -> bool:
        return bool(target(PARTS["trust"])(home).holds(path, sha256))

    lowest = {**defaults(), "mcp_config_path": os.path.join(home, "mcp.json")}
    config = load(home, workspace, environ, overrides, Project(trusted, PROJECT_RULES), lowest)
    config.check(Settings)
    return config
