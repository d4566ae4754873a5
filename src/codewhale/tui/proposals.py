"""What a model proposes to remember, above the composer until the person decides: what would be kept, whose text it
came from, and the keys. What is not seen whole is not taken by one key."""

from collections.abc import Awaitable

from codewhale.display.text import Spans, cells, columns, fit, flat, wrap_whole
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.events import Envelope, FactDecided, FactProposed
from codewhale.protocol.memory import GetWaiting
from codewhale.tui.screens.context import ScreenContext
from codewhale.tui.widgets import GAP, LOW, TagLine, hint, in_rows

MOST_ROWS = 3
_MOST_TEXT = 4_000
_ORIGIN = 60


class ProposalsLine(TagLine, can_focus=False):
    """The proposal that came first, and how many more there are. It takes no room while there is none."""

    def __init__(self, context: ScreenContext) -> None:
        super().__init__(context.palette, id="proposals")
        self._asks = context
        self._open: dict[str, FactProposed] = {}
        self._deciding: set[str] = set()

    @property
    def first(self) -> FactProposed | None:
        return next((row for key, row in self._open.items() if key not in self._deciding), None)

    @property
    def whole(self) -> bool:
        """Whether all of the first one's text is seen."""
        return self._told(self.size.width)[1]

    def begin(self) -> None:
        """Another session is followed: nothing is proposed in it yet."""
        self._open.clear()
        self.refresh(layout=True)

    def take(self, envelope: Envelope) -> None:
        match envelope.event:
            case FactProposed() as proposed:
                self._open[proposed.id] = proposed
            case FactDecided(id=decided):
                self._open.pop(decided, None)
                self._deciding.discard(decided)
            case _:
                return
        self.refresh(layout=True)

    async def decide(self, proposed: FactProposed, deciding: Awaitable[None]) -> None:
        """Show the next one while this one is decided; it comes back where it waits all the same."""
        self._deciding.add(proposed.id)
        self.refresh(layout=True)
        await deciding
        self._deciding.discard(proposed.id)
        try:
            waiting = {row.id for row in await self._asks.query(GetWaiting(self._asks.workspace))}
        except (CodeWhaleError, OSError, KeyError):
            return
        self._open = {key: row for key, row in self._open.items() if key in waiting}
        self.refresh(layout=True)

    def pieces(self, width: int) -> list[Spans]:
        """Everything on one row where that can be, else the keys on rows of their own."""
        if self.first is None:
            return []
        words, more = self._asks.words, len(self._open) - len(self._deciding) - 1
        names = ("take", "change", "drop")
        keys = [hint(f"app.{name}_fact", words(f"proposals.{name}"), self._asks.keys) for name in names]
        keys += [((words("proposals.more", n=more), "muted"),)] if more else []
        rows, _ = self._told(width)
        below = in_rows(keys, width)
        if len(rows) == len(below) == 1 and columns(rows[0]) + columns(below[0]) + cells(GAP[0]) <= width:
            return [(*rows[0], GAP, *below[0])]
        return [*rows, *below]

    def _told(self, width: int) -> tuple[list[Spans], bool]:
        """The rows that say what is proposed, and whether they say all of it."""
        if (proposed := self.first) is None:
            return [], True
        words, width = self._asks.words, max(8, width)
        most = 1 if self.screen.size.height < LOW else MOST_ROWS
        ask = words("proposals.ask_global" if proposed.scope == "global" else "proposals.ask")
        origin = fit(flat(proposed.origin, _ORIGIN), max(8, width // 2)) if proposed.origin else ""
        source = f" {words('proposals.origin', origin=origin)}" if origin else ""
        text = flat(proposed.text, _MOST_TEXT)
        rows = _rows(ask, text, source, width)
        if len(rows) <= most:
            return rows, True
        room = most * (width - 1) - cells(ask + source) - 3
        return _rows(ask, fit(text, max(4, room)), source, width, words=False)[:most], False


def _rows(ask: str, text: str, source: str, width: int, words: bool = True) -> list[Spans]:
    return wrap_whole(((f"{ask} ", "bold accent"), (f'"{text}"', "text"), (source, "warning")), width, words)
