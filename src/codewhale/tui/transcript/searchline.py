"""The line below a transcript into which is typed what is to be found."""

from typing import ClassVar, Protocol

from textual.app import ComposeResult
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from codewhale.display.words import Words
from codewhale.tui.keys import bindings


class Searched(Protocol):
    """What is searched."""

    def seek(self, query: str) -> None:
        """Find these words."""
        ...

    def action_find_next(self) -> None:
        """The next place."""
        ...

    def action_find_previous(self) -> None:
        """The place before."""
        ...

    def close_search(self) -> bool:
        """Search no more."""
        ...

    def focus(self, scroll_visible: bool = True) -> object:
        """Take the keys."""
        ...


class SearchLine(Widget):
    """Finds while it is typed."""

    BINDINGS: ClassVar = bindings("search")
    DEFAULT_CSS = """
    SearchLine { dock: bottom; height: 1; layout: horizontal; background: $surface; color: $foreground; }
    SearchLine > .label { width: auto; padding: 0 1; color: $cw-accent; background: $surface; }
    SearchLine > Input { width: 1fr; border: none; height: 1; padding: 0; background: $surface; color: $foreground; }
    SearchLine > .count { width: auto; padding: 0 1; color: $cw-muted; background: $surface; }
    """

    def __init__(self, words: Words, searched: Searched) -> None:
        super().__init__()
        self._searched = searched
        self._label = words("transcript.search")
        self._count = Static("", markup=False, classes="count")
        self._input = Input(compact=True, max_length=200)

    def compose(self) -> ComposeResult:
        """What it is for, what is typed, what was found."""
        yield Static(self._label, markup=False, classes="label")
        yield self._input
        yield self._count

    def focus(self, scroll_visible: bool = True) -> "SearchLine":
        """Type here."""
        self._input.focus(scroll_visible)
        return self

    def say(self, text: str) -> None:
        """How many places there are."""
        self._count.update(Content(text))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Find what stands here now."""
        event.stop()
        self._searched.seek(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go on from here."""
        event.stop()
        self.action_accept()

    def action_accept(self) -> None:
        """Move about from the place that was found."""
        self._searched.focus()

    def action_later(self) -> None:
        """The next place."""
        self._searched.action_find_next()

    def action_earlier(self) -> None:
        """The place before."""
        self._searched.action_find_previous()

    def action_close(self) -> None:
        """Search no more."""
        self._searched.close_search()
        self._searched.focus()
