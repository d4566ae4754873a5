"""Questions before what is not done by a slip: no is the row at hand, yes is another one."""

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from codewhale.display.tones import flat
from codewhale.tui.keys import bindings
from codewhale.tui.screens.desk import Desk
from codewhale.tui.screens.frame import Frame
from codewhale.tui.screens.outcomes import Outcome, RunAction, RunLine
from codewhale.tui.screens.rowlist import Item, RowList, unranked
from codewhale.tui.screens.tagline import TagLine

NO, YES = "no", "yes"
MOST_REASONS = 8


class Confirm(Frame):
    """Asks one thing. `argument` are lines that say what it would do; YES is the outcome of the second row."""

    YES: ClassVar[Outcome]
    TONE = "warning"
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("confirm.next", "frame.move"),
        ("confirm.choose", "frame.choose"),
        ("confirm.close", "frame.close"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings("confirm")
    DEFAULT_CSS = """
    Confirm > #frame { max-width: 72; height: auto; border: round $cw-warning; border-title-color: $cw-warning; }
    Confirm #rows { height: 2; margin: 1 0; }
    """

    def __init__(self, desk: Desk, argument: str = "") -> None:
        super().__init__(desk, argument)
        self.list = RowList(desk.palette, id="rows")
        self._reasons = TagLine(desk.palette)

    def body(self) -> Iterable[Widget]:
        """Why it is asked, and the two answers."""
        yield self._reasons
        yield self.list

    def on_mount(self) -> None:
        """Stand on no."""
        lines = self.argument.split("\n")[:MOST_REASONS]
        self._reasons.show([((flat(line, 300), "text"),) for line in lines])
        self.list.show(unranked([Item(name, self.words(f"{self.PANEL}.{name}")) for name in (NO, YES)]))
        self.list.focus()

    def on_row_list_taken(self, message: RowList.Taken) -> None:
        """By the mouse."""
        message.stop()
        self.action_choose()

    def action_previous(self) -> None:
        """The other answer."""
        self.list.move(-1)

    def action_next(self) -> None:
        """The other answer."""
        self.list.move(1)

    def action_choose(self) -> None:
        """Do what the row at hand says."""
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

    def __init__(self, desk: Desk, argument: str = "") -> None:
        super().__init__(desk, argument or desk.words("yolo.means"))
