"""The kinds of dialogs: a frame as large as what it holds, with a title, a line for what went wrong, its keys; a list
to choose from; a question with two answers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input

from codewhale.display.palette import Palette
from codewhale.display.text import Spans, columns, flat
from codewhale.tui.keys import bindings
from codewhale.tui.rows import Item, RowList, ranked, unranked
from codewhale.tui.screens.context import Outcome, RunAction, RunLine, ScreenContext
from codewhale.tui.widgets import Field, Grown, Page, TagLine, hint, in_rows

_T = TypeVar("_T")
ANSWER_SECONDS = 30.0
# From so many columns on a preview stands beside the rows. A dialog is no narrower than LEAST and no wider than MOST.
WIDE, LEAST, MOST = 100, 48, 130
MARGIN = 4
# On a screen of so many rows there is air between the parts, and a list takes no more than its share.
ROOMY, SHARE = 20, 0.7
PREVIEW_COLUMNS, PREVIEW_LINES = 52, 14
_EDGES = 4  # columns of the border and the padding
MOST_TYPED = 1000
NO, YES = "no", "yes"
MOST_REASONS = 8


class Frame(ModalScreen[Outcome | None]):
    """A screen over the conversation. `PANEL` names its words, `HINTS` the rows of keys.py that it shows, each with the
    key of its short word."""

    PANEL: ClassVar[str] = ""
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = ()

    DEFAULT_CSS = """
    Frame { align: center middle; background: transparent; }
    Frame > #frame {
        width: 48; height: 6; padding: 0 1; border: round $border; border-title-color: $accent;
        border-title-style: bold; background: $background;
    }
    Frame #said, Frame #hints { height: auto; }
    Frame.roomy #hints { margin: 1 0 0 0; }
    Frame.roomy #sought { margin: 0 0 1 0; }
    Frame Input { background: $surface; }
    """

    def __init__(self, context: ScreenContext, argument: str = "") -> None:
        super().__init__()
        self.context = context
        self.words = context.words
        self.argument = argument
        self._hints = TagLine(context.palette, id="hints")
        self._said = TagLine(context.palette, id="said")
        self._grown = (LEAST, 0)

    # -------------------------------------------------------------- layout

    def compose(self) -> ComposeResult:
        with Vertical(id="frame"):
            yield from self.body()
            yield self._said
            yield self._hints

    def body(self) -> Iterable[Widget]:
        return ()

    def on_mount(self) -> None:
        self.retitle()
        self._show_hints()

    def retitle(self, more: str = "") -> None:
        """Set the title, with something behind it."""
        title = f"{self.words(f'{self.PANEL}.title')}{f' · {more}' if more else ''}"
        for frame in self.query("#frame"):  # none where what was loaded came after the screen was closed
            frame.border_title = Content(flat(title, 120))

    def hints(self) -> tuple[tuple[str, str], ...]:
        return self.HINTS

    def _show_hints(self) -> None:
        self.lay_out()

    @on(Grown)
    def lay_out(self) -> None:
        """Be as large as what is held, as far as the screen goes; what is filtered away leaves its room behind."""
        for frame in self.query("#frame"):  # none where what was loaded came after the screen was closed
            most_wide, most_high = self.app.size
            if most_wide >= WIDE:
                most_wide -= MARGIN
            self.set_class(most_high >= ROOMY, "roomy")
            hints = [hint(action, self.words(key), self.context.keys) for action, key in self.hints()]
            (row,) = in_rows(hints, 10_000) or [()]
            title = cell_len(str(frame.border_title or ""))
            wanted = max(self._grown[0], _EDGES + max(self.widest(), columns(row), title + 2))
            width = min(wanted, most_wide, MOST)
            inner = max(2, width - _EDGES)
            self._hints.show(in_rows(hints, inner))
            height = 2 + max(1, self.lines_at(inner)) + sum(self._rows_of(part, inner) for part in frame.children)
            self._grown = wanted, max(self._grown[1], height)
            frame.styles.width, frame.styles.height = width, min(self._grown[1], most_high)

    def _rows_of(self, part: Widget, width: int) -> int:
        """The rows of what does not scroll."""
        rows = len(part.pieces(width)) if isinstance(part, TagLine) else int(isinstance(part, Input) and part.display)
        return rows + (part.styles.margin.height if rows else 0)

    def widest(self) -> int:
        """The columns of what is held, with room for all."""
        return max((part.widest for part in self._scrolling()), default=0)

    def lines_at(self, width: int) -> int:
        """The lines of what is held in so many columns."""
        return sum(max(1, part.lines_at(width)) + part.gutter.height for part in self._scrolling())

    def _scrolling(self) -> list[RowList | Page]:
        return [part for part in self.query("*") if isinstance(part, RowList | Page) and part.display]

    def on_resize(self) -> None:
        self.lay_out()

    def repaint(self, palette: Palette) -> None:
        for widget in self.query("*"):
            paint = getattr(widget, "repaint", None)
            if paint is not None:
                paint(palette)

    # -------------------------------------------------------------- what is said

    def say(self, text: str, tone: str = "muted") -> None:
        """Show a line of our own or of a failure under the body; "" takes it away."""
        lines: list[Spans] = [((flat(text), tone),)] if text else []
        self._said.show(lines)
        self.lay_out()

    @property
    def said(self) -> str:
        """What is said at the moment."""
        return self._said.text

    async def ask(self, asked: Awaitable[_T], waiting: str = "") -> _T | None:
        """The answer to a query or an operation; None when it failed, and then why is said."""
        if waiting:
            self.say(self.words(waiting))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await asked
        except TimeoutError:
            self.say(self.words("frame.timeout", seconds=int(ANSWER_SECONDS)), "error")
            return None
        except Exception as error:
            # Whatever fails below, the screen says so and stays usable.
            self.say(str(error) or type(error).__name__, "error")
            return None
        if waiting:
            self.say("")
        return answer

    def work(self, task: Callable[[], Awaitable[Any]], group: str = "load") -> None:
        """Run something beside the screen; the latest of a group takes the place of the one before."""

        async def run() -> None:
            await task()

        runs: Callable[[], Awaitable[Any]] = run
        self.run_worker(runs, group=group, exclusive=True, exit_on_error=True)

    def action_close(self) -> None:
        self.dismiss(None)


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
    Chooser.wide #preview { width: 40%; border-top: none; border-left: solid $border; padding: 0 0 0 1; }
    """

    def __init__(self, context: ScreenContext, argument: str = "") -> None:
        super().__init__(context, argument)
        self._all: Sequence[Item] = ()
        # The key of the row on which the cursor begins, "" for the first.
        self.start = ""
        self.list = RowList(context.palette, id="rows")
        self.page = Page(context.palette, id="preview") if self.PREVIEW else None
        self._detail = TagLine(context.palette, id="detail")

    # -------------------------------------------------------------- what a picker says

    async def rows(self) -> Sequence[Item] | None:
        """All its rows; None where they could not be had, and why was said."""
        return ()

    async def preview(self, item: Item) -> Sequence[Spans]:
        return ()

    def beneath(self, item: Item) -> str:
        """What stands below the rows about the one at the cursor, where there is no preview."""
        return "  ".join(self.list.cut(item))

    def behind(self) -> Sequence[Item]:
        """Rows for what is typed now, behind those that fit it."""
        return ()

    def chosen(self, item: Item) -> None:
        """A row was taken."""

    def typed(self, text: str) -> None:
        """Enter was pressed with this text, which no row fits."""

    # -------------------------------------------------------------- layout

    def body(self) -> Iterable[Widget]:
        yield Field(placeholder=self.words(f"{self.PANEL}.search"), id="sought", max_length=MOST_TYPED)
        inner: list[Widget] = [self.list] if self.page is None else [self.list, self.page]
        yield Container(*inner, id="parts")
        yield self._detail

    def on_mount(self) -> None:
        self.list.can_focus = False
        if self.page is not None:
            self.page.can_focus = False
        self.query_one(Input).focus()
        self.work(self.load)

    def on_resize(self) -> None:
        self.set_class(self.app.size.width >= WIDE, "wide")

    def widest(self) -> int:
        return self.list.widest + (PREVIEW_COLUMNS if self.page is not None and self.has_class("wide") else 0)

    def lines_at(self, width: int) -> int:
        lines = min(self.list.lines_at(width), max(ROOMY, int(self.app.size.height * SHARE)))
        if self.page is None:
            return lines
        return max(lines, PREVIEW_LINES) if self.has_class("wide") else lines + PREVIEW_LINES

    # -------------------------------------------------------------- rows

    @property
    def sought(self) -> str:
        """What was typed; nothing on a screen that is being closed."""
        return "".join(field.value for field in self.query("#sought").results(Input))

    async def load(self) -> None:
        self.say(self.words("frame.loading"))
        rows = await self.rows()
        if rows is None:
            return
        if self.said == self.words("frame.loading"):
            self.say("")  # what failed meanwhile stays said
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
            said = self.beneath(item) if item is not None else ""
            self._detail.show([((flat(said), "muted"),)] if said else [])
            self.lay_out()
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
        self.list.move(-1)

    def action_next(self) -> None:
        self.list.move(1)

    def action_page_up(self) -> None:
        self.list.move(-max(2, self.list.page()))

    def action_page_down(self) -> None:
        self.list.move(max(2, self.list.page()))

    def action_choose(self) -> None:
        """Take the row under the cursor, or what was typed."""
        item = self.list.current
        if item is not None:
            self.chosen(item)
        elif self.sought.strip():
            self.typed(self.sought.strip())

    def action_reload(self) -> None:
        self.work(self.load)

    def action_preview_up(self) -> None:
        if self.page is not None:
            self.page.scroll_page_up(animate=False)

    def action_preview_down(self) -> None:
        if self.page is not None:
            self.page.scroll_page_down(animate=False)


