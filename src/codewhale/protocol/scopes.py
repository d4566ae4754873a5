"""What a role and active skills leave a session of what its rights allow."""

from fnmatch import fnmatchcase

from msgspec import Struct

from codewhale.protocol.tools import Effect

EVERYTHING = tuple(Effect)
_WILD = frozenset("*?[")


class Scope(Struct, frozen=True, omit_defaults=True):
    """`effects` are those that calls may have; `tools` those that may be called (None: any), `without` those that may
    not; a name may be a pattern. `paths` are the folders below the workspace that may be written (empty: all). Each row
    of `lines` names a tool and what each command of its command line must begin with ("git log *") or be ("make
    test"). `role` is whose scope it is, in words, `skills` are those that restrict it."""

    role: str = ""
    effects: tuple[Effect, ...] = EVERYTHING
    tools: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    lines: tuple[tuple[str, tuple[str, ...]], ...] = ()
    skills: tuple[str, ...] = ()

    def names(self, tool: str) -> bool:
        """Whether a tool of this name may be called."""
        if any(fnmatchcase(tool, pattern) for pattern in self.without):
            return False
        return self.tools is None or any(fnmatchcase(tool, pattern) for pattern in self.tools)

    def writes(self, path: str) -> bool:
        """Whether a path below the workspace, normalized, may be written."""
        return not self.paths or any(path == one or path.startswith(one + "/") for one in self.paths)

    @property
    def shown(self) -> tuple[str, ...]:
        """The tools that may be called, each with what its commands are bound to."""
        bound = {tool: f"{tool} ({', '.join(patterns)})" for tool, patterns in self.lines}
        return tuple(bound.get(tool, tool) for tool in self.tools or ())

    @property
    def reads_only(self) -> bool:
        return set(self.effects) <= {Effect.READS}


def within(scope: Scope, owner: Scope | None) -> Scope:
    """A scope below an owner's: what both leave. Patterns of the owner's tools hold for the names of the other."""
    if owner is None:
        return scope
    effects = tuple(effect for effect in scope.effects if effect in owner.effects)
    tools = owner.tools if scope.tools is None else scope.tools
    if scope.tools is not None and owner.tools is not None:
        tools = tuple(one for one in scope.tools if _covers(owner, one))
        tools += tuple(one for one in owner.tools if one not in tools and _covers(scope, one))
    without = tuple(dict.fromkeys((*owner.without, *scope.without)))
    lines = tuple(dict.fromkeys((*owner.lines, *scope.lines)))
    skills = tuple(dict.fromkeys((*owner.skills, *scope.skills)))
    return Scope(scope.role or owner.role, effects, tools, without, _shared(scope.paths, owner.paths), lines, skills)


def _covers(scope: Scope, tool: str) -> bool:
    """Whether all that a name or pattern stands for may be called. Of a pattern that is sure for itself and for one
    that begins as it does."""
    if not _WILD.intersection(tool):
        return scope.names(tool)
    plain = (one for one in scope.tools or () if one == tool or not _WILD.intersection(one[:-1]))
    return any(one == tool or (one[-1:] == "*" and tool.startswith(one[:-1])) for one in plain)


def _shared(own: tuple[str, ...], owner: tuple[str, ...]) -> tuple[str, ...]:
    """The folders that both leave; where they share none, one that nothing can lie in."""
    if not own or not owner:
        return own or owner
    shared = tuple(one for one in own if any(one == up or one.startswith(up + "/") for up in owner))
    shared += tuple(up for up in owner if up not in shared and any(up.startswith(one + "/") for one in own))
    return shared or ("\0",)
