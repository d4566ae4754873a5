"""What is remembered and what waits to be, with where each came from; and the layers of a context."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.binding import BindingType

from codewhale.display.text import Span, Spans, flat, safe_lines
from codewhale.display.words import Words
from codewhale.protocol.memory import GetFacts, GetWaiting, LayerRow, MemoryItem, WaitingFact
from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.protocol.views import ContextView, GetContext
from codewhale.tui.keys import bindings, first_key
from codewhale.tui.rows import Item, RowList
from codewhale.tui.screens.context import OfferText, OpenScreen, ScreenContext
from codewhale.tui.screens.frame import Chooser, Frame
from codewhale.tui.screens.layers import LayersScreen, layer_facts, layer_title

_MOST_TEXT = 4_000
_CLOSE = ("chooser.close", "frame.close")


class MemoryScreen(Chooser):
    """Facts by scope, proposals that wait, layers. What is edited stands in the composer."""

    PANEL = "memory"
    PREVIEW = True
    BINDINGS: ClassVar[list[BindingType]] = bindings("memory")

    def __init__(self, context: ScreenContext, argument: str = "") -> None:
        super().__init__(context, argument)
        self._facts: dict[str, MemoryItem] = {}
        self._sure = ""
        self._cleared: tuple[str, ...] = ()

    def hints(self) -> tuple[tuple[str, str], ...]:
        match self.list.current.value if self.list.current is not None else None:
            case WaitingFact():
                keys = [("memory.take", "take"), ("chooser.choose", "change"), ("memory.drop", "drop")]
            case MemoryItem():
                keys = [("chooser.choose", "edit"), ("memory.drop", "clear")]
            case LayerRow():
                keys = [("chooser.choose", "actions")]
            case _:
                keys = []
        back = [("memory.restore", "restore")] if self._cleared and len(keys) < 3 else []
        return (*((key, f"memory.{name}") for key, name in (*keys, *back)), _CLOSE)

    # -------------------------------------------------------------- rows

    async def rows(self) -> Sequence[Item] | None:
        asks, workspace = self.context.query, self.context.workspace
        facts: Sequence[MemoryItem] | None = await self.ask(asks(GetFacts(workspace)), "frame.loading")
        waiting: Sequence[WaitingFact] = await self.ask(asks(GetWaiting(workspace))) or ()
        view: ContextView | None = await self.ask(asks(GetContext(self.context.session)))
        if facts is None:
            return None
        self._facts = {one.id: one for one in facts}
        self.retitle(self.words("memory.count", n=len(facts)))
        if not (facts or waiting or self.said):
            self.say(self.words("memory.none"))
        return [
            *(self._waits(row) for row in waiting),
            *(self._fact(row) for scope in ("workspace", "global") for row in facts if row.scope == scope),
            *(layer_item(self.words, row) for row in (view.rows if view is not None else ())),
        ]

    def _waits(self, row: WaitingFact) -> Item:
        mark = ("!", "warning") if row.origin or row.contradicts else ("?", "accent")
        group = self.words("memory.group_waiting")
        return Item(f"waiting {row.id}", row.text, "", group, *mark, row.origin, row, (row.created[:10],))

    def _fact(self, row: MemoryItem) -> Item:
        opposed = row.newer or any(one.newer == row.id for one in self._facts.values())
        mark = ("!", "warning") if row.tainted or opposed else ("·", "muted") if row.unsent else ("✓", "success")
        group = self.words(f"memory.group_{row.scope}")
        return Item(f"fact {row.id}", row.text, "", group, *mark, f"{row.id} {row.source}", row, (row.created[:10],))

    async def preview(self, item: Item) -> Sequence[Spans]:
        """All of it, and where it came from."""
        match item.value:
            case MemoryItem() as fact:
                return [*safe_lines(fact.text[:_MOST_TEXT]), (), *((span,) for span in self._about(fact))]
            case WaitingFact() as row:
                return [*safe_lines(row.text[:_MOST_TEXT]), (), *((span,) for span in self._proposed(row))]
            case LayerRow() as layer:
                return [((line, "text"),) for line in layer_facts(self.words, layer)]
        return ()

    def _about(self, fact: MemoryItem) -> Iterable[Span]:
        words = self.words
        if fact.source:
            name = "tainted" if fact.tainted else "from"
            yield words(f"memory.{name}", source=flat(fact.source, 300)), "warning" if fact.tainted else "muted"
        else:
            yield words("memory.own"), "muted"
        yield f"{flat(fact.id, 20)} · {flat(fact.created, 30) or words('memory.undated')}", "muted"
        if fact.uses:
            yield words("memory.used", n=fact.uses, last=flat(fact.last_used[:10], 10)), "muted"
        if fact.newer in self._facts:
            yield words("memory.newer", text=flat(self._facts[fact.newer].text, 300)), "warning"
        for one in self._facts.values():
            if one.newer == fact.id:
                yield words("memory.older", text=flat(one.text, 300)), "warning"
        if fact.unsent and not fact.newer:
            said = words("memory.expires", date=flat(fact.expires, 20)) if fact.expires else words("memory.unsent")
            yield said, "muted"

    def _proposed(self, row: WaitingFact) -> Iterable[Span]:
        words = self.words
        yield words("memory.for_all" if row.scope == "global" else "memory.for_here"), "muted"
        if row.origin:
            yield words("memory.tainted", source=flat(row.origin, 300)), "warning"
        if row.message:
            yield words("memory.after", text=flat(row.message, 300)), "muted"
        for text in row.contradicts:
            yield words("memory.stored", text=flat(text, 300)), "warning"

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        """What was asked about one row holds for no other."""
        self._show_hints()
        if self._sure and (message.item is None or message.item.key != self._sure):
            self._sure = ""
            self.say("")

    # -------------------------------------------------------------- keys

    def chosen(self, item: Item) -> None:
        """Edit it in the composer, where the person's own editor is a key away."""
        match item.value:
            case MemoryItem(id=id, text=text):
                self.dismiss(OfferText(f"/memory edit {id} {flat(text, _MOST_TEXT)}"))
            case WaitingFact(id=id, text=text):
                self.dismiss(OfferText(f"/memory take {id} {flat(text, _MOST_TEXT)}"))
            case LayerRow(name=name):
                self.dismiss(OpenScreen("layers", name))

    def action_take(self) -> None:
        if (item := self.list.current) is not None and isinstance(item.value, WaitingFact):
            self._do(f"take {item.value.id}")

    def action_drop(self) -> None:
        """Drop what is proposed; what is remembered is cleared the second time."""
        if (item := self.list.current) is None:
            return
        if isinstance(item.value, WaitingFact):
            self._do(f"drop {item.value.id}")
        elif isinstance(item.value, MemoryItem) and self._sure == item.key:
            self._sure, self._cleared = "", (*self._cleared, item.value.id)
            self._do(f"clear {item.value.id} yes")
        elif isinstance(item.value, MemoryItem):
            self._sure = item.key
            self.work(lambda: self._ask_first(item), "act")

    async def _ask_first(self, item: Item) -> None:
        """Say what clearing would do, with the sessions that hold it."""
        said = await self._run(f"clear {item.value.id}")
        if said is not None and said.ok and self.page is not None and self._sure == item.key:
            self.page.show(safe_lines(said.text))
            self.say(self.words("memory.sure", press=first_key("memory.drop", self.context.keys)), "warning")

    def action_restore(self) -> None:
        if self._cleared:
            *former, last = self._cleared
            self._cleared = tuple(former)
            self._do(f"restore {last}")

    def _do(self, rest: str) -> None:
        self.work(lambda: self._carry_out(rest), "act")

    async def _carry_out(self, rest: str) -> None:
        said = await self._run(rest)
        if said is not None:
            await self.load()
            self.say(flat(said.text, 300), "success" if said.ok else "error")

    async def _run(self, rest: str) -> CommandOutput | None:
        answer: CommandOutput | None = await self.ask(
            self.context.submit(RunCommand(self.context.session, f"/memory {rest}"))
        )
        return answer


def layer_item(words: Words, row: LayerRow) -> Item:
    """A layer as a row of the memory screen."""
    name = layer_title(words, row)
    size = words("context.sized", bytes=f"{row.sent:,}", tokens=f"{row.tokens:,}") if row.sent else ""
    return Item(f"layer {row.name}", name, size, words("memory.group_layers"), " ", more=row.name, value=row)


SCREENS: dict[str, type[Frame]] = {"memory": MemoryScreen, "layers": LayersScreen}
