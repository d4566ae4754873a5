"""Keys that hold everywhere and are another panel's: each is handed on."""

from typing import Any


class Forwarding:
    """Of an app that has a `transcript`, an `asking` panel and a `composer`, and opens screens."""

    transcript: Any
    asking: Any
    composer: Any

    @property
    def _read(self) -> Any:
        """What the keys that scroll and unfold are about: the card while it has the focus, else the transcript."""
        card = self.asking.card
        return card if card is not None and card.has_focus else self.transcript

    def open_screen(self, name: str, argument: str = "") -> None:
        """Open a screen of the table."""
        raise NotImplementedError

    def action_palette(self) -> None:
        self.open_screen("palette")

    def action_sessions(self) -> None:
        self.open_screen("sessions")

    def action_models(self) -> None:
        self.open_screen("models")

    def action_jobs(self) -> None:
        self.open_screen("jobs")

    def action_help(self) -> None:
        self.open_screen("help")

    def action_keys(self) -> None:
        self.open_screen("keys")

    def action_answer(self) -> None:
        """What is asked has the keys; what was written is put aside."""
        if self.asking.card is not None:
            self.composer.step_aside()
            self.asking.focus_card()

    def action_pager(self) -> None:
        self.transcript.action_pager()

    def action_search(self) -> None:
        self.transcript.action_find()

    def action_fold_all(self) -> None:
        self._read.action_fold_all()

    def action_focus_transcript(self) -> None:
        self.transcript.focus()

    def action_copy_answer(self) -> None:
        self.transcript.action_copy_answer()

    def action_copy_code(self) -> None:
        self.transcript.action_copy_code()

    def action_open_last(self) -> None:
        self.transcript.action_open_last()

    def action_page_up(self) -> None:
        self._read.action_page_up()

    def action_page_down(self) -> None:
        self._read.action_page_down()

    def action_turn_up(self) -> None:
        self.transcript.action_turn_up()

    def action_turn_down(self) -> None:
        self.transcript.action_turn_down()

    def action_top(self) -> None:
        self.transcript.action_top()

    def action_bottom(self) -> None:
        self.transcript.action_bottom()
