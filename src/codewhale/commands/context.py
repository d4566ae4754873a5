"""Slash commands about the context: what the next request consists of, how full it is, and making it shorter."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from codewhale.commands.base import CommandContext, command, misuse, told
from codewhale.lib.text import one_line
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.memory import LayerRow, MemoryItem
from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.protocol.ports import SessionControl
from codewhale.protocol.views import ContextView

Sources = Callable[[str, CommandContext], Awaitable[CommandOutput | None]]

_SOURCES = {
    "configured": "as configured",
    "reported": "reported by the endpoint",
    "catalog": "from the model table",
    "name": "guessed from the model's name, unverified",
    "fallback": "a guess, unverified: set context_window in the provider's table",
    "overflow": "learned from a request that was too long",
}
_WIDTH, _NAME, _MOST_ITEMS = 80, 18, 200
Items = Callable[[str, str, str], Sequence[MemoryItem]]
Clear = Callable[[str, str, str], str]
Submit = Callable[[RunCommand], Awaitable[CommandOutput]]


class LayerView(Struct, frozen=True):
    """A layer of memory with what it holds."""

    layer: LayerRow
    items: tuple[MemoryItem, ...]


class ContextCommands:
    """/context and /compact."""

    def __init__(self, control: SessionControl, items: Items, clear: Clear, submit: Submit, sources: Sources) -> None:
        """`items(workspace, session, layer)` is what a layer of memory holds, `clear` empties it; both read
        files. `sources(line, context)` does what concerns attached sources; None for a line that does not."""
        self._control = control
        self._items = items
        self._clear = clear
        self._submit = submit
        self._sources = sources

    @command("/context", "[json | LAYER [ACTION] | attach PATH [as NAME] | detach NAME | sources | export NAME FOLDER]")
    async def context(self, args: str, context: CommandContext) -> CommandOutput:
        """Show what the next request consists of, and how full the context is; LAYER shows a layer of memory."""
        if (done := await self._sources(args, context)) is not None:
            return done
        view = await self._control.context(context.session)
        name, _, rest = args.partition(" ")
        if name in ("", "json", "--json"):
            running = self._control.status(context.session).children
            more = f"\n{'sub-agents':<22} {', '.join(running)} (each has a context of its own)" if running else ""
            return told("/context", args, view, lambda view: "\n".join(_shown(view)) + more)
        layers = _named(name, view.rows)
        if len(layers) != 1:
            which = f"{name[:40]!r} could be" if layers else f"There is no layer {name[:40]!r}; they are"
            return misuse(f"{which} {', '.join(row.name for row in layers or view.rows)}. /context shows all.")
        if rest and rest not in ("json", "--json"):
            return await self._act(layers[0], rest.strip(), context)
        items = await asyncio.to_thread(self._items, context.workspace, context.session, layers[0].name)
        shown = LayerView(layers[0], tuple(items))
        return told(f"/context {layers[0].name}", rest, shown, lambda view: "\n".join(_layer(view)))

    async def _act(self, row: LayerRow, words: str, context: CommandContext) -> CommandOutput:
        """Do what a layer's row offers, with the words behind its name."""
        action, _, more = words.partition(" ")
        line = dict(row.actions).get(action)
        if line is None:
            known = ", ".join(name for name, _ in row.actions) or "nothing"
            return misuse(f"{row.name} has no action {action[:40]!r}; it offers: {known}.")
        if line.startswith("/context "):
            return CommandOutput(await asyncio.to_thread(self._clear, context.workspace, context.session, row.name))
        if not line.startswith("/"):
            return CommandOutput(f"Type this in a shell: {line}")
        wanted = [word for word in line.split() if word.isupper()]
        if wanted and not more:
            return misuse(f"{action} needs {' and '.join(wanted)}: say {line}.")
        line = " ".join(word for word in (*line.split(), more) if word not in wanted).strip()
        return await self._submit(RunCommand(context.session, line))

    @command("/compact", "[FOCUS|undo]")
    async def compact(self, args: str, context: CommandContext) -> CommandOutput:
        """Compact the conversation, keeping FOCUS in detail; undo restores the exact conversation."""
        try:
            if args == "undo":
                number = self._control.undo_compaction(context.session)
                if not number:
                    return CommandOutput("No compaction to undo.", ok=False)
                text = f"Compaction {number} undone. Automatic compaction is off until the next /compact."
                return CommandOutput(text)
            before, after = await self._control.compact(context.session, args)
        except CodeWhaleError as error:
            return CommandOutput(str(error), ok=False)
        return CommandOutput(f"Compacted: about {before} tokens before, {after} now. /compact undo takes it back.")


