"""The roles of sub-agents: what each may do and what it is told."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from codewhale.protocol.scopes import Scope

ROLES_FILE = Path(__file__).with_name("roles.toml")
DEFAULT_ROLE = "general"
AGENT_TOOLS = ("agent_*", "tool_agent", "rlm_*")


class ChildRole(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A kind of sub-agent: `summary` for lists, `words` behind its task, what its `scope` leaves it. An empty model and
    effort are those of the session that opens it; `needs_tools`: whoever opens it names its tools."""

    name: str
    summary: str
    words: str
    scope: Scope = Scope()
    aliases: tuple[str, ...] = ()
    model: str = ""
    effort: str = ""
    needs_tools: bool = False


@cache
def built_in() -> Mapping[str, ChildRole]:
    rows = tomllib.loads(ROLES_FILE.read_text(encoding="utf-8"))["role"]
    roles = msgspec.convert(rows, list[ChildRole])
    return {role.name: msgspec.structs.replace(role, scope=_named(role)) for role in roles}


def _named(role: ChildRole) -> Scope:
    return msgspec.structs.replace(role.scope, role=role.name)


def role_of(name: str, own: Mapping[str, ChildRole]) -> ChildRole | None:
    """The role of a name or an alias; the built-in ones come first. Case, spaces and dashes do not matter."""
    wanted = name.strip().lower().replace("-", "_").replace(" ", "_")
    for roles in (built_in(), own):
        for role in roles.values():
            if wanted == role.name or wanted in role.aliases:
                return role
    return None


def role_names(own: Mapping[str, ChildRole]) -> list[str]:
    return list(dict.fromkeys((*built_in(), *own)))
