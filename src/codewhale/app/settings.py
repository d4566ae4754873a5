"""The top level of config.toml: the one place that knows every section, and what holds when nothing is set."""

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from codewhale.agent.child_settings import ChildSettings
from codewhale.app.choices import Choices
from codewhale.config import Config, Project, load
from codewhale.config.tighten import Rules, chosen, joined, ladder
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.known_models import DEFAULT_PROVIDER, built_in
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.screen import TuiSettings
from codewhale.session.redaction import Redactor
from codewhale.session.window import ContextSettings
from codewhale.tasks.model import TaskSettings

Effort = Literal["", "off", "low", "medium", "high", "max", "auto"]


class ToolSettings(Struct, frozen=True):
    """The `[tools]` table. `disabled` tools stay in the array and are refused when called, in every mode. `profile` is
    the set of tools that every session begins with ("" leaves it to the provider's fact `tool_profile`), `always_load`
    names tools that join it. `repair` is how far a call that is not right as it came is made out."""

    disabled: tuple[str, ...] = ()
    profile: Literal["", "default", "arcee", "compact", "intent"] = ""
    always_load: tuple[str, ...] = ()
    repair: Literal["full", "names", "off"] = "full"


HostFolder = Annotated[str, Meta(pattern=r"^(?:/|~/)[^\x00]", max_length=4096)]
Family = Literal["npm", "yarn", "pnpm", "bun", "deno", "pip", "uv", "poetry", "cargo", "go", "maven", "gradle", "ruby",
                 "composer", "nuget", "ccache"]  # fmt: skip


class SandboxSettings(Struct, frozen=True):
    """The `[sandbox]` table. `network` is what commands have of it: off (never, and never offered), ask (with an
    approval, offered where it was missed) or on. `writable` are folders beside the workspace that commands may write,
    `caches` the families of programs whose real caches they always have, `hidden` places that they cannot see."""

    network: Literal["off", "ask", "on"] = "ask"
    writable: tuple[HostFolder, ...] = ()
    caches: tuple[Family, ...] = ()
    hidden: tuple[HostFolder, ...] = ()

    @property
    def more(self) -> tuple[str, ...]:
        return (
            *(f"write:{os.path.expanduser(path)}" for path in self.writable),
            *(f"cache:{name}" for name in self.caches),
        )

    @property
    def less(self) -> tuple[str, ...]:
        return tuple(f"hide:{os.path.expanduser(path)}" for path in self.hidden)


HostPattern = Annotated[str, Meta(pattern=r"^\.?[^\s/:@]+$", max_length=253)]


class NetworkTable(Struct, frozen=True):
    """The `[network]` table: hosts of the web that are denied, asked about and allowed, in this order (`.host` is every
    host below it), and what holds for the rest. Rules of /network come before all but what is denied here."""

    default: Literal["allow", "ask", "deny"] = "allow"
    allow: tuple[HostPattern, ...] = ()
    ask: tuple[HostPattern, ...] = ()
    deny: tuple[HostPattern, ...] = ()


class SkillSettings(Struct, frozen=True):
    """The `[skills]` table. `folder` is one more place of skills, the last of all."""

    folder: Annotated[str, Meta(pattern=r"^(?:(?:/|~/)[^\x00]*)?$", max_length=4096)] = ""


class RlmTable(Struct, frozen=True):
    """The `[rlm]` table: how many sub-queries a recursive session may ask, and one of its rounds."""

    sub_queries: Annotated[int, Meta(ge=1, le=2_000)] = 200
    round_queries: Annotated[int, Meta(ge=1, le=2_000)] = 64


class WebTable(Struct, frozen=True):
    """The `[web]` table: the providers of searches in the order in which they are asked, and the address of a SearXNG
    instance, which may be one of the person's own network."""

    search: Annotated[
        tuple[Literal["duckduckgo", "bing", "searxng", "tavily", "bocha", "metaso", "baidu"], ...], Meta(max_length=7)
    ] = ("duckduckgo", "bing")
    searxng: Annotated[str, Meta(pattern=r"^(?:https?://[^\s]+)?$", max_length=1000)] = ""


class McpServerTable(Struct, frozen=True):
    """The `[mcp_server]` table: tools that `codewhale mcp serve` offers beside those that read."""

    offer: Annotated[tuple[str, ...], Meta(max_length=100)] = ()


class SpeechTable(Struct, frozen=True):
    """The `[speech]` table: an address like OpenAI's /audio/speech that speaks in place of the system's voice program,
    the model that it is asked for and the environment variable of its key; the voice used where none is named, and the
    folder of the workspace for files."""

    url: Annotated[str, Meta(pattern=r"^(?:https?://[^\s]+)?$", max_length=1000)] = ""
    model: Annotated[str, Meta(max_length=200)] = ""
    voice: Annotated[str, Meta(max_length=80)] = ""
    key_env: Annotated[str, Meta(pattern=r"^(?:[A-Za-z_]\w*)?$", max_length=100)] = ""
    folder: Annotated[str, Meta(pattern=r"^[^/\x00][^\x00]*$", max_length=200)] = "output"


class SecretSettings(Struct, frozen=True):
    """The `[secrets]` table. `shapes` says whether keys of known shapes are replaced in what comes from outside,
    `prefixes` what keys of issuers that are not known begin with: at least eight more letters make one."""

    shapes: bool = True
    prefixes: Annotated[tuple[Annotated[str, Meta(pattern=r"^[A-Za-z][\w.-]{2,39}$")], ...], Meta(max_length=50)] = ()


