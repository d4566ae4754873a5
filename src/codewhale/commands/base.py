"""What every slash-command family shares: the `command` decorator and the registry that runs a line."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from codewhale.protocol.ops import CommandOutput

V = TypeVar("V", bound=Struct)


class CommandContext(Struct, frozen=True):
    """Where a command runs."""

    session: str
    workspace: str


class CommandSpec(Struct, frozen=True):
    """A slash command as data: its name with the slash, its arguments as shown in help, one line of what it
    does."""

    name: str
    usage: str
    summary: str


Run = Callable[[str, CommandContext], Awaitable[CommandOutput]]
Families = Mapping[str, Callable[[], object]]


class BoundCommand(Struct, frozen=True):
    """A command ready to run."""

    spec: CommandSpec
    run: Run


def command(name: str, usage: str = "") -> Callable[[Callable[..., Awaitable[CommandOutput]]], Any]:
    """Declare an async method `(self, args: str, context)` as the slash command `name`; the first line of its
    docstring is its help."""

    def mark(method: Callable[..., Awaitable[CommandOutput]]) -> Any:
        summary = inspect.cleandoc(method.__doc__ or "").split("\n")[0]
        method.__command__ = CommandSpec(name, usage, summary)  # type: ignore[attr-defined]
        return method

    return mark


def told(name: str, args: str, view: V, aloud: Callable[[V], str]) -> CommandOutput:
    """A view in words, or as JSON where `args` asks for it; the only argument such a command takes."""
    if args == "json":
        return CommandOutput(msgspec.json.format(msgspec.json.encode(view), indent=2).decode())
    return CommandOutput(f"Say {name} or {name} json.", ok=False) if args else CommandOutput(aloud(view))


def bound(family: object) -> dict[str, BoundCommand]:
    """The commands of a family object, by name."""
    found = {}
    for attribute, method in vars(type(family)).items():
        spec = getattr(method, "__command__", None)
        if spec is not None:
            found[spec.name] = BoundCommand(spec, getattr(family, attribute))
    return found


class CommandRegistry:
    """All slash commands. `rows` gives each command its family, `families()` says how each family is built."""

    def __init__(self, rows: Mapping[str, str], families: Callable[[], Families]) -> None:
        self._rows = rows
        self._families = families
        self._built: dict[str, dict[str, BoundCommand]] = {}

    def specs(self) -> list[CommandSpec]:
        """Every command, by name."""
        return [self._bound(name).spec for name in sorted(self._rows)]

    async def run(self, line: str, context: CommandContext) -> CommandOutput:
        """Run a line such as "/mode plan"."""
        name, args = (*line.split(maxsplit=1), "", "")[:2]
        if name not in self._rows:
            known = ", ".join(sorted(self._rows))
            return CommandOutput(f"Unknown command {name!r}. The commands are: {known}.", ok=False)
        return await self._bound(name).run(args.strip(), context)

    def _bound(self, name: str) -> BoundCommand:
        key = self._rows[name]
        if key not in self._built:
            self._built[key] = bound(self._families()[key]())
        return self._built[key][name]
