"""Keys that hold everywhere and are another panel's: each is handed on."""

from typing import Any


class Forwarding:
    """Of an app that has a `transcript` and an `asking` panel, and opens screens."""

    transcript: Any
    asking: Any

    def open_screen(self, name: str, argument: str = "") -> None:
        """Open a screen of the table."""
        raise NotImplementedError

    def action_palette(self) -> None:
        """Commands, files, sessions, models and tools."""
        self.open_screen("palette")

    def action_sessions(self) -> None:
        """Sessions."""
        self.open_screen("sessions")

    def action_models(self) -> None:
        """Models and providers."""
        self.open_screen("models")

    def action_jobs(self) -> None:
        """Background jobs."""
        self.open_screen("jobs")

    def action_help(self) -> None:
        """Help."""
        self.open_screen("help")

    def action_keys(self) -> None:
        """All keys."""
        self.open_screen("keys")

    def action_answer(self) -> None:
        """What is asked has the keys."""
        self.asking.focus_card()

    def action_pager(self) -> None:
        """The transcript's."""
        self.transcript.action_pager()

    def action_search(self) -> None:
        """The transcript's."""
        self.transcript.action_find()

    def action_fold_all(self) -> None:
        """The transcript's."""
        self.transcript.action_fold_all()

    def action_focus_transcript(self) -> None:
        """The transcript's."""
        self.transcript.focus()

    def action_copy_answer(self) -> None:
        """The transcript's."""
        self.transcript.action_copy_answer()

    def action_copy_code(self) -> None:
        """The transcript's."""
        self.transcript.action_copy_code()

    def action_open_last(self) -> None:
        """The transcript's."""
        self.transcript.action_open_last()

    def action_page_up(self) -> None:
        """The transcript's."""
        self.transcript.action_page_up()

    def action_page_down(self) -> None:
        """The transcript's."""
        self.transcript.action_page_down()

    def action_turn_up(self) -> None:
        """The transcript's."""
        self.transcript.action_turn_up()

    def action_turn_down(self) -> None:
        """The transcript's."""
        self.transcript.action_turn_down()

    def action_top(self) -> None:
        """The transcript's."""
        self.transcript.action_top()

    def action_bottom(self) -> None:
        """The transcript's."""
        self.transcript.action_bottom()
