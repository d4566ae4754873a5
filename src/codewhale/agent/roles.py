"""The roles of sub-agents: what each may do and what it is told."""

import os
import posixpath
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from codewhale.lib.text import one_line
from codewhale.permissions.markdown_files import command_files, head_and_body, steering_bytes
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.scopes import EVERYTHING, Scope
from codewhale.protocol.tools import Effect

ROLES_FILE = Path(__file__).with_name("roles.toml")
DEFAULT_ROLE = "general"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_MEMBERS = frozenset(("description", "may", "tools", "paths", "aliases", "model", "effort"))


class ChildRole(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A kind of sub-agent: `summary` for lists, `words` behind its task, what its `scope` leaves it. An empty model and
    effort are those of the session that opens it; `needs_tools`: whoever opens it names its tools; `problem` is why it
    cannot be used."""

    name: str
    summary: str
    words: str
    scope: Scope = Scope()
    aliases: tuple[str, ...] = ()
    model: str = ""
    effort: str = ""
    needs_tools: bool = False
    problem: str = ""


@cache
def built_in() -> Mapping[str, ChildRole]:
    rows = tomllib.loads(ROLES_FILE.read_text(encoding="utf-8"))["role"]
    roles = msgspec.convert(rows, list[ChildRole])
    return {role.name: msgspec.structs.replace(role, scope=_named(role)) for role in roles}


def own_roles(folders: Iterable[tuple[str, str]], holds: Callable[[str, str], bool]) -> dict[str, ChildRole]:
    """The roles of Markdown files in `folders`, each with the root of the project it belongs to ("" is the person's
    own); the first of a name. `holds(path, sha256)` says whether a project's file is trusted."""
    roles: dict[str, ChildRole] = {}
    for folder, root in folders:
        for path in command_files(folder):
            name = os.path.basename(path).removesuffix(".md")
            try:
                role = _read_role(name, steering_bytes(path, root, holds))
            except (ValueError, ConfigError) as error:
                role = ChildRole(name, "", "", problem=f"{path}: {error}")
            if name not in roles or (roles[name].problem and not role.problem):
                roles[name] = role
    return roles


def _read_role(name: str, data: bytes) -> ChildRole:
    """What a file says of a role. Raises ValueError."""
    if not _NAME.fullmatch(name) or name in built_in():
        raise ValueError("a role's file is named by lower-case letters, digits and _, and by no built-in role")
    members, body = head_and_body(data)
    if unknown := sorted(members.keys() - _MEMBERS):
        raise ValueError(f"its header has {unknown[0]!r}; a role has {', '.join(sorted(_MEMBERS))}")
    lists = {key: _list(key, members.get(key)) for key in ("may", "tools", "paths", "aliases")}
    may = lists["may"]
    if wrong := [one for one in may or () if one not in list(Effect)]:
        raise ValueError(f"may holds {wrong[0]!r}, not {', '.join(Effect)}")
    texts = {key: members.get(key, "") for key in ("description", "model", "effort")}
    if wrong := [key for key, value in texts.items() if not isinstance(value, str)]:
        raise ValueError(f"{wrong[0]} is not a text")
    paths = tuple(posixpath.normpath(one) for one in lists["paths"] or ())
    if any(one.startswith(("/", "..")) for one in paths):
        raise ValueError("paths are folders below the workspace")
    effects = EVERYTHING if may is None else tuple(Effect(one) for one in may)
    scope = Scope(name, effects, lists["tools"], (), paths)
    summary = one_line(texts["description"] or body.strip(), 120)
    return ChildRole(name, summary, body, scope, lists["aliases"] or (), texts["model"], texts["effort"])


def _list(key: str, value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    items = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(one, str) for one in items):
        raise ValueError(f"{key} is not a list of names")
    return tuple(items)


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
