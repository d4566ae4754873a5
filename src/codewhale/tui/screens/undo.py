"""What taking back would do, before it is done: the files, what stays as it is and why, and the differences."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from codewhale.display.text import Spans, flat, safe_lines
from codewhale.display.words import Words
from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.protocol.views import PreviewUndo, RewindView, UndoView
from codewhale.tui.keys import bindings
from codewhale.tui.rows import Item
from codewhale.tui.screens.context import OpenScreen, ScreenContext, ShowLine
from codewhale.tui.screens.frame import Chooser, Frame
from codewhale.tui.screens.reports import changed_lines
from codewhale.tui.widgets import Leafed, Page

BACK = "back"
MOST_TURNS = 999


class UndoScreen(Leafed, Frame):
    """Takes back the last turns, on yes. `argument` is how many, or "back" for what was undone last."""

    PANEL = "undo"
    BINDINGS: ClassVar[list[BindingType]] = bindings("undo")

    def __init__(self, context: ScreenContext, argument: str = "") -> None:
        super().__init__(context, argument)
        self.page = Page(context.palette, id="plan")
        self.turns = min(MOST_TURNS, int(argument)) if argument.isascii() and argument.isdigit() else 1
        self.back = argument == BACK
        self.possible = False
        self._most = MOST_TURNS
        self._doing = False

    def body(self) -> Iterable[Widget]:
        yield self.page

    def hints(self) -> tuple[tuple[str, str], ...]:
        yes = (("undo.accept", "undo.back_yes" if self.back else "undo.yes"),) if self.possible else ()
        count = () if self.back else (("undo.more", "undo.more"), ("undo.fewer", "undo.fewer"))
        return (
            *yes,
            *count,
            ("undo.close", "undo.no" if self.possible else "frame.close"),
        )

    def on_mount(self) -> None:
        self.page.focus()
        self.work(self.load)

    async def load(self) -> None:
        """Work out what would be done."""
        self.possible = False
        self._show_hints()
        lines = await (self._plan_back() if self.back else self._plan())
        if lines is not None:
            self.page.show(lines)
        self._show_hints()

    async def _plan(self) -> Sequence[Spans] | None:
        self.retitle(self.words("undo.turns", n=self.turns))
        asked = PreviewUndo(self.context.session, self.turns)
        view: UndoView | None = await self.ask(self.context.query(asked), "undo.looking")
        if view is None:
            return None
        self._most = max((number for number, _ in view.rows), default=0)
        self.possible = bool(view.files) and not view.why
        return list(self._lines(view))

    def _lines(self, view: UndoView) -> Iterable[Spans]:
        words = self.words
        if view.why:
            yield ((flat(view.why, 1000), "warning"),)
        elif not view.rows:
            yield ((words("undo.none"), "muted"),)
        for number, row in view.rows[: self.turns]:
            yield ((f"{number:>3}  ", "muted"), (flat(row, 500), "text"))
        yield from planned_lines(words, view)

    async def _plan_back(self) -> Sequence[Spans] | None:
        self.retitle(self.words("undo.back"))
        asked = RunCommand(self.context.session, "/restore back preview")
        said: CommandOutput | None = await self.ask(self.context.submit(asked), "undo.looking")
        if said is None:
            return None
        self.possible = said.ok
        return safe_lines(said.text, "text" if said.ok else "warning")

    # -------------------------------------------------------------- keys

    def action_accept(self) -> None:
        if self.possible and not self._doing:
            self._doing = True
            self.work(self._carry_out, "act")

    async def _carry_out(self) -> None:
        line = "/restore back yes" if self.back else f"/undo {self.turns} yes"
        said: CommandOutput | None = await self.ask(
            self.context.submit(RunCommand(self.context.session, line)), "undo.doing"
        )
        self._doing = False
        if said is None:
            return
        if said.ok:
            self.dismiss(ShowLine(" ".join(said.text.split()), True))
        else:
            self.say(" ".join(said.text.split()), "error")

    def action_more(self) -> None:
        self._change(1)

    def action_fewer(self) -> None:
        self._change(-1)

    def _change(self, by: int) -> None:
        turns = min(max(1, self._most), max(1, self.turns + by))
        if not self.back and not self._doing and turns != self.turns:
            self.turns = turns
            self.work(self.load)


def planned_lines(words: Words, view: UndoView | RewindView) -> Iterable[Spans]:
    """What becomes of files, what stays and why, and the differences."""
    if view.files:
        yield ()
        yield ((words("undo.files", n=len(view.files)), "bold text"),)
        yield from (((f"  {flat(file)}", "text"),) for file in view.files)
    if view.refused:
        yield ()
        yield ((words("undo.refused", n=len(view.refused)), "bold warning"),)
        yield from (((f"  {flat(file)}", "warning"),) for file in view.refused)
    if view.diffs:
        yield ()
        yield from changed_lines(view.diffs)


class RestoreScreen(Chooser):
    """The turns that changed files: all from the chosen one on is taken back, once it was looked at."""

    PANEL = "restore"

    async def rows(self) -> Sequence[Item] | None:
        view: UndoView | None = await self.ask(self.context.query(PreviewUndo(self.context.session)), "frame.loading")
        if view is None:
            return None
        rows = [Item(str(number), f"{number} · {flat(row)}", value=str(number)) for number, row in view.rows]
        back = Item(BACK, self.words("restore.back"), self.words("restore.back_more"), value=BACK)
        return [*rows, back]

    def chosen(self, item: Item) -> None:
        self.dismiss(OpenScreen("undo", item.value))


SCREENS: dict[str, type[Frame]] = {"undo": UndoScreen, "restore": RestoreScreen}
