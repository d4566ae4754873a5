"""What every screen of this folder shares: a frame with a title, a line for what went wrong, and the keys that hold."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, ClassVar, TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget

from codewhale.display.palette import Palette
from codewhale.display.tones import Line, flat
from codewhale.tui.screens.desk import Desk
from codewhale.tui.screens.hints import hint, in_rows
from codewhale.tui.screens.outcomes import Outcome
from codewhale.tui.screens.tagline import TagLine

_T = TypeVar("_T")
ANSWER_SECONDS = 30.0


class Frame(ModalScreen[Outcome | None]):
    """A screen over the conversation. `PANEL` names its words, `HINTS` the rows of keys.py that it shows, each with the
    key of its short word."""

    PANEL: ClassVar[str] = ""
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = ()

    DEFAULT_CSS = """
    Frame { align: center middle; background: $background; }
    Frame > #frame {
        width: 100%; max-width: 130; height: 100%; max-height: 48; padding: 0 1;
        border: round $border; border-title-color: $accent; border-title-style: bold; background: $background;
    }
    Frame #said, Frame #hints { height: auto; }
    Frame Input { background: $surface; }
    """

    def __init__(self, desk: Desk, argument: str = "") -> None:
        super().__init__()
        self.desk = desk
        self.words = desk.words
        self.argument = argument
        self._hints = TagLine(desk.palette, id="hints")
        self._said = TagLine(desk.palette, id="said")

    # -------------------------------------------------------------- layout

    def compose(self) -> ComposeResult:
        """The frame around the body."""
        with Vertical(id="frame"):
            yield from self.body()
            yield self._said
            yield self._hints

    def body(self) -> Iterable[Widget]:
        """What stands inside the frame."""
        return ()

    def on_mount(self) -> None:
        """Say what this is."""
        self.retitle()
        self._show_hints()

    def retitle(self, more: str = "") -> None:
        """Set the title, with something behind it."""
        frame = self.query_one("#frame")
        frame.border_title = Content(flat(f"{self.words(f'{self.PANEL}.title')}{f' · {more}' if more else ''}", 120))

    def hints(self) -> tuple[tuple[str, str], ...]:
        """The rows of keys.py that hold now, each with its word."""
        return self.HINTS

    def _show_hints(self) -> None:
        width = min(self.app.size.width, 130) - 4
        said = (hint(action, self.words(key), self.desk.keys) for action, key in self.hints())
        self._hints.show(in_rows(said, width))

    def on_resize(self) -> None:
        """Lay the keys out again."""
        self._show_hints()

    def repaint(self, palette: Palette) -> None:
        """Draw in other colours."""
        for widget in self.query("*"):
            paint = getattr(widget, "repaint", None)
            if paint is not None:
                paint(palette)

    # -------------------------------------------------------------- what is said

    def say(self, text: str, tone: str = "muted") -> None:
        """Show a line of our own or of a failure under the body; "" takes it away."""
        lines: list[Line] = [((flat(text), tone),)] if text else []
        self._said.show(lines)

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
        """Leave without an outcome."""
        self.dismiss(None)
