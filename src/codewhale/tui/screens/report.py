"""Long texts on a screen of their own, to scroll through, search and copy; what a slash command said is one of them."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Input

from codewhale.display.tones import Line, flat, safe_lines
from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.tui.keys import bindings
from codewhale.tui.screens.desk import Desk
from codewhale.tui.screens.field import Field
from codewhale.tui.screens.frame import Frame
from codewhale.tui.screens.page import Leafed, Page

MOST_COPIED = 1 << 20


class Report(Leafed, Frame):
    """Lines to read. What they are is given by `report`."""

    PANEL = "report"
    BINDINGS: ClassVar[list[BindingType]] = bindings("pager")
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("pager.down", "frame.move"),
        ("pager.find", "report.find"),
        ("pager.copy", "report.copy"),
        ("pager.close", "frame.close"),
    )

    DEFAULT_CSS = """
    Report #find { display: none; }
    Report.finding #find { display: block; }
    """

    def __init__(self, desk: Desk, argument: str = "") -> None:
        super().__init__(desk, argument)
        self.page = Page(desk.palette, id="text")

    async def report(self) -> Sequence[Line] | None:
        """The lines; None where they could not be had, and why was said."""
        return ()

    def body(self) -> Iterable[Widget]:
        """The page, and the line to search with."""
        yield self.page
        yield Field(placeholder=self.words("report.sought"), id="find", max_length=200)

    def on_mount(self) -> None:
        """Show it."""
        self.page.focus()
        self.work(self.load)

    async def load(self) -> None:
        """Get it again."""
        lines = await self.report()
        if lines is not None:
            self.page.show(lines)
            if not lines:
                self.say(self.words("report.nothing"))

    # -------------------------------------------------------------- searching

    @property
    def _line(self) -> Input:
        return self.query_one("#find", Input)

    def action_find(self) -> None:
        """Open the line to search with."""
        self.set_class(True, "finding")
        self._line.focus()

    @on(Input.Submitted, "#find")
    def _sought(self, event: Input.Submitted) -> None:
        event.stop()
        self._stop_finding()
        self.action_find_next()

    def _stop_finding(self) -> None:
        self.set_class(False, "finding")
        self.page.focus()

    def action_find_next(self) -> None:
        """To the next line that has it, from the top again behind the last."""
        self._find(1)

    def action_find_previous(self) -> None:
        """To the line before that has it."""
        self._find(-1)

    def _find(self, step: int) -> None:
        sought = self._line.value
        if not sought:
            self.action_find()
        elif self.page.seek(sought, step):
            self.say("")
        else:
            self.say(self.words("report.not_found", text=flat(sought, 60)), "warning")

    # -------------------------------------------------------------- keys

    def action_copy(self) -> None:
        """Copy all of it, through the terminal."""
        text = "\n".join("".join(part for part, _ in line) for line in self.page.lines)[:MOST_COPIED]
        self.app.copy_to_clipboard(text)
        self.say(self.words("report.copied", n=len(self.page.lines)), "success")

    def action_close(self) -> None:
        """Close the line, or the screen."""
        if self.has_class("finding"):
            self._stop_finding()
        else:
            self.dismiss(None)


class CommandReport(Report):
    """What a slash command says; `argument` is its line."""

    async def report(self) -> Sequence[Line] | None:
        """Run it."""
        self.retitle(self.argument)
        said: CommandOutput | None = await self.ask(
            self.desk.submit(RunCommand(self.desk.session, self.argument)), "frame.loading"
        )
        if said is None:
            return None
        return safe_lines(said.text, "text" if said.ok else "error")