def _named(name: str, rows: Iterable[LayerRow]) -> list[LayerRow]:
    """The layers of a name, of one of its words, or of a beginning of one."""
    asked, every = name.lower(), list(rows)
    words = {row.name: (row.name, *row.name.split("-")) for row in every}
    exact = [row for row in every if asked in words[row.name]]
    return exact or [row for row in every if any(word.startswith(asked) for word in words[row.name])]


def _shown(view: ContextView) -> Iterator[str]:
    percent = 100 * view.used // max(1, view.spendable)
    by = "counted by the provider" if view.calibrated else "estimated until the provider counts a request"
    makes_room = f"automatic at {view.threshold} tokens" if view.threshold else "automatic compaction is off"
    rows = [
        ("model", f"{view.model} at {view.provider}"),
        ("window", f"{view.window} tokens ({_SOURCES.get(view.window_source, view.window_source)})"),
        ("for answers", f"{view.reserved} tokens"),
        ("next request", f"{view.used} of {view.spendable} tokens, {percent} % ({by})"),
        ("room", makes_room + (f"; {view.compactions} compactions in effect" if view.compactions else "")),
        ("last call", f"{view.last_hit} tokens from the cache, {view.last_miss} not"),
        ("billed so far", f"{view.billed_input} tokens in, {view.billed_output} out"),
    ]
    yield from (f"{name:<22} {value}" for name, value in rows)
    yield ""
    yield f"{'layer of memory':<{_NAME}}{'items':>6}{'holds':>11}{'sent':>10}{'tokens':>9}  place     changed"
    for row in view.rows:
        yield from _row(row)
    yield ""
    yield f"{'conversation':<{_NAME}}{'':>17}{'sent':>10}{'tokens':>9}"
    parts = [*((part.name, part.bytes, part.tokens) for part in view.parts), ("in all", view.bytes, view.used)]
    yield from (f"{one_line(name, _NAME):<{_NAME}}{'':>17}{size:>10,}{tokens:>9,}" for name, size, tokens in parts)


def _row(row: LayerRow) -> Iterator[str]:
    """A layer on a line; what can be done about it and what is particular stand below it."""
    figures = f"{row.items:>6,}{row.bytes:>11,}{row.sent:>10,}{row.tokens:>9,}"
    yield f"{row.name:<{_NAME}}{figures}  {row.place:<9} {row.changed[:10]}".rstrip()
    faults = f"{row.faults} fault{'s' * (row.faults != 1)}" if row.faults else ""
    offers = " ".join(f"[{name}]" for name, _ in row.actions)
    if below := "  ".join(filter(None, (offers, faults, one_line(row.note, _WIDTH)))):
        yield f"  {below}"[:_WIDTH]


def _layer(view: LayerView) -> Iterator[str]:
    row = view.layer
    yield f"{row.title} ({row.name}), {row.scope}, trust: {row.trust}"
    yield from _row(row)
    for item in view.items[:_MOST_ITEMS]:
        used = f"used {item.uses} times, last {item.last_used[:10]}" if item.uses else ""
        facts = (item.source, item.scope, item.created[:16], f"{item.bytes:,} bytes", used, item.expires)
        yield f"{item.id:<12} {one_line(item.text, 160)}"
        yield f"{'':<12} {', '.join(one_line(fact, 120) for fact in facts if fact)}"
    if len(view.items) > _MOST_ITEMS:
        yield f"and {len(view.items) - _MOST_ITEMS:,} more; /context {row.name} --json has all."
    yield from (f"{name}: {line}" for name, line in row.actions)