class Confirm(Frame):
    """Asks one thing. `argument` are lines that say what it would do; YES is the outcome of the second row."""

    YES: ClassVar[Outcome]
    ROWS: ClassVar[tuple[str, ...]] = (NO, "yes")
    TONE = "warning"
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("confirm.next", "frame.move"),
        ("confirm.choose", "frame.choose"),
        ("confirm.close", "frame.close"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings("confirm")
    DEFAULT_CSS = """
    Confirm > #frame { border: round $cw-warning; border-title-color: $cw-warning; }
    """

    def __init__(self, context: ScreenContext, argument: str = "") -> None:
        super().__init__(context, argument)
        self.list = RowList(context.palette, id="rows")
        self._reasons = TagLine(context.palette)

    def body(self) -> Iterable[Widget]:
        yield self._reasons
        yield self.list

    def on_mount(self) -> None:
        lines = self.argument.split("\n")[:MOST_REASONS]
        self._reasons.show([*(((flat(line, 300), "text"),) for line in lines), ()])
        self.list.show(unranked([Item(name, self.words(f"{self.PANEL}.{name}")) for name in self.ROWS]))
        self.list.focus()

    def on_row_list_taken(self, message: RowList.Taken) -> None:
        message.stop()
        self.action_choose()

    def action_previous(self) -> None:
        self.list.move(-1)

    def action_next(self) -> None:
        self.list.move(1)

    def action_choose(self) -> None:
        chosen = self.list.current
        self.dismiss(self.YES if chosen is not None and chosen.key == YES else None)


class LeaveScreen(Confirm):
    """Whether to leave in the middle of something."""

    PANEL = "leave"
    YES = RunAction("app.end")


class YoloScreen(Confirm):
    """Whether everything may run unasked."""

    PANEL = "yolo"
    YES = RunLine("/mode yolo yes")

    def __init__(self, context: ScreenContext, argument: str = "") -> None:
        super().__init__(context, argument or context.words("yolo.means"))


SCREENS: dict[str, type[Frame]] = {"leave": LeaveScreen, "yolo": YoloScreen}
