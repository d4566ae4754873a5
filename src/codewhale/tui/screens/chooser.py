"""The one filterable list that all pickers use: a line to type into, the rows that fit, and where there is one a
preview of the row at hand."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.containers import Container
from textual.widget import Widget
from textual.widgets import Input

from codewhale.display.tones import Line, flat
from codewhale.tui.keys import bindings
from codewhale.tui.screens.desk import Desk
from codewhale.tui.screens.field import Field
from codewhale.tui.screens.frame import Frame
from codewhale.tui.screens.page import Page
from codewhale.tui.screens.rowlist import Item, RowList, ranked, unranked
from codewhale.tui.screens.tagline import TagLine

WIDE = 100
MOST_TYPED = 1000


class Chooser(Frame):
    """A picker. What it holds is given by `rows`; a row is taken by `chosen`, and what was typed where nothing fits by
    `typed`."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("chooser")
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("chooser.next", "frame.move"),
        ("chooser.choose", "frame.choose"),
        ("chooser.close", "frame.close"),
    )
    PREVIEW: ClassVar[bool] = False

    DEFAULT_CSS = """
    Chooser #parts { height: 1fr; layout: vertical; }
    Chooser #rows { height: 1fr; }
    Chooser #preview { height: 1fr; border-top: solid $border; }
    Chooser.wide #parts { layout: horizontal; }
    Chooser.wide #rows { width: 3fr; height: 1fr; }
    Chooser.wide #preview { width: 2fr; height: 1fr; border-top: none; border-left: solid $border; padding: 0 0 0 1; }
    """

    def __init__(self, desk: Desk, argument: str = "") -> None:
        super().__init__(desk, argument)
        self._all: Sequence[Item] = ()
        # The key of the row on which the cursor begins, "" for the first.
        self.start = ""
        self.list = RowList(desk.palette, id="rows")
        self.page = Page(desk.palette, id="preview") if self.PREVIEW else None
        self._detail = TagLine(desk.palette, id="detail")

    # -------------------------------------------------------------- what a picker says

    async def rows(self) -> Sequence[Item] | None:
        """All its rows; None where they could not be had, and why was said."""
        return ()

    async def preview(self, item: Item) -> Sequence[Line]:
        """What is known of a row."""
        return ()

    def behind(self) -> Sequence[Item]:
        """Rows for what is typed now, behind those that fit it."""
        return ()

    def chosen(self, item: Item) -> None:
        """A row was taken."""

    def typed(self, text: str) -> None:
        """Enter was pressed with this text, which no row fits."""

    # -------------------------------------------------------------- layout

    def body(self) -> Iterable[Widget]:
        """The line, the rows, the preview."""
        yield Field(placeholder=self.words(f"{self.PANEL}.search"), id="sought", max_length=MOST_TYPED)
        inner: list[Widget] = [self.list] if self.page is None else [self.list, self.page]
        yield Container(*inner, id="parts")
        yield self._detail

    def on_mount(self) -> None:
        """Show what there is."""
        self.list.can_focus = False
        if self.page is not None:
            self.page.can_focus = False
        self.query_one(Input).focus()
        self.work(self.load)

    def on_resize(self) -> None:
        """Put the preview beside the rows where there is room."""
        self.set_class(self.app.size.width >= WIDE, "wide")

    # -------------------------------------------------------------- rows

    @property
    def sought(self) -> str:
        """What was typed."""
        return self.query_one("#sought", Input).value

    async def load(self) -> None:
        """Get the rows again."""
        self.say(self.words("frame.loading"))
        rows = await self.rows()
        if rows is None:
            return
        self.say("")
        self._all = rows
        self.filter(stay=self.list.current is not None)

    def filter(self, stay: bool = False) -> None:
        """Show the rows that fit what was typed; the cursor stays on its row while nothing is typed or where it shall
        `stay`, else it goes to the best."""
        if not self.query("#sought"):
            return  # the screen is being closed: what was loaded came too late
        current = self.list.current
        former = self.start if current is None else current.key
        keep = former if stay or not self.sought.strip() else ""
        found = [*ranked(self._all, self.sought), *unranked(self.behind())]
        self.list.show(found, keep)
        if not found and not self.said:
            self.say(self.words(f"{self.PANEL}.{'none' if not self._all else 'no_match'}"))

    @on(Input.Changed, "#sought")
    def _typed_on(self) -> None:
        self.say("")
        self.sought_changed()

    def sought_changed(self) -> None:
        """Something else is typed."""
        self.filter()

    @on(Input.Submitted, "#sought")
    def _taken(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_choose()

    @on(RowList.Taken)
    def _clicked(self, event: RowList.Taken) -> None:
        self.chosen(event.item)

    @on(RowList.Moved)
    def _moved(self, event: RowList.Moved) -> None:
        item = event.item
        if self.page is None:
            # Without a preview, what had no room in its row is told below.
            self._detail.show([((flat(item.detail), "muted"),)] if item is not None and self.list.cuts(item) else [])
            return
        if item is None:
            self.page.show(())
            return
        self.work(lambda: self._preview(item), "preview")

    async def _preview(self, item: Item) -> None:
        lines = await self.preview(item)
        current = self.list.current
        if self.page is not None and current is not None and current.key == item.key:
            self.page.scroll_home(animate=False)
            self.page.show(lines)

    # -------------------------------------------------------------- keys

    def action_previous(self) -> None:
        """The row before."""
        self.list.move(-1)

    def action_next(self) -> None:
        """The next row."""
        self.list.move(1)

    def action_page_up(self) -> None:
        """A page up."""
        self.list.move(-max(2, self.list.page()))

    def action_page_down(self) -> None:
        """A page down."""
        self.list.move(max(2, self.list.page()))

    def action_choose(self) -> None:
        """Take the row under the cursor, or what was typed."""
        item = self.list.current
        if item is not None:
            self.chosen(item)
        elif self.sought.strip():
            self.typed(self.sought.strip())

    def action_reload(self) -> None:
        """Look again."""
        self.work(self.load)

    def action_preview_up(self) -> None:
        """Scroll the preview up."""
        if self.page is not None:
            self.page.scroll_page_up(animate=False)

    def action_preview_down(self) -> None:
        """Scroll the preview down."""
        if self.page is not None:
            self.page.scroll_page_down(animate=False)