class Settings(Struct, frozen=True):
    """Every top-level key. `provider` names a `[providers.<name>]` table, `model` what to ask it for ("" is what
    that provider is asked for by default), `reasoning_effort` how hard to think ("" is the model's own measure),
    `approval` what becomes of calls that no rule decides: suggest asks the person, sandbox asks about what the
    sandbox does not hold, auto runs them, never refuses them, `skills` where more skills stand, `hooks` the
    commands that run at moments of a session, `tui` how the terminal interface looks and is driven, `subagents`
    what bounds them, `rlm` recursive sessions, `tasks` durable tasks, `web` searches, `speech` who speaks,
    `mcp_config_path` the file that names MCP servers, `mcp_server` what is offered to other programs, `titles` whether
    the model is asked for a title after a session's first turn (by default no server of this machine or its own
    network). The four last ones are of code search: whether it has an index at all, and the local programs, or folders
    of models, in its slots ("" is none)."""

    provider: str = ""
    model: str = ""
    reasoning_effort: Effort = ""
    approval: Literal["suggest", "sandbox", "auto", "never"] = "suggest"
    providers: dict[str, ProviderSettings] = {}
    tools: ToolSettings = ToolSettings()
    context: ContextSettings = ContextSettings()
    sandbox: SandboxSettings = SandboxSettings()
    secrets: SecretSettings = SecretSettings()
    skills: SkillSettings = SkillSettings()
    subagents: ChildSettings = ChildSettings()
    rlm: RlmTable = RlmTable()
    tasks: TaskSettings = TaskSettings()
    network: NetworkTable = NetworkTable()
    web: WebTable = WebTable()
    speech: SpeechTable = SpeechTable()
    hooks: dict[str, Any] = {}
    tui: TuiSettings = TuiSettings()
    mcp_config_path: str = ""
    mcp_server: McpServerTable = McpServerTable()
    titles: bool = True
    codebase_search_core: bool = field(default=True, name="codebase-search-core")
    sparse_splade: str = field(default="", name="sparse-splade")
    dense_embed: str = field(default="", name="dense-embed")
    rerank: str = ""


def search_settings(config: Config) -> dict[str, object]:
    slots = ("sparse-splade", "dense-embed", "rerank")
    return {"codebase-search-core": config.section("codebase-search-core", bool)} | {
        key: config.section(key, str) for key in slots
    }


def defaults() -> dict[str, object]:
    return {
        "provider": DEFAULT_PROVIDER,
        "model": "",
        "reasoning_effort": "",
        "approval": "suggest",
        "titles": True,
        "codebase-search-core": True,
        "providers": built_in(),
    }


# All that a trusted project's file may say: nothing of where keys go, what may run or what is asked, but to forbid.
PROJECT_RULES: Rules = MappingProxyType(
    {
        "model": chosen,
        "reasoning_effort": chosen,
        "tools.disabled": joined,
        "tools.profile": chosen,
        "secrets.shapes": ladder(True, False, default=True),
        "secrets.prefixes": joined,
        "sandbox.network": ladder("off", "ask", "on", default="ask"),
        "sandbox.hidden": joined,
        "network.default": ladder("deny", "ask", "allow", default="allow"),
        "network.ask": joined,
        "network.deny": joined,
        "approval": ladder("never", "suggest", "sandbox", "auto", default="suggest"),
    }
)


class WorkspaceSettings(Struct, frozen=True):
    """What holds for the sessions of a workspace."""

    config: Config
    tools: ToolSettings
    sandbox: SandboxSettings
    network: NetworkTable
    redactor: Redactor


class Place(Struct, frozen=True):
    """Where the configuration of a process comes from: its state directory, workspace, environment and command line."""

    home: str
    workspace: str
    environ: Mapping[str, str]
    overrides: Mapping[str, object]

    @property
    def person(self) -> str:
        return self.environ.get("HOME") or self.home

    def config(self, over: Mapping[str, object] | None = None, workspace: str = "") -> Config:
        """The configuration of a workspace ("": that of the start) as it stands now, with more said at the command
        line. Raises ConfigError."""
        return open_config(self.home, workspace or self.workspace, self.environ, {**self.overrides, **(over or {})})


def open_config(home: str, workspace: str, environ: Mapping[str, str], overrides: Mapping[str, object]) -> Config:
    """Read and check all configuration. A project's file counts where it was trusted as it is, and only as far as it
    makes things narrower. Raises ConfigError."""

    def trusted(path: str, sha256: str) -> bool:
        from codewhale.permissions.trust import TrustStore

        return TrustStore(home).holds(path, sha256)

    lowest = {**defaults(), "mcp_config_path": os.path.join(home, "mcp.json")}
    config = load(home, workspace, environ, overrides, Project(trusted, PROJECT_RULES), lowest)
    Choices(home).join(config, workspace)
    config.check(Settings)
    for path in config.section("sandbox", SandboxSettings).writable:
        whole = os.path.realpath(os.path.expanduser(path)).rstrip("/") + "/"
        held = (os.path.expanduser("~"), home)
        if any((os.path.realpath(place) + "/").startswith(whole) for place in held):
            raise ConfigError(f"{config.origin('sandbox.writable')}: sandbox.writable: {path} holds your home or state")
    return config
