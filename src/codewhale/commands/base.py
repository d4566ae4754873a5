"""What every slash-command family shares: the `command` decorator and the registry that runs a line."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from codewhale.lib.text import one_line
from codewhale.protocol.ops import CommandOutput
from codewhale.protocol.screen import INTERFACE_COMMANDS

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


class OwnCommand(CommandSpec, frozen=True):
    """A command that a file of the person's or of the project makes; `path` is that file as it is shown."""

    path: str


class OwnCommands(Protocol):  # the commands that come from files, those that win first; None is no such command
    def specs(self, workspace: str) -> Sequence[OwnCommand]: ...
    async def run(self, name: str, args: str, context: CommandContext) -> CommandOutput | None: ...


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
    if args in ("json", "--json"):
        return CommandOutput(msgspec.json.format(msgspec.json.encode(view), indent=2).decode())
    return misuse(f"Say {name} or {name} json.") if args else CommandOutput(aloud(view))


def misuse(text: str) -> CommandOutput:
    """The answer to a line that is wrong in itself."""
    return CommandOutput(text, ok=False, misused=True)


def bound(family: object) -> dict[str, BoundCommand]:
    """The commands of a family object, by name."""
    found = {}
    for attribute, method in vars(type(family)).items():
        spec = getattr(method, "__command__", None)
        if spec is not None:
            found[spec.name] = BoundCommand(spec, getattr(family, attribute))
    return found


class CommandRegistry:
    """All slash commands. `rows` gives each command its family, `families()` says how each family is built; that of
    "files" are the OwnCommands."""

    def __init__(self, rows: Mapping[str, str], families: Callable[[], Families]) -> None:
        self._rows = rows
        self._families = families
        self._built: dict[str, dict[str, BoundCommand]] = {}

    async def specs(self, workspace: str) -> list[CommandSpec]:
        """Every command of a workspace, by name; one that hides others of its name says so."""
        specs = {name: self._bound(name).spec for name in self._rows}
        for spec in await self._from_files(workspace):
            if spec.name in INTERFACE_COMMANDS:
                continue
            first = specs.setdefault(spec.name, spec)
            if first is not spec:
                specs[spec.name] = replace(first, summary=f"{first.summary} (hides {spec.path})")
        return [specs[name] for name in sorted(specs)]

    async def run(self, line: str, context: CommandContext) -> CommandOutput:
        """Run a line such as "/mode plan"."""
        name, args = (*line.split(maxsplit=1), "", "")[:2]
        if name in self._rows:
            return await self._bound(name).run(args.strip(), context)
        if name in INTERFACE_COMMANDS:
            return misuse(f"{name} works only in the terminal interface.")
        own = self._own()
        output = None if own is None else await own.run(name, args.strip(), context)
        if output is None:
            return misuse(
                unknown(name, {*self._rows, *(spec.name for spec in await self._from_files(context.workspace))})
            )
        return output

    async def _from_files(self, workspace: str) -> Sequence[OwnCommand]:
        own = self._own()
        return await asyncio.to_thread(own.specs, workspace) if own is not None else ()

    def _own(self) -> OwnCommands | None:
        family = self._families().get("files")
        return cast(OwnCommands, family()) if family is not None else None

    def _bound(self, name: str) -> BoundCommand:
        key = self._rows[name]
        if key not in self._built:
            self._built[key] = bound(self._families()[key]())
        return self._built[key][name]


def unknown(name: str, names: Iterable[str]) -> str:
    """What to say of a command that there is not, with those there are."""
    import difflib

    names = sorted(names)
    near = difflib.get_close_matches(name.lower(), (*names, *INTERFACE_COMMANDS), n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return (
        f"Unknown command {one_line(name, 80)!r}.{hint} The commands are: {', '.join(names)}; "
        f"in the terminal interface also {', '.join(INTERFACE_COMMANDS)}."
    )
